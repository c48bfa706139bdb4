"""The common part of SymHALS and SymANLS: symmetric NMF with two factors, coupled by a penalty.

    minimise over U, V >= 0:   1/2 ||M - U V^T||^2 + coupling/2 ||U - V||^2

Both update U for fixed V and then V for fixed U, which is a nonnegative least-squares problem in each row. They
differ only in how accurately they solve it. The paper evaluates them by U U^T.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from symrelu.baselines.linear import LinearModelOperator, half_square_distance
from symrelu.fit.loop import Callback, run
from symrelu.fit.observers import HistoryKeeper, callers
from symrelu.fit.settings import Limits, Run, Start, check_rank, documented
from symrelu.fitted.models import Linear
from symrelu.fitted.solution import Solution
from symrelu.kernels.threads import single_threaded_blas
from symrelu.operators.base import Operator
from symrelu.problem import Problem, complete
from symrelu.solvers.base import Factor, State, check_range
from symrelu.validation import (
    check_callback,
    check_start,
    random_generator,
)


@dataclass(frozen=True, eq=False, kw_only=True)
class CoupledState(State):
    """State between sweeps: both factors, and the product that the next sweep needs."""

    V: Factor
    product: Factor  # M V


@dataclass(frozen=True)
class CoupledSolver(ABC):
    """Alternating updates of U and V; subclasses define how the least-squares problem is solved.

    Parameters
    ----------
    coupling : float
        Weight of ||U - V||^2 / 2.
    """

    State = CoupledState
    requires = frozenset({"loss_from_product"})
    unsupported_advice = "It fits the model without a ReLU: pass it to baselines.symmetric_nmf."

    coupling: float = 0.66

    def __post_init__(self) -> None:
        check_range(self, "coupling", 0, math.inf, low_included=False)

    @abstractmethod
    def _update(self, gram: Any, target: Any, factor: Any) -> Any:
        """Decrease 1/2 <X gram, X> - <target, X> over X >= 0, starting from X = factor."""

    def init(self, op: Operator, U0: Any) -> CoupledState:
        """Start from U = V = U0."""
        product = op.matmul(U0)
        return self._state(op, U0, U0, product, product)

    def step(self, op: Operator, state: CoupledState) -> CoupledState:
        """Update U, then V."""
        U = self._solve(state.V, state.product, state.U)
        product_with_U = op.matmul(U)
        V = self._solve(U, product_with_U, state.V)
        return self._state(op, U, V, product_with_U, op.matmul(V))

    def _solve(self, fixed: Any, product: Any, factor: Any) -> Any:
        gram, target = self._normal_equations(fixed, product)
        return self._update(gram, target, factor)

    def _normal_equations(self, fixed: Any, product: Any) -> tuple[Any, Any]:
        """Return fixed^T fixed + coupling I and M fixed + coupling fixed."""
        gram = fixed.T @ fixed + self.coupling * np.eye(fixed.shape[1], dtype=fixed.dtype)
        return gram, product + self.coupling * fixed

    def _state(self, op: Operator, U: Any, V: Any, product_with_U: Any, product: Any) -> CoupledState:
        assert isinstance(op, LinearModelOperator)
        distance = float(np.sum(np.square(U - V), dtype=np.float64))
        fit = half_square_distance(op.norm, product, U, U.T @ U, V.T @ V)
        # The reported loss is that of U U^T; the coupled objective belongs to U V^T.
        loss = op.loss_from_product(U, product_with_U)
        norms = (
            self._projected_gradient_norm(U, V, product),
            self._projected_gradient_norm(V, U, product_with_U),
        )
        return CoupledState(
            U=U,
            objective=fit + self.coupling / 2 * distance,
            gradient_norm=math.hypot(*norms),
            latent_loss=loss,
            loss=loss,
            latent_norm=op.norm,
            V=V,
            product=product,
        )

    def _projected_gradient_norm(self, free: Any, fixed: Any, product: Any) -> float:
        """Return the norm of the projected gradient with respect to ``free``."""
        gram, target = self._normal_equations(fixed, product)
        gradient = free @ gram - target
        # At the bound, only a negative derivative points to a decrease.
        return float(np.linalg.norm(np.where(free > 0, gradient, np.minimum(gradient, 0))))


@documented
def symmetric_nmf(
    M: Any,
    rank: int,
    solver: CoupledSolver,
    *,
    init: Any | None = None,
    tol: float = Limits.tol,
    gtol: float = 1e-6,
    ftol: float = Limits.ftol,
    max_iter: int = Limits.max_iter,
    max_time: float | None = Limits.max_time,
    random_state: Any = Start.random_state,
    callback: Callback | None = Run.callback,
) -> Solution:
    """Fit M ~ U U^T with U >= 0, without a ReLU.

    Parameters
    ----------
    M : sparse matrix, sparse array or array-like of shape (n, n)
        Nonnegative and symmetric. Sparse input never becomes n x n.
    solver : CoupledSolver
        ``SymHALS()`` or ``SymANLS()``.
    init : array-like of shape (n, rank), optional
        Nonnegative starting point of both factors; by default uniform random numbers.
    gtol : setting
        The gradient is the projected gradient of the coupled objective, and alpha is 0.
    max_iter : setting
        A step updates both factors.

    Returns
    -------
    solution : Solution
        ``relative_error`` is ||M - U U^T|| / ||M||; ``objective`` is the coupled objective. An evaluation is
        a product with M.

    Examples
    --------
    >>> from symrelu.baselines import SymHALS, symmetric_nmf
    >>> from symrelu.datasets import make_relu_gram
    >>> M, _ = make_relu_gram(40, 3, random_state=0)
    >>> solution = symmetric_nmf(M, 5, SymHALS(), max_iter=50, random_state=0)
    >>> bool((solution.U >= 0).all())
    True
    """
    limits = Limits(tol=tol, gtol=gtol, ftol=ftol, max_iter=max_iter, max_time=max_time)
    if not isinstance(solver, CoupledSolver):
        raise TypeError(f"solver must be SymHALS() or SymANLS(), got {solver!r}.")
    check_callback(callback)
    problem = complete(M)
    rank = check_rank(rank, problem.n)
    U0 = _start(problem, rank, init, random_state)
    k = problem.exponent
    # M is divided by 4^k and the factors by 2^k, so the penalty has to be scaled too.
    in_scaled_units = replace(solver, coupling=math.ldexp(solver.coupling, -2 * k))
    with single_threaded_blas():
        op = LinearModelOperator(problem.scaled, np.ones(rank))
        history = HistoryKeeper()
        observers = [history, *callers(callback)]
        outcome = run(op, in_scaled_units, np.ldexp(U0, -k), limits, observers=observers, exponent=k)
    model = Linear(outcome.U, outcome.signature)
    return Solution.of(outcome, model, history=history.history(), solver=repr(solver))


def _start(problem: Problem, rank: int, init: Any | None, random_state: Any) -> np.ndarray:
    n, dtype = problem.n, problem.dtype
    if init is None:
        # rand(n, rank), as published; times a power of two if M is not of order one.
        U0 = np.asarray(random_generator(random_state).random((n, rank)), dtype=dtype)
        return np.ldexp(U0, problem.exponent)
    U0 = check_start(init, n, rank, dtype)
    if (U0 < 0).any():
        raise ValueError(f"init must be nonnegative for symmetric NMF, got an entry {U0.min():g}.")
    return U0
