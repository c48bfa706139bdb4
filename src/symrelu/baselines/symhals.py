"""SymHALS: symmetric NMF by one cyclic sweep over the columns (hierarchical alternating least squares)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from symrelu.baselines.coupled import CoupledSolver


@dataclass(frozen=True)
class SymHALS(CoupledSolver):
    """Symmetric NMF that minimises the coupled objective over one column at a time.

    Parameters
    ----------
    coupling : float, default=0.66
        Weight of ||U - V||^2 / 2.

    References
    ----------
    Z. Zhu, X. Li, K. Liu, Q. Li, "Dropping symmetry for fast symmetric nonnegative matrix factorization",
    NeurIPS 31, 2018.
    """

    def _update(self, gram: Any, target: Any, factor: Any) -> Any:
        X = factor.copy()
        for k in range(X.shape[1]):
            # A Newton step, exact since the objective is quadratic. gram[k, k] >= coupling > 0.
            X[:, k] = np.maximum(0, X[:, k] + (target[:, k] - X @ gram[:, k]) / gram[k, k])
        return X
