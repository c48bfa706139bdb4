"""3B-NMD: the ReLU model with two independent factors, M ~ max(0, U V^T), by three alternating blocks.

    minimise over Z, U, V:   1/2 ||Z - U V^T||^2   with max(0, Z) = M

The objective is minimised exactly over Z, U and V in turn, with the other two fixed. Z and the product U V^T
are extrapolated. The result is not symmetric in general, even if M is.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from symrelu.fit.loop import Callback, run
from symrelu.fit.observers import HistoryKeeper, callers
from symrelu.fit.settings import Limits, Run, Start, check_rank, documented
from symrelu.fit.starts import start
from symrelu.fitted.models import TwoFactor
from symrelu.fitted.solution import Solution
from symrelu.kernels.threads import single_threaded_blas
from symrelu.operators.base import Evaluation, Operator
from symrelu.operators.host import HostOperator
from symrelu.problem import Problem, complete
from symrelu.solvers.base import State, check_range, square_norm
from symrelu.validation import as_array, check_callback, check_memory, check_start

# M, two matrices in each of the states that the loop holds (old, new and best), and those of a pass.
_MATRICES_HELD = 10


class TwoFactorOperator(HostOperator):
    """The model M ~ max(0, U V^T) for a dense M, which only :class:`ThreeBlock` can fit.

    The loop handles a single factor, so both are stacked: [U; V], of shape (2n, rank).

    Parameters
    ----------
    M : ndarray of shape (n, n)
    rank : int
    """

    def __init__(self, M: np.ndarray, rank: int) -> None:
        norm = float(np.linalg.norm(M.astype(np.float64, copy=False)))
        super().__init__(n=len(M), dtype=M.dtype, norm=norm, signature=np.ones(rank))
        self.M = M

    def matmul(self, V: np.ndarray) -> np.ndarray:
        return self.M @ V

    def latent(self, P: np.ndarray) -> np.ndarray:
        """Return the W nearest to P with max(0, W) = M: M on its support, min(0, P) elsewhere."""
        return np.where(self.M > 0, self.M, np.minimum(P, 0))

    def evaluate(self, U: np.ndarray, V: np.ndarray) -> tuple[np.ndarray, Evaluation]:
        """Return P = U V^T and the results of a pass, whose product is [R V; R^T U] with R = W - P."""
        self.evaluations += 1
        P = U @ V.T
        W = self.latent(P)
        latent_norm_squared = square_norm(self, W)
        # W is no longer needed, so its memory is reused.
        R = np.subtract(W, P, out=W)
        evaluation = Evaluation(
            np.concatenate([R @ V, R.T @ U]),
            latent_loss=square_norm(self, R) / 2,
            # M - max(0, P) differs from R only where P < 0 on the support: there it is M, and R is larger.
            loss=square_norm(self, np.minimum(R, self.M)) / 2,
            latent_norm_squared=latent_norm_squared,
        )
        return P, evaluation

    def _evaluate(self, U: np.ndarray, V: np.ndarray | None) -> Evaluation:
        raise TypeError("This operator belongs to a model with two factors, which only ThreeBlock can fit.")


@dataclass(frozen=True, eq=False, kw_only=True)
class ThreeBlockState(State):
    """State between steps: [U; V], and the two extrapolated n x n matrices."""

    Z: Any  # extrapolated latent matrix
    T: Any  # extrapolated product


@dataclass(frozen=True)
class ThreeBlock:
    """Alternating minimisation over the latent matrix, U and V, with extrapolation.

    Parameters
    ----------
    momentum : float, default=0.7
        Weight in [0, 1] of the extrapolation. With 0 the latent loss never increases; near 1 the method may
        not converge.
    """

    State = ThreeBlockState
    requires = frozenset({"evaluate"})
    unsupported_advice = "It fits a model with two factors: use baselines.three_block_nmd."

    momentum: float = 0.7

    def __post_init__(self) -> None:
        check_range(self, "momentum", 0, 1)

    def init(self, op: Operator, U0: Any) -> ThreeBlockState:
        """Start from [U; V] = U0."""
        assert isinstance(op, TwoFactorOperator)
        P, evaluation = op.evaluate(*np.split(U0, 2))
        return self._state(U0, evaluation, Z=op.M, T=P)

    def step(self, op: Operator, state: ThreeBlockState) -> ThreeBlockState:
        """Update Z, then U, then V."""
        assert isinstance(op, TwoFactorOperator)
        # Both extrapolations start from the previous extrapolated matrices, not from the last minimisers.
        Z = self._extrapolated(op.latent(state.T), state.Z)
        U, V = alternate_once(Z, np.split(state.U, 2)[1])
        P, evaluation = op.evaluate(U, V)
        return self._state(np.concatenate([U, V]), evaluation, Z=Z, T=self._extrapolated(P, state.T))

    def _extrapolated(self, new: Any, old: Any) -> Any:
        """Return new + momentum (new - old), computed in place in ``new`` to save an n x n matrix."""
        # Both callers pass an array that nobody else uses.
        change = new - old
        change *= self.momentum
        new += change
        return new

    def _state(self, factors: Any, evaluation: Evaluation, Z: Any, T: Any) -> ThreeBlockState:
        return ThreeBlockState(
            U=factors,
            objective=evaluation.latent_loss,
            gradient_norm=float(np.linalg.norm(evaluation.product.astype(np.float64, copy=False))),
            latent_loss=evaluation.latent_loss,
            loss=evaluation.loss,
            latent_norm=evaluation.latent_norm,
            Z=Z,
            T=T,
        )


def alternate_once(Z: np.ndarray, V: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Minimise ||Z - U V^T|| over U for the given V, then over V; return both in a convenient basis.

    The method depends on a factor only through the space spanned by its columns, and on the product. So no
    system with the matrix V^T V, which may be singular, has to be solved: if the orthonormal columns of Q span
    V, the first minimiser spans Z Q. The columns of the returned U are orthogonal and of equal norm, and
    ||U|| = ||V||.

    Parameters
    ----------
    Z : ndarray of shape (n, n)
    V : ndarray of shape (n, rank)

    Returns
    -------
    U, V : ndarray of shape (n, rank)
    """
    Q = np.linalg.qr(V).Q
    Q = np.linalg.qr(Z @ Q).Q
    V = Z.T @ Q
    # Balances the norms of U and V; V is zero if Z is.
    length = math.sqrt(np.linalg.norm(V) / math.sqrt(V.shape[1])) or 1.0
    return Q * length, V / length


