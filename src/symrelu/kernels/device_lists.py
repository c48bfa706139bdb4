"""The zeros of M at which X can be positive, listed by a GPU.

A pair is a candidate if the cosine of its rows, multiplied out in float16, is above a negative threshold. Rows
of length one that are rounded to float16 move by at most 2^-11 of their length, so a cosine changes by at most
2^-10 + 2^-22, and by the rounding errors of a sum in float32. A threshold below that keeps every pair with
X > 0. Nothing else decides on it, so X on the candidates, in the precision of the factor, gives the result of
all pairs.

Rows of zeros have no positive pairs, but cosines above the threshold: they must not be scanned.

Only tiles on and above the diagonal are multiplied out. Each block of rows has a part of a common buffer for
its candidates; the order in which they arrive there varies, and sorting removes that.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
import triton
import triton.language as tl

from symrelu.kernels.device_products import Halves, Tiling

_UNIT = 2.0**-11  # relative error of a number rounded to float16
_SMALLEST = 2.0**-25  # error of a number that float16 holds with fewer digits


class DevicePairs(NamedTuple):
    """Pairs (i, j) of both orders by row, with columns in ascending order."""

    indptr: Any  # int64
    indices: Any  # int32


def margin(rank: int) -> float:
    """Return how far below its true value the cosine of a candidate may be."""
    rounded = _UNIT + rank**0.5 * _SMALLEST
    return 2 * rounded + rounded**2 + 4 * rank * 2.0**-24


class Buffer:
    """Room for candidates, a part for each block of rows.

    Parameters
    ----------
    blocks : int
    capacity : int
        Candidates of each block.
    device : torch.device
    """

    def __init__(self, blocks: int, capacity: int, device: Any) -> None:
        self.capacity = capacity
        self.places = torch.empty(blocks * capacity, dtype=torch.int64, device=device)
        self.counts = torch.zeros(blocks, dtype=torch.int32, device=device)


def scan(D: Halves, signs: Any, n: int, reach: float, tiling: Tiling, buffer: Buffer) -> None:
    """Write all pairs i <= j whose cosine is above -reach to a buffer, as i * n + j.

    Parameters
    ----------
    D : Halves
        The directions of the rows; of these the first half is used.
    signs : tensor of shape (rank,)
    n : int
        Rows that are not padding.
    reach : float
        At least :func:`margin`.
    tiling : Tiling
    buffer : Buffer
        Its counts say how many there are, also beyond the capacity; what has no room is not written.
    """
    buffer.counts.zero_()
    rows, rank = D.high.shape
    _list_candidates[(rows // tiling.rows,)](
        D.signed(signs).high, D.high, buffer.places, buffer.counts, n, -reach, rows, buffer.capacity,
        RANK=rank, ROWS=tiling.rows, COLUMNS=tiling.columns,
        num_warps=tiling.warps, num_stages=tiling.stages,
    )  # fmt: skip


def sorted_pairs(buffer: Buffer, known: Any, n: int, items: Any | None = None) -> DevicePairs:
    """Return the candidates in a buffer, in both orders, without those that are known.

    Parameters
    ----------
    buffer : Buffer
        None of its counts is above the capacity.
    known : tensor of int64
        The numbers i * n + j of the entries that are not zeros of M, in both orders.
    n : int
    items : tensor of int64, or None
        The rows that were scanned, in ascending order, if it was not all of them.
    """
    parts = buffer.places.view(-1, buffer.capacity)
    filled = torch.arange(buffer.capacity, device=parts.device) < buffer.counts[:, None]
    scanned = n if items is None else len(items)
    i, j = parts[filled] // scanned, parts[filled] % scanned
    if items is not None:
        i, j = items[i], items[j]
    upper, lower = i * n + j, (j * n + i)[i != j]
    # A known pair has an odd key, just above that of the candidate at the same place.
    keys = torch.cat([2 * upper, 2 * lower, 2 * known + 1]).sort().values
    wanted = keys % 2 == 0
    wanted[:-1] &= keys[1:] != keys[:-1] + 1
    places = keys[wanted] // 2
    rows = places // n
    indptr = torch.zeros(n + 1, dtype=torch.int64, device=keys.device)
    indptr[1:] = torch.bincount(rows, minlength=n).cumsum(0)
    return DevicePairs(indptr, (places - rows * n).to(torch.int32))


@triton.jit
def _list_candidates(  # type: ignore[no-untyped-def]
    A, B, places, counts, n, threshold, rows, capacity,
    RANK: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    block = tl.program_id(0)
    i = block * ROWS + tl.arange(0, ROWS)
    k = tl.arange(0, RANK)
    a = tl.load(A + i[:, None] * RANK + k[None, :])
    own = places + block.to(tl.int64) * capacity
    for begin in tl.range(block * ROWS // COLUMNS * COLUMNS, rows, COLUMNS):
        j = begin + tl.arange(0, COLUMNS)
        x = tl.dot(a, tl.load(B + j[None, :] * RANK + k[:, None]))
        if tl.max(x) > threshold:
            # The columns of padding have cosines of zero.
            found = (x > threshold) & (j[None, :] >= i[:, None]) & (j[None, :] < n)
            slot = tl.atomic_add(counts + block + tl.zeros_like(x).to(tl.int32), 1, mask=found, sem="relaxed")
            place = i.to(tl.int64)[:, None] * n + j[None, :]
            tl.store(own + slot, place, mask=found & (slot < capacity))
