"""LPCA: logistic principal components of a graph with two independent factors.

    minimise over U, V:   sum over pairs of log(1 + exp(-(2 M_ij - 1) X_ij)),   X = U V^T

A link is predicted where X > 0. If the minimisation separates links from other pairs, the factors represent the
graph exactly, and the loss approaches zero as they grow: nothing bounds or penalises them. The method is
scipy's L-BFGS-B from uniform random numbers in [-1, 1], as published.
"""

from __future__ import annotations

import math
import time
from typing import Any, NamedTuple

import numpy as np
from scipy import optimize, sparse

from symrelu.baselines.three_block import check_pair
from symrelu.fit.loop import Callback, FitProgress
from symrelu.fit.settings import Limits, Run, Start, check_rank, documented
from symrelu.fitted.history import History, Record, Status
from symrelu.fitted.logistic import Logistic
from symrelu.fitted.solution import Solution
from symrelu.kernels.memory import rows_per_worker
from symrelu.kernels.threads import kept_threads, run_tasks, single_threaded_blas, slices, workers_for
from symrelu.problem import complete
from symrelu.validation import DIAGONALS, check_callback, check_choice, random_generator, stored

# Number of parts into which the rows are divided. It is fixed, and the gradients of the parts are added in
# order, so that the digits do not depend on the number of threads.
_PARTS = 16
_ROWS_AT_ONCE = 32  # their pairs stay in the cache while a dozen operations pass over them
_ARRAYS_OF_PAIRS = 3
_WORK_OF_A_PAIR = 40  # exp and log, in multiplications of a matrix product


class LogisticPass(NamedTuple):
    """The results of a pass over all pairs.

    Attributes
    ----------
    loss : float
        The logistic loss.
    gradient : ndarray of shape (2 n, rank)
        With respect to [U; V].
    squares : float
        Sum of the squares of M - 1 / (1 + exp(-X)).
    """

    loss: float
    gradient: np.ndarray
    squares: float


class LogisticLoss:
    """The logistic loss of a graph. No n x n array is formed.

    Parameters
    ----------
    links : csr_array of shape (n, n)
        The links are its stored entries.
    diagonal : {"fit", "ignore"}
        Whether self-pairs count.
    """

    def __init__(self, links: Any, diagonal: str) -> None:
        self.n = links.shape[0]
        self._indptr, self._indices = links.indptr, links.indices
        self._without_self_pairs = diagonal == "ignore"

    def evaluate(self, factors: np.ndarray) -> LogisticPass:
        """Return the loss at [U; V] and its gradient."""
        n, rank = self.n, factors.shape[1]
        U, V = np.split(factors, 2)
        parts = slices(n, math.ceil(n / _PARTS))
        gradient = np.empty_like(factors)
        gradients_of_V = np.zeros((len(parts), n, rank))
        sums = np.zeros((len(parts), 2))
        at_once, workers = rows_per_worker(_ARRAYS_OF_PAIRS * n * factors.itemsize, _ROWS_AT_ONCE)

        @np.errstate(over="ignore", invalid="ignore")  # each thread has its own; L-BFGS-B rejects such points
        def work(k: int) -> None:
            begin, end = parts[k].start, parts[k].stop
            for first in range(begin, end, at_once):
                rows = slice(first, min(first + at_once, end))
                loss, errors = self._loss_and_errors(U, V, rows)
                gradient[rows] = errors @ V
                gradients_of_V[k] += errors.T @ U[rows]
                sums[k] += loss, np.vdot(errors, errors)

        run_tasks(work, range(len(parts)), min(workers, workers_for(n * n * (3 * rank + _WORK_OF_A_PAIR))))
        gradients_of_V.sum(axis=0, out=gradient[n:])
        loss, squares = sums.sum(axis=0)
        return LogisticPass(float(loss), gradient, float(squares))

    def _loss_and_errors(self, U: np.ndarray, V: np.ndarray, rows: slice) -> tuple[float, np.ndarray]:
        """Return the loss of some rows and its derivative by X, which is 1 / (1 + exp(-X)) - M."""
        X = U[rows] @ V.T
        if self._without_self_pairs:
            # A pair that is certain not to be a link adds nothing to the loss and its gradient.
            X[np.arange(len(X)), np.arange(rows.start, rows.stop)] = -np.inf
        indptr = self._indptr[rows.start : rows.stop + 1]
        links = np.repeat(np.arange(len(X)), np.diff(indptr)), self._indices[indptr[0] : indptr[-1]]
        loss = -X[links].sum()
        # exp(-|X|) cannot overflow: log(1 + exp(X)) = max(X, 0) + log(1 + exp(-|X|)).
        P = np.abs(X)
        np.exp(np.negative(P, out=P), out=P)
        denominator = 1 + P
        np.copyto(P, 1, where=X > 0)
        P /= denominator
        P[links] -= 1
        loss += np.maximum(X, 0, out=X).sum()
        # Not log1p, which is several times slower: an error of eps for each pair is far below the tolerances.
        loss += np.log(denominator, out=denominator).sum()
        return float(loss), P


