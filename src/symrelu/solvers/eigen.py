"""Exact minimisation over U for fixed W, by eigenvectors.

For a given W the optimal U is known: the eigenvectors of W with the largest eigenvalues e, times
sqrt(max(e - alpha/2, 0)); for columns of negative sign those with the smallest eigenvalues, with -e in place
of e. A full eigendecomposition in each step would cost many products with W, and W changes with every step. So
the eigenvectors are tracked by a subspace iteration that starts from the previous ones.

With Q an orthonormal basis of the columns of U, and Z = W Q the one product of a step,

    W ~ Q Z^T + Z Q^T - Q (Q^T Z) Q^T,

the projection of W onto the tangent space, at X, of the matrices of this rank. Its eigenvectors lie in the span
of Q and Z, and are computed from a symmetric matrix of size 2 r. It neglects the part of W orthogonal to Q on
both sides. If that part is small, the step is nearly exact: the error along a neglected eigenvector shrinks by
the ratio of its eigenvalue to the kept one. If a neglected eigenvalue is the larger one in magnitude, the
iteration fails. A second product, of W with what Z adds to Q, then gives the Rayleigh-Ritz method, which
finds the best X in that span, never worse than the previous one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from symrelu.operators.base import Operator
from symrelu.solvers.base import Factor, State, Vector, check_count, check_range
from symrelu.solvers.momentum import extrapolate, extrapolation_weight


@dataclass(frozen=True, eq=False, kw_only=True)
class EigenState(State):
    """State of :class:`Eigen`. ``U`` is the extrapolated factor, where the single pass of a step is made."""

    basis: Factor  # Q, an orthonormal basis of the columns of U
    product: Factor  # R(U) Q
    eigenfactor: Factor  # U before the extrapolation
    since_restart: int
    eigenvalues: Vector  # of W in the span of Q and W Q, in descending order
    sweeps: int  # of the next step


@dataclass(frozen=True)
class Eigen:
    """Exact minimisation over U by eigenvectors of W, tracked by a subspace iteration, with momentum.

    The objective never increases. A step costs ``sweeps`` evaluations, plus one to three if momentum or a
    single sweep would have increased it. Other costs in memory and arithmetic are small. It requires no
    optional attribute of the operator, and can recover a column that has become zero.

    Parameters
    ----------
    momentum : float, default=1.0
        In [0, 1]: step k after a restart extrapolates with the weight ``momentum * (k - 1) / (k + 2)``. If that
        increases the objective, the step is made without extrapolation and k restarts.
    sweeps : int, default=1
        Number of products with each W; the more, the closer the minimisation over U is to exact. One is fastest
        if it suffices. The first time it does not, the solver switches to two for the rest of the fit.

    Examples
    --------
    >>> from symrelu import Eigen, decompose
    >>> from symrelu.datasets import make_relu_gram
    >>> M, _ = make_relu_gram(200, 5, random_state=0)
    >>> solution = decompose(M, 5, solver=Eigen(sweeps=2), random_state=0)
    >>> solution.relative_error < 1e-4
    True
    >>> bool((solution.history.objective[1:] <= solution.history.objective[:-1]).all())
    True
    """

    State = EigenState
    requires = frozenset[str]()
    factors_held = 16

    momentum: float = 1.0
    sweeps: int = 1

    def __post_init__(self) -> None:
        check_range(self, "momentum", 0, 1)
        check_count(self, "sweeps")

    def init(self, op: Operator, U0: Any) -> EigenState:
        """Evaluate at U0, which also serves as the previous factor."""
        nothing = op.xp.zeros(min(2 * op.rank, op.n), dtype=U0.dtype, device=U0.device)
        return _evaluate(op, U0, U0, 0, nothing, self.sweeps)

    def step(self, op: Operator, state: EigenState) -> EigenState:
        """Move to the leading eigenvectors of W and extrapolate; undo what increases the objective."""
        U, eigenvalues = _best_factor(op, state, state.sweeps)
        k = state.since_restart
        b = extrapolation_weight(self.momentum, k)
        if b > 0:
            new = _evaluate(op, extrapolate(U, state.eigenfactor, b), U, k + 1, eigenvalues, state.sweeps)
            if new.objective <= state.objective:
                return new
            k = 0
        new = _evaluate(op, U, U, k + 1, eigenvalues, state.sweeps)
        if new.objective > state.objective and state.sweeps == 1:
            U, eigenvalues = _best_factor(op, state, 2)
            new = _evaluate(op, U, U, 1, eigenvalues, 2)
        # With two or more sweeps only rounding can increase the objective, close to a minimum.
        return new if new.objective <= state.objective else replace(state, since_restart=0)


def _best_factor(op: Operator, state: EigenState, sweeps: int) -> tuple[Any, Any]:
    """Return the best factor aligned with the previous factor, and the eigenvalues.

    It is found by ``sweeps`` products with W.
    """
    span = _Span.of(op, state.basis, _times_W(op, state.U, state.basis, state.product))
    residual = op.frozen(state.U) if sweeps > 1 else None
    for sweep in range(1, sweeps):
        assert residual is not None
        span = span if sweep == 1 else span.restarted(op)
        outside = span.outside
        span = span.completed(op, _times_W(op, state.U, outside, residual(outside)))
    U, eigenvalues = span.factor(op)
    return _aligned(op, U, state.eigenfactor), eigenvalues


def _evaluate(
    op: Operator, U: Any, eigenfactor: Any, since_restart: int, eigenvalues: Any, sweeps: int
) -> EigenState:
    Q = op.xp.linalg.qr(U)[0]
    passed = op.residual_product(U, Q)
    # U = Q (Q^T U), so R U follows from R Q without another pass.
    gradient = op.alpha * U - 2 * (passed.product @ (Q.T @ U)) * op.signature
    return EigenState.after(
        op,
        U,
        passed,
        gradient,
        basis=Q,
        product=passed.product,
        eigenfactor=eigenfactor,
        since_restart=since_restart,
        eigenvalues=eigenvalues,
        sweeps=sweeps,
    )


def _times_W(op: Operator, U: Any, V: Any, residual_product: Any) -> Any:
    """Return W V = (U*s) U^T V + R(U) V."""
    return (U * op.signature) @ (U.T @ V) + residual_product


class _Span(NamedTuple):
    """W restricted to the span of Q and W Q."""

    basis: Any  # [Q, outside], orthonormal
    product: Any  # W Q, or W [Q, outside] once it is complete
    core: Any  # W in this basis; its block outside x outside is zero until it is complete

    @classmethod
    def of(cls, op: Operator, Q: Any, product: Any) -> _Span:
        """Return the span after a single product, W Q."""
        xp, rank = op.xp, Q.shape[1]
        inside = Q.T @ product
        # Q is factorised too, so that ``outside`` is orthogonal to it even if W Q adds almost nothing.
        outside = xp.linalg.qr(xp.concat([Q, product - Q @ inside], axis=1))[0][:, rank:]
        height = outside.T @ product
        corner = xp.zeros((outside.shape[1], outside.shape[1]), dtype=Q.dtype, device=Q.device)
        core = _blocks(op, (inside + inside.T) / 2, height, corner)
        return cls(xp.concat([Q, outside], axis=1), product, core)

    @property
    def outside(self) -> Any:
        """The part of the basis orthogonal to Q."""
        return self.basis[:, self.product.shape[1] :]

    def completed(self, op: Operator, product: Any) -> _Span:
        """Return the span completed by ``product``, the product of W with ``outside``."""
        corner = self.outside.T @ product
        rank = op.rank
        core = _blocks(op, self.core[:rank, :rank], self.core[rank:, :rank], (corner + corner.T) / 2)
        return _Span(self.basis, op.xp.concat([self.product, product], axis=1), core)

    def restarted(self, op: Operator) -> _Span:
        """Return the span that starts from the leading Ritz vectors of this one, which must be complete."""
        values, vectors = op.xp.linalg.eigh(self.core)
        chosen = _columns(op, vectors, _extremes(op, values.shape[0]))
        return _Span.of(op, self.basis @ chosen, self.product @ chosen)

    def factor(self, op: Operator) -> tuple[Any, Any]:
        """Return the best factor in this span, and the eigenvalues of W in it."""
        xp = op.xp
        values, vectors = xp.linalg.eigh(self.core)
        chosen = _extremes(op, values.shape[0])
        leading = xp.take(values, _index_array(op, values, chosen))
        size = xp.sqrt(xp.clip(leading * op.signature - op.alpha / 2, min=0.0))
        return self.basis @ (_columns(op, vectors, chosen) * size), xp.flip(values)


def _blocks(op: Operator, upper: Any, height: Any, lower: Any) -> Any:
    """Return the symmetric matrix [[upper, height^T], [height, lower]]."""
    top = op.xp.concat([upper, height.T], axis=1)
    return op.xp.concat([top, op.xp.concat([height, lower], axis=1)])


def _extremes(op: Operator, count: int) -> list[int]:
    """Return, for each column, the index of its eigenvalue: the largest for sign +1, the smallest for -1."""
    from_the_top, from_the_bottom = iter(range(count - 1, -1, -1)), iter(range(count))
    return [next(from_the_top if sign > 0 else from_the_bottom) for sign in op.signs.tolist()]


def _index_array(op: Operator, like: Any, indices: list[int]) -> Any:
    """Return indices as an array on the device of another array."""
    return op.xp.asarray(indices, dtype=op.xp.int64, device=like.device)


def _columns(op: Operator, A: Any, chosen: list[int]) -> Any:
    """Return the chosen columns of a matrix."""
    return op.xp.take(A.T, _index_array(op, A, chosen), axis=0).T


def _aligned(op: Operator, U: Any, other: Any) -> Any:
    """Rotate columns of equal sign so that U is as close as possible to ``other``; X does not change."""
    signs = op.signs.tolist()
    order: list[int] = []
    parts = []
    for sign in sorted(set(signs)):
        chosen = [k for k, own in enumerate(signs) if own == sign]
        columns, others = _columns(op, U, chosen), _columns(op, other, chosen)
        left, _, right = op.xp.linalg.svd(columns.T @ others)  # orthogonal Procrustes problem
        parts.append(columns @ (left @ right))
        order += chosen
    rotated = op.xp.concat(parts, axis=1)
    return (
        rotated if order == sorted(order) else _columns(op, rotated, [order.index(k) for k in range(op.rank)])
    )
