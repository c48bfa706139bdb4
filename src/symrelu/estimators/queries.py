"""Questions to a fitted estimator: single entries of X, whole rows, the nearest items."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np

from symrelu.fitted.models import FittedModel, answered_by_the_model


class QueriesMixin:
    """Lets the model that an estimator holds answer."""

    @property
    @abstractmethod
    def _model(self) -> FittedModel:
        """The fitted model; before ``fit``, scikit-learn's error."""

    @answered_by_the_model
    def score_pairs(self, i: Any, j: Any) -> np.ndarray:
        return self._model.score_pairs(i, j)

    @answered_by_the_model
    def reconstruct(self, rows: Any) -> np.ndarray:
        return self._model.reconstruct(rows)

    @answered_by_the_model
    def top_k(self, nodes: Any, k: int, *, exclude: Any | None = None) -> tuple[np.ndarray, np.ndarray]:
        return self._model.top_k(nodes, k, exclude=exclude)
