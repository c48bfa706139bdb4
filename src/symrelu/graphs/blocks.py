"""Write block folders, from a matrix in memory or, in parts, from a file that is larger than the memory."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from symrelu.files.block_folder import (
    BlockFolder,
    BlockWriter,
    check_new_folder,
    unfinished_folder,
    write_matrix,
)
from symrelu.files.matrix_market import matrix_market_parts
from symrelu.files.sparse_archives import sparse_npz_parts
from symrelu.graphs.adapters import as_similarity
from symrelu.graphs.bucket_sort import Buckets, Combination
from symrelu.graphs.edge_files import Numbering, Spill
from symrelu.graphs.pairs import Pairs, check_weights
from symrelu.graphs.parts import open_parts
from symrelu.graphs.remarks import warn_of
from symrelu.kernels.block_grid import BlockGrid
from symrelu.validation import check_choice, check_integer, check_similarity, exponent_of, scale_exponent

DEFAULT_ROWS = 100_000
_DTYPES = ("float64", "float32")
_SPOOL = "spool"


def write_blocks(M: Any, path: str | PathLike[str], *, rows: int = DEFAULT_ROWS) -> BlockFolder:
    """Write a similarity matrix in memory to a block folder, one block after the other.

    Parameters
    ----------
    M : matrix, graph, table or tensor
        Anything that :func:`as_similarity` reads: nonnegative and symmetric. The names of the items, if there
        are any, are written too.
    path : str or path-like
        The folder, which must not exist or be empty. It appears when it is complete.
    rows : int, default=100000
        Number of rows of a panel. A block has as many rows and columns, and is the unit of work of a cluster.

    Returns
    -------
    folder : BlockFolder

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from symrelu.datasets import load_digits_graph
    >>> from symrelu.graphs import write_blocks
    >>> with TemporaryDirectory() as folder:
    ...     blocks = write_blocks(load_digits_graph()[0], Path(folder, "digits"), rows=500)
    ...     len(list(blocks.path.iterdir())), blocks.read((0, 1)).shape
    (11, (500, 500))
    """
    path = check_new_folder(path)
    check_integer("rows", rows, 1)
    matrix, labels = as_similarity(M)
    checked = check_similarity(matrix)
    return write_matrix(checked, path, rows=rows, units=scale_exponent(checked), names=labels)


def _units(writer: BlockWriter) -> int:
    """Return the units of what was written; raise if nothing was."""
    largest = max(writer.off_diagonal.largest, writer.diagonal.largest)
    if not largest:
        raise ValueError("M must have a positive entry, but all are zero: there is nothing to fit.")
    return exponent_of(largest)


def convert_to_blocks(
    path: str | PathLike[str],
    output: str | PathLike[str],
    *,
    rows: int = DEFAULT_ROWS,
    dtype: str = "float64",
    **options: Any,
) -> tuple[BlockFolder, tuple[str, ...]]:
    """Convert a file to a block folder, in passes that never hold the matrix as a whole.

    The entries are sorted into a file for each block, and each block is then sorted and made symmetric in
    memory. Besides a block, only the names of the items are held.

    Parameters
    ----------
    path : str or path-like
        A list of edges as text, a sparse .mtx file, or an .npz file with a scipy sparse matrix (csr, csc or
        coo).
    output : str or path-like
        The folder, which must not exist or be empty. It appears when it is complete.
    rows : int, default=100000
        Number of rows of a panel.
    dtype : {"float64", "float32"}, default="float64"
        Type of the entries.
    **options : keyword arguments
        Those of :func:`read_graph`: columns of the list, and rules for repeated edges, self loops and
        directions.

    Returns
    -------
    folder : BlockFolder
    notes : tuple of str
        On how the file was read.
    """
    path, output = Path(path), check_new_folder(output)
    check_integer("rows", rows, 1)
    check_choice("dtype", dtype, _DTYPES)
    parts = open_parts(path, options)
    with unfinished_folder(output) as folder, _spool(folder) as spool:
        buckets = Buckets(spool, rows)
        n, names, notes = _fill(buckets, path, parts)
        combination = Combination(parts.rules, is_list=names is not None, dtype=np.dtype(dtype))
        items = range(n) if names is None else names
        writer = BlockWriter(folder, BlockGrid(n, rows), dtype)
        for block, matrix in combination.blocks(buckets, writer.grid, items):
            writer.add(block, matrix)
        writer.finish(_units(writer), names)
    return BlockFolder.open(output), warn_of(path, notes, stacklevel=3) + combination.notes()


@contextmanager
def _spool(folder: Path) -> Iterator[Path]:
    """Make a folder for intermediate files, and delete it before the folder around it is complete."""
    spool = folder / _SPOOL
    spool.mkdir()
    yield spool
    shutil.rmtree(spool)


def _fill(buckets: Buckets, path: Path, parts: Any) -> tuple[int, list[str] | None, tuple[str, ...]]:
    """Sort all entries of a file by block; return the number of items, their names and notes."""
    if parts.is_list:
        numbers = Numbering()
        notes = parts.read_list(numbers, _checked_spill(buckets, numbers, parts.weighted))
        return len(numbers), list(numbers), notes
    read = matrix_market_parts if parts.extension == ".mtx" else sparse_npz_parts
    shape, *_, entries = read(path)
    if shape[0] != shape[1]:
        raise ValueError(f"{path}: The matrix of a graph must be square, got shape {shape}.")
    spill = _checked_spill(buckets, range(shape[0]), parts.weighted)
    for one in entries:
        spill(*one)
    return shape[0], None, ()


def _checked_spill(buckets: Buckets, names: Iterable[Any], weighted: bool) -> Spill:
    """Return what takes edges: their weights are checked, so that an error can name the first invalid one."""

    named = _Names(names)

    def spill(rows: np.ndarray, cols: np.ndarray, weights: np.ndarray) -> None:
        values = check_weights(Pairs(rows, cols, named), weights)
        buckets.add(rows, cols, values if weighted else (values != 0).astype(np.float64))

    return spill


class _Names(Sequence[Any]):
    """The names so far, by number; they are listed only for an error."""

    def __init__(self, names: Iterable[Any]) -> None:
        self.names = names

    def __len__(self) -> int:
        return len(list(self.names))

    def __getitem__(self, number: Any) -> Any:
        return list(self.names)[number]
