"""Passes over listed entries on a GPU: a program sums up the residual of one row times V.

The sums of a row run in the order of its columns, so the result is the same in every run.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
import triton
import triton.language as tl

# What is summed up for each row, in float64: see symrelu.kernels.tiles.Sums. "visited" is the sum of X^2 over
# the listed entries.
SUMS = ("fit", "error", "positive", "free", "active", "inner", "visited")

_ENTRIES_AT_ONCE = 16

SUPPORT, ZEROS, UNKNOWN = 0, 1, 2  # what the listed entries are


class DeviceEntries(NamedTuple):
    """Entries of a matrix by row, with columns in ascending order, all of one kind.

    At zeros that are not positive the residual is zero, at unknown entries always.
    """

    kind: int  # SUPPORT, ZEROS or UNKNOWN
    indptr: Any  # int64
    indices: Any  # int32
    values: Any | None = None  # M at the support


def add_entries(
    entries: DeviceEntries,
    A: Any,
    B: Any,
    V: Any | None,
    zero_weight: float,
    at_least: bool,
    out: Any | None,
    sums: Any,
) -> None:
    """Add the residual at listed entries times V to ``out``, and their sums to ``sums``.

    Parameters
    ----------
    entries : DeviceEntries
    A, B : tensors of shape (n, rank)
        X = A B^T.
    V : tensor of shape (n, columns), or None
    zero_weight : float
    at_least : bool
    out : tensor of shape (n, columns), or None
    sums : tensor of float64 of shape (n, 7)
        See ``SUMS``.
    """
    kind, indptr, indices, values = entries
    if not len(indices):
        return
    n, rank = A.shape
    columns = 1 if V is None else V.shape[1]
    if V is not None and kind == ZEROS and zero_weight != 1:
        V = V * zero_weight  # a kernel would get a Python number in float32
    _add_entries[(n,)](
        A, B, B if V is None else V, indptr, indices, A if values is None else values,
        sums if out is None else out, sums, rank, columns,
        KIND=kind, AT_LEAST=at_least, MULTIPLIES=V is not None,
        RANK=triton.next_power_of_2(rank), COLUMNS=triton.next_power_of_2(columns),
        CHUNK=_ENTRIES_AT_ONCE, DOUBLE=A.dtype == torch.float64, num_warps=1,
    )  # fmt: skip


@triton.jit
def _square(x):  # type: ignore[no-untyped-def]
    """Return x^2 in float64."""
    return x.to(tl.float64) * x.to(tl.float64)


@triton.jit
def _excess(x, m, there, KIND: tl.constexpr, AT_LEAST: tl.constexpr):  # type: ignore[no-untyped-def]
    """Return minus the residual of some entries, and their parts of the sums, in the order of ``SUMS``.

    The weight of the zeros is left out.
    """
    nothing = tl.zeros_like(x).to(tl.float64)
    squares = tl.where(there, _square(x), nothing)
    if KIND == 0:
        counts = there
        free = nothing
        if AT_LEAST:
            met = x > m
            free = tl.where(there & met, _square(x) - _square(m), nothing)
            counts = there & ~met
        e = tl.where(counts, x - m, tl.zeros_like(x))
        # Not tl.maximum, which may drop NaN.
        d = tl.where(counts, tl.where(x <= 0, tl.zeros_like(x), x) - m, tl.zeros_like(x))
        inner = tl.where(counts, -e.to(tl.float64) * x.to(tl.float64), nothing)
        return e, _square(e), _square(d), nothing, free, nothing, inner, squares
    elif KIND == 1:
        above = there & (x > 0)
        e = tl.where(above, x, tl.zeros_like(x))
        squares = tl.where(above, squares, nothing)
        return e, nothing, nothing, squares, nothing, above.to(tl.float64), nothing, squares
    else:
        return tl.zeros_like(x), nothing, nothing, nothing, squares, nothing, nothing, squares


@triton.jit
def _add_to(place, values):  # type: ignore[no-untyped-def]
    """Add the sum of some values to a number in memory, which no other program uses."""
    tl.store(place, tl.load(place) + tl.sum(values))


@triton.jit
def _add_entries(  # type: ignore[no-untyped-def]
    A, B, V, indptr, indices, values, out, sums, rank, columns,
    KIND: tl.constexpr, AT_LEAST: tl.constexpr, MULTIPLIES: tl.constexpr,
    RANK: tl.constexpr, COLUMNS: tl.constexpr, CHUNK: tl.constexpr, DOUBLE: tl.constexpr,
):  # fmt: skip
    i = tl.program_id(0).to(tl.int64)
    k, c = tl.arange(0, RANK), tl.arange(0, COLUMNS)
    a = tl.load(A + i * rank + k, mask=k < rank, other=0.0)
    total = tl.zeros((COLUMNS,), tl.float64 if DOUBLE else tl.float32)
    zero = tl.zeros((CHUNK,), tl.float64)
    fit, error, positive, free, active, inner, visited = zero, zero, zero, zero, zero, zero, zero
    last = tl.load(indptr + i + 1)
    for first in range(tl.load(indptr + i), last, CHUNK):
        p = first + tl.arange(0, CHUNK)
        there = p < last
        j = tl.load(indices + p, mask=there, other=0).to(tl.int64)
        b = tl.load(B + j[:, None] * rank + k[None, :], mask=there[:, None] & (k < rank)[None, :], other=0.0)
        x = tl.sum(a[None, :] * b, 1)
        m = tl.load(values + p, mask=there, other=0.0) if KIND == 0 else x
        e, d_fit, d_error, d_positive, d_free, d_active, d_inner, d_visited = _excess(
            x, m, there, KIND, AT_LEAST
        )
        fit, error, positive, free = fit + d_fit, error + d_error, positive + d_positive, free + d_free
        active, inner, visited = active + d_active, inner + d_inner, visited + d_visited
        if MULTIPLIES and KIND != 2:
            inside = there[:, None] & (c < columns)[None, :]
            v = tl.load(V + j[:, None] * columns + c[None, :], mask=inside, other=0.0)
            total -= tl.sum(e[:, None] * v, 0)
    if MULTIPLIES and KIND != 2:
        place = out + i * columns + c
        tl.store(place, tl.load(place, mask=c < columns, other=0.0) + total, mask=c < columns)
    row = sums + i * 7
    _add_to(row, fit)
    _add_to(row + 1, error)
    _add_to(row + 2, positive)
    _add_to(row + 3, free)
    _add_to(row + 4, active)
    _add_to(row + 5, inner)
    _add_to(row + 6, visited)
