"""Passes over listed entries on a GPU: a program sums up the residual of one row times V.

The sums of a row run in the order of its columns, so the result is the same in every run.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl

# What is summed up for each row, in float64: see symrelu.kernels.tiles.Sums. "visited" is the sum of X^2 over
# the listed entries.
SUMS = ("fit", "error", "positive", "free", "active", "inner", "visited")

_ENTRIES_AT_ONCE = 16

SUPPORT, ZEROS, UNKNOWN = 0, 1, 2  # what the listed entries are


def add_entries(
    kind: int,
    A: Any,
    B: Any,
    V: Any | None,
    indptr: Any,
    indices: Any,
    values: Any | None,
    zero_weight: float,
    at_least: bool,
    out: Any | None,
    sums: Any,
) -> None:
    """Add the residual at listed entries times V to ``out``, and their sums to ``sums``.

    Parameters
    ----------
    kind : {SUPPORT, ZEROS, UNKNOWN}
        What the entries are; at zeros that are not positive the residual is zero, at unknown entries always.
    A, B : tensors of shape (n, rank)
        X = A B^T.
    V : tensor of shape (n, columns), or None
    indptr, indices : tensors of int64 and int32
        The entries by row.
    values : tensor or None
        M at the support.
    zero_weight : float
    at_least : bool
    out : tensor of shape (n, columns), or None
    sums : tensor of float64 of shape (n, 7)
        See ``SUMS``.
    """
    if not len(indices):
        return
    n, rank = A.shape
    columns = 1 if V is None else V.shape[1]
    _add_entries[(n,)](
        A, B, B if V is None else V, indptr, indices, A if values is None else values,
        out if out is not None else sums, sums, zero_weight, A.shape[1], columns,
        KIND=kind, AT_LEAST=at_least, MULTIPLIES=V is not None,
        RANK=triton.next_power_of_2(rank), COLUMNS=triton.next_power_of_2(columns),
        CHUNK=_ENTRIES_AT_ONCE, DOUBLE=A.dtype == torch.float64, num_warps=1,
    )  # fmt: skip


@triton.jit
def _add_entries(  # type: ignore[no-untyped-def]
    A, B, V, indptr, indices, values, out, sums, zero_weight, rank, columns,
    KIND: tl.constexpr, AT_LEAST: tl.constexpr, MULTIPLIES: tl.constexpr,
    RANK: tl.constexpr, COLUMNS: tl.constexpr, CHUNK: tl.constexpr, DOUBLE: tl.constexpr,
):  # fmt: skip
    i = tl.program_id(0).to(tl.int64)
    number = tl.float64 if DOUBLE else tl.float32
    k = tl.arange(0, RANK)
    c = tl.arange(0, COLUMNS)
    a = tl.load(A + i * rank + k, mask=k < rank, other=0.0)
    total = tl.zeros((COLUMNS,), number)
    fit = tl.zeros((CHUNK,), tl.float64)
    error = tl.zeros((CHUNK,), tl.float64)
    positive = tl.zeros((CHUNK,), tl.float64)
    free = tl.zeros((CHUNK,), tl.float64)
    active = tl.zeros((CHUNK,), tl.float64)
    inner = tl.zeros((CHUNK,), tl.float64)
    visited = tl.zeros((CHUNK,), tl.float64)
    last = tl.load(indptr + i + 1)
    for first in range(tl.load(indptr + i), last, CHUNK):
        p = first + tl.arange(0, CHUNK)
        there = p < last
        j = tl.load(indices + p, mask=there, other=0).to(tl.int64)
        b = tl.load(B + j[:, None] * rank + k[None, :], mask=there[:, None] & (k < rank)[None, :], other=0.0)
        x = tl.sum(a[None, :] * b, 1)
        wide = x.to(tl.float64)
        if KIND == 0:
            m = tl.load(values + p, mask=there, other=0.0)
            counts = there
            if AT_LEAST:
                met = there & (x > m)
                free += tl.where(met, wide * wide - m.to(tl.float64) * m.to(tl.float64), 0.0)
                counts = there & ~(x > m)
            e = tl.where(counts, x - m, 0.0)
            # Not tl.maximum, which may drop NaN.
            d = tl.where(counts, tl.where(x <= 0, 0.0, x) - m, 0.0).to(tl.float64)
            fit += e.to(tl.float64) * e.to(tl.float64)
            error += d * d
            inner -= tl.where(counts, e.to(tl.float64) * wide, 0.0)
            visited += tl.where(there, wide * wide, 0.0)
        elif KIND == 1:
            above = there & (x > 0)
            e = tl.where(above, x * zero_weight, 0.0).to(number)
            positive += tl.where(above, wide * wide, 0.0)
            active += tl.where(above, 1.0, 0.0)
            visited += tl.where(above, wide * wide, 0.0)
        else:
            e = tl.zeros((CHUNK,), number)
            free += tl.where(there, wide * wide, 0.0)
            visited += tl.where(there, wide * wide, 0.0)
        if MULTIPLIES and KIND != 2:
            v = tl.load(
                V + j[:, None] * columns + c[None, :], mask=there[:, None] & (c < columns)[None, :], other=0.0
            )
            total -= tl.sum(e[:, None] * v, 0)
    if MULTIPLIES and KIND != 2:
        place = out + i * columns + c
        before = tl.load(place, mask=c < columns, other=0.0)
        tl.store(place, before + total, mask=c < columns)
    row = sums + i * 7
    tl.store(row, tl.load(row) + tl.sum(fit))
    tl.store(row + 1, tl.load(row + 1) + tl.sum(error))
    tl.store(row + 2, tl.load(row + 2) + tl.sum(positive))
    tl.store(row + 3, tl.load(row + 3) + tl.sum(free))
    tl.store(row + 4, tl.load(row + 4) + tl.sum(active))
    tl.store(row + 5, tl.load(row + 5) + tl.sum(inner))
    tl.store(row + 6, tl.load(row + 6) + tl.sum(visited))