class _Accepted(NamedTuple):
    """A point that L-BFGS-B accepted: one value, because Ctrl-C can interrupt between any two lines."""

    factors: np.ndarray
    passed: LogisticPass
    record: Record


class _Minimisation:
    """One call of L-BFGS-B, which runs its own loop."""

    def __init__(self, loss: LogisticLoss, rank: int, norm: float, limits: Limits, callback: Callback | None):
        self.accepted: _Accepted | None = None
        self._records: list[Record] = []
        self.evaluations = 0
        self._loss, self._rank, self._norm = loss, rank, norm
        self._limits, self._callback = limits, callback
        self._stopped: Status | None = None
        self._began = time.perf_counter()

    def run(self, factors: np.ndarray) -> Status:
        """Minimise from [U; V] and return why the minimisation stopped."""
        limits = self._limits
        options = {
            "maxiter": limits.max_iter,
            "maxfun": math.inf,
            "ftol": limits.ftol,
            "gtol": limits.gtol,
        }
        try:
            result = optimize.minimize(
                self._evaluate,
                factors.ravel(),
                method="L-BFGS-B",
                jac=True,
                callback=self._accept,
                options=options,
            )
        except KeyboardInterrupt:
            if self.accepted is None:  # there are no factors to return yet
                raise
            return Status.INTERRUPTED
        return self._stopped or self._status(result)

    def _evaluate(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        passed = self._loss.evaluate(x.reshape(-1, self._rank))
        self.evaluations += 1
        self._latest = x.copy(), passed
        if self.accepted is None:
            if not (math.isfinite(passed.loss) and np.isfinite(passed.gradient).all()):
                raise ValueError(
                    "init must have a finite loss and gradient, got entries of magnitude up to "
                    f"{np.abs(x).max():.3g}. Scale init down."
                )
            self._record()
        return passed.loss, passed.gradient.ravel()

    def _accept(self, x: np.ndarray) -> None:
        """Record a step and call the callback; scipy takes StopIteration as a request to stop."""
        self._record()
        if self._callback is not None:
            before = time.perf_counter()
            if self._callback(self._progress(x)):
                self._stopped = Status.CALLBACK
            self._began += time.perf_counter() - before  # the history does not count callbacks
        limit = self._limits.max_time
        if self._stopped is None and limit is not None and self._records[-1].seconds >= limit:
            self._stopped = Status.MAX_TIME
        if self._stopped is not None:
            raise StopIteration

    def _record(self) -> None:
        # The point that a line search accepts is the last one at which it evaluated.
        x, passed = self._latest
        record = Record(
            iteration=len(self._records),
            evaluations=self.evaluations,
            seconds=time.perf_counter() - self._began,
            relative_error=math.sqrt(passed.squares) / self._norm,
            latent_loss=passed.loss,
            objective=passed.loss,
            gradient_norm=float(np.linalg.norm(passed.gradient)),
        )
        self._records.append(record)
        self.accepted = _Accepted(x.reshape(-1, self._rank), passed, record)

    def history(self) -> History:
        """Return the records up to the accepted point."""
        assert self.accepted is not None
        return History.from_records(self._records[: self.accepted.record.iteration + 1])

    def _progress(self, x: np.ndarray) -> FitProgress:
        factors = x.reshape(-1, self._rank).copy()  # a callback cannot change the fit
        return FitProgress(self._records[-1], factors, self._limits, np.ones(self._rank), self._norm)

    def _status(self, result: Any) -> Status:
        if result.status == 1:
            return Status.MAX_ITER
        if result.status == 2:  # the line search found no lower value
            return Status.ROUNDING
        return Status.GRADIENT if np.abs(result.jac).max() <= self._limits.gtol else Status.PLATEAU


@documented
def logistic_pca(
    M: Any,
    rank: int,
    *,
    diagonal: str = "ignore",
    init: Any | None = None,
    random_state: Any = Start.random_state,
    gtol: float = 1e-5,
    ftol: float = 2.22e-9,
    max_iter: int = 2000,
    max_time: float | None = Limits.max_time,
    callback: Callback | None = Run.callback,
) -> Solution:
    """Fit a graph by logistic PCA with two factors (LPCA): a link where U V^T > 0.

    Minimises the sum over all pairs of log(1 + exp(-(2 M_ij - 1) X_ij)), X = U V^T. X need not be symmetric,
    even though M is: i and j are represented correctly if both X_ij and X_ji have the right sign. A graph with
    maximum degree c has an exact representation with 2c + 1 columns.

    Parameters
    ----------
    M : sparse matrix, sparse array or array-like of shape (n, n)
        Symmetric, zeros and ones. Sparse input never becomes n x n.
    rank : setting
        V has the same number of columns, so there are twice as many parameters as in the symmetric model.
    diagonal : {"fit", "ignore"}, default="ignore"
        "fit" also requires X_ii < 0 for a node without a self-link, as published. "ignore" drops this, which
        makes an exact representation easier.
    init : pair of array-likes of shape (n, rank), optional
        Starting factors (U, V); by default uniform random numbers in [-1, 1].
    gtol : float, default=1e-5
        Stop when no entry of the gradient is larger than gtol. The defaults of gtol and ftol are scipy's.
    ftol : float, default=2.22e-9
        Stop when a step decreases the loss by at most ftol max(loss, 1).
    callback : setting
        Its ``U`` is [U; V], of shape (2n, rank).

    Returns
    -------
    solution : Solution
        With both factors, ``U`` and ``V``. ``objective`` is the logistic loss, ``relative_error`` is
        ||M - P|| / ||M|| with the probabilities P = 1 / (1 + exp(-X)). The fit itself is in float64.

    References
    ----------
    S. Chanpuriya, C. Musco, K. Sotiropoulos, C. Tsourakakis, "Node Embeddings and Exact Low-Rank
    Representations of Complex Networks", NeurIPS, 2020.

    Examples
    --------
    >>> import numpy as np
    >>> from symrelu.baselines import logistic_pca
    >>> ring = np.roll(np.eye(12), 1, axis=1)
    >>> solution = logistic_pca(ring + ring.T, 5, random_state=0)
    >>> predicted = solution.U @ solution.V.T > 0
    >>> np.fill_diagonal(predicted, False)
    >>> bool((predicted == ring + ring.T).all())
    True
    """
    limits = Limits(tol=0.0, gtol=gtol, ftol=ftol, max_iter=max_iter, max_time=max_time)
    check_choice("diagonal", diagonal, DIAGONALS)
    check_callback(callback)
    problem = complete(M)
    rank = check_rank(rank, problem.n)
    links = _links(problem.M, diagonal)
    if init is None:
        factors = random_generator(random_state).uniform(-1, 1, (2 * problem.n, rank))
    else:
        factors = check_pair(init, problem.n, rank, np.dtype(np.float64))
    norm = math.sqrt(links.nnz)
    fit = _Minimisation(LogisticLoss(links, diagonal), rank, norm, limits, callback)
    with single_threaded_blas(), kept_threads():
        status = fit.run(factors)
    assert fit.accepted is not None
    factors, last, record = fit.accepted
    return Solution(
        model=Logistic(*np.split(factors.astype(problem.dtype), 2)),
        status=status,
        n_iter=record.iteration,
        n_evaluations=fit.evaluations,
        relative_error=record.relative_error,
        norm=norm,
        objective=last.loss,
        history=fit.history(),
        solver="logistic_pca",
        diagonal=diagonal,
    )


def _links(M: Any, diagonal: str) -> Any:
    """Return the links as a csr_array whose stored entries they are, or raise unless M holds zeros and ones."""
    values = stored(M)
    other = values[(values != 0) & (values != 1)]
    if other.size:
        raise ValueError(
            f"M must hold zeros and ones for LPCA, got {other.flat[0]:g}. Pass M > 0 to fit the graph of its "
            "nonzero entries."
        )
    rows, columns = M.nonzero()
    if diagonal == "ignore":
        rows, columns = rows[rows != columns], columns[rows != columns]
    if not len(rows):
        raise ValueError("M must have at least one link for LPCA, got none outside an ignored diagonal.")
    return sparse.csr_array((np.ones(len(rows), bool), (rows, columns)), shape=M.shape)
