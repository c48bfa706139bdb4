"""SymReLU: a factor as an embedding."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from symrelu.estimators.base import DecompositionEstimator
from symrelu.queries import Queries
from symrelu.validation import check_integer


class SymReLU(Queries, ClassNamePrefixFeaturesOutMixin, TransformerMixin, DecompositionEstimator):
    """Embed the items of a similarity matrix M by a factor U with M ~ max(0, U U^T).

    Parameters
    ----------
    n_components : int, default=8
        Number of columns of the embedding (``rank`` of :func:`~symrelu.decompose`).
    n_negative : int or "auto", default=0
        How many columns enter X = (U * signature) U^T with a minus sign. "auto" lets the data choose.
    diagonal : {"fit", "ignore"}, default="fit"
        Whether the diagonal of M is data or unknown.
    affinity : {"precomputed", "self_tuning"}, default="precomputed"
        Whether ``fit`` gets the similarity matrix itself, or samples x features of which
        :func:`~symrelu.graphs.self_tuning_graph` makes one.
    solver : {"aapb", "eigen", "lbfgs", "palm"} or Solver, default="lbfgs"
        A name, or an instance such as ``AAPB(step_size=10)``.
    alpha : float, default=0.0
        Tikhonov weight.
    zero_weight : float, default=1.0
        Weight in (0, 1] of the zeros of M.
    init : {"imputed", "random", "spectral", "uniform"} or array of shape (n, n_components), default="imputed"
        Starting factor.
    tol : float, default=1e-4
        Stop when the relative error is at most this.
    gtol : float, default=1e-7
        Stop when the scaled gradient is at most this.
    ftol : float, default=1e-8
        Stop when the objective changes by at most this part of itself over 20 iterations.
    max_iter : int, default=1000
        Largest number of steps.
    max_time : float, optional
        Seconds the steps may take.
    random_state : None, int, Generator or RandomState
        Seed of the start.
    backend : {"auto", "dense", "sparse", "reference"}, default="auto"
        How M is held.

    Attributes
    ----------
    embedding_ : ndarray of shape (n_samples, n_components)
        The factor U.
    signature_ : ndarray of shape (n_components,)
        Signs of its columns.
    reconstruction_err_ : float
        ||M - max(0, X)||_F.
    relative_error_ : float
        The same divided by ||M||_F.
    n_iter_ : int
        Number of steps.
    converged_ : bool
        Whether a stopping test was met.
    stop_reason_ : str
        Why the fit stopped.
    history_ : History
        What happened at each iteration.
    affinity_matrix_ : csr_array of shape (n_samples, n_samples)
        The graph, with ``affinity="self_tuning"``.
    n_features_in_ : int
        Number of columns seen by ``fit``.
    feature_names_in_ : ndarray of str
        Their names, where they have some.

    See Also
    --------
    symrelu.decompose : The same as a function.

    Examples
    --------
    >>> from symrelu import SymReLU
    >>> from symrelu.datasets import make_relu_gram
    >>> M, _ = make_relu_gram(100, 3, random_state=0)
    >>> SymReLU(n_components=3, random_state=0).fit_transform(M).shape
    (100, 3)
    """

    def __init__(
        self,
        n_components: int = 8,
        *,
        n_negative: int | str = 0,
        diagonal: str = "fit",
        affinity: str = "precomputed",
        solver: Any = "lbfgs",
        alpha: float = 0.0,
        zero_weight: float = 1.0,
        init: Any = "imputed",
        tol: float = 1e-4,
        gtol: float = 1e-7,
        ftol: float = 1e-8,
        max_iter: int = 1000,
        max_time: float | None = None,
        random_state: Any = None,
        backend: str = "auto",
    ) -> None:
        self.n_components = n_components
        self.n_negative = n_negative
        self.diagonal = diagonal
        self.affinity = affinity
        self.solver = solver
        self.alpha = alpha
        self.zero_weight = zero_weight
        self.init = init
        self.tol = tol
        self.gtol = gtol
        self.ftol = ftol
        self.max_iter = max_iter
        self.max_time = max_time
        self.random_state = random_state
        self.backend = backend

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        precomputed = self.affinity == "precomputed"
        tags.transformer_tags.preserves_dtype = ["float64", "float32"] if precomputed else ["float64"]
        return tags

    def fit(self, X: Any, y: Any = None, *, mask: Any | None = None) -> SymReLU:
        """Fit the factor.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_samples)
            Similarities; with ``affinity="self_tuning"``, samples of shape (n_samples, n_features).
        y : None
            Ignored.
        mask : sparse or dense bool matrix of shape (n_samples, n_samples), optional
            True where a similarity is unknown.

        Returns
        -------
        self : SymReLU
        """
        del y
        M = self._similarity(X)
        check_integer("n_components", self.n_components, 1, M.shape[0], note=" (the number of items)")
        settings = self.get_params(deep=False)
        rank = settings.pop("n_components")
        del settings["affinity"]
        self._decompose(M, rank, mask=mask, **settings)
        return self

    def fit_transform(self, X: Any, y: Any = None, *, mask: Any | None = None) -> np.ndarray:
        """Fit the factor and return it.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_samples)
            As for :meth:`fit`.
        y : None
            Ignored.
        mask : sparse or dense bool matrix of shape (n_samples, n_samples), optional
            True where a similarity is unknown.

        Returns
        -------
        embedding : ndarray of shape (n_samples, n_components)
        """
        return self.fit(X, y, mask=mask).embedding_

    @property
    def _factors(self) -> tuple[np.ndarray, np.ndarray]:
        check_is_fitted(self)
        return self.embedding_, self.embedding_ * self.signature_

    @property
    def _n_features_out(self) -> int:
        return int(self.embedding_.shape[1])
