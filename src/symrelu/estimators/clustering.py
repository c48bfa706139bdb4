"""SymReLUClustering: clusters of items by average linkage under the fitted similarity."""

from __future__ import annotations

from typing import Any

from sklearn.base import ClusterMixin

from symrelu.estimators.base import DecompositionEstimator, whole_or_not_at_all
from symrelu.estimators.callbacks import with_callbacks
from symrelu.fit.settings import Limits, Model, Run, Start, documented
from symrelu.fitted.history import Status
from symrelu.fitted.linkage_tree import average_linkage_of_factor
from symrelu.fitted.solution import Solution
from symrelu.graphs import Labelled
from symrelu.graphs.edges import is_edge_table
from symrelu.validation import as_rectangular_array, check_integer

# Bounds of the default number of columns. Two moons need more columns than clusters, and more than 10 change
# little; 100 classes needed 30 columns.
FEWEST_COLUMNS = 10
MOST_COLUMNS = 100


@documented
class SymReLUClustering(ClusterMixin, DecompositionEstimator):
    """Cluster the items of a similarity matrix M by average linkage under its model max(0, X).

    First a factor U with M ~ max(0, X), X = (U * signature) U^T, is fitted. Then the two clusters with the
    largest mean of max(0, X) are merged until ``n_clusters`` are left. Neither step forms an n x n array.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters.
    n_components : int, optional
        Number of columns of the factor. Defaults to ``n_clusters``, clipped to [10, 100] and to the number of
        items.
    n_negative : setting
        At least one column stays positive.
    affinity : {"auto", "precomputed", "self_tuning"}, default="auto"
        Whether ``fit`` receives the similarity matrix itself, or samples x features from which
        :func:`~symrelu.graphs.self_tuning_graph` computes one. "auto" takes square input and graphs for
        similarities, and everything else for samples.
    alpha : setting
        A larger value gives better clusters on a noisy graph: try 0.1 or 0.3 if the rows of M are normalised,
        as those of a self-tuning graph are.
    max_iter : setting
        Reaching it is normal and gives no warning: a lower loss is not a better clustering.

    Attributes
    ----------
    labels_ : ndarray of int of shape (n_samples,)
        Cluster of each item, from 0 to n_clusters - 1, numbered by first appearance.
    tree_ : symrelu.fitted.linkage_tree.Tree
        All merges. ``tree_.cut(k)`` returns k clusters without another fit, ``tree_.to_scipy()`` the linkage
        matrix for ``scipy.cluster.hierarchy.dendrogram``.
    embedding_ : ndarray of shape (n_samples, n_components)
        The factor U.
    signature_ : ndarray of shape (n_components,)
        Signs of its columns.
    reconstruction_err_ : float
        ||M - max(0, X)||_F over the observed entries.
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
    latest_record_ : Record
        The latest row of the history, for callbacks (``set_callbacks``) while the fit runs.
    node_names_ : ndarray of object of shape (n_samples,)
        Names of the items, if the input has names: a networkx or igraph graph, an AnnData, a labelled
        DataFrame.
    affinity_matrix_ : csr_array of shape (n_samples, n_samples)
        The graph computed from samples.
    n_features_in_ : int
        Number of columns in the input of ``fit``.
    feature_names_in_ : ndarray of str
        Their names, if the input has names that are strings.

    See Also
    --------
    SymReLU : The factor as an embedding.

    Notes
    -----
    Average linkage uses X, not distances between rows of U: with a negative column, or if many entries of X are
    far below zero, rows that are far apart can belong together. Therefore k-means on U is not offered.

    Clusters with no positive entry of X between them are merged last, by the mean of X.

    Examples
    --------
    >>> from symrelu import metrics
    >>> from symrelu.datasets import load_digits_graph
    >>> from symrelu import SymReLUClustering
    >>> M, digits = load_digits_graph()
    >>> labels = SymReLUClustering(n_clusters=10, max_iter=30, random_state=0).fit_predict(M)
    >>> metrics.clustering_accuracy(digits, labels) > 0.8
    True
    """

    _affinities = ("auto", "precomputed", "self_tuning")
    _expected_stops = (Status.MAX_ITER, Status.ROUNDING)

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        n_components: int | None = None,
        n_negative: int | str = 1,
        diagonal: str = "ignore",
        affinity: str = "auto",
        solver: Any = Run.solver,
        alpha: float = Model.alpha,
        zero_weight: float = Model.zero_weight,
        support: str = Model.support,
        init: Any = "spectral",
        tol: float = Limits.tol,
        gtol: float = Limits.gtol,
        ftol: float = Limits.ftol,
        max_iter: int = 120,
        max_time: float | None = Limits.max_time,
        random_state: Any = Start.random_state,
        backend: str = Run.backend,
        checkpoint: Any | None = Run.checkpoint,
        verbose: int = Run.verbose,
    ) -> None:
        self.n_clusters = n_clusters
        self.n_components = n_components
        self.n_negative = n_negative
        self.diagonal = diagonal
        self.affinity = affinity
        self.solver = solver
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
        self.checkpoint = checkpoint
        self.verbose = verbose

    @whole_or_not_at_all
    @with_callbacks  # type: ignore[untyped-decorator]
    def fit(self, X: Any, y: Any = None, *, mask: Any | None = None) -> SymReLUClustering:
        """Fit the factor and cluster the items.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_samples), or a graph
            Similarities, as a matrix or as anything that :func:`symrelu.graphs.as_similarity` reads; or
            samples of shape (n_samples, n_features), see ``affinity``.
        y : None
            Ignored.
        mask : sparse or dense bool matrix of shape (n_samples, n_samples), optional
            True where a similarity is unobserved.

        Returns
        -------
        self : SymReLUClustering
        """
        del y
        problem = self._problem(X, mask, self.diagonal)
        check_integer("n_clusters", self.n_clusters, 1, problem.n, note=" (the number of items)")
        rank = self._rank(problem.n)
        settings = self._settings() | {"n_negative": self._n_negative_below(rank)}
        self._decompose(X, problem, rank, **settings)
        return self

    def _similarities(self, X: Any) -> Labelled | None:
        if self.affinity != "auto":
            return super()._similarities(X)
        if is_edge_table(X):
            return self._read_similarities(X)
        if hasattr(X, "columns"):  # reading a table that is not square would raise: it holds samples
            return self._read_similarities(X) if _is_square(X) else None
        labelled = self._read_similarities(X)
        return labelled if _is_square(labelled.matrix) else None

    def _check_n_items(self, n: int) -> None:
        if n == 1:
            raise ValueError("X must have at least 2 items, got 1 sample: there is nothing to cluster.")

    def _set_further_attributes(self, solution: Solution) -> None:
        """Cluster the items."""
        self.tree_ = average_linkage_of_factor(solution.U, solution.signature)
        self.labels_ = self.tree_.cut(self.n_clusters)

    def _rank(self, n: int) -> int:
        if self.n_components is not None:
            return check_integer("n_components", self.n_components, 1, n, note=" (the number of items) or None")
        return min(n, max(FEWEST_COLUMNS, min(self.n_clusters, MOST_COLUMNS)))


def _is_square(matrix: Any) -> bool:
    shape = tuple(getattr(matrix, "shape", None) or as_rectangular_array(matrix, "X").shape)
    return len(shape) == 2 and shape[0] == shape[1]
