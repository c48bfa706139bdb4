"""max(0, X) V on a GPU, tile by tile in one kernel: X is never stored.

A program owns some rows of X. It walks over all columns in tiles, multiplies a tile out, takes its positive
part and adds it times V to a sum that stays in registers: attention without softmax. Entries that are not
zeros of M are left out inside the tile. To add them and subtract them later would leave an error that is large
next to the residual of a good fit. Tiles without such entries, almost all, run in a loop of their own that the
compiler can overlap with its loads; those with entries come in between.

The matrix units are fastest with float16, which has 11 binary digits and a small range. As the positive part of
X scales with the lengths of its rows, the kernel works on rows of length one: X_ij = |u_i| |u_j| c_ij, with the
signed cosines c_ij. The lengths |u_j| go into V, whose columns are then scaled to at most one. A second array
holds what the rounding left; three products out of four then give nearly the precision of float32.

The matrix units cut off the last digits of a sum where others round them. In a long sum this adds up, so they
sum up one tile at a time only.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import torch
import triton
import triton.language as tl
from triton.runtime import JITFunction
from triton.tools.tensor_descriptor import TensorDescriptor

from symrelu.kernels.device_scaling import padded_columns, padded_rows, scaled_factors, subtract_scaled

# Columns of V that a program multiplies. Tiles are tuned for as many as U has; more than the most would not fit
# into the registers, and with less than the least it would multiply X out too often.
_LEAST_COLUMNS = 64
_MOST_COLUMNS = 128

# Entries of a factor, and of M, that 32-bit numbers can count.
_MOST_NUMBERS = 2**31 - 1


class Tiling(NamedTuple):
    """How a kernel is cut and run.

    Attributes
    ----------
    rows, columns : int
        Of a tile.
    warps : int
        Of 32 threads each, that share a tile.
    stages : int
        Tiles that are loaded ahead, and one.
    pieces : int
        Parts of the columns of a tile, worked on one after the other. The matrix units sum up their products,
        which saves registers and energy, and cuts off digits.
    described : bool
        Whether tiles are loaded by descriptors, for which a GPU from Hopper on has an engine.
    registers : int, or None
        The most that a thread may have, so that enough programs run side by side. Passes that count positive
        entries have no limit, since they would not get by with these.
    """

    rows: int
    columns: int
    warps: int
    stages: int
    pieces: int = 1
    described: bool = False
    registers: int | None = None


class TileEntries(NamedTuple):
    """Entries that are left out, by block of rows and then by tile of columns.

    Attributes
    ----------
    tiles : tensor of int32
        The tiles that have entries, block after block, in ascending order.
    first_tile : tensor of int32 of shape (blocks + 1,)
        Where the tiles of each block begin.
    first_entry : tensor of int32 of shape (tiles + 1,)
        Where the entries of each tile begin.
    rows, columns : tensors of int32
        The entries.
    """

    tiles: Any
    first_tile: Any
    first_entry: Any
    rows: Any
    columns: Any


def tile_entries(indptr: np.ndarray, indices: np.ndarray, tiling: Tiling, device: Any) -> TileEntries:
    """Return the entries of a CSR pattern in the order in which a kernel with this tiling meets them."""
    if len(indices) > _MOST_NUMBERS:
        raise ValueError(
            "A matrix on a GPU must have fewer than 2^31 entries, with those that mask= or diagonal= leaves "
            f"out; got {len(indices)}. Use backend='sparse' or a cluster."
        )
    n = len(indptr) - 1
    rows = np.repeat(np.arange(n, dtype=np.int64), np.diff(indptr))
    across = -(-padded_rows(n) // tiling.columns)
    tiles = rows // tiling.rows * across + indices // tiling.columns
    order = np.argsort(tiles, kind="stable")
    occupied, first_entry = np.unique(tiles[order], return_index=True)
    blocks = np.arange(padded_rows(n) // tiling.rows + 1)
    return TileEntries(
        *(
            torch.from_numpy(np.ascontiguousarray(part, np.int32)).to(device)
            for part in (
                occupied % across,
                np.searchsorted(occupied, blocks * across),
                np.append(first_entry, len(order)),
                rows[order],
                indices[order],
            )
        )
    )


def check_offsets(n: int, rank: int) -> None:
    """Raise if a factor has too many numbers for the 32-bit indices of the kernels."""
    rows, columns = padded_rows(n), padded_columns(rank)
    if rows * columns > _MOST_NUMBERS:
        most = 1 << (_MOST_NUMBERS // rows).bit_length() >> 1  # the power of two below, or 0
        use = f"a rank of at most {most}, " if most >= padded_columns(1) else ""
        raise ValueError(
            "A factor on a GPU must have fewer than 2^31 numbers, with its columns padded to a power of two; "
            f"got {n} x {rank}, padded to {columns} columns. Use {use}backend='sparse' or a cluster."
        )


def columns_at_once(rank: int, columns: int) -> int:
    """Return how many columns of V a program multiplies, of numbers of columns that are padded."""
    return min(columns, max(rank, _LEAST_COLUMNS), _MOST_COLUMNS)


class PositiveSums(NamedTuple):
    """Sums over max(0, X), in parts: of its squares, and of its positive entries if they were counted."""

    squares: Any
    counts: Any | None


def subtract_positive(
    out: Any | None,
    U: Any,
    signs: Any,
    V: Any,
    order: Any,
    left_out: TileEntries,
    tiling: Tiling,
    *,
    weight: float = 1.0,
    split: bool,
    counts: bool = True,
) -> PositiveSums:
    """Subtract ``weight`` max(0, X) V from ``out``, X = (U * signs) U^T without the entries that are left out.

    Parameters
    ----------
    out : tensor of float32 of the shape of V, or None
    U : tensor of float32 of shape (n, rank)
    signs : tensor of shape (rank,)
    V : tensor of float32 of shape (n, columns)
    order : tensor of int64 of shape (n,)
        The order in which the kernel visits the rows.
    left_out : TileEntries
        For this tiling and this order.
    tiling : Tiling
    weight : float
    split : bool
        Whether a second array holds what rounding to float16 leaves, for nearly the precision of float32.
    counts : bool
        Whether positive entries are counted. Without, V must be U, with which the sum of squares is that of U
        times the product; with the counts, it would take a quarter of the time of a pass that is not split.

    Returns
    -------
    sums : PositiveSums
    """
    check_offsets(len(U), max(U.shape[1], V.shape[1]))
    scaled = scaled_factors(U, signs, V, order, split=split)
    A, B, right = scaled.A, scaled.B, scaled.right
    padded, rank = B.high.shape
    columns = right.high.shape[1]
    product = torch.empty((padded, columns), dtype=torch.float32, device=U.device)
    found = torch.empty((2, padded if counts else 1), dtype=torch.float32, device=U.device)
    slab, width = columns_at_once(rank, columns), tiling.columns // tiling.pieces
    tiled, tiled_right = B.high, right.high
    if tiling.described:
        tiled = TensorDescriptor.from_tensor(tiled, [width, rank])
        tiled_right = TensorDescriptor.from_tensor(tiled_right, [width, slab])
    _add_positive[(padded // tiling.rows, columns // slab)](
        A.high, A.low if split else A.high, tiled, B.low if split else B.high,
        tiled_right, right.low if split else right.high, scaled.lengths, product, found, *left_out,
        padded, columns, 1.0,
        RANK=rank, SLAB=slab, ROWS=tiling.rows, COLUMNS=tiling.columns, WIDTH=width, DESCRIBED=tiling.described,
        SPLIT=split, SUMS=counts, AT_ONCE=not counts and _converts_at_once(U.device),
        num_warps=tiling.warps, num_stages=tiling.stages, maxnreg=None if counts else tiling.registers,
    )  # fmt: skip
    squares = subtract_scaled(out, product, scaled, weight, None if counts else (U, signs))
    if squares is not None:
        return PositiveSums(squares, None)
    return PositiveSums(found[0] * scaled.lengths**2, found[1])


@lru_cache
def _converts_at_once(device: Any) -> bool:
    """Return whether a device has the instruction of :func:`_positive_half`; Triton's interpreter has not."""
    if device.type != "cuda" or torch.version.cuda is None or not isinstance(_positive_half, JITFunction):
        return False
    return torch.cuda.get_device_capability(device) >= (8, 0)


