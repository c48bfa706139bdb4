"""Check factors: that U is an array, and that a fit can start from it.

This is a separate module because a factor is small, dense and of any sign: few checks of matrices apply to it.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from symrelu.validation.formats import as_rectangular_array


def check_start(init: Any, n: int, rank: int, dtype: np.dtype[Any], largest: float = 0.0) -> np.ndarray:
    """Return a starting factor as an array, checked against the largest entry of the matrix."""
    U0 = check_factor(init, dtype, "init")
    if U0.shape != (n, rank):
        raise ValueError(f"init must have shape (n, rank) = {(n, rank)}, got {U0.shape}.")
    if not np.isfinite(U0).all():
        raise ValueError("init must be finite, got NaN or infinity in the starting factor.")
    if not U0.any():
        raise ValueError(
            "init must have a nonzero entry, got all zeros: no step leaves the stationary point U = 0."
        )
    size, of_M = float(np.abs(U0).max()), math.sqrt(largest)
    if size < math.sqrt(np.finfo(np.float64).eps) * of_M:  # in sums of squares, X would be lost to rounding
        raise ValueError(
            f"init must not be negligible compared with M: its largest entry is {size:.2g}, the square root of "
            f"that of M is {of_M:.2g}. Scale it up, or use init='random', which has the right size."
        )
    return U0


def check_factor(U: Any, dtype: np.dtype[Any], name: str) -> np.ndarray:
    """Return a factor as a new array in ``dtype``."""
    if getattr(getattr(U, "device", None), "type", "cpu") != "cpu":  # a tensor on a GPU
        U = U.detach().cpu()
    array = as_rectangular_array(U, name)
    if array.dtype.kind not in "biuf":
        instead = " Pass solution.U, and signature=solution.signature." if hasattr(U, "signature") else ""
        raise TypeError(
            f"{name} must be an array of real numbers, got {type(U).__name__} of {array.dtype}.{instead}"
        )
    # Always a copy, because the caller may change its own array later.
    return np.array(array, dtype=dtype, order="C")
