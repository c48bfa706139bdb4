"""Judges the size of the entries, and brings a matrix to order one by an exact power of 4.

It is apart because the numbers decide alone: no message and no error comes from here.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy import sparse

from symrelu.validation.entries import stored

# Matrices whose largest entry lies outside [4^-8, 4^9) are brought to order one before a fit.
_SAFE_EXPONENT = 8


def scale_exponent(M: Any) -> int:
    """Return k such that M / 4^k has entries of order one; 0 where M is fine as it is."""
    return exponent_of(float(stored(M).max(initial=0)))


def exponent_of(largest: float) -> int:
    """Return the same for a matrix with that largest entry."""
    k = math.floor((math.frexp(largest)[1] - 1) / 2)
    return k if abs(k) > _SAFE_EXPONENT else 0


def scaled(M: Any, k: int) -> Any:
    """Return M / 4^k, exactly; entries that would vanish keep the smallest positive value."""
    if k == 0:
        return M
    if sparse.issparse(M):
        return sparse.csr_array((_scaled_values(M.data, k), M.indices, M.indptr), shape=M.shape)
    return _scaled_values(M, k)


def _scaled_values(values: np.ndarray, k: int) -> np.ndarray:
    result = np.ldexp(values, -2 * k)
    vanished = (result == 0) & (values > 0)
    result[vanished] = np.finfo(values.dtype).smallest_subnormal
    return result
