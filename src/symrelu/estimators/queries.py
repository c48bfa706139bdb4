"""Questions to a fitted estimator: single entries of X, whole rows, the nearest items."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np

from symrelu.fitted import FittedModel


class QueriesMixin:
    """Lets the model that an estimator holds answer."""

    @property
    @abstractmethod
    def _model(self) -> FittedModel:
        """The fitted model; before ``fit``, scikit-learn's error."""

    def score_pairs(self, i: Any, j: Any) -> np.ndarray:
        """Return X[i, j]. The model of M is max(0, X); below zero X still ranks pairs.

        Parameters
        ----------
        i, j : array-like of int
            Numbers of items, of one shape or such that they broadcast to one.

        Returns
        -------
        scores : ndarray
        """
        return self._model.score_pairs(i, j)

    def reconstruct(self, rows: Any) -> np.ndarray:
        """Return rows of max(0, X), the model of M.

        Parameters
        ----------
        rows : array-like of int

        Returns
        -------
        reconstruction : ndarray of shape (len(rows), n)
        """
        return self._model.reconstruct(rows)

    def top_k(self, nodes: Any, k: int, *, exclude: Any | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Return for each node the k items of largest X, the node itself left out.

        Parameters
        ----------
        nodes : array-like of int
        k : int
        exclude : sparse or dense matrix of shape (n, n), optional
            Pairs with an entry that is not zero are left out. Pass M itself for pairs that are not in it yet.

        Returns
        -------
        items : ndarray of int of shape (len(nodes), k)
            The best first, equal ones by their number; -1 where there are fewer than k.
        scores : ndarray of shape (len(nodes), k)
            X of these pairs; minus infinity where there are fewer than k.
        """
        return self._model.top_k(nodes, k, exclude=exclude)
