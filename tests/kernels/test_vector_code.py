"""The parts of compiled code that computes with vectors, in a function that uses all of them."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

from symrelu.kernels.vector_code import (
    INT64,
    Loop,
    address_of,
    array_of,
    chosen,
    load,
    repeated,
    store,
)


@intrinsic
def add_pairs_swapped(typingctx, numbers, rounds, weight, out):
    """Add weight times the sum of pairs of numbers, with both numbers swapped, to out."""

    def codegen(context, builder, signature, arguments):
        source, target = (array_of(context, builder, signature.args[k], arguments[k]) for k in (0, 3))
        pair = ir.VectorType(INT64, 2)
        loop = Loop(builder, [load(builder, address_of(builder, target, INT64(0)), pair, 8)])
        here = address_of(builder, source, builder.mul(loop.round, INT64(16)))
        swapped = chosen(builder, load(builder, here, pair, 8), [1, 0])
        product = builder.mul(swapped, repeated(builder, arguments[2], 2))
        loop.end([builder.add(loop.sums[0], product)], arguments[1])
        store(builder, loop.sums[0], address_of(builder, target, INT64(0)), 8)
        return context.get_dummy_value()

    return types.void(numbers, types.intp, types.int64, out), codegen


@njit
def add_all_twice(numbers, weight, out):
    for _ in range(2):
        add_pairs_swapped(numbers, len(numbers) // 2, weight, out)


@given(st.lists(st.integers(-1000, 1000), min_size=1, max_size=9), st.integers(-5, 5))
def test_a_loop_over_vectors(numbers, weight):
    pairs = np.array(numbers * 2).reshape(-1, 2)
    out = np.array([7, 8])
    add_all_twice(pairs.reshape(-1), weight, out)
    assert out.tolist() == ([7, 8] + 2 * weight * pairs.sum(axis=0)[::-1]).tolist()
