"""SymReLU: the factor as an embedding of the items."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from symrelu.estimators.base import DecompositionEstimator, whole_or_not_at_all
from symrelu.estimators.callbacks import with_callbacks
from symrelu.estimators.naming import NamedQueriesMixin
from symrelu.estimators.new_items import NewItemsMixin
from symrelu.estimators.saving import SavedModelMixin
from symrelu.estimators.searches import warn_of_alpha, warn_of_new_defaults
from symrelu.fit.checkpoint import as_checkpoint, saved_rank
from symrelu.fit.selection import GRID, LIMITS, SETTINGS, select_rank
from symrelu.fit.settings import Limits, Model, Run, Start, documented
from symrelu.fitted.answers import answers_of
from symrelu.fitted.models import SymmetricReLU
from symrelu.problem import Problem
from symrelu.validation import check_choice, check_integer

# Enough for the neighbours in a sparse graph of a few thousand nodes to be exact.
DEFAULT_COLUMNS = 16


@documented
class SymReLU(
    SavedModelMixin,
    NamedQueriesMixin,
    NewItemsMixin,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    DecompositionEstimator,
):
    """Embed the items of M by a factor U that keeps their neighbours: M ~ max(0, (U * signature) U^T).

    By default the data decide on the model: ``n_negative="auto"`` uses negative columns where they help, and
    ``diagonal="auto"`` leaves out the diagonal of a graph, which is zero. With these, 16 columns are often
    enough for the largest entries of row i of X to be exactly the neighbours of item i in a sparse graph. The
    model of the paper, M ~ max(0, U U^T) with the diagonal fitted, is
    ``SymReLU(n_negative=0, diagonal="fit")``, and the default of :func:`~symrelu.decompose`.

    Parameters
    ----------
    n_components : int or "auto", optional
        Number of columns of the embedding (``rank`` of :func:`~symrelu.decompose`), by default 16, or the
        number of items if that is smaller. "auto" lets :func:`~symrelu.select_rank` choose it by held-out
        pairs, which takes many fits, run by ``n_jobs`` processes. Ctrl-C ends the selection, and the fit
        continues with the best number found so far.
    n_negative : setting
        With negative columns, X is (U * signature) U^T.
    affinity : {"precomputed", "self_tuning"}, default="precomputed"
        Whether ``fit`` receives the similarity matrix itself, or samples x features from which
        :func:`~symrelu.graphs.self_tuning_graph` computes one.
    shrinkage : float, default=0.0
        Strength of a penalty on U that shrinks the eigenvalues of X, as a fraction of the largest eigenvalue of
        M (with unobserved entries taken as zero). 0 is no penalty; from 1 on, U = 0 is a minimum. The weight of
        the Tikhonov penalty, ``alpha`` of :func:`~symrelu.decompose`, is twice the product of the two. It is a
        number without units: multiplying M by c multiplies the embedding by sqrt(c).
    alpha : float, optional
        Weight of the Tikhonov penalty in the units of M. Deprecated, and an error together with ``shrinkage``:
        pass ``shrinkage`` instead.
    tol : setting
        The default is lower than in :func:`~symrelu.decompose`, because ``transform`` returns the rows of the
        embedding only if the fit is stationary.
    n_init : int, default=1
        Number of fits from different seeds; the one with the lowest objective is kept.
    n_jobs : int, optional
        Number of fits that run in parallel, as in scikit-learn.
    warm_start : bool, default=False
        Whether ``fit`` continues from the factor of the previous ``fit``, if there was one (with a single fit,
        regardless of ``n_init``).
    checkpoint : setting
        A checkpoint belongs to one matrix: do not use it with ``GridSearchCV`` or ``warm_start``.

    Attributes
    ----------
    embedding_ : ndarray of shape (n_samples, n_components)
        The factor U.
    signature_ : ndarray of shape (n_components,)
        Signs of its columns.
    diagonal_ : {"fit", "ignore"}
        Whether the diagonal was fitted or treated as unobserved.
    reconstruction_err_ : float
        ||M - max(0, X)||_F.
    relative_error_ : float
        ``reconstruction_err_`` divided by ||M||_F.
    n_iter_ : int
        Number of steps.
    converged_ : bool
        Whether the fit met a convergence test.
    stop_reason_ : str
        Why the fit stopped.
    history_ : History
        The errors, times and counts of each iteration.
    solution_ : Solution
        The complete result of the fit.
    selection_ : RankSelection
        The scores behind the choice (``n_components="auto"`` only).
    latest_record_ : Record
        The latest row of the history, for callbacks (``set_callbacks``) while the fit runs.
    node_names_ : ndarray of object of shape (n_samples,)
        Names of the items, if the input has names: a networkx or igraph graph, an AnnData, a labelled
        DataFrame. ``score_pairs``, ``reconstruct`` and ``top_k`` then take names too.
    affinity_matrix_ : csr_array of shape (n_samples, n_samples)
        The graph (``affinity="self_tuning"`` only).
    n_features_in_ : int
        Number of columns in the input of ``fit``.
    feature_names_in_ : ndarray of str
        Their names, if the input has names that are strings.

    See Also
    --------
    symrelu.decompose : The same fit as a function, with the model of the paper by default.

    Examples
    --------
    >>> from symrelu import SymReLU
    >>> from symrelu.datasets import make_relu_gram
    >>> M, _ = make_relu_gram(100, 3, random_state=0)
    >>> model = SymReLU(n_components=3, random_state=0).fit(M)
    >>> model.embedding_.shape, model.diagonal_
    ((100, 3), 'fit')
    """

    # Neither is required: a file may hold a Solution of symrelu.decompose alone.
    _saved_parts: ClassVar = {"row_index": False, "graph": False}
    _takes_folders = True

    def __init__(
        self,
        n_components: int | str | None = None,
        *,
        n_negative: int | str = "auto",
        diagonal: str = "auto",
        affinity: str = "precomputed",
        solver: Any = Run.solver,
        shrinkage: float = 0.0,
        alpha: float | None = None,
        zero_weight: float = Model.zero_weight,
        support: str = Model.support,
        init: Any = Start.init,
        tol: float = 1e-6,
        gtol: float = Limits.gtol,
        ftol: float = Limits.ftol,
        max_iter: int = Limits.max_iter,
        max_time: float | None = Limits.max_time,
        random_state: Any = Start.random_state,
        backend: str = Run.backend,
        precision: str = Run.precision,
        client: str | None = Run.client,
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
        self.shrinkage = shrinkage
        self.alpha = alpha
        self.zero_weight = zero_weight
        self.support = support
        self.init = init
        self.tol = tol
        self.gtol = gtol
        self.ftol = ftol
        self.max_iter = max_iter
        self.max_time = max_time
        self.random_state = random_state
        self.backend = backend
        self.precision = precision
        self.client = client
        self.n_init = n_init
        self.n_jobs = n_jobs
        self.warm_start = warm_start
        self.checkpoint = checkpoint
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        precomputed = self.affinity == "precomputed"
        # The graph of samples is always float64.
        tags.transformer_tags.preserves_dtype = ["float64", "float32"] if precomputed else ["float64"]
        return tags

    @whole_or_not_at_all
    @with_callbacks  # type: ignore[untyped-decorator]
    def fit(self, X: Any, y: Any = None, *, mask: Any | None = None) -> SymReLU:
        """Fit the factor.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_samples), or a graph
            Similarities, as a matrix or as anything that :func:`symrelu.graphs.as_similarity` reads: a networkx
            or igraph graph, an AnnData, a labelled pandas DataFrame, a torch tensor. With
            ``affinity="self_tuning"``, samples of shape (n_samples, n_features).
        y : None
            Ignored.
        mask : sparse or dense bool matrix of shape (n_samples, n_samples), optional
            True where a similarity is unobserved.

        Returns
        -------
        self : SymReLU
        """
        del y
        problem = self._problem(X, mask, self.diagonal)
        settings = self._settings_for(problem)
        # stacklevel=4: the caller of fit, past its decorators.
        if self.alpha is not None:
            warn_of_alpha(self, problem, stacklevel=4)
        self._decompose(X, problem, self._rank(problem, settings), **settings)
        warn_of_new_defaults(self, self.solution_, stacklevel=4)
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

        Each new row minimises the objective of the fit with all other rows held fixed, a convex problem. If the
        minimum is not unique, the one of least norm is returned.

        If ``diagonal_`` is "ignore", a row of X with the same observed nonzeros as a row of ``fit`` counts as
        that item (of several equal rows, the first): its similarity to itself is unobserved, as it was in
        ``fit``, and may also be zero or masked here. If the other entries are masked as in ``fit``, it gets its
        row of ``embedding_``.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_new, n_samples)
            Similarities of the new items to those of ``fit``. With ``affinity="self_tuning"``, samples of shape
            (n_new, n_features), which are connected to the graph of ``fit``; a sample that was in ``fit`` gets
            its own row (of several equal samples, that of the first).
        mask : sparse or dense bool matrix of shape (n_new, n_samples), optional
            True where a similarity is unobserved.

        Returns
        -------
        embedding : ndarray of shape (n_new, n_components)
        """
        M_new, unknown, same = self._new_rows(X, mask)
        # The exact rows: solutions for fitted items would agree only up to the convergence error of the fit.
        embedding = self.embedding_[same]
        new = np.flatnonzero(same < 0)
        if len(new):
            unknown = None if unknown is None else unknown[new]
            embedding[new] = answers_of(self._model, self.backend).transform_checked(M_new[new], unknown)
        return embedding

    def score(self, X: Any, y: Any = None, *, mask: Any | None = None) -> float:
        """Return the share of the similarities of new items that the model explains.

        It is 1 - ||M - max(0, X_new)||^2 / ||M||^2 for their rows M, so ``GridSearchCV`` compares settings by
        held-out items. For held-out pairs, see :func:`symrelu.select_rank`.

        Parameters
        ----------
        X, mask
            As for :meth:`transform`, with the same rule for the items of ``fit``.
        y : None
            Ignored.

        Returns
        -------
        score : float
            1 is exact; 0 is no better than predicting zero everywhere.
        """
        del y
        M_new, unknown, _ = self._new_rows(X, mask)
        return answers_of(self._model, self.backend).score_checked(M_new, unknown)

    def canonicalize(self) -> SymReLU:
        """Replace the embedding by the one that depends only on X, so that runs can be compared.

        See :meth:`symrelu.fitted.OneFactor.canonicalize`. X does not change.

        Returns
        -------
        self : SymReLU
        """
        check_is_fitted(self)
        self.solution_ = self.solution_.canonicalize()
        self.embedding_ = self.solution_.U
        return self

    def _rank(self, problem: Problem, settings: dict[str, Any]) -> int:
        """Return the number of columns, selected by held-out pairs if ``n_components`` is "auto"."""
        self.__dict__.pop("selection_", None)  # left by an earlier fit
        if self.n_components is None:
            return min(DEFAULT_COLUMNS, problem.n)
        if not isinstance(self.n_components, str):
            return check_integer("n_components", self.n_components, 1, problem.n, " (the number of items)")
        check_choice("n_components", self.n_components, ("auto",), "an integer")
        if self.warm_start and hasattr(self, "embedding_"):  # the rank of the factor to continue from
            return self._n_features_out
        # A fit that resumes must keep its rank, even if a second selection would choose another.
        saved = saved_rank(as_checkpoint(self.checkpoint))
        if saved is not None:
            return saved
        # Weighted fits do not minimise the error. Without zeros, the weight has no effect.
        weighted = self.zero_weight != 1 and problem.observed_zeros > 0
        # Limits at their defaults are those of a single fit; a selection has its own, which are lower.
        left_alone = [name for name in LIMITS if settings[name] == getattr(Limits, name)]
        passed_on = {
            name: settings[name] for name in (*GRID, *SETTINGS) if name in settings and name not in left_alone
        }
        self.selection_ = select_rank(
            problem,
            diagonal=problem.diagonal,
            random_state=self.random_state,
            n_jobs=self.n_jobs,
            scoring="auc" if weighted else "error",
            verbose=self.verbose,
            **passed_on,
        )
        return int(self.selection_.chosen["rank"])

    @property
    def _model(self) -> SymmetricReLU:
        check_is_fitted(self)
        assert isinstance(self.solution_.model, SymmetricReLU)
        return self.solution_.model

    @property
    def _n_features_out(self) -> int:
        return int(self.embedding_.shape[1])
