"""One pass over the tiles of X = A B^T, shared by threads that run without the GIL.

Each worker takes the next free tile, forms it, turns it into its excess E (:mod:`symrelu.kernels.tiles`) and
multiplies it with the corresponding rows of V, all in compiled code. When its *turn* comes, it adds the
products to the result; until then they stay in a queue, and it goes on with other tiles. Floating-point sums
depend on their order, so products are added in the order of the schedule, whichever worker computed them: the
result has the same bits for any number of workers.

The schedule of a symmetric X is a round-robin tournament. In round d, block i meets block d - i (mod blocks):
each block appears once in every round, and the turn of a tile is the number of its round. A worker only
ever waits for tiles of earlier rounds, which were taken before its own. The first tile of the schedule that is
not yet delivered is the first in the queue of its worker, or being made, so there is no deadlock.

A pass on both sides is that of a block off the diagonal of a larger symmetric X: its tiles serve E V and E^T
W. In round d, block i of the rows meets block i + d of the columns, counted in a circle as long as the longer
side, so that each block of either side appears at most once in a round.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from symrelu.kernels.atomics import fetch_add, load, store
from symrelu.kernels.jit import compiled
from symrelu.kernels.threads import WORK_OF_A_CALL, run_workers, workers_for
from symrelu.kernels.tiles import TILE, Sums, blocks_of, excess

# Cost of the excess and the sums for each entry of a tile, in multiplications.
_WORK_BETWEEN_PRODUCTS = 8

# A worker with a full queue polls so many times for its turn, about 50 us, and then sleeps for so many seconds.
# While it sleeps, its core can go to the worker for which it waits, should that have lost its own.
_LOOKS = 20_000
_SLEEP = 5e-5

# Bytes of the products that a worker may keep. If another worker loses its core for a while, those that would
# wait for it go on with other tiles.
_BYTES_OF_A_QUEUE = 1e6
_SHORTEST_QUEUE, _LONGEST_QUEUE = 2, 64

# Why a call of compiled code returns: no tile is left; the worker's turn has not come; the limit is reached.
_FINISHED, _NOT_ITS_TURN, _LIMIT_REACHED = 0, 1, 2


class Pass(NamedTuple):
    """What the workers of a pass share."""

    A: np.ndarray
    B: np.ndarray
    V: np.ndarray  # without columns where only the sums are wanted
    W: np.ndarray  # what the transposed tiles are multiplied with; V if X is symmetric
    side: int
    symmetric: bool
    both_sides: bool
    rounds: np.ndarray  # number of the first tile of each round, and of all tiles
    taken: np.ndarray  # how many tiles have been taken
    turns: np.ndarray  # of each block of rows of the result: whose turn it is
    column_turns: np.ndarray  # the same for the product with the transpose; both are one if X is symmetric
    out: np.ndarray
    column_out: np.ndarray
    sums: np.ndarray  # one row for each block of rows


class Desk(NamedTuple):
    """What a worker has to itself: a tile, and a cyclic queue of what came of finished tiles."""

    tile: np.ndarray
    filled: np.ndarray  # the first place in use, and how many are
    numbers: np.ndarray  # of the finished tiles in the schedule
    products: np.ndarray  # of the tiles and V
    mirrored: np.ndarray  # of the transposed tiles and V
    sums: np.ndarray


@compiled
def share(shared, desk, limit, data):  # type: ignore[no-untyped-def]
    """Make up to ``limit`` tiles of a pass."""
    for _ in range(limit):
        looks = _LOOKS
        if desk.filled[1] < len(desk.numbers):
            t = fetch_add(shared.taken, 0, 1)
            if t < shared.rounds[-1]:
                make_tile(shared, desk, t, data)
                looks = 1  # if it is not this worker's turn, it makes another tile
            elif desk.filled[1] == 0:
                return _FINISHED
        if not deliver_finished(shared, desk, looks) and looks > 1:
            return _NOT_ITS_TURN
    return _LIMIT_REACHED


@compiled
def make_tile(shared, desk, t, data):  # type: ignore[no-untyped-def]
    """Form tile t, turn it into its excess, and put what comes of it at the end of the queue."""
    i, j, _ = tile_of(shared, t)
    place = (desk.filled[0] + desk.filled[1]) % len(desk.numbers)
    tile = gram_tile(shared, desk, i, j)
    sums = excess(tile, data, i, j, shared.side)
    if len(sums) != desk.sums.shape[1]:
        raise ValueError("The excess function of a class of tiles must return the seven numbers of Sums.")
    for k in range(len(sums)):  # an assignment to a slice takes seconds to compile
        desk.sums[place, k] = sums[k]
    multiply_tile(shared, desk, place, tile, i, j)
    desk.numbers[place] = t
    desk.filled[1] += 1


@compiled
def tile_of(shared, t):  # type: ignore[no-untyped-def]
    """Return the block of rows, the block of columns and the round of tile t."""
    low, high = 0, len(shared.rounds) - 1
    while high - low > 1:  # the last round that does not begin after t
        middle = (low + high) // 2
        if shared.rounds[middle] <= t:
            low = middle
        else:
            high = middle
    k = t - shared.rounds[low]
    if shared.both_sides:
        rows, columns = len(shared.turns), len(shared.column_turns)
        return ((k - low) % rows, k, low) if rows >= columns else (k, (k + low) % columns, low)
    if not shared.symmetric:
        return k, low, low
    # Blocks i <= j meet in round low = i + j, or i + j - blocks.
    if k <= low // 2:
        return k, low - k, low
    i = low + k - low // 2
    return i, low + len(shared.turns) - i, low


@compiled
def turns_of(shared, i, j, d):  # type: ignore[no-untyped-def]
    """Return how many tiles of rounds before d add to block i of the rows, and to block j of the columns."""
    rows, columns = len(shared.turns), len(shared.column_turns)
    if not shared.both_sides or rows == columns:
        return d, d
    # The blocks of the longer side have no partner in some rounds.
    if rows > columns:
        return partners(i + d, rows, columns) - partners(i, rows, columns), d
    last = j + columns + 1
    return d, partners(last, columns, rows) - partners(last - d, columns, rows)


@compiled
def partners(count, circle, there):  # type: ignore[no-untyped-def]
    """Return how many of the numbers below ``count`` are, modulo ``circle``, below ``there``."""
    return count // circle * there + min(count % circle, there)


@compiled
def gram_tile(shared, desk, i, j):  # type: ignore[no-untyped-def]
    """Return tile (i, j) of A B^T."""
    rows = shared.A[i * shared.side : (i + 1) * shared.side]
    cols = shared.B[j * shared.side : (j + 1) * shared.side]
    tile = desk.tile[: len(rows) * len(cols)].reshape(len(rows), len(cols))
    np.dot(rows, cols.T, tile)
    return tile


@compiled
def multiply_tile(shared, desk, place, tile, i, j):  # type: ignore[no-untyped-def]
    """Multiply a tile with its rows of V, and above the diagonal of a symmetric X its transpose too."""
    columns = shared.V.shape[1]
    if columns == 0:
        return
    rows, cols = tile.shape
    V = shared.V[j * shared.side : j * shared.side + cols]
    np.dot(tile, V, desk.products[place, : rows * columns].reshape(rows, columns))
    if shared.both_sides or (shared.symmetric and i != j):
        W = shared.W[i * shared.side : i * shared.side + rows]
        np.dot(tile.T, W, desk.mirrored[place, : cols * columns].reshape(cols, columns))


@compiled
def deliver_finished(shared, desk, looks):  # type: ignore[no-untyped-def]
    """Add what came of finished tiles to the results, as far as it is their turn; return whether it is for any.

    For the turn of the first one, look so many times.
    """
    delivered = False
    while desk.filled[1] > 0:
        place = desk.filled[0]
        i, j, d = tile_of(shared, desk.numbers[place])
        turn, column_turn = turns_of(shared, i, j, d)
        mirrored = shared.both_sides or (shared.symmetric and i != j)
        while load(shared.turns, i) != turn or (mirrored and load(shared.column_turns, j) != column_turn):
            looks -= 1
            if delivered or looks <= 0:
                return delivered
        times = 2.0 if mirrored else 1.0
        for k in range(desk.sums.shape[1]):
            shared.sums[i, k] += times * desk.sums[place, k]
        add_rows(shared.out, i * shared.side, shared.side, desk.products[place])
        if mirrored:
            add_rows(shared.column_out, j * shared.side, shared.side, desk.mirrored[place])
            store(shared.column_turns, j, column_turn + 1)
        store(shared.turns, i, turn + 1)
        desk.filled[1] -= 1
        # An empty queue begins again at its first place, which is in the cache.
        desk.filled[0] = (place + 1) % len(desk.numbers) if desk.filled[1] > 0 else 0
        delivered = True
    return delivered


@compiled
def add_rows(out, first, count, product):  # type: ignore[no-untyped-def]
    """Add a product, row after row, to the rows of ``out`` from ``first`` on."""
    columns = out.shape[1]
    for row in range(min(count, len(out) - first)):
        for c in range(columns):
            out[first + row, c] += product[row * columns + c]


def stream(
    A: np.ndarray,
    B: np.ndarray,
    V: np.ndarray | None,
    data: Any,
    *,
    symmetric: bool = False,
    side: int = TILE,
) -> tuple[np.ndarray | None, Sums]:
    """Return E V and the sums of squares, where E is the excess at X = A B^T.

    Parameters
    ----------
    A : ndarray of shape (p, rank)
    B : ndarray of shape (q, rank)
    V : ndarray of shape (q, columns), or None
        Without V only the sums are computed: one matrix product less.
    data : DenseTiles, SparseTiles or another kind that is registered with ``excess_of``
        M, with entries packed in tiles of the same side.
    symmetric : bool
        Promise that X and the data are symmetric: each tile above the diagonal then serves both sides.
    side : int
        Side length of a tile. The last digits of the result depend on it.
    """
    shared = _new_pass(A, B, V, symmetric, side)
    sums = _run(shared, data)
    return (None if V is None else shared.out), sums


def stream_both_sides(
    A: np.ndarray,
    B: np.ndarray,
    V: np.ndarray | None,
    W: np.ndarray | None,
    data: Any,
    *,
    side: int = TILE,
) -> tuple[np.ndarray | None, np.ndarray | None, Sums]:
    """Return E V, E^T W and twice the sums of squares, where E is the excess at X = A B^T.

    A block off the diagonal of a symmetric matrix has the same block below the diagonal, transposed: this is
    what both of them give.

    Parameters
    ----------
    A : ndarray of shape (p, rank)
    B : ndarray of shape (q, rank)
    V : ndarray of shape (q, columns), or None
    W : ndarray of shape (p, columns), or None
        Without V and W only the sums are computed.
    data, side
        As for :func:`stream`.
    """
    shared = _new_pass(A, B, V, False, side, W, both_sides=True)
    sums = _run(shared, data)
    return (None, None, sums) if V is None else (shared.out, shared.column_out, sums)


def _run(shared: Pass, data: Any) -> Sums:
    """Make all tiles of a pass, and return their sums."""
    work_of_an_entry = shared.A.shape[1] + _WORK_BETWEEN_PRODUCTS
    work_of_a_tile = shared.side * shared.side * (work_of_an_entry + 2 * shared.V.shape[1])
    limit = max(1, int(WORK_OF_A_CALL / work_of_a_tile))

    def work(_: int, stopped: Callable[[], bool]) -> None:
        desk = _new_desk(shared)
        end = _LIMIT_REACHED
        while end != _FINISHED and not stopped():
            end = share(shared, desk, limit, data)
            if end == _NOT_ITS_TURN:
                time.sleep(_SLEEP)

    workers = workers_for(len(shared.A) * len(shared.B) * work_of_an_entry)
    run_workers(work, min(len(shared.turns), workers))
    return Sums(*(float(total) for total in shared.sums.sum(axis=0)))


def _new_pass(
    A: np.ndarray,
    B: np.ndarray,
    V: np.ndarray | None,
    symmetric: bool,
    side: int,
    W: np.ndarray | None = None,
    *,
    both_sides: bool = False,
) -> Pass:
    row_blocks, column_blocks = blocks_of(len(A), side), blocks_of(len(B), side)
    columns = 0 if V is None else V.shape[1]
    V = np.empty((len(B), 0), A.dtype) if V is None else np.ascontiguousarray(V)
    turns, out = np.zeros(row_blocks, np.int64), np.zeros((len(A), columns), A.dtype)
    column_turns, column_out = turns, out
    if both_sides:
        W = np.empty((len(A), 0), A.dtype) if W is None else np.ascontiguousarray(W)
        column_turns, column_out = np.zeros(column_blocks, np.int64), np.zeros((len(B), columns), A.dtype)
    return Pass(
        A=np.ascontiguousarray(A),
        B=np.ascontiguousarray(B),
        V=V,
        W=V if W is None else W,
        side=side,
        symmetric=symmetric,
        both_sides=both_sides,
        rounds=rounds_of(row_blocks, column_blocks, symmetric, both_sides),
        taken=np.zeros(1, np.int64),
        turns=turns,
        column_turns=column_turns,
        out=out,
        column_out=column_out,
        sums=np.zeros((row_blocks, len(Sums._fields))),
    )


def _new_desk(shared: Pass) -> Desk:
    rows, cols, columns = min(shared.side, len(shared.A)), min(shared.side, len(shared.B)), shared.V.shape[1]
    dtype = shared.A.dtype
    places = _places(rows + cols, columns, dtype.itemsize)
    return Desk(
        tile=np.empty(rows * cols, dtype),
        filled=np.zeros(2, np.int64),
        numbers=np.empty(places, np.int64),
        products=np.empty((places, rows * columns), dtype),
        mirrored=np.empty((places, cols * columns), dtype),
        sums=np.empty((places, len(Sums._fields))),
    )


def _places(lines: int, columns: int, itemsize: int) -> int:
    """Return how many tiles a queue holds, from the rows and columns of a tile together."""
    return int(np.clip(_BYTES_OF_A_QUEUE / max(1, lines * columns * itemsize), _SHORTEST_QUEUE, _LONGEST_QUEUE))


def bytes_of_a_desk(side: int, columns: int, itemsize: int) -> int:
    """Return the bytes of what each worker of a pass has to itself.

    Parameters
    ----------
    side : int
        Side length of a tile.
    columns : int
        Of V.
    itemsize : int
        Bytes of a number.
    """
    places = _places(2 * side, columns, itemsize)
    return (side * side + places * 2 * side * columns) * itemsize + places * 8 * (1 + len(Sums._fields)) + 16


def rounds_of(row_blocks: int, column_blocks: int, symmetric: bool, both_sides: bool = False) -> np.ndarray:
    """Return the number of the first tile of each round, and at the end the number of all tiles."""
    if symmetric:
        # Of the blocks of round d, those up to d meet each other, and so do the others.
        d = np.arange(row_blocks)
        sizes = (d // 2 + 1) + ((d + row_blocks) // 2 - d)
    elif both_sides:
        sizes = np.full(max(row_blocks, column_blocks), min(row_blocks, column_blocks))
    else:
        sizes = np.full(column_blocks, row_blocks)
    return np.append(0, np.cumsum(sizes))