@triton.jit
def _tile(  # type: ignore[no-untyped-def]
    a, a_low, B_high, B_low, begin,
    RANK: tl.constexpr, WIDTH: tl.constexpr, DESCRIBED: tl.constexpr, SPLIT: tl.constexpr,
):  # fmt: skip
    """Return the piece of cosines that begins at a column."""
    place = (begin + tl.arange(0, WIDTH))[None, :] * RANK + tl.arange(0, RANK)[:, None]
    b = B_high.load([begin, 0]).T if DESCRIBED else tl.load(B_high + place)
    x = tl.dot(a, b)
    if SPLIT:
        x = tl.dot(a_low, b, x)
        x = tl.dot(a, tl.load(B_low + place), x)
    return x


@triton.jit
def _positive_half(x):  # type: ignore[no-untyped-def]
    """Return max(0, x) in float16, by one instruction for two numbers."""
    return tl.inline_asm_elementwise(
        "cvt.rn.relu.f16x2.f32 $0, $2, $1;", "=r,r,r", [x], dtype=tl.float16, is_pure=True, pack=2
    )


@triton.jit
def _add_positive_times(  # type: ignore[no-untyped-def]
    part, x, V_high, V_low, begin, columns, slab,
    SLAB: tl.constexpr, WIDTH: tl.constexpr, DESCRIBED: tl.constexpr,
    SPLIT: tl.constexpr, AT_ONCE: tl.constexpr,
):  # fmt: skip
    """Return part + max(0, x) V for a piece of X."""
    place = (begin + tl.arange(0, WIDTH))[:, None] * columns + slab + tl.arange(0, SLAB)[None, :]
    v = V_high.load([begin, slab]) if DESCRIBED else tl.load(V_high + place)
    if SPLIT:
        y = tl.maximum(x, 0.0)
        high = y.to(tl.float16)
        low = (y - high.to(tl.float32)).to(tl.float16)
        part = tl.dot(high, v, part)
        part = tl.dot(low, v, part)
        return tl.dot(high, tl.load(V_low + place), part)
    return tl.dot(_positive_half(x) if AT_ONCE else tl.maximum(x, 0.0).to(tl.float16), v, part)


