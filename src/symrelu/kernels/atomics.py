"""Atomic operations on int64 arrays, for compiled code that runs in several threads without the GIL."""

from __future__ import annotations

from typing import Any

from numba import types
from numba.core import cgutils
from numba.extending import intrinsic


def _pointer(context: Any, builder: Any, array_type: Any, array: Any, index: Any) -> Any:
    struct = context.make_array(array_type)(context, builder, array)
    return cgutils.get_item_pointer(context, builder, array_type, struct, [index], wraparound=False)


@intrinsic
def load(typingctx, array, index):  # type: ignore[no-untyped-def]
    """Return array[index]; what the thread that stored it wrote before is then visible too."""

    def codegen(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        pointer = _pointer(context, builder, signature.args[0], *arguments)
        return builder.load_atomic(pointer, "acquire", 8)

    return types.int64(array, types.intp), codegen


@intrinsic
def store(typingctx, array, index, value):  # type: ignore[no-untyped-def]
    """Set array[index] after everything that this thread wrote before."""

    def codegen(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        array, index, value = arguments
        pointer = _pointer(context, builder, signature.args[0], array, index)
        builder.store_atomic(value, pointer, "release", 8)
        return context.get_dummy_value()

    return types.void(array, types.intp, types.int64), codegen


@intrinsic
def fetch_add(typingctx, array, index, value):  # type: ignore[no-untyped-def]
    """Add to array[index] and return what it was before: no two threads get the same."""

    def codegen(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        array, index, value = arguments
        pointer = _pointer(context, builder, signature.args[0], array, index)
        return builder.atomic_rmw("add", pointer, value, "monotonic")

    return types.int64(array, types.intp, types.int64), codegen
