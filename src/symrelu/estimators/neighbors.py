"""NeighborEmbedding: vectors of the nodes of a graph that give back its edges exactly, with a certificate."""

from __future__ import annotations

from dataclasses import replace
from os import PathLike
from typing import Any, ClassVar

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from symrelu.estimators.base import DecompositionEstimator, whole_or_not_at_all
from symrelu.estimators.callbacks import FitTasks, with_callbacks
from symrelu.estimators.new_items import edges_in, find_nodes
from symrelu.estimators.rankings import Ranking, named
from symrelu.estimators.searches import warn_incomplete_search
from symrelu.fit.backends import named_backend
from symrelu.fit.neighbor_goal import Found, Goal
from symrelu.fit.neighbor_search import search_neighbors
from symrelu.fit.settings import Run, Start, documented
from symrelu.fitted.answers import answers_of
from symrelu.fitted.certificate import Certificate
from symrelu.fitted.neighbor_vectors import NeighborVectors, check_dtype
from symrelu.operators import BACKENDS
from symrelu.problem import Problem, RowIndex
from symrelu.validation import (
    NothingObserved,
    check_choice,
    check_integer,
    check_number,
    check_rows,
    read_rows,
)

# A search counts all pairs on one machine.
ON_ONE_MACHINE = tuple(name for name in BACKENDS if name != "dask")


