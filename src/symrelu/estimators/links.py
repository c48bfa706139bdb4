"""LinkPredictor: link prediction in a graph."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from symrelu.estimators.base import DecompositionEstimator, whole_or_not_at_all
from symrelu.estimators.callbacks import with_callbacks
from symrelu.estimators.naming import NamedQueriesMixin
from symrelu.estimators.rankings import Links, Ranking
from symrelu.fit.averaging import mean_solution
from symrelu.fit.settings import Limits, Model, Run, Start, documented
from symrelu.fitted.history import Status
from symrelu.fitted.models import SymmetricReLU, check_exclude, largest
from symrelu.fitted.solution import Solution
from symrelu.graphs.degrees import root_degrees
from symrelu.kernels.memory import batches
from symrelu.problem import Problem
from symrelu.validation import NothingObserved, check_integer, check_number


@documented
class LinkPredictor(NamedQueriesMixin, DecompositionEstimator):
    r"""Score pairs of nodes of a graph by how likely they are linked.

    The adjacency matrix B is normalised by regularised degrees,

    .. math::

        N = D^{-1/2} B D^{-1/2}, \qquad D_i = \sum_j B_{ij} + \tau \, \text{mean degree},

    and factors of N ~ max(0, X) are fitted from several random starts, with few steps, a Tikhonov penalty and a
    low weight on the zeros. The score of a pair is :math:`X_{ij} \sqrt{D_i D_j}`, where X is the mean over the
    fits: the prediction of the model for :math:`B_{ij}`. A pair without a link carries little information,
    since its link may just not have been observed; hence the low weight. In the descriptions of the parameters,
    M stands for N.

    Parameters
    ----------
    n_components : int, default=16
        Number of columns of a factor, or the number of nodes if that is smaller.
    n_negative : setting
        At least one column stays positive. The first negative one acts as a threshold.
    alpha : setting
        It is relative to N, which does not depend on the scale of B and has no eigenvalue above 1, so one value
        serves all graphs. With 2 or more, the factor becomes zero.
    zero_weight : setting
        The zeros are the pairs without a link.
    degree_regularization : float, default=1.0
        Positive multiple of the mean degree that is added to each degree, :math:`\tau` above. It keeps nodes
        with few or no links from dominating N.
    init : setting
        An array requires ``n_init=1``.
    max_iter : setting
        The limit holds for each fit. Reaching it is normal and gives no warning: a closer fit to the observed
        links does not predict others better.
    max_time : setting
        The limit holds for each fit.
    n_init : int, default=5
        Number of fits from different seeds. X is their mean, which depends less on the seed and, if links are
        few, predicts better than any single fit.
    n_jobs : int, optional
        Number of fits that run in parallel, as in scikit-learn.

    Attributes
    ----------
    embedding_ : ndarray of shape (n_nodes, n_init * n_components)
        The factors of all fits side by side, divided by the square root of ``n_init``: a factor U of the mean
        X.
    signature_ : ndarray of shape (n_init * n_components,)
        Signs of its columns, the negative ones last.
    root_degrees_ : ndarray of shape (n_nodes,)
        Square roots of the regularised degrees D. The score of a pair is
        ``(U[i] * signature_) @ U[j] * root_degrees_[i] * root_degrees_[j]``.
    known_ : csr_array of bool of shape (n_nodes, n_nodes)
        The links in the input of ``fit``, in both directions.
    reconstruction_err_ : float
        ||N - max(0, X)||_F over the pairs that are not masked.
    relative_error_ : float
        ``reconstruction_err_`` divided by ||N||_F.
    n_iter_ : int
        Number of steps of the longest fit.
    converged_ : bool
        Whether all fits met a convergence test.
    stop_reason_ : str
        Why the fits stopped: the reason of one that did not converge, if there is one.
    history_ : History
        The history of the first fit.
    solution_ : Solution
        The complete result for N.
    latest_record_ : Record
        The latest row of the history, for callbacks (``set_callbacks``) while a single fit runs.
    node_names_ : ndarray of object of shape (n_nodes,)
        Names of the nodes, if the input has names. ``score_pairs``, ``reconstruct`` and ``top_k`` then take
        names too.
    n_features_in_ : int
        Number of nodes.
    feature_names_in_ : ndarray of str
        Their names, if the input has names that are strings.

    See Also
    --------
    symrelu.SymReLU : The factor of a similarity matrix as it is.

    Notes
    -----
    Self loops are ignored: they are not counted in the degrees, not fitted, and never predicted.

    In the descriptions of ``score_pairs``, ``reconstruct`` and ``top_k``, X and M stand for the scores and B.

    Examples
    --------
    Two groups of nodes; one link inside a group is missing:

    >>> import numpy as np
    >>> from symrelu import LinkPredictor
    >>> B = np.kron(np.eye(2), np.ones((10, 10)))
    >>> B[0, 1] = B[1, 0] = 0
    >>> predictor = LinkPredictor(4, random_state=0).fit(B)
    >>> pairs, scores = predictor.top_links(1)
    >>> pairs.tolist()
    [[0, 1]]
    >>> inside, across = predictor.score_pairs([0, 0], [1, 15])
    >>> bool(inside > across)
    True
    """

    _expected_stops = (Status.MAX_ITER, Status.ROUNDING)

    def __init__(
        self,
        n_components: int = 16,
        *,
        n_negative: int | str = 1,
        alpha: float = 0.2,
        zero_weight: float = 0.1,
        support: str = Model.support,
        degree_regularization: float = 1.0,
        solver: Any = Run.solver,
        init: Any = "random",
        tol: float = Limits.tol,
        gtol: float = Limits.gtol,
        ftol: float = Limits.ftol,
        max_iter: int = 20,
        max_time: float | None = Limits.max_time,
        random_state: Any = Start.random_state,
        backend: str = Run.backend,
        n_init: int = 5,
        n_jobs: int | None = None,
        verbose: int = Run.verbose,
    ) -> None:
        self.n_components = n_components
        self.n_negative = n_negative
        self.alpha = alpha
        self.zero_weight = zero_weight
        self.support = support
        self.degree_regularization = degree_regularization
        self.solver = solver
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
        self.verbose = verbose

    @whole_or_not_at_all
    @with_callbacks  # type: ignore[untyped-decorator]
    def fit(self, X: Any, y: Any = None, *, mask: Any | None = None) -> LinkPredictor:
        """Fit the model to the links of a graph.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_nodes, n_nodes), or a graph
            Adjacency matrix B, symmetric and nonnegative, binary or weighted; or anything that
            :func:`symrelu.graphs.as_similarity` reads.
        y : None
            Ignored.
        mask : sparse or dense bool matrix of shape (n_nodes, n_nodes), optional
            True where it is unknown whether there is a link. Such pairs are neither fitted nor counted in the
            degrees, regardless of their value in X.

        Returns
        -------
        self : LinkPredictor
        """
        del y
        settings = self._settings()
        tau = check_number("degree_regularization", self.degree_regularization, low_included=False)
        rank = check_integer("n_components", self.n_components, 1)
        try:
            links = self._problem(X, mask, "ignore")
        except NothingObserved as error:
            raise ValueError(
                "X must have a link between two different nodes, but outside its diagonal and mask all entries "
                "are zero: there is nothing to learn from."
            ) from error
        rank = min(rank, links.n)
        settings["n_negative"] = self._n_negative_below(rank)
        B = links.scaled
        roots = root_degrees(B, tau)
        # Set before the fit, so that callbacks can query the estimator at each step.
        self.known_ = sparse.csr_array(B, dtype=bool)
        # A Problem scales B by 4^-exponent, and thus the roots of its degrees by 2^-exponent.
        self.root_degrees_ = np.ldexp(roots, links.exponent).astype(links.dtype)
        self._decompose(X, links.divided(roots), rank, diagonal="ignore", **settings)
        return self

    def _check_n_items(self, n: int) -> None:
        if n < 2:
            raise ValueError(f"X must have at least 2 nodes, since a link joins two, got n_samples = {n}.")

    def _combine_fits(self, fits: list[Solution], problem: Problem) -> Solution:
        """Return the mean of the fits, which predicts better than the fit with the lowest objective."""
        unusual = max(fits, key=lambda fit: (not fit.converged, fit.status not in self._expected_stops))
        return replace(mean_solution(fits, problem, self.backend), status=unusual.status)

    def top_k(self, nodes: Any, k: int, *, exclude_known: bool = True, exclude: Any | None = None) -> Ranking:
        """Return for each node the k other nodes with the largest scores.

        Parameters
        ----------
        nodes : array-like of int, or names
            Indices of nodes, or their names if the input of ``fit`` had names. Numbers always mean indices; see
            :meth:`index_of` for names that are numbers.
        k : int
        exclude_known : bool, default=True
            Whether to leave out the links in the input of ``fit``.
        exclude : sparse or dense matrix of shape (n_nodes, n_nodes), optional
            Pairs with a nonzero entry are left out too.

        Returns
        -------
        items : ndarray of shape (len(nodes), k)
            In descending order of score; ties go to the lower index. Names if ``nodes`` are names, and None if
            there are fewer than k; otherwise indices, and -1 if there are fewer than k.
        scores : ndarray of shape (len(nodes), k)
            Their scores; minus infinity if there are fewer than k.

        Notes
        -----
        The two are a named tuple, whose method ``to_frame`` returns a table with the columns ``node``, ``item``
        and ``score``, with names if the input of ``fit`` had names.
        """
        return super().top_k(nodes, k, exclude=self._excluded(exclude_known, exclude))

    def top_links(self, k: int, *, exclude_known: bool = True, exclude: Any | None = None) -> Links:
        """Return the k pairs with the largest scores in the whole graph.

        All pairs are scored in batches of rows, within scikit-learn's ``working_memory`` (plus memory for k
        pairs).

        Parameters
        ----------
        k : int
        exclude_known : bool, default=True
            Whether to leave out the links in the input of ``fit``.
        exclude : sparse or dense matrix of shape (n_nodes, n_nodes), optional
            Pairs with a nonzero entry, in either direction, are left out too.

        Returns
        -------
        pairs : ndarray of int of shape (k, 2)
            In descending order of score; ties go to the lower indices. The lower index of a pair comes first.
            Fewer than k rows if there are fewer pairs.
        scores : ndarray of shape (k,)
            Their scores.

        Notes
        -----
        The two are a named tuple. If the input of ``fit`` had names, its attribute ``names`` holds those of the
        pairs. Its method ``to_frame`` returns a table with the columns ``first``, ``second`` and ``score``.
        """
        model = self._model
        left, right = model.left, model.right
        check_integer("k", k, 1)
        excluded = self._excluded(exclude_known, exclude)
        if excluded is not None:
            excluded = sparse.csr_array(excluded + excluded.T)
        n = len(left)
        pairs, scores = np.empty((0, 2), np.int64), np.empty(0, left.dtype)
        # Peak memory is five times the block: the scores, the better ones, their places, and copies to sort.
        for batch in batches(n - 1, 5 * n * left.dtype.itemsize):
            first = batch.start
            block = left[batch] @ right[first:].T
            block[np.arange(n - first) <= np.arange(len(block))[:, None]] = -np.inf  # only pairs i < j
            if excluded is not None:
                block[excluded[batch, first:].nonzero()] = -np.inf
            # Pairs are visited in the order of their indices, so a score equal to the k-th best loses the tie.
            better = np.flatnonzero(block > (scores[-1] if len(scores) == k else -np.inf))
            better = better[largest(block.ravel()[better], k)]
            new = first + np.stack(np.divmod(better, block.shape[1]), axis=1)
            scores = np.concatenate([scores, block.ravel()[better]])
            best = largest(scores, k)
            pairs, scores = np.concatenate([pairs, new])[best], scores[best]
        return Links.of(pairs, scores, getattr(self, "node_names_", None))

    def _excluded(self, exclude_known: bool, exclude: Any | None) -> Any | None:
        """Return the pairs to leave out, or None if there are none."""
        check_is_fitted(self, "embedding_")
        known = self.known_ if exclude_known else None
        if exclude is None:
            return known
        others = check_exclude(exclude, self.known_.shape[0]).astype(bool)
        return others if known is None else sparse.csr_array(known + others)

    @property
    def _model(self) -> SymmetricReLU:
        check_is_fitted(self, "embedding_")
        embedding, roots = self.embedding_, self.root_degrees_
        cached = getattr(self, "_cached_model", None)
        if cached is None or cached.embedding is not embedding or cached.roots is not roots:
            model = SymmetricReLU(embedding * roots[:, None], self.signature_)
            cached = self._cached_model = _CachedModel(embedding, roots, model)
        return cached.model


class _CachedModel(NamedTuple):
    """The model that answers queries, and the arrays it was built from, to detect that they changed."""

    embedding: np.ndarray
    roots: np.ndarray
    model: SymmetricReLU
