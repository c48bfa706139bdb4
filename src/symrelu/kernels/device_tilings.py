"""Tile sizes of the kernels for GPUs, as measured by ``benchmarks/gpu.py`` on an NVIDIA H200.

They are stored, not searched for: a search at every start would take longer than many fits. Devices with less
memory in a multiprocessor get smaller tiles, which are not tuned.
"""

from __future__ import annotations

from typing import Any

import torch

from symrelu.kernels.device_products import Tiling
from symrelu.kernels.device_scaling import padded_columns

# By the padded rank.
_FAST = {
    16: Tiling(128, 64, 4, 3),
    32: Tiling(128, 64, 4, 3, registers=168),
    64: Tiling(128, 128, 8, 2, pieces=2, described=True, registers=128),
    128: Tiling(128, 64, 8, 3, pieces=2),
}
_HIGH = {
    16: Tiling(64, 64, 4, 3),
    32: Tiling(64, 64, 4, 3),
    64: Tiling(128, 128, 8, 3),
    128: Tiling(128, 32, 8, 3),
}
_SCAN = {
    16: Tiling(64, 128, 4, 3),
    32: Tiling(64, 128, 4, 3),
    64: Tiling(64, 128, 4, 3),
    128: Tiling(64, 64, 4, 3),
}
_WIDE = Tiling(64, 16, 4, 1)  # for a larger rank
_WIDE_SCAN = Tiling(64, 32, 4, 1)

# What the largest of these tiles take, in bytes; a device with less gets the small ones. One with as much has
# the engine for descriptors, too.
_SHARED_MEMORY = 229_376
_SMALL = Tiling(64, 32, 4, 1)


def has_large_tiles(device: Any) -> bool:
    """Return whether the multiprocessors of a device have room for the tuned tiles."""
    if device.type != "cuda":  # the interpreter
        return True
    return bool(torch.cuda.get_device_properties(device).shared_memory_per_block_optin >= _SHARED_MEMORY)


def tiling_of_product(rank: int, split: bool, large: bool = True) -> Tiling:
    """Return the tiles for a product with all pairs, of high precision if ``split``."""
    width = padded_columns(rank)
    return (_HIGH if split else _FAST)[width] if large and width in _HIGH else _narrow(width)


def tiling_of_scan(rank: int, large: bool = True) -> Tiling:
    """Return the tiles for a scan."""
    width = padded_columns(rank)
    if width not in _SCAN:
        return _WIDE_SCAN
    return _SCAN[width] if large else _SMALL


def _narrow(width: int) -> Tiling:
    return _SMALL if width <= 64 else _WIDE
