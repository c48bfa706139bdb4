"""Places of bits in a word, for compiled code."""

from __future__ import annotations

from numba import types
from numba.core import cgutils
from numba.extending import intrinsic


@intrinsic
def trailing_zeros(typingctx, word):  # type: ignore[no-untyped-def]
    """Return how many zeros an int64 has below its lowest one; it must not be zero."""

    def codegen(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        return builder.cttz(arguments[0], cgutils.true_bit)

    return types.int64(types.int64), codegen


@intrinsic
def count_ones(typingctx, word):  # type: ignore[no-untyped-def]
    """Return how many ones an int64 has."""

    def codegen(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        return builder.ctpop(arguments[0])

    return types.int64(types.int64), codegen
