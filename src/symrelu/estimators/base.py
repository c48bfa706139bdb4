"""What the estimators share: reading the input, calling :func:`symrelu.decompose`, telling how it went."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import validate_data

from symrelu.decompose import decompose
from symrelu.graphs import self_tuning_graph
from symrelu.solution import Solution
from symrelu.validation import check_choice, reject_foreign_objects

AFFINITIES = ("precomputed", "self_tuning")


class DecompositionEstimator(BaseEstimator):
    """An estimator that fits a factor of a similarity matrix."""

    affinity: str = "precomputed"

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        precomputed = self.affinity == "precomputed"
        tags.input_tags.pairwise = precomputed
        tags.input_tags.positive_only = precomputed
        tags.input_tags.sparse = True
        return tags

    def _similarity(self, X: Any) -> Any:
        """Return the similarity matrix that X is, or that is made of it."""
        check_choice("affinity", self.affinity, AFFINITIES)
        reject_foreign_objects(X, "X")
        precomputed = self.affinity == "precomputed"
        X = validate_data(
            self, X, accept_sparse="csr", dtype=[np.float64, np.float32], ensure_non_negative=precomputed
        )
        if precomputed:
            return X
        self.affinity_matrix_ = self_tuning_graph(X)
        return self.affinity_matrix_

    def _decompose(self, M: Any, rank: int, **settings: Any) -> Solution:
        """Fit a factor, keep what all estimators tell of it, and warn if a limit ended the fit."""
        solution = decompose(M, rank, **settings)
        self.embedding_ = solution.U
        self.signature_ = solution.signature
        self.relative_error_ = solution.relative_error
        self.reconstruction_err_ = solution.relative_error * solution.norm
        self.n_iter_ = solution.n_iter
        self.converged_ = solution.converged
        self.stop_reason_ = solution.status.value
        self.history_ = solution.history
        if not solution.converged:
            warnings.warn(
                f"{type(self).__name__} stopped before convergence: {solution.status.value} "
                f"(relative error {solution.relative_error:.3g}). {solution.status.advice}",
                ConvergenceWarning,
                stacklevel=3,
            )
        return solution
