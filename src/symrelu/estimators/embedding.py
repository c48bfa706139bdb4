"""SymReLU: a factor as an embedding."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import csr_array
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from symrelu.estimators.base import DecompositionEstimator
from symrelu.estimators.callbacks import with_callbacks
from symrelu.fit.checkpoint import as_checkpoint, saved_rank
from symrelu.fit.selection import GRID, SETTINGS, select_rank
from symrelu.fit.settings import Limits, Model, Run, Start, documented
from symrelu.fitted.models import SymmetricReLU
from symrelu.fitted.queries import ModelQueriesMixin
from symrelu.graphs.adapters import aligned_mask
from symrelu.graphs.tables import flags_of
from symrelu.graphs.tensors import from_torch, is_tensor
from symrelu.problem import Problem
from symrelu.validation import check_choice, check_integer, check_rows


@documented
class SymReLU(ModelQueriesMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin, DecompositionEstimator):
    """Embed the items of a similarity matrix M by a factor U with M ~ max(0, U U^T).

    Parameters
    ----------
    n_components : int or "auto", default=8
        Number of columns of the embedding (``rank`` of :func:`~symrelu.decompose`). "auto" lets
        :func:`~symrelu.select_rank` choose it by pairs that are hidden from fits: many fits, shared among
        ``n_jobs``.
    n_negative : setting
        X is then (U * signature) U^T.
    affinity : {"precomputed", "self_tuning"}, default="precomputed"
        Whether ``fit`` gets the similarity matrix itself, or samples x features of which
        :func:`~symrelu.graphs.self_tuning_graph` makes one.
    tol : setting
        Lower than in :func:`~symrelu.decompose`: only where a fit is stationary does ``transform`` return the
        rows of the embedding.
    n_init : int, default=1
        Number of fits from different seeds; the one of lowest objective is kept.
    n_jobs : int, optional
        How many of them run at a time, as everywhere in scikit-learn.
    warm_start : bool, default=False
        Whether ``fit`` goes on from the factor of the last ``fit``, if there was one (once, whatever
        ``n_init`` says).
    checkpoint : setting
        It is of one matrix: not for ``GridSearchCV``, nor for ``warm_start``.

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
    solution_ : Solution
        The whole outcome of the fit.
    selection_ : RankSelection
        The table behind the choice, with ``n_components="auto"``.
    latest_record_ : Record
        The newest line of the history, for callbacks (``set_callbacks``) while the fit runs.
    node_names_ : ndarray of object of shape (n_samples,)
        Names of the items, where the input has some: a graph of networkx or igraph, an AnnData, a labelled
        frame.
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
        n_components: int | str = 8,
        *,
        n_negative: int | str = Model.n_negative,
        diagonal: str = Model.diagonal,
        affinity: str = "precomputed",
        solver: Any = Run.solver,
        alpha: float = Model.alpha,
        zero_weight: float = Model.zero_weight,
        init: Any = Start.init,
        tol: float = 1e-6,
        gtol: float = Limits.gtol,
        ftol: float = Limits.ftol,
        max_iter: int = Limits.max_iter,
        max_time: float | None = Limits.max_time,
        random_state: Any = Start.random_state,
        backend: str = Run.backend,
        n_init: int = 1,
        n_jobs: int | None = None,
        warm_start: bool = False,
        checkpoint: Any | None = Run.checkpoint,
        verbose: int = Run.verbose,
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
        self.n_init = n_init
        self.n_jobs = n_jobs
        self.warm_start = warm_start
        self.checkpoint = checkpoint
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        precomputed = self.affinity == "precomputed"
        tags.transformer_tags.preserves_dtype = ["float64", "float32"] if precomputed else ["float64"]
        return tags

    @with_callbacks  # type: ignore[untyped-decorator]
    def fit(self, X: Any, y: Any = None, *, mask: Any | None = None) -> SymReLU:
        """Fit the factor.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_samples), or a graph
            Similarities, as a matrix or as anything that :func:`symrelu.graphs.as_similarity` reads: a graph of
            networkx or igraph, an AnnData, a labelled frame of pandas, a torch tensor. With
            ``affinity="self_tuning"``, samples of shape (n_samples, n_features).
        y : None
            Ignored.
        mask : sparse or dense bool matrix of shape (n_samples, n_samples), optional
            True where a similarity is unknown.

        Returns
        -------
        self : SymReLU
        """
        del y
        problem = self._problem(X, mask, self.diagonal)
        settings = self._settings()
        self._decompose(X, problem, self._rank(problem, settings), **settings)
        return self

    def fit_transform(self, X: Any, y: Any = None, *, mask: Any | None = None) -> np.ndarray:
        """Fit the factor and return it.

        Parameters
        ----------
        X, y, mask
            As for :meth:`fit`.

        Returns
        -------
        embedding : ndarray of shape (n_samples, n_components)
        """
        return self.fit(X, y, mask=mask).embedding_

    def transform(self, X: Any, mask: Any | None = None) -> np.ndarray:
        """Embed new items by their similarities to the fitted ones.

        Each new row is the minimum of a convex problem, that of a row of the fit with the other rows held;
        where it is not unique, the one of least norm.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_new, n_samples)
            Similarities of the new items to those of ``fit``; with ``affinity="self_tuning"``, samples of
            shape (n_new, n_features), which are joined to the graph of ``fit``; one that was in ``fit`` gets
            its own row (of several equal ones, that of the first).
        mask : sparse or dense bool matrix of shape (n_new, n_samples), optional
            True where a similarity is unknown: with ``diagonal="ignore"``, that of a fitted item to itself.

        Returns
        -------
        embedding : ndarray of shape (n_new, n_components)
        """
        M_new, unknown, same = self._new_rows(X, mask)
        embedding = self._model.transform_checked(M_new, unknown)
        embedding[same >= 0] = self.embedding_[same[same >= 0]]
        return embedding

    def score(self, X: Any, y: Any = None, *, mask: Any | None = None) -> float:
        """Return how much of the similarities of new items the model explains.

        It is 1 - ||M - max(0, X_new)||^2 / ||M||^2 for their rows M, so that ``GridSearchCV`` compares settings
        by items that a fit has not seen. For hidden pairs instead of hidden items, see
        :func:`symrelu.select_rank`.

        Parameters
        ----------
        X, mask
            As for :meth:`transform`.
        y : None
            Ignored.

        Returns
        -------
        score : float
            1 is exact; 0 is no better than predicting zero everywhere.
        """
        del y
        M_new, unknown, _ = self._new_rows(X, mask)
        return self._model.score_checked(M_new, unknown)

    def canonicalize(self) -> SymReLU:
        """Turn the embedding into the one that depends on X alone, so that runs can be compared.

        See :meth:`symrelu.fitted.OneFactor.canonicalize`. What the model says of any pair stays the same.

        Returns
        -------
        self : SymReLU
        """
        check_is_fitted(self)
        self.solution_ = self.solution_.canonicalize()
        self.embedding_ = self.solution_.U
        return self

    def _rank(self, problem: Problem, settings: dict[str, Any]) -> int:
        """Return the number of columns, chosen by hidden pairs if that is asked for."""
        self.__dict__.pop("selection_", None)  # of an earlier fit
        if not isinstance(self.n_components, str):
            return check_integer("n_components", self.n_components, 1, problem.n, " (the number of items)")
        check_choice("n_components", self.n_components, ("auto",), "an integer")
        if self.warm_start and hasattr(self, "embedding_"):
            return self._n_features_out
        saved = saved_rank(as_checkpoint(self.checkpoint))
        if saved is not None:
            return saved
        # Weighted fits do not seek a low error; where there is no zero the weight has no effect.
        weighted = self.zero_weight != 1 and problem.observed_zeros > 0
        passed_on = {name: settings[name] for name in (*GRID, *SETTINGS) if name in settings}
        self.selection_ = select_rank(
            problem,
            diagonal=self.diagonal,
            random_state=self.random_state,
            n_jobs=self.n_jobs,
            scoring="auc" if weighted else "error",
            **passed_on,
        )
        return int(self.selection_.chosen["rank"])

    def _new_rows(self, X: Any, mask: Any | None) -> tuple[Any, Any, np.ndarray]:
        """Return the similarities of new items, those that are unknown, and which items are not new.

        Of samples it is seen whether they were fitted (-1 if not); similarities do not tell.
        """
        check_is_fitted(self)
        precomputed = not hasattr(self, "_graph")
        if precomputed and hasattr(mask, "columns"):
            mask = self._mask_in_order(mask, X)
        # scikit-learn itself compares names that are strings and came in a frame.
        if hasattr(self, "node_names_") and not hasattr(self, "feature_names_in_") and hasattr(X, "columns"):
            X = self._in_order(X).to_numpy()
        matrix = from_torch(X).matrix if is_tensor(X) else X
        matrix = self._checked(matrix, X, reset=False, finite=not precomputed)
        if precomputed:
            M_new, unknown = check_rows(matrix, len(self.embedding_), aligned_mask(mask, None), name="X")
            return M_new, unknown, np.full(M_new.shape[0], -1)
        if mask is not None:
            raise ValueError("mask is of similarities: it needs affinity='precomputed'.")
        M_new, same = self._graph.rows(matrix)
        unknown = None
        if self.diagonal == "ignore":
            known = np.flatnonzero(same >= 0)  # of these items the own entry was unknown
            unknown = csr_array((np.ones(len(known), bool), (known, same[known])), shape=M_new.shape)
        return *check_rows(M_new, len(self.embedding_), unknown), same

    def _mask_in_order(self, mask: Any, X: Any) -> Any:
        """Return a frame of unknown similarities as an array with the rows of X and the fitted columns."""
        if hasattr(X, "columns") and not X.index.equals(mask.index):
            raise ValueError("mask must have the rows of X in the same order. Pass mask.loc[X.index].")
        return flags_of(self._in_order(mask, "mask") if hasattr(self, "node_names_") else mask)

    def _in_order(self, frame: Any, name: str = "X") -> Any:
        """Return a frame with its columns in the order of the fitted items, which they must name."""
        names, columns = list(self.node_names_), list(frame.columns)
        if columns == names:
            return frame
        strangers = set(names) ^ set(columns)
        if strangers or len(columns) != len(names):
            example = next(iter(strangers), "one of them twice")
            raise ValueError(
                f"{name} must have a column for each of the {len(names)} fitted items, got {len(columns)} "
                f"columns; the names differ, for example in {example!r}."
            )
        return frame.loc[:, names]

    @property
    def _model(self) -> SymmetricReLU:
        check_is_fitted(self)
        assert isinstance(self.solution_.model, SymmetricReLU)
        return self.solution_.model

    @property
    def _n_features_out(self) -> int:
        return int(self.embedding_.shape[1])
