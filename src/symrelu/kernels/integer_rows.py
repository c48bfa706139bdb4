"""Rows of 16-bit integers, and comparisons of their inner products with a threshold, 64 columns at a time.

Sixteen bits are enough to say which products of rows of length one are above a threshold, up to a rounding
error that is known. Products of integers are exact: they are the same on all machines, whatever the order of a
sum. And processors multiply 16-bit integers two to four times as fast as numbers in float32.

*Packed* rows are an array of shape (strips, pairs, 64, 2), in which element [s, p, r, h] is column 2 p + h of
row 64 s + r; they are compared with all rows of a strip. *Plain* rows follow each other, for rows that are
chosen one by one. Rows and columns that fill them up are zero.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from symrelu.kernels.vector_code import (
    INT16,
    INT32,
    INT64,
    Loop,
    added_up,
    address_of,
    array_of,
    check_arrays,
    chosen,
    load,
    repeated,
    store,
)

# Rows of a strip: as many as a word has bits.
STRIP = 64

# Rows of length one are multiplied by this: a sum of products is then less than 2^30 times 1.001, an int32.
SCALE = 2**15 - 1

ROWS_AT_ONCE = 4

_COLUMNS_OF_A_VECTOR = 32  # of a plain row: 64 bytes


def packed_zeros(n: int, columns: int) -> np.ndarray:
    """Return packed rows of zeros."""
    return np.zeros((-(-n // STRIP), -(-columns // 2), STRIP, 2), np.int16)


def plain_zeros(n: int, columns: int) -> np.ndarray:
    """Return plain rows of zeros, in whole vectors."""
    return np.zeros((n, -(-columns // _COLUMNS_OF_A_VECTOR) * _COLUMNS_OF_A_VECTOR), np.int16)


def rounding_of_rows(columns: int) -> float:
    """Return more than the distance of a row of length one from its integers, divided by SCALE."""
    return 0.5001 * float(np.sqrt(columns)) / SCALE


@intrinsic
def compare_rows(typingctx, rows, first, packed, strip, threshold, words):  # type: ignore[no-untyped-def]
    """Compare the products of four rows with those of a strip with a threshold, an int32.

    ``rows`` is an int16 array with rows as long as the packed ones. Bit r of words[k, strip] becomes 1 if the
    product of row k and row r of the strip is above the threshold, for the four rows k from ``first`` on.
    """
    check_arrays(rows, packed)
    check_arrays(words)

    def codegen(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        arrays = [array_of(context, builder, signature.args[k], arguments[k]) for k in (0, 2, 5)]
        lanes, together = _shape(context)
        for k in range(0, ROWS_AT_ONCE, together):
            first = builder.add(arguments[1], INT64(k))
            _compare(builder, arrays, first, arguments[3], arguments[4], lanes, together)
        return context.get_dummy_value()

    return types.void(rows, types.intp, packed, types.intp, types.int32, words), codegen


@intrinsic
def compare_chosen(typingctx, own, rows, a, b, c, d, threshold):  # type: ignore[no-untyped-def]
    """Return four bits: whether the products of a row with four plain rows are above a threshold, an int32."""
    check_arrays(own, rows)

    def codegen(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        left, table = (array_of(context, builder, signature.args[k], arguments[k]) for k in (0, 1))
        columns = builder.extract_value(table.shape, 1)
        starts = [
            address_of(builder, table, builder.mul(builder.mul(arguments[k], columns), INT64(2)))
            for k in range(2, 6)
        ]
        lanes = _COLUMNS_OF_A_VECTOR // 2
        zero = ir.Constant(ir.VectorType(INT32, lanes), [0] * lanes)
        loop = Loop(builder, [zero] * len(starts))
        offset = builder.mul(loop.round, INT64(2 * _COLUMNS_OF_A_VECTOR))
        factor = _numbers(builder, address_of(builder, left, offset), lanes)
        sums = []
        for start, total in zip(starts, loop.sums, strict=True):
            column = _numbers(builder, builder.add(start, offset), lanes)
            sums.append(builder.add(total, _sums_of_pairs(builder, factor, column)))
        loop.end(sums, builder.sdiv(columns, INT64(_COLUMNS_OF_A_VECTOR)))
        totals = added_up(builder, loop.sums, builder.add)
        above = builder.icmp_signed(">", totals, repeated(builder, arguments[6], len(starts)))
        return builder.zext(builder.bitcast(above, ir.IntType(len(starts))), INT64)

    return types.int64(own, rows, *[types.intp] * 4, types.int32), codegen


def _shape(context: Any) -> tuple[int, int]:
    """Return how many sums a vector has, and for how many rows there are registers."""
    features = context.codegen().magic_tuple()[2]
    return (16, 4) if "+avx512bw" in features.split(",") else (8, 1)


def _compare(builder: Any, arrays: Any, first: Any, strip: Any, threshold: Any, lanes: int, count: int) -> None:
    """Write the code for some of the rows: a loop over pairs of columns, whose sums stay in registers."""
    rows, packed, words = arrays
    pairs, width = builder.extract_value(packed.shape, 1), builder.extract_value(words.shape, 1)
    row_bytes = builder.mul(pairs, INT64(4))
    left = address_of(builder, rows, builder.mul(first, row_bytes))
    right = address_of(builder, packed, builder.mul(strip, builder.mul(row_bytes, INT64(STRIP))))
    parts = STRIP // lanes
    zero = ir.Constant(ir.VectorType(INT32, lanes), [0] * lanes)
    loop = Loop(builder, [zero] * (count * parts))
    here = builder.add(right, builder.mul(loop.round, INT64(4 * STRIP)))
    columns = [_numbers(builder, builder.add(here, INT64(4 * lanes * v)), lanes) for v in range(parts)]
    sums = []
    for k in range(count):
        own = builder.add(
            builder.add(left, builder.mul(row_bytes, INT64(k))), builder.mul(loop.round, INT64(4))
        )
        pair = _widened(builder, repeated(builder, load(builder, own, INT32, 4), lanes))
        for old, column in zip(loop.sums[k * parts : (k + 1) * parts], columns, strict=True):
            sums.append(builder.add(old, _sums_of_pairs(builder, pair, column)))
    loop.end(sums, pairs)
    least = repeated(builder, threshold, lanes)
    for k in range(count):
        word = _word(builder, loop.sums[k * parts : (k + 1) * parts], least)
        place = builder.add(builder.mul(builder.add(first, INT64(k)), width), strip)
        store(builder, word, address_of(builder, words, builder.mul(place, INT64(8))), 8)


def _sums_of_pairs(builder: Any, left: Any, right: Any) -> Any:
    """Return the sums of two products each of 16-bit integers."""
    # Processors have one instruction for this.
    products = builder.mul(left, right)
    halves = [chosen(builder, products, range(half, products.type.count, 2)) for half in (0, 1)]
    return builder.add(*halves)


def _numbers(builder: Any, address: Any, lanes: int) -> Any:
    """Return the pairs of 16-bit integers at an address, each as int32."""
    return _widened(builder, load(builder, address, ir.VectorType(INT32, lanes), 4))


def _widened(builder: Any, pairs: Any) -> Any:
    """Return the 16-bit integers in a vector of int32, each as int32."""
    count = 2 * pairs.type.count
    return builder.sext(builder.bitcast(pairs, ir.VectorType(INT16, count)), ir.VectorType(INT32, count))


def _word(builder: Any, sums: Any, least: Any) -> Any:
    """Return a word with a bit for each sum that is above the least one."""
    word, lanes = INT64(0), least.type.count
    for v, total in enumerate(sums):
        bits = builder.bitcast(builder.icmp_signed(">", total, least), ir.IntType(lanes))
        word = builder.or_(word, builder.shl(builder.zext(bits, INT64), INT64(lanes * v)))
    return word