@documented
class NeighborEmbedding(ClassNamePrefixFeaturesOutMixin, TransformerMixin, DecompositionEstimator):
    """Find short vectors whose inner products give back the neighbours of every node of a graph.

    Nodes i and j are neighbours if ``query_vectors_[i] @ item_vectors_[j] > threshold_``. ``certificate_`` says
    for how many of all pairs of nodes that is wrong: none, unless the search was limited. The vectors can be
    used in any index for inner products. Only the edges of the graph matter, not their weights; loops are
    ignored.

    Parameters
    ----------
    n_components : int, optional
        Number of columns. By default the smallest number for which the search finds exact vectors.
    recall : float, default=1.0
        Least share of the edges that must be found, and of the pairs found that must be edges. Below 1, fewer
        columns may be enough.
    dtype : {"float32", "float16"} or dtype, default="float32"
        Type in which the vectors are stored. The certificate holds for the stored vectors.
    n_negative : int, default=1
        Number of columns that enter the score with a minus sign. One column always stays positive.
    max_iter : int, default=3000
        Largest number of steps for one number of columns. More steps may find shorter vectors.
    max_time : float, optional
        Time limit for the whole search in seconds. The shortest vectors found so far are kept.
    random_state : setting
    backend : {"auto", "dense", "sparse", "active", "reference", "torch", "cuda"}, default="auto"
        How the graph is stored, as for :func:`decompose`. With "cuda", an NVIDIA GPU makes the fits, compares
        all pairs with the graph and answers ``top_k``; a tensor on a GPU is fitted there by default.

    Attributes
    ----------
    item_vectors_ : ndarray of shape (n_samples, n_components)
        The vectors to store.
    query_vectors_ : ndarray of shape (n_samples, n_components)
        The vectors to search for: ``item_vectors_`` with the signs of ``signature_``.
    threshold_ : float
        Scores above it are neighbours.
    certificate_ : Certificate
        ``wrong_pairs``, ``recall``, ``precision`` and ``margin``, counted over all pairs of nodes.
    n_components_ : int
        Number of columns.
    signature_ : ndarray of shape (n_components,)
        Signs of the columns.
    attempts_ : tuple of Attempt
        The numbers of columns that were tried, with their steps and wrong pairs. Like ``n_iter_`` and
        ``stop_reason_``, a loaded estimator does not have them.
    n_iter_ : int
        Number of steps of all attempts together.
    stop_reason_ : str
        Why the search ended.
    vectors_ : NeighborVectors
        The vectors with their graph and certificate.
    node_names_ : ndarray of object of shape (n_samples,)
        Names of the nodes, if the input has names.
    n_features_in_ : int
        Number of nodes.
    feature_names_in_ : ndarray of str
        Names of the columns of the input, if they are strings.

    See Also
    --------
    SymReLU : An embedding that models the similarities too.

    Notes
    -----
    The search fits with more and more columns until the neighbours are exact, and then drops columns, each time
    starting from the last factor, until that fails. It is not proved that no shorter vectors exist. Ctrl-C ends
    the search and keeps the shortest vectors found so far.

    A pair counts as right only if its score is beyond the threshold by more than the rounding error of an inner
    product in float32, for any order of summation.

    Examples
    --------
    >>> from scipy.sparse import diags_array
    >>> from symrelu import NeighborEmbedding
    >>> path = diags_array([1.0, 1.0], offsets=[-1, 1], shape=(50, 50))
    >>> model = NeighborEmbedding(max_iter=300, random_state=0).fit(path)
    >>> model.certificate_.wrong_pairs, model.n_components_ < 8
    (0, True)
    >>> sorted(model.neighbors(10).tolist())
    [9, 11]
    """

    _pictures: ClassVar = ("attempts", "map", "spectrum")

    def __init__(
        self,
        n_components: int | None = None,
        *,
        recall: float = 1.0,
        dtype: Any = "float32",
        n_negative: int = 1,
        max_iter: int = 3000,
        max_time: float | None = None,
        random_state: Any = Start.random_state,
        backend: str = Run.backend,
        verbose: int = Run.verbose,
    ) -> None:
        self.n_components = n_components
        self.recall = recall
        self.dtype = dtype
        self.n_negative = n_negative
        self.max_iter = max_iter
        self.max_time = max_time
        self.random_state = random_state
        self.backend = backend
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = []
        return tags

    @whole_or_not_at_all
    @with_callbacks  # type: ignore[untyped-decorator]
    def fit(self, X: Any, y: Any = None) -> NeighborEmbedding:
        """Find the vectors.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_samples), or a graph
            Adjacency, as a matrix or as anything that :func:`symrelu.graphs.as_similarity` reads. Positive
            entries are edges.
        y : None
            Ignored.

        Returns
        -------
        self : NeighborEmbedding
        """
        del y
        try:
            problem = self._problem(X, None, "ignore")
        except NothingObserved as error:
            raise ValueError(
                "X must have an edge between two different nodes, got only loops, which are ignored."
            ) from error
        goal = self._goal(problem.n)
        graph = edges_in(problem.M)
        names = getattr(self, "node_names_", None)
        tasks = FitTasks(self, X, None)

        def end_attempt(found: Found) -> bool:
            return tasks.subtask("attempt", lambda: _fitted_attributes(found, graph, names))

        found = search_neighbors(
            graph.astype(np.float32),
            goal,
            n_negative=int(self.n_negative),
            random_state=self.random_state,
            backend=named_backend(problem, self.backend),
            verbose=self.verbose,
            callback=end_attempt if self._has_callbacks() else None,
        )
        for name, value in _fitted_attributes(found, graph, names).items():
            setattr(self, name, value)
        tasks.end()
        warn_incomplete_search(self, found, goal, stacklevel=4)  # the caller of fit, past its decorators
        return self

    def fit_transform(self, X: Any, y: Any = None) -> np.ndarray:
        """Find the vectors and return them.

        Parameters
        ----------
        X, y
            As for :meth:`fit`.

        Returns
        -------
        item_vectors : ndarray of shape (n_samples, n_components)
        """
        return self.fit(X, y).item_vectors_.copy()  # the certificate is that of the array of the estimator

    def transform(self, X: Any) -> np.ndarray:
        """Return the vectors of new nodes from their edges to the nodes of ``fit``.

        The vector of a node is one that puts its neighbours above the threshold and all other nodes below, if
        there is one. The certificate does not cover new nodes.

        A row of the input of ``fit`` gets the vector of that node. Without such a row, one with the same edges
        as a node of ``fit``, with or without a loop, gets the vector of that node (of several, the first in
        both cases). ``vectors_.place`` treats every row as a new node.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_new, n_samples)
            Positive entries are edges.

        Returns
        -------
        item_vectors : ndarray of shape (n_new, n_components)
        """
        check_is_fitted(self)
        matrix, _ = check_rows(self._read_new_rows(X), len(self.item_vectors_), None, name="X")
        known = find_nodes(matrix, self._row_index, self.vectors_.graph)
        vectors = self.item_vectors_[known]
        new = np.flatnonzero(known < 0)
        if len(new):
            vectors[new] = self.vectors_.place(edges_in(matrix[new]))
        return vectors

    def neighbors(self, node: Any) -> np.ndarray:
        """Return the nodes with a score above ``threshold_``, the largest score first.

        Parameters
        ----------
        node : int, or a name
            Index of a node of ``fit``, or its name if the input of ``fit`` had names. Numbers always mean
            indices; see :meth:`index_of` for names that are numbers.

        Returns
        -------
        nodes : ndarray
            Names (dtype object) if ``node`` is a name, otherwise indices.
        """
        check_is_fitted(self)
        index, by_name = self._find_queried("node", node, ndim=0)
        found = self.vectors_.neighbors(index)
        return named(found, self.node_names_) if by_name else found

    def top_k(self, nodes: Any, k: int) -> Ranking:
        """Return for each node the k other nodes with the largest scores, neighbours or not.

        Parameters
        ----------
        nodes : array-like of int, or names
            As for :meth:`neighbors`, of several nodes.
        k : int

        Returns
        -------
        items : ndarray of shape (len(nodes), k)
            In descending order of score; ties go to the lower index. Names if ``nodes`` are names, and None if
            there are fewer than k; otherwise indices, and -1 if there are fewer than k.
        scores : ndarray of float32 of shape (len(nodes), k)
            Neighbours have scores above ``threshold_``. Minus infinity if there are fewer than k.
            The method ``to_frame`` of the two returns a table with names, if there are any.
        """
        check_is_fitted(self)
        answers = answers_of(self.vectors_.scoring_model, self.backend)
        return self._ranking_of(nodes, lambda found: answers.top_k(found, k))

    def save(self, path: str | PathLike[str]) -> None:
        """Write the vectors, graph, certificate, names and backend to an npz file (arrays and JSON, no pickle).

        Names must be strings, integers or tuples of these; others raise an error before anything is written.
        Set ``node_names_`` to other names, or delete it, to save such a model.

        Parameters
        ----------
        path : str or path-like
        """
        check_is_fitted(self)
        replace(self.vectors_, names=getattr(self, "node_names_", None), backend=self.backend).save(path)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> NeighborEmbedding:
        """Return a fitted estimator from a file that :meth:`save` wrote.

        All pairs are compared with the graph again; a file that does not have the certificate it claims is
        refused. The loaded estimator is one that was fitted to the plain graph with ``n_components`` set to the
        number of columns in the file, with the names of the nodes and the ``backend``: weights and loops are
        not in the file. It has no ``attempts_``, ``n_iter_`` and ``stop_reason_``, and of several nodes with
        the same edges, ``transform`` always returns the vector of the first, even if their weights differed.

        Parameters
        ----------
        path : str or path-like

        Returns
        -------
        model : NeighborEmbedding
        """
        vectors = NeighborVectors.load(path)
        n, rank = vectors.item_vectors.shape
        model = cls(
            n_components=rank,
            dtype=vectors.item_vectors.dtype.name,
            n_negative=int(np.sum(vectors.signature < 0)),
            backend=vectors.backend,
        )
        model.n_features_in_ = n
        model.vectors_ = vectors
        if vectors.names is not None:
            model.node_names_ = vectors.names
        model._row_index = RowIndex.of(vectors.graph, None)
        return model

    @property
    def item_vectors_(self) -> np.ndarray:
        """The vectors to store."""
        return self._fitted("item_vectors_").item_vectors

    @property
    def query_vectors_(self) -> np.ndarray:
        """The vectors to search for."""
        return self._fitted("query_vectors_").query_vectors

    @property
    def signature_(self) -> np.ndarray:
        """Signs of the columns."""
        return self._fitted("signature_").signature

    @property
    def threshold_(self) -> float:
        """Scores above it are neighbours."""
        return self._fitted("threshold_").threshold

    @property
    def certificate_(self) -> Certificate:
        """The comparison of all pairs with the graph."""
        return self._fitted("certificate_").certificate

    @property
    def n_components_(self) -> int:
        """Number of columns."""
        return int(self._fitted("n_components_").item_vectors.shape[1])

    def _fitted(self, attribute: str) -> NeighborVectors:
        """Return the vectors, or raise an error that names the attribute that was asked for."""
        if "vectors_" not in vars(self):
            raise NotFittedError(f"This NeighborEmbedding has no {attribute} yet: call fit first.")
        return self.vectors_

    def _check_settings(self, settings: dict[str, Any]) -> None:
        check_dtype(self.dtype)
        check_number("recall", self.recall, 0, 1, low_included=False)
        check_integer("n_negative", self.n_negative, 0)
        check_choice("backend", self.backend, ON_ONE_MACHINE)
        super()._check_settings(settings)

    def _goal(self, n: int) -> Goal:
        rank = self.n_components
        if rank is not None:
            rank = check_integer("n_components", rank, 1, n, " (the number of nodes), or None")
        return Goal(rank, self.recall, np.dtype(self.dtype), self.max_iter, self.max_time)

    def _keep_rows(self, matrix: Any, problem: Problem) -> None:
        # As passed, and not problem.M: the rows that transform gets have the same weights and loops.
        self._row_index = RowIndex.of(*read_rows(matrix, problem.n, None, "X"))

    def _check_n_items(self, n: int) -> None:
        if n < 2:
            raise ValueError(f"X must have at least 2 nodes, since an edge joins two, got n_samples = {n}.")

    @property
    def _n_features_out(self) -> int:
        return self.n_components_


def _fitted_attributes(found: Found, graph: Any, names: np.ndarray | None) -> dict[str, Any]:
    """Return the attributes of an estimator that has found these vectors."""
    return {
        "vectors_": NeighborVectors(found.vectors, found.signature, graph, found.certificate, names),
        "attempts_": found.attempts,
        "n_iter_": sum(attempt.n_iter for attempt in found.attempts),
        "stop_reason_": "the search has ended" if found.status is None else found.status.value,
    }
