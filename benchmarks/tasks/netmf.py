"""The matrix that DeepWalk factorises implicitly, formed as a whole (NetMF, Qiu et al., 2018)."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse


def netmf_matrix(graph: Any, window: int = 10) -> np.ndarray:
    """Return log max(1, vol / T (P + ... + P^T) D^-1), P = D^-1 B, with one negative sample."""
    degree = np.asarray(graph.sum(axis=1)).ravel()
    inverse = np.divide(1, degree, where=degree > 0, out=np.zeros_like(degree))
    steps = sparse.csr_array(sparse.diags_array(inverse) @ graph)
    power = steps.toarray()
    total = power.copy()
    for _ in range(window - 1):
        power = steps @ power
        total += power
    total *= degree.sum() / window * inverse
    return np.log(np.maximum((total + total.T) / 2, 1))  # symmetric but for rounding
