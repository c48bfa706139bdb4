"""Factors for kernels on a GPU: rows of length one in float16, and their scales put back after a product.

Written with torch, the dozens of steps around a product would each read and write a whole factor, and take
several milliseconds for a million rows.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
import triton
import triton.language as tl

# All arrays are padded with rows of zeros to a multiple of this, so that tiles need no masks.
ROWS_AT_ONCE = 128

# Numbers of a factor that a program holds.
_NUMBERS = 4096


class Halves(NamedTuple):
    """A matrix in float16, padded with zeros, and what the rounding left of it, in float16 too, or None."""

    high: Any
    low: Any | None

    def signed(self, signs: Any) -> Halves:
        """Return the matrix with its columns times signs, which are exact."""
        padded = torch.ones(self.high.shape[1], dtype=torch.float16, device=self.high.device)
        padded[: len(signs)] = signs
        return Halves(self.high * padded, None if self.low is None else self.low * padded)


def padded_rows(n: int) -> int:
    """Return the number of rows of a padded array."""
    return -(-n // ROWS_AT_ONCE) * ROWS_AT_ONCE


def padded_columns(rank: int) -> int:
    """Return the number of columns of a padded array: the matrix units need a power of two from 16 on."""
    return max(16, triton.next_power_of_2(rank))


def halves(A: Any, *, split: bool) -> Halves:
    """Return a matrix with numbers up to one in float16, with what the rounding left if ``split``."""
    high = A.to(torch.float16)
    return Halves(_padded(high), _padded((A - high).to(torch.float16)) if split else None)


def _padded(A: Any) -> Any:
    n, rank = A.shape
    padded = torch.zeros((padded_rows(n), padded_columns(rank)), dtype=A.dtype, device=A.device)
    padded[:n, :rank] = A
    return padded


def directions(U: Any) -> tuple[Any, Any]:
    """Return the rows of U at length one, those of zeros as they are, and their lengths."""
    # Divided by the largest first: squares of tiny numbers would be zero, those of huge ones infinite.
    largest = U.abs().amax(dim=1, keepdim=True)
    rows = U / largest.clamp(min=torch.finfo(U.dtype).tiny)
    lengths = torch.linalg.vector_norm(rows, dim=1, keepdim=True)
    return rows / lengths.clamp(min=0.5), (largest * lengths)[:, 0]


class Scaled(NamedTuple):
    """What a product with all pairs works on, row by row in a given order; V has the lengths |u_j| in it.

    Attributes
    ----------
    A, B : Halves
        The directions of the rows of U, with signs and without.
    right : Halves
        The rows of V times the lengths of those of U, in each column divided by the largest of it.
    lengths : tensor of float32 of shape (padded rows,)
    largest : tensor of float32 of shape (padded columns,)
    order : tensor of int64 of shape (n,)
    """

    A: Halves
    B: Halves
    right: Halves
    lengths: Any
    largest: Any
    order: Any


def scaled_factors(U: Any, signs: Any, V: Any, order: Any, *, split: bool) -> Scaled:
    """Return U and V, in float32, as a kernel takes them; halves have a second array if ``split``."""
    (n, rank), columns = U.shape, V.shape[1]
    A, B, right = (_empty_halves(n, width, U.device, split) for width in (rank, rank, columns))
    lengths = torch.empty(len(B.high), dtype=torch.float32, device=U.device)
    sizes = {"RANK": B.high.shape[1], "COLUMNS": right.high.shape[1], "SPLIT": split}
    rows = _rows_at_once(max(sizes["RANK"], sizes["COLUMNS"]))
    blocks = len(lengths) // rows
    largest = torch.empty((blocks, sizes["COLUMNS"]), dtype=torch.float32, device=U.device)
    _write_directions[(blocks,)](
        U, V, order, signs, *_both(A), *_both(B), lengths, largest, n, rank, columns, ROWS=rows, **sizes
    )
    # Not zero, by which nothing can be divided.
    largest = largest.amax(dim=0).clamp(min=torch.finfo(torch.float32).tiny)
    del sizes["RANK"]
    _write_right[(blocks,)](V, order, lengths, largest, *_both(right), n, columns, ROWS=rows, **sizes)
    return Scaled(A, B, right, lengths, largest, order)


def subtract_scaled(
    out: Any | None, product: Any, scaled: Scaled, weight: float, factor: tuple[Any, Any] | None
) -> Any | None:
    """Subtract a product from ``out``, with its scales and a weight; return its inner product with a factor.

    Parameters
    ----------
    out : tensor of float32 of shape (n, columns), or None
    product : tensor of float32 of shape (padded rows, padded columns)
        The positive part of A B^T times ``right``.
    scaled : Scaled
    weight : float
    factor : (tensor of float32 of shape (n, columns), tensor of shape (columns,)), or None
        A factor and its signs.

    Returns
    -------
    inner : tensor of float64, or None
        Parts of the sum over (factor * signs) * product, without the weight.
    """
    given = [A for A in (out, None if factor is None else factor[0]) if A is not None]
    if not given:
        return None
    columns = product.shape[1]
    rows = _rows_at_once(columns)
    blocks = len(product) // rows
    unused = scaled.lengths
    sums = unused if factor is None else torch.empty(blocks, dtype=torch.float64, device=product.device)
    _subtract_scaled[(blocks,)](
        unused if out is None else out, product, scaled.order, scaled.lengths, scaled.largest,
        *((unused, unused) if factor is None else factor), sums,
        weight, len(scaled.order), given[0].shape[1],
        COLUMNS=columns, ROWS=rows, SUBTRACTS=out is not None, SUMS=factor is not None,
    )  # fmt: skip
    return None if factor is None else sums


def _empty_halves(n: int, columns: int, device: Any, split: bool) -> Halves:
    shape = padded_rows(n), padded_columns(columns)
    parts = [torch.empty(shape, dtype=torch.float16, device=device) for _ in range(1 + split)]
    return Halves(parts[0], parts[1] if split else None)


def _both(A: Halves) -> tuple[Any, Any]:
    """Return both halves for a kernel, which does not touch a second one that is not there."""
    return A.high, A.high if A.low is None else A.low


def _rows_at_once(columns: int) -> int:
    return min(ROWS_AT_ONCE, max(1, _NUMBERS // columns))


@triton.jit
def _load_rows(A, rows, there, c, columns):  # type: ignore[no-untyped-def]
    """Return some rows, with zeros where there is nothing."""
    inside = there[:, None] & (c < columns)[None, :]
    return tl.load(A + rows[:, None] * columns + c[None, :], mask=inside, other=0.0)


@triton.jit
def _store_halves(high, low, place, x, SPLIT: tl.constexpr):  # type: ignore[no-untyped-def]
    half = x.to(tl.float16)
    tl.store(high + place, half)
    if SPLIT:
        tl.store(low + place, (x - half.to(tl.float32)).to(tl.float16))


@triton.jit(do_not_specialize=["n"])
def _write_directions(  # type: ignore[no-untyped-def]
    U, V, order, signs, A_high, A_low, B_high, B_low, lengths, largest, n, rank, columns,
    RANK: tl.constexpr, COLUMNS: tl.constexpr, ROWS: tl.constexpr, SPLIT: tl.constexpr,
):  # fmt: skip
    p = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    there = p < n
    i = tl.load(order + p, mask=there, other=0)
    k, c = tl.arange(0, RANK), tl.arange(0, COLUMNS)
    u = _load_rows(U, i, there, k, rank)
    # Divided by the largest first: squares of tiny numbers would be zero, those of huge ones infinite.
    size = tl.max(tl.abs(u), 1)
    u = tl.div_rn(u, tl.maximum(size, 1.1754944e-38)[:, None])
    length = tl.sqrt_rn(tl.sum(u * u, 1))
    u = tl.div_rn(u, tl.maximum(length, 0.5)[:, None])
    length = size * length
    place = p.to(tl.int64)[:, None] * RANK + k[None, :]
    _store_halves(B_high, B_low, place, u, SPLIT)
    _store_halves(A_high, A_low, place, u * tl.load(signs + k, mask=k < rank, other=0.0)[None, :], SPLIT)
    tl.store(lengths + p, length)
    v = _load_rows(V, i, there, c, columns)
    tl.store(largest + tl.program_id(0) * COLUMNS + c, tl.max(tl.abs(v) * length[:, None], 0))


@triton.jit(do_not_specialize=["n"])
def _write_right(  # type: ignore[no-untyped-def]
    V, order, lengths, largest, high, low, n, columns,
    COLUMNS: tl.constexpr, ROWS: tl.constexpr, SPLIT: tl.constexpr,
):  # fmt: skip
    p = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    there = p < n
    c = tl.arange(0, COLUMNS)
    v = _load_rows(V, tl.load(order + p, mask=there, other=0), there, c, columns)
    weighted = tl.div_rn(v * tl.load(lengths + p)[:, None], tl.load(largest + c)[None, :])
    _store_halves(high, low, p.to(tl.int64)[:, None] * COLUMNS + c[None, :], weighted, SPLIT)


@triton.jit(do_not_specialize=["n"])
def _subtract_scaled(  # type: ignore[no-untyped-def]
    out, product, order, lengths, largest, U, signs, sums, weight, n, columns,
    COLUMNS: tl.constexpr, ROWS: tl.constexpr, SUBTRACTS: tl.constexpr, SUMS: tl.constexpr,
):  # fmt: skip
    p = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    c = tl.arange(0, COLUMNS)
    there = p < n
    i = tl.load(order + p, mask=there, other=0)
    x = tl.load(product + p.to(tl.int64)[:, None] * COLUMNS + c[None, :])
    x = x * tl.load(lengths + p)[:, None] * tl.load(largest + c)[None, :]
    if SUMS:
        u = _load_rows(U, i, there, c, columns) * tl.load(signs + c, mask=c < columns, other=0.0)[None, :]
        tl.store(sums + tl.program_id(0), tl.sum(tl.sum((u * x).to(tl.float64), 1), 0))
    if SUBTRACTS:
        place = out + i[:, None] * columns + c[None, :]
        inside = there[:, None] & (c < columns)[None, :]
        tl.store(place, tl.load(place, mask=inside) - weight * x, mask=inside)
