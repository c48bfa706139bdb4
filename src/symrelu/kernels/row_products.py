"""Inner products of a row with several others, and sums of multiples of rows.

Rows that are chosen one by one are too short, and too far from each other, for the loops that LLVM finds. Here
a row is read as vectors of 64 bytes, and what several rows need stays in registers. The last vector of a row
overlaps the one before if the number of columns is not a multiple of its length; rows shorter than a vector are
left to loops.

A product does not depend on the other products of a call, and is the same with the two rows exchanged.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from symrelu.kernels.jit import compiled, inlined
from symrelu.kernels.vector_code import (
    INT64,
    Loop,
    added_up,
    address_of,
    array_of,
    check_arrays,
    load,
    repeated,
    store,
)

_VECTOR_BYTES = 64

# Products that are computed at once; four_of and write_products have an argument for each.
TOGETHER = 4

# Vectors of a sum of rows that are kept in registers at once.
_SUMS_AT_ONCE = 4


@compiled
def padded_row(rows):  # type: ignore[no-untyped-def]
    """Return room for a row in whole vectors: see :func:`lay_out`."""
    lanes = _VECTOR_BYTES // rows.itemsize
    return np.zeros(max(1, (rows.shape[1] + lanes - 1) // lanes) * lanes, rows.dtype)


# These functions get whole arrays and the number of a row: threads that all make slices of one array would wait
# for each other, because a slice counts as one more reference to it.


@inlined
def lay_out(rows, i, signs, padded):  # type: ignore[no-untyped-def]
    """Write row i, with these signs, as :func:`inner_products` needs it.

    In the last vector, columns that are in the one before as well are zero.
    """
    # Two loops without a choice inside, so that LLVM turns them into vectors.
    columns, lanes = rows.shape[1], _VECTOR_BYTES // rows.itemsize
    before = padded.size - lanes if columns >= lanes else columns
    for c in range(before):
        padded[c] = signs[c] * rows[i, c]
    shift = padded.size - columns
    for c in range(before, columns):
        padded[c + shift] = signs[c] * rows[i, c]


@inlined
def four_of(numbers, place, last):  # type: ignore[no-untyped-def]
    """Return four numbers from a place on; behind the last place, the last number again."""
    return (
        np.intp(numbers[place]),
        np.intp(numbers[min(place + 1, last)]),
        np.intp(numbers[min(place + 2, last)]),
        np.intp(numbers[min(place + 3, last)]),
    )


@inlined
def inner_products(padded, rows, chosen_rows, first, count, out):  # type: ignore[no-untyped-def]
    """Write the inner products of a row with ``count`` chosen rows, from the place ``first`` on, to ``out``.

    ``padded`` is the row as :func:`lay_out` writes it; ``out`` has room for TOGETHER - 1 numbers more.
    """
    columns = rows.shape[1]
    if columns * rows.itemsize < _VECTOR_BYTES:
        for p in range(count):
            j, total = chosen_rows[first + p], out.dtype.type(0)
            for c in range(columns):
                total += padded[c] * rows[j, c]
            out[p] = total
        return
    for p in range(0, count, TOGETHER):
        a, b, c, d = four_of(chosen_rows, first + p, first + count - 1)
        write_products(padded, rows, a, b, c, d, out, p)


@inlined
def add_multiples(rows, chosen_rows, weights, count, padded_sum):  # type: ignore[no-untyped-def]
    """Add the first ``count`` chosen rows, each times its weight, to a sum.

    The columns of the sum are where :func:`lay_out` has those of a row, but without zeros: the last vector has
    all of its columns. :func:`write_sum` puts them in order.
    """
    columns = rows.shape[1]
    lanes = _VECTOR_BYTES // rows.itemsize
    if columns < lanes:
        for p in range(count):
            j, weight = chosen_rows[p], weights[p]
            for c in range(columns):
                padded_sum[c] += weight * rows[j, c]
        return
    if count == 0:
        return
    vectors, at = padded_sum.size // lanes, 0
    while at < vectors:
        first = min(at * lanes, columns - lanes)
        if (at + _SUMS_AT_ONCE) * lanes <= columns:
            add_four_vectors(rows, chosen_rows, weights, count, first, padded_sum, at * lanes)
            at += _SUMS_AT_ONCE
        else:
            add_one_vector(rows, chosen_rows, weights, count, first, padded_sum, at * lanes)
            at += 1


@inlined
def write_sum(padded_sum, out, i):  # type: ignore[no-untyped-def]
    """Write a sum of rows to row i of ``out``."""
    columns, lanes = out.shape[1], _VECTOR_BYTES // out.itemsize
    before = padded_sum.size - lanes if columns >= lanes else columns
    shift = padded_sum.size - columns
    for c in range(before):
        out[i, c] = padded_sum[c]
    for c in range(before, columns):
        out[i, c] = padded_sum[c + shift]


@intrinsic
def write_products(typingctx, padded, rows, a, b, c, d, out, place):  # type: ignore[no-untyped-def]
    """Write the products of a padded row with rows a, b, c and d to ``out``, from ``place`` on."""
    check_arrays(padded, rows, out)

    def codegen(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        own, matrix, target = (array_of(context, builder, signature.args[k], arguments[k]) for k in (0, 1, 6))
        kind, size = _vector(context, signature.args[1])
        starts = [_row(builder, matrix, arguments[k], size) for k in range(2, 6)]
        columns = builder.extract_value(matrix.shape, 1)
        last = builder.sub(columns, INT64(kind.count))
        loop = Loop(builder, [ir.Constant(kind, [0.0] * kind.count)] * TOGETHER)
        begin = builder.mul(loop.round, INT64(kind.count))
        factor = load(builder, address_of(builder, own, builder.mul(begin, INT64(size))), kind, size)
        begin = builder.select(builder.icmp_signed("<", begin, last), begin, last)
        offset = builder.mul(begin, INT64(size))
        sums = []
        for start, total in zip(starts, loop.sums, strict=True):
            vector = load(builder, builder.add(start, offset), kind, size)
            sums.append(_sum_with_product(builder, total, factor, vector))
        loop.end(sums, builder.sdiv(builder.add(columns, INT64(kind.count - 1)), INT64(kind.count)))
        address = address_of(builder, target, builder.mul(arguments[7], INT64(size)))
        store(builder, added_up(builder, loop.sums, builder.fadd), address, size)
        return context.get_dummy_value()

    return types.void(padded, rows, *[types.intp] * 4, out, types.intp), codegen


def _adding(vectors: int) -> Callable[..., Any]:
    """Return a function that adds multiples of so many vectors of chosen rows, from column ``first`` on."""

    @intrinsic
    def add_vectors(  # type: ignore[no-untyped-def]
        typingctx, rows, chosen_rows, weights, count, first, padded_sum, place
    ):
        """Add them to ``padded_sum``, from ``place`` on; ``count`` is at least one."""
        check_arrays(rows, weights, padded_sum)
        check_arrays(chosen_rows)

        def codegen(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
            matrix, numbers, factors, target = (
                array_of(context, builder, signature.args[k], arguments[k]) for k in (0, 1, 2, 5)
            )
            kind, size = _vector(context, signature.args[0])
            index = context.get_value_type(signature.args[1].dtype)
            offset = builder.mul(arguments[4], INT64(size))
            places = [
                address_of(
                    builder,
                    target,
                    builder.add(builder.mul(arguments[6], INT64(size)), INT64(k * _VECTOR_BYTES)),
                )
                for k in range(vectors)
            ]
            loop = Loop(builder, [load(builder, place, kind, size) for place in places])
            row = _row(builder, matrix, _number(builder, numbers, loop.round, index), size)
            weight = load(
                builder, address_of(builder, factors, builder.mul(loop.round, INT64(size))), kind.element, size
            )
            weight = repeated(builder, weight, kind.count)
            sums = []
            for k, total in enumerate(loop.sums):
                place = builder.add(builder.add(row, offset), INT64(k * _VECTOR_BYTES))
                sums.append(_sum_with_product(builder, total, weight, load(builder, place, kind, size)))
            loop.end(sums, arguments[3])
            for total, place in zip(loop.sums, places, strict=True):
                store(builder, total, place, size)
            return context.get_dummy_value()

        sizes = [types.intp] * 2
        return types.void(rows, chosen_rows, weights, *sizes, padded_sum, types.intp), codegen

    return add_vectors


add_four_vectors, add_one_vector = _adding(_SUMS_AT_ONCE), _adding(1)


def _number(builder: Any, numbers: Any, place: Any, kind: Any) -> Any:
    """Return an integer of an array."""
    size = kind.width // 8
    number = load(builder, address_of(builder, numbers, builder.mul(place, INT64(size))), kind, size)
    return number if kind == INT64 else builder.sext(number, INT64)


def _vector(context: Any, array: Any) -> tuple[Any, int]:
    """Return the type of a vector of the numbers of an array, and the bytes of a number."""
    number = context.get_value_type(array.dtype)
    size = 8 if isinstance(number, ir.DoubleType) else 4
    return ir.VectorType(number, _VECTOR_BYTES // size), size


def _row(builder: Any, matrix: Any, i: Any, size: int) -> Any:
    """Return the address of a row."""
    columns = builder.extract_value(matrix.shape, 1)
    return address_of(builder, matrix, builder.mul(builder.mul(i, columns), INT64(size)))


def _sum_with_product(builder: Any, total: Any, a: Any, b: Any) -> Any:
    return builder.fadd(total, builder.fmul(a, b, flags=("contract",)), flags=("contract",))