@documented
def three_block_nmd(
    M: Any,
    rank: int,
    *,
    momentum: float = 0.7,
    init: Any | None = None,
    random_state: Any = Start.random_state,
    tol: float = Limits.tol,
    gtol: float = 1e-6,
    ftol: float = Limits.ftol,
    max_iter: int = Limits.max_iter,
    max_time: float | None = Limits.max_time,
    callback: Callback | None = Run.callback,
) -> Solution:
    """Fit M ~ max(0, U V^T) by 3B-NMD, with twice as many parameters as the symmetric model.

    The extrapolated matrices are sums over all iterations and have no low rank, so about ten dense n x n
    matrices are held, even for a sparse M.

    Parameters
    ----------
    M : sparse matrix, sparse array or array-like of shape (n, n)
        Nonnegative and symmetric. Sparse input becomes n x n.
    rank : setting
        V has the same number of columns.
    momentum : float, default=0.7
        Weight in [0, 1] of the extrapolation. With 0 the latent loss never increases; near 1 the method may
        not converge.
    init : pair of array-likes of shape (n, rank), optional
        Starting factors (U, V); by default normal random numbers, scaled to M by least squares.
    gtol : setting
        The gradient is with respect to U and V, ||U|| is the norm of [U; V], and alpha is 0.
    callback : setting
        Its ``U`` is [U; V], of shape (2n, rank).

    Returns
    -------
    solution : Solution
        With both factors, ``U`` and ``V``. ``relative_error`` is ||M - max(0, U V^T)|| / ||M||.

    References
    ----------
    G. Seraghiti, A. Awari, A. Vandaele, M. Porcelli, N. Gillis, "Accelerated algorithms for nonlinear matrix
    decomposition with the ReLU function", IEEE MLSP, 2023.

    Examples
    --------
    >>> import numpy as np
    >>> from symrelu.baselines import three_block_nmd
    >>> from symrelu.datasets import make_relu_gram
    >>> M, _ = make_relu_gram(60, 3, random_state=0)
    >>> solution = three_block_nmd(M, 3, random_state=0)
    >>> bool(np.linalg.norm(M - np.maximum(0, solution.U @ solution.V.T)) < 1e-3 * np.linalg.norm(M))
    True
    """
    limits = Limits(tol=tol, gtol=gtol, ftol=ftol, max_iter=max_iter, max_time=max_time)
    solver = ThreeBlock(momentum=momentum)
    check_callback(callback)
    problem = complete(M)
    rank = check_rank(rank, problem.n)
    factors = None if init is None else check_pair(init, problem.n, rank, problem.dtype)
    _check_memory(problem)
    k = problem.exponent
    with single_threaded_blas():
        op = TwoFactorOperator(as_array(problem.scaled), rank)
        factors = _random_start(op, random_state) if factors is None else np.ldexp(factors, -k)
        history = HistoryKeeper()
        observers = [history, *callers(callback)]
        outcome = run(op, solver, factors, limits, observers=observers, exponent=k)
    model = TwoFactor(*np.split(outcome.U, 2))
    return Solution.of(outcome, model, history=history.history(), solver=repr(solver))


def check_pair(init: Any, n: int, rank: int, dtype: np.dtype[Any]) -> np.ndarray:
    """Return a starting pair (U, V) as [U; V], validated."""
    try:
        U0, V0 = init
    except (TypeError, ValueError):
        raise ValueError(
            f"init must be a pair (U, V) of arrays of shape (n, rank) = {(n, rank)}, got {type(init).__name__}."
        ) from None
    return np.concatenate([check_start(factor, n, rank, dtype) for factor in (U0, V0)])


def _check_memory(problem: Problem) -> None:
    n, dtype = problem.n, problem.dtype
    try:
        # Caught below, because its advice to pass a sparse matrix would not help here.
        check_memory((_MATRICES_HELD * n, n), dtype, "M")
    except MemoryError:
        raise MemoryError(
            f"3B-NMD holds about {_MATRICES_HELD} dense {n} x {n} matrices, "
            f"{_MATRICES_HELD * n * n * dtype.itemsize / 1e9:.1f} GB, more than is available. "
            "Use symrelu.decompose, which holds none of them."
        ) from None


def _random_start(op: TwoFactorOperator, random_state: Any) -> np.ndarray:
    """Return random normal [U; V], scaled such that U V^T is as close to M as possible."""
    side_by_side = start(op.with_signature(np.ones(2 * op.rank)), "random", random_state)
    U, V = np.split(side_by_side, 2, axis=1)
    inner = float(np.sum(op.matmul(V) * U, dtype=np.float64))
    square = float(np.sum((U.T @ U) * (V.T @ V), dtype=np.float64))
    # The least-squares factor may be negative; its sign goes to V.
    return np.concatenate([U, math.copysign(1.0, inner) * V]) * math.sqrt(abs(inner) / square)
