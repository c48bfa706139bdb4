"""Rescale a matrix to entries of order one, by an exact power of 4.

A power of 4, because the factor then scales by the exact power of 2 that is its square root.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy import sparse

from symrelu.validation.entries import stored

# Matrices with a largest entry outside [4^-8, 4^9) are rescaled before a fit.
_SAFE_EXPONENT = 8


def scale_exponent(M: Any) -> int:
    """Return k such that M / 4^k has entries of order one; 0 if M needs no rescaling."""
    return exponent_of(float(stored(M).max(initial=0)))


def exponent_of(largest: float) -> int:
    """Return :func:`scale_exponent` of a matrix with a given largest entry."""
    k = math.floor((math.frexp(largest)[1] - 1) / 2)
    return k if abs(k) > _SAFE_EXPONENT else 0


def scaled(M: Any, k: int) -> Any:
    """Return M / 4^k, exactly; entries that would underflow become the smallest positive number."""
    if k == 0:
        return M
    if sparse.issparse(M):
        return sparse.csr_array((_scaled_values(M.data, k), M.indices, M.indptr), shape=M.shape)
    return _scaled_values(M, k)


def _scaled_values(values: np.ndarray, k: int) -> np.ndarray:
    result = np.ldexp(values, -2 * k)
    vanished = (result == 0) & (values > 0)
    # A zero would change the support of M, and with it the problem.
    result[vanished] = np.finfo(values.dtype).smallest_subnormal
    return result
