"""LinkPredictor: score pairs of nodes that are not linked yet, and evaluate these scores."""

from __future__ import annotations

from typing import Any, ClassVar

from scipy import sparse
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from symrelu.estimators.base import DecompositionEstimator, whole_or_not_at_all
from symrelu.estimators.callbacks import with_callbacks
from symrelu.estimators.naming import NamedQueriesMixin
from symrelu.estimators.rankings import Links, Ranking
from symrelu.estimators.saving import SavedModelMixin
from symrelu.estimators.searches import warn_of_alpha
from symrelu.fit.link_evaluation import LinkEvaluation, evaluate_scores, link_splits, split_generator
from symrelu.fit.normalised_graph import NormalisedGraph
from symrelu.fit.settings import Limits, Model, Run, Start, documented
from symrelu.fitted.answers import answers_of
from symrelu.fitted.fit_summary import FitSummary, stop_reason
from symrelu.fitted.history import Status
from symrelu.fitted.link_scores import LinkScores
from symrelu.fitted.models import check_exclude
from symrelu.fitted.solution import Solution
from symrelu.problem import Problem
from symrelu.validation import NothingObserved, check_choice, check_integer, check_number


@documented
class LinkPredictor(SavedModelMixin, NamedQueriesMixin, DecompositionEstimator):
    r"""Score pairs of nodes of a graph by how likely they are linked.

    The adjacency matrix B is normalised by regularised degrees,

    .. math::

        N = D^{-1/2} B D^{-1/2}, \qquad D_i = \sum_j B_{ij} + \tau \, \text{mean degree},

    and factors of N ~ max(0, X) are fitted from several random starts, with few steps, a Tikhonov penalty and a
    low weight on the zeros. With the mean X of the fits, the score of a pair is

    .. math::

        \sqrt{D_i D_j} \, \frac{X_{ij} + \sqrt{X_{ij}^2 + \sigma^2}}{2},

    where :math:`\sigma` is the root mean square of the entries of N. The fraction is a smooth version of
    max(0, X), so if X is well above :math:`\sigma`, the score is the prediction of the model for
    :math:`B_{ij}`. If X < 0 it still increases with both degrees, while a negative X multiplied by the degrees
    would rank nodes with many links last. A pair without a link carries little information, since its link may
    just not have been observed; hence the low weight. In the descriptions of the parameters, M stands for N.

    Parameters
    ----------
    n_components : int, default=16
        Number of columns of a factor, or the number of nodes if that is smaller.
    n_negative : setting
        At least one column stays positive. The first negative one acts as a threshold.
    shrinkage : float or "auto", default="auto"
        Strength of a penalty on U that shrinks the eigenvalues of X, as a fraction of the largest eigenvalue of
        N. 0 is no penalty; with 1 or more, the factor becomes zero. "auto" shrinks the eigenvalues
        by :math:`0.2 / (1 + \tau)` if the linked nodes have up to 4 links on average, and by
        :math:`(4 / \text{average})^{1/4}` of that if they have more, since denser graphs are less noisy. Here
        :math:`1 / (1 + \tau)` is the largest eigenvalue of N if all degrees are equal.
    alpha : float, optional
        Weight of the Tikhonov penalty of N. Deprecated, and an error together with ``shrinkage``: pass
        ``shrinkage`` instead.
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
        X. Its rows are features of the nodes, for example for a classifier; its columns differ in scale, so
        standardise them first.
    signature_ : ndarray of shape (n_init * n_components,)
        Signs of its columns, the negative ones last.
    root_degrees_ : ndarray of shape (n_nodes,)
        Square roots of the regularised degrees D.
    smoothing_ : float
        The root mean square of the entries of N, :math:`\sigma` above.
    shrinkage_ : float
        The shrinkage of the fits.
    link_scores_ : LinkScores
        The model that scores pairs, for queries by index such as :func:`symrelu.fitted.on_device.top_links`.
    known_ : csr_array of bool of shape (n_nodes, n_nodes)
        The links in the input of ``fit``, in both directions.
    fits_ : tuple of FitSummary
        How each fit went: its ``seed``, ``n_iter``, ``status`` and own ``relative_error``.
    relative_error_ : float
        ||N - max(0, X)||_F / ||N||_F of the mean X, over the pairs that are not masked.
    reconstruction_err_ : float
        ||N - max(0, X)||_F of the mean X.
    n_iter_ : int
        Number of steps of the longest fit.
    converged_ : bool
        Whether all fits met a convergence test.
    stop_reason_ : str
        Why the fits stopped, with the number of fits for each reason.
    history_ : History
        The history of the first fit.
    solution_ : Solution
        The mean as a result for N. Its status is that of a fit that did not converge, if there is one.
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
    Self loops are ignored: they are not counted in the degrees, not fitted, and never predicted. In the
    descriptions of ``score_pairs`` and ``reconstruct``, X and max(0, X) are the scores, and M is B.

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

    _saved_parts: ClassVar = {"links": True}
    _pictures: ClassVar = ("link_scores", "map", "spectrum", "convergence")
    _takes_the_mean = True
    _expected_stops = (Status.MAX_ITER, Status.ROUNDING)

    def __init__(
        self,
        n_components: int = 16,
        *,
        n_negative: int | str = 1,
        shrinkage: float | str = "auto",
        alpha: float | None = None,
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
        precision: str = Run.precision,
        client: str | None = Run.client,
        n_init: int = 5,
        n_jobs: int | None = None,
        verbose: int = Run.verbose,
    ) -> None:
        self.n_components = n_components
        self.n_negative = n_negative
        self.shrinkage = shrinkage
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
        self.precision = precision
        self.client = client
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
        tau = check_number("degree_regularization", self.degree_regularization, low_included=False)
        rank = check_integer("n_components", self.n_components, 1)
        links = self._links(X, mask)
        rank = min(rank, links.n)
        graph = NormalisedGraph.of(links, tau)
        # Set before the fit, so that callbacks can query the estimator at each step.
        self.known_, self.root_degrees_ = graph.links, graph.root_degrees
        self.smoothing_ = graph.root_mean_square
        passed = self._passed_shrinkage()
        settings = self._settings_for(graph.problem, graph.suggested_shrinkage if passed is None else passed)
        settings["n_negative"] = self._n_negative_below(rank)
        self.shrinkage_ = settings["alpha"] / graph.problem.alpha_of(1.0)
        if self.alpha is not None:
            # stacklevel=4: the caller of fit, past its decorators.
            warn_of_alpha(self, graph.problem, matrix="the normalised X", stacklevel=4)
        self._decompose(X, graph.problem, rank, **settings)
        return self

    def evaluate(
        self,
        X: Any,
        *,
        mask: Any | None = None,
        fraction: float = 0.1,
        n_splits: int = 5,
        random_state: Any = 0,
    ) -> LinkEvaluation:
        """Hide links of a graph, fit the rest, and report how well the hidden links are predicted.

        In each split, a random share of the links becomes zeros of the training graph, which keeps the weights
        of the others. A clone of this estimator is fitted to it and scores the hidden links and as many
        negatives, pairs without a link in the whole graph: once drawn uniformly, and once in proportion to the
        product of the numbers of links of both nodes. The estimator itself does not change.

        Parameters
        ----------
        X, mask
            As for :meth:`fit`. Masked pairs are neither hidden nor negatives.
        fraction : float, default=0.1
            Share of the links to hide, in (0, 0.99].
        n_splits : int, default=5
            Number of splits, each with its own fit.
        random_state : None, int, Generator or RandomState, default=0
            Seed of the splits. With the same one, estimators with different settings are compared on the same
            pairs.

        Returns
        -------
        evaluation : LinkEvaluation
            AUC, average precision, ``Hits@50`` and MRR, as a mean and for each split. ``print`` shows a table.
        """
        fraction = check_number("fraction", fraction, 0, 0.99, low_included=False)
        check_integer("n_splits", n_splits, 1)
        predictor = clone(self)
        links = predictor._links(X, mask)
        rng = split_generator(random_state)
        splits = []
        for split in link_splits(links, fraction, n_splits, rng):
            predictor.fit(split.train, mask=links.mask)
            if predictor.solution_.status is Status.INTERRUPTED:
                # The fit took Ctrl-C as a wish for the result so far, which would evaluate other settings.
                raise KeyboardInterrupt
            splits.append(evaluate_scores(predictor.score_pairs, split))
        return LinkEvaluation(tuple(splits), split.links.shape[1], len(links.positive_pairs()[0]))

    def _links(self, X: Any, mask: Any | None) -> Problem:
        """Return the graph in X, with its diagonal ignored."""
        try:
            return self._problem(X, mask, "ignore")
        except NothingObserved as error:
            raise ValueError(
                "X must have a link between two different nodes, but outside its diagonal and mask all entries "
                "are zero: there is nothing to learn from."
            ) from error

    def _check_n_items(self, n: int) -> None:
        if n < 2:
            raise ValueError(f"X must have at least 2 nodes, since a link joins two, got n_samples = {n}.")

    def _passed_shrinkage(self) -> float | None:
        if isinstance(self.shrinkage, str):
            check_choice("shrinkage", self.shrinkage, ("auto",), "a number")
            return None
        return check_number("shrinkage", self.shrinkage)

    def _keep_fits(self, fits: list[Solution], seeds: list[Any]) -> None:
        # Ctrl-C or a callback may have ended the fits before all seeds were used.
        self.fits_ = tuple(FitSummary.of(fit, seed) for fit, seed in zip(fits, seeds, strict=False))

    def _stop_reason(self, solution: Solution) -> str:
        return stop_reason(self.fits_)

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
        pairs), or with ``backend="cuda"`` on the GPU.

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
        answers = answers_of(self.link_scores_, self.backend)
        pairs, scores = answers.top_links(k, exclude=self._excluded(exclude_known, exclude))
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
    def link_scores_(self) -> LinkScores:
        """The model that scores pairs."""
        check_is_fitted(self, "embedding_")
        embedding, roots = self.embedding_, self.root_degrees_
        cached = getattr(self, "_cached_model", None)
        if cached is None or cached.U is not embedding or cached.root_degrees is not roots:
            cached = self._cached_model = LinkScores(embedding, self.signature_, roots, self.smoothing_)
        return cached

    _model = link_scores_  # by which the queries answer
