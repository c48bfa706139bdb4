"""Sort the entries of a matrix into its blocks on disk, and make each block symmetric in memory.

Both directions of a pair fall into the same block, so that all rules for edges apply block by block. Only one
question concerns all blocks: whether the two directions of all pairs are equal (``directed="sum"``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from symrelu.graphs.matrix_rules import DONE
from symrelu.graphs.pairs import NOT_ADDED, Pairs, Rules, once_each, one_direction, sort_pairs, without_loops
from symrelu.kernels.block_grid import Block, BlockGrid
from symrelu.validation import symmetry_tolerance

_RECORD = np.dtype([("row", "<i8"), ("col", "<i8"), ("value", "<f8")])
_LOOPS = "# self loops are on the diagonal"
# "1 self loop was" and "3 self loops were" are the same sentence about all blocks.
_ONE_AND_MANY = (
    ("# self loop is ", "# self loops are "),
    ("# self loop was ", "# self loops were "),
    ("# repeated edge was ", "# repeated edges were "),
    ("# pair were ", "# pairs were "),
    ("# weight was ", "# weights were "),
)


class Buckets:
    """A file for each block, to which entries are appended in the order in which they come.

    Parameters
    ----------
    folder : Path
    rows : int
        Number of rows of a panel.
    """

    def __init__(self, folder: Path, rows: int) -> None:
        self.folder = folder
        self.rows = rows
        self.largest = 0.0

    def add(self, rows: np.ndarray, cols: np.ndarray, values: np.ndarray) -> None:
        """Append entries to the files of their blocks; those below the diagonal go to the block above it."""
        records = np.empty(len(rows), _RECORD)
        records["row"], records["col"], records["value"] = rows, cols, values
        self.largest = max(self.largest, float(values.max(initial=0.0)))
        low, high = np.minimum(rows, cols) // self.rows, np.maximum(rows, cols) // self.rows
        order = np.lexsort((high, low))  # stable: entries of a block keep their order
        low, high, records = low[order], high[order], records[order]
        starts = np.flatnonzero((np.diff(low, prepend=-1) != 0) | (np.diff(high, prepend=-1) != 0))
        for first, last in zip(starts, np.append(starts[1:], len(low)), strict=True):
            with open(self._file((int(low[first]), int(high[first]))), "ab") as file:
                file.write(records[first:last].tobytes())

    def read(self, block: Block) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return rows, columns and values of the entries of a block."""
        path = self._file(block)
        records = np.fromfile(path, _RECORD) if path.exists() else np.empty(0, _RECORD)
        return tuple(np.ascontiguousarray(records[name]) for name in ("row", "col", "value"))  # type: ignore[return-value]

    def _file(self, block: Block) -> Path:
        return self.folder / f"{block[0]}-{block[1]}.bin"


