"""SymReLUClustering: clusters of items from a fitted factor, by the method that suits the graph."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, NamedTuple

import numpy as np
from sklearn.base import ClusterMixin

from symrelu.estimators.base import STOPPED_BY_USER, DecompositionEstimator, whole_or_not_at_all
from symrelu.estimators.callbacks import StepTasks, with_callbacks
from symrelu.estimators.cluster_queries import ClusterQueriesMixin
from symrelu.estimators.cluster_settings import ClusterSettingsMixin
from symrelu.estimators.searches import (
    warn_if_edges,
    warn_of_alpha,
    warn_of_clusters,
    warn_of_selection,
)
from symrelu.fit.cluster_methods import ClusterMethod, Prepared, without_diagonal
from symrelu.fit.cluster_number import ClusterSelection, SharedFits, most_clusters, select_n_clusters
from symrelu.fit.settings import Limits, Model, Run, Start, documented
from symrelu.fitted.clusters import Clusters, modularity_of
from symrelu.fitted.history import Status
from symrelu.fitted.models import SymmetricReLU
from symrelu.fitted.solution import Solution
from symrelu.graphs import Labelled
from symrelu.graphs.edges import is_edge_table
from symrelu.problem import Problem, RowIndex
from symrelu.validation import (
    as_rectangular_array,
    check_integer,
    random_generator,
    read_rows,
)

_STREAM = 7  # random stream: k-means and hidden pairs must be independent of data and starts of the same seed
# How much larger the modularity of directions must be. On graphs of nearest neighbours it may be larger by 2 %
# although linkage agrees better with the classes; on networks the difference was 5 % and more.
_ADVANTAGE = 0.04
_OF_CLUSTERS = (
    "labels_",
    "method_",
    "clusters_",
    "memberships_",
    "modularity_",
    "statuses_",
    "selection_",
    "root_degrees_",
)


@documented
class SymReLUClustering(ClusterSettingsMixin, ClusterQueriesMixin, ClusterMixin, DecompositionEstimator):
    """Cluster the items of a similarity matrix or the nodes of a graph M by its model max(0, X).

    A factor U with M ~ max(0, X), X = (U * signature) U^T, is fitted, and clusters are formed from it by one of
    two methods:

    - "linkage" merges the two clusters with the largest mean of max(0, X) until ``n_clusters`` are left. This
      suits graphs of the nearest neighbours of samples, whose clusters may be long.
    - "directions" divides M by the square roots of the degrees first, fits several factors with shrinkage and a
      low weight on the zeros, and puts rows of similar direction together. This suits networks, in which nodes
      of a community have links to the same others, hubs differ from other nodes, and many links are missing.

    By default both are computed. "directions" is taken if its modularity on M
    (:func:`symrelu.metrics.modularity`) is larger by more than 4 %. No step forms an n x n array.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters. None chooses it, from at most 2 sqrt(n_samples), by the likelihood of hidden pairs
        under a block model with degrees (:mod:`symrelu.fit.cluster_number`). This is for networks: graphs of
        nearest neighbours of samples have no such blocks, and a warning says so.
    method : {"auto", "linkage", "directions"}, default="auto"
        How clusters are formed.
    n_components : int, optional
        Number of columns of a factor. Defaults to ``n_clusters``, clipped to [10, 100] ("linkage") or [16, 100]
        ("directions") and to the number of items.
    n_negative : setting
        At least one column stays positive.
    diagonal : setting
        It holds for "linkage"; "directions" ignores the diagonal.
    affinity : {"auto", "precomputed", "self_tuning"}, default="auto"
        Whether ``fit`` receives the similarity matrix itself, or samples x features from which
        :func:`~symrelu.graphs.self_tuning_graph` computes one. "auto" takes square input and graphs for
        similarities, and everything else for samples.
    alpha : float, optional
        Deprecated: use ``shrinkage``. It is relative to M, or to M divided by the roots of the degrees.
    shrinkage : float, optional
        Penalty on the factor as a share of the largest eigenvalue: it lowers the eigenvalues of X by this share
        of the largest one of M, in any units. Defaults to 0.01 ("linkage") or to that of
        :class:`LinkPredictor` ("directions"), which is lower for denser graphs.
    zero_weight : float, optional
        Weight in (0, 1] of the zeros of M. Defaults to 1 ("linkage") or 0.1 ("directions").
    init : str or array, optional
        Start of a fit, as for :func:`symrelu.decompose`. Defaults to "spectral" ("linkage") or "random"
        ("directions"). An array requires one ``method``, and ``n_init=1``.
    max_iter : int, optional
        Maximum number of steps of a fit. Defaults to 120 ("linkage") or 20 ("directions"). Reaching it is
        normal and gives no warning: a lower loss is not a better clustering.
    max_time : setting
        The limit holds for each fit.
    n_init : int, optional
        Number of fits from different seeds, whose mean X is taken. Defaults to 1 ("linkage") or 5
        ("directions").
    n_jobs : int, optional
        Number of fits that run in parallel, as in scikit-learn.
    checkpoint : setting
        For "linkage" with ``n_init=1``. With ``method="auto"``, only the fit of linkage has one.

    Attributes
    ----------
    labels_ : ndarray of int of shape (n_samples,)
        Cluster of each item, from 0 to n_clusters - 1, numbered by first appearance.
    method_ : str
        The method that was taken.
    n_clusters_ : int
        Number of clusters.
    memberships_ : ndarray of shape (n_samples, n_clusters)
        Share of each cluster in each item, with sum 1: proportional to the mean of max(0, X) over the other
        items of the cluster. The largest is nearly always that of ``labels_``.
    modularity_ : dict of str to float
        Modularity of the clusters of each method that was computed.
    statuses_ : dict of str to Status
        Why the fit of each of these methods stopped; of several fits, that of one that did not converge.
    selection_ : ClusterSelection
        The scores of all numbers of clusters, if ``n_clusters`` is None.
    clusters_ : DirectionClusters or LinkageClusters
        What ``predict`` uses: the centres, or the tree and the factor.
    tree_ : Tree
        All merges, if ``method_`` is "linkage".
    diagonal_ : str
        Whether the diagonal was fitted ("fit") or treated as unobserved ("ignore").
    embedding_ : ndarray of shape (n_samples, n_init * n_components)
        The factor U of the method that was taken; the factors of several fits side by side.
    signature_ : ndarray of shape (n_init * n_components,)
        Signs of its columns.
    root_degrees_ : ndarray of shape (n_samples,)
        Square roots of the regularised degrees that M was divided by, if ``method_`` is "directions".
    reconstruction_err_ : float
        ||M - max(0, X)||_F over the observed entries, where M is divided by the degrees for "directions".
    relative_error_ : float
        ``reconstruction_err_`` divided by the norm of the same matrix.
    n_iter_ : int
        Number of steps.
    converged_ : bool
        Whether the fit met a convergence test.
    stop_reason_ : str
        Why the fit stopped.
    history_ : History
        The errors, times and counts of each iteration, of the first fit if there are several.
    solution_ : Solution
        The complete result of the fit.
    latest_record_ : Record
        The latest row of the history, for callbacks (``set_callbacks``) while a fit runs.
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
    A warning tells if one cluster has nearly all items and the others one or two each.

    Linkage uses X, not distances between rows of U: with a negative column, or if many entries of X are far
    below zero, rows that are far apart can belong together. Clusters with no positive entry of X between them
    are merged last, by the mean of X.

    Examples
    --------
    The nodes of a network:

    >>> import networkx as nx
    >>> from symrelu import SymReLUClustering
    >>> graph = nx.les_miserables_graph()
    >>> clustering = SymReLUClustering(6, random_state=0).fit(graph)
    >>> clustering.method_
    'directions'

    Images, by a graph of their nearest neighbours:

    >>> from symrelu import metrics
    >>> from symrelu.datasets import load_digits_graph
    >>> M, digits = load_digits_graph()
    >>> labels = SymReLUClustering(n_clusters=10, random_state=0).fit_predict(M)
    >>> metrics.clustering_accuracy(digits, labels) > 0.8
    True
    """

    _pictures: ClassVar = ("clusters", "map", "spectrum", "convergence")
    _affinities = ("auto", "precomputed", "self_tuning")
    _takes_the_mean = True
    _expected_stops = (Status.MAX_ITER, Status.ROUNDING)

    def __init__(
        self,
        n_clusters: int | None = 8,
        *,
        method: str = "auto",
        n_components: int | None = None,
        n_negative: int | str = 1,
        diagonal: str = "ignore",
        affinity: str = "auto",
        solver: Any = Run.solver,
        alpha: float | None = None,
        shrinkage: float | None = None,
        zero_weight: float | None = None,
        support: str = Model.support,
        init: Any | None = None,
        tol: float = Limits.tol,
        gtol: float = Limits.gtol,
        ftol: float = Limits.ftol,
        max_iter: int | None = None,
        max_time: float | None = Limits.max_time,
        random_state: Any = Start.random_state,
        backend: str = Run.backend,
        precision: str = Run.precision,
        client: str | None = Run.client,
        n_init: int | None = None,
        n_jobs: int | None = None,
        checkpoint: Any | None = Run.checkpoint,
        verbose: int = Run.verbose,
    ) -> None:
        self.n_clusters = n_clusters
        self.method = method
        self.n_components = n_components
        self.n_negative = n_negative
        self.diagonal = diagonal
        self.affinity = affinity
        self.solver = solver
        self.alpha = alpha
        self.shrinkage = shrinkage
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
        methods = self._methods()
        problem = self._problem(X, mask, self.diagonal)
        if self.n_clusters is not None:
            check_integer("n_clusters", self.n_clusters, 1, problem.n, note=" (the number of items) or None")
        self._columns(methods[0], 1, problem.n)  # before any work
        # An integer, because each use of a generator would change it.
        seed = int(random_generator(self.random_state, _STREAM).random() * 2**31)
        n_clusters = self.n_clusters
        for name in _OF_CLUSTERS:  # left by an earlier fit, and wrong for a callback of this one
            self.__dict__.pop(name, None)
        if n_clusters is None:
            # Directions see the groups that hidden pairs tell apart; then the methods are compared as usual.
            self.selection_ = self._select(problem, methods[-1], seed)
            n_clusters = self.selection_.n_clusters
        tasks = StepTasks(self, X, sum(self._of(m)["n_init"] * self._of(m)["max_iter"] for m in methods))
        candidates = []
        for method in methods:
            candidates.append(self._candidate(method, problem, n_clusters, seed, tasks))
            if candidates[-1].solution.status in STOPPED_BY_USER:
                break
        self._take(candidates, n_clusters, tasks)
        if self.n_clusters is None:
            warn_of_selection(self, stacklevel=4)
        return self

    def _similarities(self, X: Any) -> Labelled | None:
        if self.affinity != "auto":
            return super()._similarities(X)
        if is_edge_table(X):
            return self._read_similarities(X)
        if hasattr(X, "columns"):  # reading a table that is not square would raise: it holds samples
            labelled = self._read_similarities(X) if _is_square(X) else None
        else:
            read = self._read_similarities(X)
            labelled = read if _is_square(read.matrix) else None
        if labelled is None:
            warn_if_edges(self, X, stacklevel=6)
        return labelled

    def _check_n_items(self, n: int) -> None:
        if n == 1:
            raise ValueError("X must have at least 2 items, got 1 sample: there is nothing to cluster.")

    def _keep_rows(self, matrix: Any, problem: Problem) -> None:
        """Keep hashes of the rows, so that ``predict`` recognises them."""
        self._row_index = RowIndex.of(*read_rows(matrix, problem.n, problem.mask, "X"))

    def _candidate(
        self, method: ClusterMethod, problem: Problem, n_clusters: int, seed: int, tasks: StepTasks
    ) -> _Candidate:
        """Fit the factor of a method and cluster the items."""
        data = method.prepare(problem)
        rank = self._columns(method, n_clusters, problem.n)
        n_init, settings = self._fit_settings(method, data, rank)
        solution = self._solve(data.problem, rank, n_init, settings, tasks)
        assert isinstance(solution.model, SymmetricReLU)
        clusters = method.cluster(solution.model, data.linked, seed=seed)(n_clusters)
        score = modularity_of(problem.scaled, clusters.labels)
        return _Candidate(method.name, data, solution, clusters, score)

    def _take(self, candidates: list[_Candidate], n_clusters: int, tasks: StepTasks) -> None:
        """Set the attributes of the best candidate, and warn if its clusters are not what was asked for."""
        best = max(candidates, key=lambda one: (one.clusters.labels.max() + 1 == n_clusters, one.score))
        if best.data.roots is not None:
            self.root_degrees_ = best.data.roots
        self.method_, self.clusters_, self.labels_ = best.method, best.clusters, best.clusters.labels
        self.n_clusters_ = int(self.labels_.max()) + 1
        self.modularity_ = {one.method: one.modularity for one in candidates}
        self.statuses_ = {one.method: one.solution.status for one in candidates}
        self.memberships_ = best.clusters.memberships(best.clusters.U, np.arange(len(self.labels_)))
        solution, last = best.solution, candidates[-1].solution.status
        if last in STOPPED_BY_USER:  # reported, even if the other method is taken
            solution = replace(solution, status=last)
        self._finish(solution, tasks, stacklevel=6)
        if self.alpha is not None:
            name = "X" if best.data.roots is None else "the normalised X"
            warn_of_alpha(self, best.data.problem, matrix=name, stacklevel=5)
        warn_of_clusters(self, n_clusters, stacklevel=5)

    def _select(self, problem: Problem, method: ClusterMethod, seed: int) -> ClusterSelection:
        """Score numbers of clusters by hidden pairs."""

        def fits(left: Problem, repeat: int) -> SharedFits:
            return SharedFits(
                method,
                method.prepare(left),
                partial(self._columns, method, n=left.n),
                partial(self._fit_settings, method),
                seed + repeat,
            )

        most, rng = most_clusters(problem.n), np.random.default_rng(seed)
        return select_n_clusters(without_diagonal(problem), fits, most=most, rng=rng, verbose=self.verbose)


class _Candidate(NamedTuple):
    """The clusters of one method."""

    method: str
    data: Prepared
    solution: Solution
    clusters: Clusters
    modularity: float

    @property
    def score(self) -> float:
        """By which methods are compared."""
        return self.modularity + (_ADVANTAGE * abs(self.modularity) if self.method == "linkage" else 0.0)


def _is_square(matrix: Any) -> bool:
    shape = tuple(getattr(matrix, "shape", None) or as_rectangular_array(matrix, "X").shape)
    return len(shape) == 2 and shape[0] == shape[1]
