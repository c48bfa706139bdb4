"""Parts of the code of compiled functions that compute with vectors of numbers, one in each *lane*.

Numba leaves it to LLVM to find loops that can be computed with vectors. Where that fails, or what is kept in
registers decides on the speed, a kernel can write the operations itself. LLVM turns vectors of any length into
what a processor has, so this code is portable.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from llvmlite import ir
from numba import types
from numba.core.errors import TypingError

INT16, INT32, INT64 = ir.IntType(16), ir.IntType(32), ir.IntType(64)


def check_arrays(*arrays: Any) -> None:
    """Raise TypingError unless all arguments of an intrinsic are contiguous arrays of one type of number.

    Code that computes addresses by itself would read something else.
    """
    if not all(isinstance(array, types.Array) and array.layout == "C" for array in arrays):
        raise TypingError(f"Arrays in C order are required, got {', '.join(map(str, arrays))}.")
    if len({array.dtype for array in arrays}) > 1:
        raise TypingError(f"Arrays of one type are required, got {', '.join(map(str, arrays))}.")


def array_of(context: Any, builder: Any, kind: Any, value: Any) -> Any:
    """Return an array that was passed to an intrinsic, with its fields data and shape."""
    return context.make_array(kind)(context, builder, value)


def address_of(builder: Any, array: Any, offset: Any) -> Any:
    """Return the address that is so many bytes after the beginning of an array."""
    return builder.add(builder.ptrtoint(array.data, INT64), offset)


def load(builder: Any, address: Any, kind: Any, alignment: int) -> Any:
    """Return the number or vector at an address."""
    loaded = builder.load(_pointer(builder, address, kind))
    loaded.align = alignment
    return loaded


def store(builder: Any, value: Any, address: Any, alignment: int) -> None:
    """Write a number or a vector to an address."""
    builder.store(value, _pointer(builder, address, value.type)).align = alignment


def _pointer(builder: Any, address: Any, kind: Any) -> Any:
    # From an integer: between the supported versions of llvmlite, what a pointer points to became untyped.
    return builder.inttoptr(address, kind.as_pointer())


def repeated(builder: Any, number: Any, lanes: int) -> Any:
    """Return a vector with a number in all lanes."""
    kind = ir.VectorType(number.type, lanes)
    unused = ir.Constant(kind, ir.Undefined)
    one = builder.insert_element(unused, number, INT32(0))
    return builder.shuffle_vector(one, unused, ir.Constant(ir.VectorType(INT32, lanes), [0] * lanes))


def chosen(builder: Any, vector: Any, places: Sequence[int]) -> Any:
    """Return the numbers of a vector in the given lanes."""
    kind = ir.VectorType(INT32, len(places))
    return builder.shuffle_vector(
        vector, ir.Constant(vector.type, ir.Undefined), ir.Constant(kind, list(places))
    )


def added_up(builder: Any, vectors: Sequence[Any], add: Callable[[Any, Any], Any]) -> Any:
    """Return a vector of the sums of the numbers of each vector, all in the same order; both counts are 2^k."""
    while vectors[0].type.count > len(vectors):
        half = vectors[0].type.count // 2
        vectors = [
            add(chosen(builder, v, range(half)), chosen(builder, v, range(half, 2 * half))) for v in vectors
        ]
    while len(vectors) > 1:
        pairs = zip(vectors[::2], vectors[1::2], strict=True)
        vectors = [_neighbours_added(builder, a, b, add) for a, b in pairs]
    return vectors[0]


def _neighbours_added(builder: Any, a: Any, b: Any, add: Callable[[Any, Any], Any]) -> Any:
    """Return a vector whose first half has sums of two numbers of a each, and its second half those of b."""
    count = a.type.count
    kind = ir.VectorType(INT32, count)
    halves = (
        builder.shuffle_vector(a, b, ir.Constant(kind, list(range(first, 2 * count, 2)))) for first in (0, 1)
    )
    return add(*halves)


class Loop:
    """A loop in which sums stay in registers: its body is what is written until :meth:`end`.

    Attributes
    ----------
    round : value
        The number of the present round, from zero on.
    sums : list of value
        What the last round has ended with, at first the given ones; after the loop, the result.
    """

    def __init__(self, builder: Any, initial: Sequence[Any]) -> None:
        self._builder = builder
        before = builder.block
        self._body = builder.append_basic_block("body")
        builder.branch(self._body)
        builder.position_at_end(self._body)
        self.round = builder.phi(INT64)
        self.round.add_incoming(INT64(0), before)
        self.sums = []
        for value in initial:
            self.sums.append(builder.phi(value.type))
            self.sums[-1].add_incoming(value, before)

    def end(self, sums: Sequence[Any], rounds: Any) -> None:
        """End a round with new sums, and the loop after so many rounds, at least one."""
        builder = self._builder
        following = builder.add(self.round, INT64(1))
        for old, new in zip((self.round, *self.sums), (following, *sums), strict=True):
            old.add_incoming(new, builder.block)
        after = builder.append_basic_block("after")
        builder.cbranch(builder.icmp_signed("<", following, rounds), self._body, after)
        builder.position_at_end(after)
        self.sums = list(sums)
