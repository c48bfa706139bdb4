"""What a fit holds in the memory of a GPU besides factors."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from symrelu.operators import operator_class

if TYPE_CHECKING:
    from symrelu.fit.memory_model import Case

# Bytes of an entry of M: its row and column for sparse products, twice its value, its column by row, its number
# among all pairs, its place in a tile and in the batches of the row systems.
_PLACES_OF_AN_ENTRY = 16 + 4 + 8 + 12 + 5

# Numbers of a block of rows, or of the systems of a batch, of which three are held: as in operators/torch_rows.
_BLOCK = 1 << 26

# Candidates of a row that a list has at most on average, and their bytes while they are sorted. They explain
# the peak of a fit of a million items in results/gpu, with a tenth to spare.
_CANDIDATES = 64
_BYTES_OF_A_CANDIDATE = 50

_SAMPLED_ROWS = 64


class DeviceMemory(NamedTuple):
    """Bytes of M with what is derived from it, and of all that a step holds for a while."""

    matrix: int
    tiles: int


def free_on_device() -> int:
    """Return how many bytes of the GPU are free."""
    return int(operator_class("cuda").free_memory())


def on_device(case: Case) -> DeviceMemory:
    """Return what a fit holds on a GPU; ``benchmarks/gpu.py`` measures the peaks of fits."""
    n, size = case.n, case.dtype.itemsize
    systems = 3 * size * min(_BLOCK, n * max(n, case.rank**2))
    if not case.index_bytes:
        return DeviceMemory(n * n * size, systems)
    matrix = (case.entries + case.hidden) * (_PLACES_OF_AN_ENTRY + 2 * size)
    lists = n * min(_CANDIDATES, n) * _BYTES_OF_A_CANDIDATE
    sample = min(_SAMPLED_ROWS, n) * n * (size + 1)
    # The factor in float64, for its Gram matrix, or three factors in two halves each with their product.
    wide = 2 * 8 * n * case.rank
    return DeviceMemory(matrix, max(systems, lists + sample, wide))
