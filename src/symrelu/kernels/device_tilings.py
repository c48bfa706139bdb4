"""Tile sizes of the kernels for GPUs, as measured by ``benchmarks/gpu.py`` on an NVIDIA H200.

They are stored, not searched for: a search at every start would take longer than many fits. Other devices use
the same, which are right for all of them if not the fastest.
"""

from __future__ import annotations

from symrelu.kernels.device_products import Tiling, padded_columns

# By the padded rank.
_FAST = {
    16: Tiling(128, 64, 4, 3),
    32: Tiling(128, 64, 4, 3),
    64: Tiling(128, 64, 4, 3),
    128: Tiling(64, 64, 4, 2),
}
_HIGH = {
    16: Tiling(64, 64, 4, 3),
    32: Tiling(64, 64, 4, 3),
    64: Tiling(128, 128, 8, 3),
    128: Tiling(64, 32, 4, 2),
}
_SCAN = {
    16: Tiling(64, 128, 4, 3),
    32: Tiling(64, 128, 4, 3),
    64: Tiling(64, 128, 4, 3),
    128: Tiling(64, 64, 4, 3),
}
_WIDE = Tiling(64, 16, 4, 1)  # for a larger rank
_WIDE_SCAN = Tiling(64, 32, 4, 1)


def tiling_of_product(rank: int, split: bool) -> Tiling:
    """Return the tiles for a product with all pairs, of high precision if ``split``."""
    return (_HIGH if split else _FAST).get(padded_columns(rank), _WIDE)


def tiling_of_scan(rank: int) -> Tiling:
    """Return the tiles for a scan."""
    return _SCAN.get(padded_columns(rank), _WIDE_SCAN)