@triton.jit
def _add_sums(squares, count, x, lengths, begin, WIDTH: tl.constexpr):  # type: ignore[no-untyped-def]
    """Return the sums by row, with a piece of cosines: squares of max(0, x) |u_j|, and positive entries."""
    y = tl.maximum(x, 0.0) * tl.load(lengths + begin + tl.arange(0, WIDTH))[None, :]
    return squares + tl.sum(y * y, 1), count + tl.sum((x > 0).to(tl.float32), 1)


@triton.jit
def _add_positive(  # type: ignore[no-untyped-def]
    A_high, A_low, B_high, B_low, V_high, V_low, lengths, out, sums,
    tiles, first_tile, first_entry, entry_rows, entry_columns, rows, columns, one,
    RANK: tl.constexpr, SLAB: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr, WIDTH: tl.constexpr,
    DESCRIBED: tl.constexpr, SPLIT: tl.constexpr, SUMS: tl.constexpr, AT_ONCE: tl.constexpr,
):  # fmt: skip
    block = tl.program_id(0)
    slab = tl.program_id(1) * SLAB
    i = block * ROWS + tl.arange(0, ROWS)
    own = i[:, None] * RANK + tl.arange(0, RANK)[None, :]
    a = tl.load(A_high + own)
    a_low = tl.load(A_low + own) if SPLIT else a
    total = tl.zeros((ROWS, SLAB), tl.float32)
    squares = tl.zeros((ROWS,), tl.float32)
    count = tl.zeros((ROWS,), tl.float32)
    first, last = tl.load(first_tile + block), tl.load(first_tile + block + 1)
    for place in range(first, last + 1):
        occupied = place < last
        after = place > first
        begin = tl.where(after, (tl.load(tiles + place - 1, mask=after, other=0) + 1) * COLUMNS, 0)
        end = tl.where(occupied, tl.load(tiles + place, mask=occupied, other=0) * COLUMNS, rows)
        for clean in tl.range(begin, end, COLUMNS):
            part = tl.zeros((ROWS, SLAB), tl.float32)
            for piece in tl.static_range(COLUMNS // WIDTH):
                at = clean + piece * WIDTH
                x = _tile(a, a_low, B_high, B_low, at, RANK, WIDTH, DESCRIBED, SPLIT)
                if SUMS:
                    squares, count = _add_sums(squares, count, x, lengths, at, WIDTH)
                part = _add_positive_times(
                    part, x, V_high, V_low, at, columns, slab, SLAB, WIDTH, DESCRIBED, SPLIT, AT_ONCE
                )
            # With a plain sum, the compiler would let the matrix units do it, and cut off digits.
            total = tl.fma(part, one, total)
        if occupied:
            part = tl.zeros((ROWS, SLAB), tl.float32)
            for piece in tl.static_range(COLUMNS // WIDTH):
                at = end + piece * WIDTH
                j = at + tl.arange(0, WIDTH)
                x = _tile(a, a_low, B_high, B_low, at, RANK, WIDTH, DESCRIBED, SPLIT)
                for entry in range(tl.load(first_entry + place), tl.load(first_entry + place + 1)):
                    in_row = (i == tl.load(entry_rows + entry))[:, None]
                    x = tl.where(in_row & (j == tl.load(entry_columns + entry))[None, :], 0.0, x)
                if SUMS:
                    squares, count = _add_sums(squares, count, x, lengths, at, WIDTH)
                part = _add_positive_times(
                    part, x, V_high, V_low, at, columns, slab, SLAB, WIDTH, DESCRIBED, SPLIT, AT_ONCE
                )
            total = tl.fma(part, one, total)
    tl.store(out + i.to(tl.int64)[:, None] * columns + slab + tl.arange(0, SLAB)[None, :], total)
    if SUMS and slab == 0:
        tl.store(sums + i, squares)
        tl.store(sums + rows + i, count)
