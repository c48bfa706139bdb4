"""Sums of products of vectors, for systems that are solved side by side: one in each lane of the vectors.

Arrays have a row for each vector, of ``LANES`` numbers. What happens in one lane does not depend on the others.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from symrelu.kernels.vector_code import INT64, Loop, address_of, array_of, check_arrays, load, store

LANES = 8

# Products that are summed independently of each other, since a sum has to wait for the one before. Sums have a
# multiple of this number of products.
UNROLLED = 4


@intrinsic
def subtract_products(  # type: ignore[no-untyped-def]
    typingctx, out, place, left, i, left_step, right, j, right_step, rounds
):
    """Subtract sum_m left[i + m * left_step] * right[j + m * right_step] from out[place].

    The sum has UNROLLED * rounds products, at least one round.
    """
    check_arrays(out, left, right)

    def codegen(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        kind = context.get_value_type(signature.args[0].dtype)
        arrays = [array_of(context, builder, signature.args[k], arguments[k]) for k in (0, 2, 5)]
        _subtract_products(
            builder, ir.VectorType(kind, LANES), *arrays, *(arguments[k] for k in (1, 3, 4, 6, 7, 8))
        )
        return context.get_dummy_value()

    indices = [types.intp] * 3
    return types.void(out, types.intp, left, types.intp, types.intp, right, *indices), codegen


def _subtract_products(
    builder: Any, kind: Any, out: Any, left: Any, right: Any, place: Any, i: Any, left_step: Any, j: Any,
    right_step: Any, rounds: Any,
) -> None:  # fmt: skip
    """Write the loop."""
    size = INT64(LANES * (8 if isinstance(kind.element, ir.DoubleType) else 4))
    number = size.constant // LANES

    def vector(array: Any, row: Any) -> Any:
        return load(builder, address_of(builder, array, builder.mul(row, size)), kind, number)

    zero = ir.Constant(kind, [0.0] * LANES)
    loop = Loop(builder, [zero] * UNROLLED)
    sums = []
    for k, total in enumerate(loop.sums):
        m = builder.add(builder.mul(loop.round, INT64(UNROLLED)), INT64(k))
        a = vector(left, builder.add(i, builder.mul(m, left_step)))
        b = vector(right, builder.add(j, builder.mul(m, right_step)))
        sums.append(builder.fadd(total, builder.fmul(a, b, flags=("contract",)), flags=("contract",)))
    loop.end(sums, rounds)
    while len(sums) > 1:
        sums = [builder.fadd(a, b) for a, b in zip(sums[::2], sums[1::2], strict=True)]
    reduced = builder.fsub(vector(out, place), sums[0])
    store(builder, reduced, address_of(builder, out, builder.mul(place, size)), number)
