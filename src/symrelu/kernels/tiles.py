"""The gram matrix in tiles: each one is formed, turned into the residual and multiplied while it is in cache.

With X = A B^T and the *excess* E = X - W (minus the residual), E is

    X - M                   on the support (M > 0), or min(0, X - M) if X >= M suffices there,
    zero_weight max(0, X)   where M = 0,
    0                       where the entry is unobserved.

The functions here pack the entries of M by tile and overwrite a tile of X with its part of E; a pass over all
tiles is in :mod:`symrelu.kernels.streaming`. Support entries are overwritten inside the tile: summing the ReLU
over all entries and subtracting the support afterwards would cancel, and in float32 an exact fit would get a
negative loss.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numba.extending import overload

from symrelu.kernels.jit import compiled

# Side of a block of M in loops without a product: 384 x 384 doubles take 1.2 MB.
TILE = 384

# Side of a tile by rank: up to the first number, the second. OpenBLAS is up to 1.6 times as fast if a product
# has at most a million multiplications, because it does not copy the factors, and the largest tiles of that
# size are best. Beyond, other sides differ little. benchmarks/evaluation.py --tiles compares them.
_SIDES = ((8, 320), (16, 240), (32, 176), (48, 144))
_SIDE_OF_OTHERS = 320

_SMALLEST_SIDE = 176  # of those that only a small n requires
_FEWEST_BLOCKS = 8  # with fewer, many threads have no work
_MOST_BLOCKS = 2000  # packed entries have a number for each pair of blocks, 32 MB in all


class Sums(NamedTuple):
    """Sums over all pairs, in float64."""

    fit: float  # (M - X)^2 over the support, without the entries in ``free``
    error: float  # (M - max(0, X))^2 over the same entries
    positive: float  # max(0, X)^2 over the zeros
    negative: float  # min(0, X)^2 over the zeros
    free: float  # X^2 - M^2 where W = X: unobserved entries, and support entries with X >= M if that suffices
    active: float  # 1 for each zero with X > 0
    inner: float  # (M - X) X over the entries of ``fit``


# The places of the sums, for compiled functions.
FIT, ERROR, POSITIVE, NEGATIVE, FREE, ACTIVE, INNER = range(len(Sums._fields))


class PackedEntries(NamedTuple):
    """Entries of a matrix sorted by tile, with their positions inside the tile."""

    start: np.ndarray  # entries start[t]:start[t + 1] belong to tile t = i * column_blocks + j
    rows: np.ndarray
    cols: np.ndarray
    values: np.ndarray
    column_blocks: int  # 0 if there are no entries


def pack_entries(
    rows: np.ndarray,
    cols: np.ndarray,
    values: np.ndarray,
    shape: tuple[int, int],
    *,
    symmetric: bool,
    tile: int = TILE,
) -> PackedEntries:
    """Sort entries by tile; with ``symmetric`` keep only the tiles on and above the diagonal."""
    column_blocks = blocks_of(shape[1], tile)
    block_of_row, block_of_col = rows // tile, cols // tile
    if symmetric:
        upper = block_of_row <= block_of_col
        rows, cols, values = rows[upper], cols[upper], values[upper]
        block_of_row, block_of_col = block_of_row[upper], block_of_col[upper]
    if not len(values):
        column_blocks = 0  # one empty range serves all tiles
    key = block_of_row.astype(np.int64) * column_blocks + block_of_col
    order = np.argsort(key, kind="stable")
    counts = np.bincount(key, minlength=max(1, blocks_of(shape[0], tile) * column_blocks))
    return PackedEntries(
        start=np.concatenate([[0], np.cumsum(counts)]),
        rows=(rows[order] % tile).astype(np.int32),
        cols=(cols[order] % tile).astype(np.int32),
        values=np.ascontiguousarray(values[order]),
        column_blocks=column_blocks,
    )


@compiled
def entries_of_tile(packed, i, j):  # type: ignore[no-untyped-def]
    """Return rows, columns and values of the packed entries in tile (i, j)."""
    t = i * packed.column_blocks + j if packed.column_blocks else 0
    part = slice(packed.start[t], packed.start[t + 1])
    return packed.rows[part], packed.cols[part], packed.values[part]


class DenseTiles(NamedTuple):
    """M given whole."""

    coded: np.ndarray  # M with a negative number at the unobserved entries
    zero_weight: np.floating[Any]
    at_least: bool  # whether X >= M suffices on the support


class SparseTiles(NamedTuple):
    """M given by its entries."""

    support: PackedEntries
    unknown: PackedEntries
    zero_weight: np.floating[Any]
    at_least: bool  # whether X >= M suffices on the support


def excess(tile: np.ndarray, data: Any, i: int, j: int, side: int) -> tuple[float, ...]:
    """Overwrite tile (i, j) of X with its excess and return the numbers of :class:`Sums`.

    For compiled code only, where the class of ``data`` decides which function is called.
    """
    raise NotImplementedError("excess has no implementation outside compiled code.")


_EXCESS: dict[Any, Callable[..., Any]] = {}


def excess_of(kind: type) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator that compiles a function and makes it :func:`excess` for data of a class."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        _EXCESS[kind] = compiled(function)
        return _EXCESS[kind]

    return register


@overload(excess)
def _excess_by_class(tile, data, i, j, side):  # type: ignore[no-untyped-def]
    function = _EXCESS.get(getattr(data, "instance_class", None))
    return function and (lambda tile, data, i, j, side: function(tile, data, i, j, side))


@compiled
def lowered(tile, row, col, m):  # type: ignore[no-untyped-def]
    """Set an entry of X above a positive entry m of M to m, where it has no excess. Return X^2 - m^2, or 0."""
    x = tile[row, col]
    if not (m > 0 and x > m):
        return 0.0
    tile[row, col] = m
    return np.float64(x) * np.float64(x) - np.float64(m) * np.float64(m)


@excess_of(SparseTiles)
def sparse_excess(tile, data, i, j, side):  # type: ignore[no-untyped-def]
    """Overwrite a tile of X with its excess, for a sparse M."""
    rows, cols, values = entries_of_tile(data.support, i, j)
    hidden_rows, hidden_cols, _ = entries_of_tile(data.unknown, i, j)
    zero = tile.dtype.type(0)
    stash = np.empty(values.size, tile.dtype)
    fit = error = positive = negative = active = inner = 0.0
    free = 0.0
    if data.at_least:
        for k in range(values.size):
            free += lowered(tile, rows[k], cols[k], values[k])
    # Entries that are not zeros of M are set to zero before the ReLU loop and restored after it.
    for k in range(values.size):
        x = tile[rows[k], cols[k]]
        above = zero if x <= zero else x  # max(0, x), except that NaN stays NaN
        stash[k] = x - values[k]
        fit += np.float64(stash[k]) * np.float64(stash[k])
        inner -= np.float64(stash[k]) * np.float64(x)
        error += np.float64(values[k] - above) * np.float64(values[k] - above)
        tile[rows[k], cols[k]] = zero
    for k in range(hidden_rows.size):
        x = tile[hidden_rows[k], hidden_cols[k]]
        free += np.float64(x) * np.float64(x)
        tile[hidden_rows[k], hidden_cols[k]] = zero
    for row in range(tile.shape[0]):
        for col in range(tile.shape[1]):
            x = tile[row, col]
            above = zero if x <= zero else x
            below = x - above
            positive += np.float64(above) * np.float64(above)
            negative += np.float64(below) * np.float64(below)
            active += 1.0 if x > zero else 0.0
            tile[row, col] = data.zero_weight * above
    for k in range(values.size):
        tile[rows[k], cols[k]] = stash[k]
    return fit, error, positive, negative, free, active, inner


@excess_of(DenseTiles)
def dense_excess(tile, data, i, j, side):  # type: ignore[no-untyped-def]
    """Overwrite a tile of X with its excess, for a dense M."""
    first_row, first_col = i * side, j * side
    zero = tile.dtype.type(0)
    fit = error = positive = negative = free = active = inner = 0.0
    reached = 0.0
    # A loop of its own leaves the speed of the one below, and the order of its sums, as they are without it.
    if data.at_least:
        for row in range(tile.shape[0]):
            for col in range(tile.shape[1]):
                reached += lowered(tile, row, col, data.coded[first_row + row, first_col + col])
    for row in range(tile.shape[0]):
        coded = data.coded[first_row + row, first_col : first_col + tile.shape[1]]
        for col in range(tile.shape[1]):
            x = tile[row, col]
            m = coded[col]
            above = zero if x <= zero else x
            on_support = m > zero
            at_zero = m == zero
            # Selections instead of branches: the loop then vectorises.
            e = x - m if on_support else zero
            d = m - above if on_support else zero
            p = above if at_zero else zero
            q = x - above if at_zero else zero
            h = zero if m >= zero else x
            fit += np.float64(e) * np.float64(e)
            error += np.float64(d) * np.float64(d)
            positive += np.float64(p) * np.float64(p)
            negative += np.float64(q) * np.float64(q)
            free += np.float64(h) * np.float64(h)
            active += 1.0 if p > zero else 0.0
            inner -= np.float64(e) * np.float64(x)
            tile[row, col] = e + data.zero_weight * p
    return fit, error, positive, negative, reached + free, active, inner


def tile_side(n: int, rank: int) -> int:
    """Return the side of the tiles of an n x n matrix of this rank.

    It does not depend on the number of threads, because the last digits of a pass depend on it.
    """
    side = next((side for most, side in _SIDES if rank <= most), _SIDE_OF_OTHERS)
    side = min(side, max(_SMALLEST_SIDE, n // _FEWEST_BLOCKS))
    # Blocks of the same size: a narrow one at the end would take almost as long as the others.
    return blocks_of(n, min(blocks_of(n, side), _MOST_BLOCKS))


def blocks_of(n: int, side: int) -> int:
    """Return into how many blocks n rows fall."""
    return -(-n // side)
