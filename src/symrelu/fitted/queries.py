"""Queries that the holder of a fitted model forwards to it: entries of X, whole rows, nearest items."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from symrelu.fitted.models import FittedModel

Method = TypeVar("Method", bound=Callable[..., Any])


def _documented_by_the_model(method: Method) -> Method:
    """Give a method the docstring of the :class:`FittedModel` method of the same name."""
    method.__doc__ = getattr(FittedModel, method.__name__).__doc__
    return method


class ModelQueriesMixin:
    """Forward the queries that every model answers to the model that an object holds."""

    @property
    @abstractmethod
    def _model(self) -> FittedModel:
        """The fitted model; an estimator raises scikit-learn's ``NotFittedError`` before ``fit``."""

    @_documented_by_the_model
    def score_pairs(self, i: Any, j: Any) -> np.ndarray:
        return self._model.score_pairs(i, j)

    @_documented_by_the_model
    def reconstruct(self, rows: Any) -> np.ndarray:
        return self._model.reconstruct(rows)

    @_documented_by_the_model
    def top_k(self, nodes: Any, k: int, *, exclude: Any | None = None) -> tuple[np.ndarray, np.ndarray]:
        return self._model.top_k(nodes, k, exclude=exclude)