class Combination:
    """Combine the entries of blocks by the rules for edges, and count what was combined.

    Parameters
    ----------
    rules : Rules
    is_list : bool
        Whether the entries are edges: a direction that is not given then does not count. In a matrix it is
        zero.
    dtype : dtype
        Type of the blocks.
    """

    def __init__(self, rules: Rules, *, is_list: bool, dtype: np.dtype[Any]) -> None:
        self.rules = rules
        self.is_list = is_list
        self.dtype = dtype
        self._counts: dict[str, int] = {}
        self._plain_notes: set[str] = set()
        self._n = 0

    def blocks(self, buckets: Buckets, grid: BlockGrid, names: Sequence[Any]) -> Iterator[tuple[Block, Any]]:
        """Yield each block on or above the diagonal with its matrix."""
        self._n = grid.n
        directed = self.rules.directed or "error"
        tolerance = symmetry_tolerance(self.dtype) * buckets.largest
        if directed == "sum" and self._all_symmetric(buckets, grid, names, 0.0 if self.is_list else tolerance):
            self._plain_notes.add(NOT_ADDED)
            directed = "error"  # there is nothing to combine
        for block in grid.blocks():
            pairs, values = self._once(block, buckets, names)
            if self.is_list:
                pairs, values, notes = one_direction(pairs, values, directed, "directed", all_pairs=False)
                self._count(notes)
                matrix = self._assembled(block, grid, pairs, values)
            else:
                matrix = self._of_matrix(block, grid, pairs, values, directed, tolerance)
            yield block, self._cast(block, grid, matrix, names)

    def notes(self) -> tuple[str, ...]:
        """Return sentences about what was combined or left out in all blocks."""
        counts = self._counts
        # On all of the diagonal they are similarities of items with themselves, as a kernel has them.
        if not self.is_list and counts.get(_LOOPS) == self._n:
            counts = {text: number for text, number in counts.items() if text != _LOOPS}
        counted = [_with_number(text, number) for text, number in counts.items()]
        return (*counted, *sorted(self._plain_notes))

    def _count(self, notes: tuple[str, ...]) -> None:
        for text in notes:
            number = next(word for word in text.split() if word.isdigit())
            plural = text.replace(number, "#", 1)
            for one, many in _ONE_AND_MANY:
                plural = plural.replace(one, many)
            self._counts[plural] = self._counts.get(plural, 0) + int(number)

    def _once(self, block: Block, buckets: Buckets, names: Sequence[Any]) -> tuple[Pairs, np.ndarray]:
        """Return the entries of a block sorted and each once, by the rules for repeated ones and self loops."""
        rows, cols, values = buckets.read(block)
        pairs, values = sort_pairs(Pairs(rows, cols, names), values)
        pairs, values, notes = without_loops(pairs, values, self.rules.self_loops)
        pairs, values, more = once_each(pairs, values, self.rules.duplicates)
        self._count(notes + more)
        return pairs, values

    def _all_symmetric(self, buckets: Buckets, grid: BlockGrid, names: Sequence[Any], tolerance: float) -> bool:
        counts = dict(self._counts)
        symmetric = all(_is_symmetric(*self._once(block, buckets, names), tolerance) for block in grid.blocks())
        self._counts = counts  # they are counted again
        return symmetric

    def _assembled(self, block: Block, grid: BlockGrid, pairs: Pairs, values: np.ndarray) -> Any:
        """Return the block of pairs with row <= column; one on the diagonal is completed below it."""
        matrix = self._csr(block, grid, pairs.rows, pairs.cols, values)
        if block[0] == block[1]:
            off = pairs.rows != pairs.cols
            matrix = matrix + self._csr(block, grid, pairs.cols[off], pairs.rows[off], values[off])
        return _without_zeros(matrix)

    def _csr(
        self, block: Block, grid: BlockGrid, rows: np.ndarray, cols: np.ndarray, values: np.ndarray
    ) -> Any:
        """Return entries as a block, still in float64: only what they are combined to is rounded."""
        first, second = grid.panel(block[0]).start, grid.panel(block[1]).start
        places = (rows - first, cols - second)
        return sparse.csr_array((values, places), shape=grid.shape(block))

    def _cast(self, block: Block, grid: BlockGrid, matrix: Any, names: Sequence[Any]) -> Any:
        """Return a block in its type; raise if an entry is too large for it, count those that are too small."""
        with np.errstate(over="ignore", under="ignore"):
            values = matrix.data.astype(self.dtype)
        too_large, vanished = np.flatnonzero(values == np.inf), np.flatnonzero(values == 0)
        if too_large.size or vanished.size:
            starts = [grid.panel(p).start for p in block]
            rows, cols = (index + start for index, start in zip(matrix.tocoo().coords, starts, strict=True))
            if too_large.size:
                k = too_large[0]
                self._refuse_large(Pairs(rows, cols, names).edge(k), matrix.data[k])
            values[vanished] = np.finfo(self.dtype).smallest_subnormal  # a zero would be no edge any more
            count = int(
                np.count_nonzero(rows[vanished] <= cols[vanished])
            )  # those below the diagonal are the same
            held = f"smaller than {self.dtype} can hold, and became its smallest positive number"
            self._count((f"{count} weights were {held}",))
        return sparse.csr_array((values, matrix.indices, matrix.indptr), shape=matrix.shape)

    def _refuse_large(self, edge: str, weight: float) -> None:
        limit = float(np.finfo(self.dtype).max)
        wider = 'Pass dtype="float64" (--dtype float64), or divide' if np.isfinite(weight) else "Divide"
        raise ValueError(
            f"Weights must be at most {limit:.3g} as {self.dtype}: edge {edge} has {weight:g}. {wider} all "
            "weights by the same number."
        )

    def _of_matrix(
        self, block: Block, grid: BlockGrid, pairs: Pairs, values: np.ndarray, directed: str, tolerance: float
    ) -> Any:
        """Return a block of a matrix: its entries above the diagonal combined with those below it."""
        diagonal_block = block[0] == block[1]
        above = np.full(len(values), True) if diagonal_block else pairs.rows // grid.rows == block[0]
        upper = self._csr(block, grid, pairs.rows[above], pairs.cols[above], values[above])
        lower = (
            upper.T
            if diagonal_block
            else self._csr(block, grid, pairs.cols[~above], pairs.rows[~above], values[~above])
        )
        lower = sparse.csr_array(lower)
        difference = abs(upper - lower).tocoo()
        equal = difference.nnz == 0 or difference.data.max() == 0
        if equal and directed != "sum":
            return _without_zeros(upper)
        if directed == "error":
            k = int(difference.data.argmax())
            if difference.data[k] > tolerance:
                i, j = (
                    int(index[k]) + grid.panel(p).start
                    for index, p in zip(difference.coords, block, strict=True)
                )
                raise ValueError(
                    f"The matrix must be symmetric, but entries ({i}, {j}) and ({j}, {i}) differ by "
                    f'{difference.data[k]:g}. Pass directed="max" to keep the larger, "sum" to add them, or '
                    '"mean" to average them.'
                )
            directed = "mean"
        else:
            self._plain_notes.add(f"the two directions of all pairs were {DONE[directed]}")
        return _without_zeros(_combined(upper, lower, directed, diagonal_block))


def _combined(upper: Any, lower: Any, directed: str, diagonal_block: bool) -> Any:
    if directed == "max":
        return upper.maximum(lower)
    if directed == "mean":
        half = upper.dtype.type(0.5)
        return half * upper + half * lower
    total = upper + lower
    # A self loop has one direction.
    return total - sparse.diags_array(upper.diagonal(), dtype=total.dtype) if diagonal_block else total


def _with_number(text: str, number: int) -> str:
    if number == 1:
        for one, many in _ONE_AND_MANY:
            text = text.replace(many, one)
    return text.replace("#", str(number))


def _is_symmetric(pairs: Pairs, values: np.ndarray, tolerance: float) -> bool:
    """Return whether all pairs of different items are there in both directions, with the same value."""
    off = pairs.rows != pairs.cols
    low, high = np.minimum(pairs.rows, pairs.cols)[off], np.maximum(pairs.rows, pairs.cols)[off]
    values = values[off]
    if len(values) % 2:
        return False
    close = abs(values[::2] - values[1::2]) <= tolerance
    same = (low[::2] == low[1::2]) & (high[::2] == high[1::2]) & close
    return bool(same.all())


def _without_zeros(matrix: Any) -> Any:
    matrix = sparse.csr_array(matrix)
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    return matrix
