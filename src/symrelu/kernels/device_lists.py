"""The zeros of M at which X can be positive, listed by a GPU.

A pair is a candidate if the cosine of its rows, multiplied out in float16, is above a negative threshold. Rows
of length one that are rounded to float16 move by at most 2^-11 of their length, so a cosine changes by at most
2^-10 + 2^-22, and by the rounding errors of float32 (:func:`margin` has them all). A threshold below that keeps
every pair with X > 0. Nothing else decides on it, so X on the candidates, in the precision of the factor, gives
the result of all pairs.

Rows of zeros have no positive pairs, but cosines above the threshold: they must not be scanned.

Only tiles on and above the diagonal are multiplied out. Each block of rows has a part of a common buffer for
its candidates; the order in which they arrive there varies, and sorting removes that.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
import triton
import triton.language as tl

from symrelu.kernels.device_products import Tiling, check_offsets
from symrelu.kernels.device_scaling import Halves

_UNIT = 2.0**-11  # relative error of a number rounded to float16
_SMALLEST = 2.0**-25  # error of a number that float16 holds with fewer digits


class DevicePairs(NamedTuple):
    """Pairs (i, j) of both orders by row, with columns in ascending order."""

    indptr: Any  # int64
    indices: Any  # int32


def margin(rank: int) -> float:
    """Return how far below its true value the cosine of a candidate may be."""
    single = 2.0**-24
    # A row that float32 has scaled to length one, in two divisions and a sum of squares, rounded to float16.
    row = _UNIT + rank**0.5 * _SMALLEST + (4 + rank / 2) * single
    # A sum of products in float32, whose digits may be cut off; and X itself may be positive by rounding only.
    return 2 * row + row**2 + (2 * rank + 1) * single + rank * single


class Buffer:
    """Room for candidates, a part for each block of rows.

    Parameters
    ----------
    room : tensor of int of shape (blocks,)
        Candidates of each block that can be held.
    size : int
        Their sum.

    Attributes
    ----------
    counts : tensor of int32 of shape (blocks,)
        Candidates that were found, also beyond the room.
    """

    def __init__(self, room: Any, size: int) -> None:
        self.offsets = torch.zeros(len(room) + 1, dtype=torch.int64, device=room.device)
        self.offsets[1:] = room.cumsum(0)
        self.places = torch.empty(size, dtype=torch.int64, device=room.device)
        self.counts = torch.zeros(len(room), dtype=torch.int32, device=room.device)

    def found(self, total: int | None = None) -> Any:
        """Return the candidates, if there was room for all of them; without their number, the host waits."""
        first = self.counts.cumsum(0) - self.counts
        shift = torch.repeat_interleave(self.offsets[:-1] - first, self.counts, output_size=total)
        return self.places[torch.arange(len(shift), device=shift.device) + shift]


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
        What has no room is counted, but not written.
    """
    rows, rank = D.high.shape
    check_offsets(rows, rank)
    buffer.counts.zero_()
    _list_candidates[(rows // tiling.rows,)](
        D.signed(signs).high, D.high, buffer.places, buffer.offsets, buffer.counts, n, -reach, rows,
        RANK=rank, ROWS=tiling.rows, COLUMNS=tiling.columns,
        num_warps=tiling.warps, num_stages=tiling.stages,
    )  # fmt: skip


def sorting_keys(found: Any, known: Any, n: int, items: Any | None = None) -> Any:
    """Return a number for each candidate in both orders, and for each known pair.

    A known pair has an odd key, just above that of the candidate at the same place.

    Parameters
    ----------
    found : tensor of int64
        The candidates, as :meth:`Buffer.found` returns them.
    known : tensor of int64
        The numbers i * n + j of the entries that are not zeros of M, in both orders.
    n : int
    items : tensor of int64, or None
        The rows that were scanned, in ascending order, if it was not all of them.
    """
    scanned = n if items is None else len(items)
    i, j = found // scanned, found % scanned
    if items is not None:
        i, j = items[i], items[j]
    # The diagonal has no second order, but an odd key below all others: to leave it out, the host would wait
    # for its length.
    return torch.cat([2 * (i * n + j), torch.where(i == j, -1, 2 * (j * n + i)), 2 * known + 1])


def sorted_pairs(keys: Any, n: int) -> DevicePairs:
    """Return the candidates without those that are known, from keys as :func:`sorting_keys` returns them."""
    keys = keys.sort().values
    wanted = keys % 2 == 0
    wanted[:-1] &= keys[1:] != keys[:-1] + 1
    places = keys[wanted] // 2
    # Not torch.bincount, for which the host waits as well.
    indptr = torch.searchsorted(places, n * torch.arange(n + 1, device=keys.device))
    return DevicePairs(indptr, (places % n).to(torch.int32))


@triton.jit(do_not_specialize=["n"])
def _list_candidates(  # type: ignore[no-untyped-def]
    A, B, places, offsets, counts, n, threshold, rows,
    RANK: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    block = tl.program_id(0)
    i = block * ROWS + tl.arange(0, ROWS)
    k = tl.arange(0, RANK)
    a = tl.load(A + i[:, None] * RANK + k[None, :])
    first = tl.load(offsets + block)
    room = tl.load(offsets + block + 1) - first
    for begin in tl.range(block * ROWS // COLUMNS * COLUMNS, rows, COLUMNS):
        j = begin + tl.arange(0, COLUMNS)
        x = tl.dot(a, tl.load(B + j[None, :] * RANK + k[:, None]))
        if tl.max(x) > threshold:
            # The columns of padding have cosines of zero.
            found = (x > threshold) & (j[None, :] >= i[:, None]) & (j[None, :] < n)
            slot = tl.atomic_add(counts + block + tl.zeros_like(x).to(tl.int32), 1, mask=found, sem="relaxed")
            place = i.to(tl.int64)[:, None] * n + j[None, :]
            tl.store(places + first + slot, place, mask=found & (slot < room))
