"""What a report shows of a fitted model, the same for all kinds of models."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from symrelu.estimators import LinkPredictor, NeighborEmbedding, SymReLU, SymReLUClustering
from symrelu.fitted.certificate import Certificate
from symrelu.fitted.models import FittedModel, OneFactor, SymmetricReLU
from symrelu.fitted.solution import Solution
from symrelu.plots import spectrum

_KINDS = (SymReLU, SymReLUClustering, LinkPredictor, NeighborEmbedding)


@dataclass(frozen=True, eq=False)
class View:
    """A fitted model as a report needs it.

    Attributes
    ----------
    kind : str
        Name of the class of the model.
    factor : FittedModel
        The model whose X was fitted, possibly to M divided by degrees.
    scores : FittedModel
        The model whose scores rank pairs of M.
    predicted : function of an array of rows that returns an array of shape (len(rows), n)
        The model's rows of M.
    diagonal : {"fit", "ignore"}
    solution : Solution or None
        How the fit went; None for vectors of neighbours.
    certificate : Certificate or None
    labels : ndarray of int of shape (n,), or None
        Clusters, if the model has any.
    names : ndarray of object of shape (n,), or None
    """

    kind: str
    factor: FittedModel
    scores: FittedModel
    predicted: Callable[[np.ndarray], np.ndarray]
    diagonal: str
    solution: Solution | None = None
    certificate: Certificate | None = None
    labels: np.ndarray | None = None
    names: np.ndarray | None = None

    @classmethod
    def of(cls, model: Any) -> View:
        """Return the view of a fitted model, or raise if there is none.

        Parameters
        ----------
        model : Solution, SymReLU, SymReLUClustering, LinkPredictor or NeighborEmbedding

        Returns
        -------
        view : View
        """
        if isinstance(model, Solution):
            own = model.model
            return cls("Solution", own, own, own.reconstruct, model.diagonal, solution=model)
        if not isinstance(model, _KINDS):
            kinds = ", ".join(kind.__name__ for kind in _KINDS)
            raise TypeError(f"model must be a Solution or a fitted {kinds}, got {type(model).__name__}.")
        names = getattr(model, "node_names_", None)
        if isinstance(model, NeighborEmbedding):
            return _view_of_neighbors(model, names)
        check_is_fitted(model, "solution_")
        solution, factor = model.solution_, model.solution_.model
        scores = _in_units_of_M(model, factor)
        return cls(
            type(model).__name__,
            factor,
            scores,
            scores.reconstruct,
            solution.diagonal,
            solution=solution,
            labels=getattr(model, "labels_", None),
            names=names,
        )

    @property
    def n(self) -> int:
        """Number of nodes."""
        return self.factor.n

    @property
    def fits_the_graph_itself(self) -> bool:
        """Whether the factor was fitted to M rather than to M divided by degrees, or to its edges alone."""
        return self.factor is self.scores and self.certificate is None

    @property
    def zero_weight(self) -> float:
        """The weight of the zeros in the fit."""
        return 1.0 if self.solution is None else self.solution.zero_weight

    def spectrum(self) -> np.ndarray:
        """Return the eigenvalues of X in descending order of magnitude; singular values if X is not symmetric.

        Returns
        -------
        values : ndarray of shape (at most rank,)
        """
        if isinstance(self.factor, OneFactor):
            values = spectrum(self.factor.U.astype(np.float64), self.factor.signature)
            return values[np.argsort(-np.abs(values), kind="stable")]
        # X = Q_l R_l R_r^T Q_r^T, so that a matrix as small as the rank has the same values.
        left, right = (
            np.linalg.qr(side.astype(np.float64)).R for side in (self.factor.left, self.factor.right)
        )
        return np.linalg.svd(left @ right.T, compute_uv=False)


def check_same_nodes(model: Any, labels: np.ndarray | None) -> None:
    """Raise if a model has other names of nodes than a graph, or the same in another order.

    Parameters
    ----------
    model : Solution or fitted estimator
    labels : ndarray of shape (n,), or None
        Names of the graph, if it has any.
    """
    names = getattr(model, "node_names_", None)
    if names is None or labels is None or list(map(str, names)) == list(map(str, labels)):
        return
    raise ValueError(
        "model must be a fit of this graph, with the same nodes in the same order, but their names differ. Fit "
        "the graph again, or pass the graph that was fitted."
    )


def _in_units_of_M(model: Any, factor: FittedModel) -> FittedModel:
    """Return the model of M, if the factor is that of M divided by the roots of degrees."""
    if isinstance(model, LinkPredictor):
        return model.link_scores_
    roots = getattr(model, "root_degrees_", None)
    if roots is None:
        return factor
    return SymmetricReLU(factor.U * roots[:, None].astype(factor.dtype), factor.signature)


def _view_of_neighbors(model: NeighborEmbedding, names: np.ndarray | None) -> View:
    certificate = model.certificate_  # raises if the model is not fitted
    factor = SymmetricReLU(
        model.item_vectors_.astype(np.float64), np.asarray(model.signature_, dtype=np.float64)
    )

    def found(rows: np.ndarray) -> np.ndarray:
        return (factor.U[rows] @ factor.right.T > certificate.threshold).astype(np.float64)

    return View("NeighborEmbedding", factor, factor, found, "ignore", certificate=certificate, names=names)
