"""What a pass costs over tiles and over a list of pairs, to choose between them.

The choice changes the last digits of a fit, so it depends on the sizes and on X, never on the clock or on the
number of threads. The constants are nanoseconds of one core for a row of X, from fits on sixteen cores with
``benchmarks/scaling.py``; only their ratios matter. That of scans was measured on two cores, relative to tiles
there: 0.005 to 0.008 with vectors of 512 bits, and 0.015 to 0.024 with those of 256.
"""

from __future__ import annotations

from typing import Any

import numpy as np

# A multiplication in a pass over tiles, which has three for each pair and column: by the bytes of a number.
_NS_IN_TILES = {4: 0.04, 8: 0.072}

# A multiplication of a scan, one for each pair and column, in 16-bit integers for all factors.
_NS_IN_SCANS = 0.012

# A positive zero on a list, for each column: at both rows a product and a multiple of a single row, and the
# entries listed with it. On two cores, relative to tiles.
_NS_LISTED = 0.45

# What a list costs a row besides: it is sampled, its movement is measured, and its part is handed to a thread.
# On two cores this takes a fourth of that; on sixteen, there are more threads to hand it to.
_NS_OF_A_ROW = 6_000.0

# With so many positive zeros in a row, rows still move so far that all pairs are scanned at each pass. Late in
# a fit, a list lasts for several passes.
_ZEROS_WITH_SCANS = 8.0
_FEWEST_SCANS = 0.25  # in a pass, on average


def list_pays(n: int, rank: int, dtype: np.dtype[Any], positive: float) -> bool:
    """Return whether a pass over a list is faster than one over tiles.

    Parameters
    ----------
    n, rank : int
        The size of a factor.
    dtype : numpy.dtype
        Its type.
    positive : float
        Zeros of M with X > 0 in an average row.

    Returns
    -------
    pays : bool
    """
    return list_cost(n, rank, positive) < tile_cost(n, rank, dtype)


def tile_cost(n: int, rank: int, dtype: np.dtype[Any]) -> float:
    """Return the cost of a pass over tiles; each pair is visited once."""
    return 3 * _NS_IN_TILES[dtype.itemsize] * rank * n / 2


def least_share_of_scans(dtype: np.dtype[Any]) -> float:
    """Return what the scans of a pass with a list cost late in a fit, as a part of a pass over tiles."""
    return _FEWEST_SCANS * _NS_IN_SCANS / (3 * _NS_IN_TILES[dtype.itemsize])


def list_cost(n: int, rank: int, positive: float) -> float:
    """Return the cost of a pass over a list, with its share of the scans."""
    scans = min(1.0, max(_FEWEST_SCANS, positive / _ZEROS_WITH_SCANS))
    return scans * _NS_IN_SCANS * rank * n / 2 + _NS_LISTED * rank * positive / 2 + _NS_OF_A_ROW
