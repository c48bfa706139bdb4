"""The exact U-step, by eigenvectors.

For a given W the best U is known: the eigenvectors of W of the largest eigenvalues e, times
sqrt(max(e - alpha/2, 0)); for the columns of negative sign those of the lowest, with -e. An eigendecomposition
a step would cost many products with W, and W changes with every step. So the eigenvectors are followed by a
subspace iteration that starts from the last ones.

With Q an orthonormal basis of the columns of U, and Z = W Q the one product of a step,

    W ~ Q Z^T + Z Q^T - Q (Q^T Z) Q^T,

the part of W in the tangent space of the matrices of this rank at X. Its own eigenvectors lie in the span of Q
and Z, and come from a symmetric matrix of size 2 r. What it lacks is the part of W outside of Q. Where that is
small the step is nearly exact; the error in the direction of an eigenvector that is left out shrinks by the
ratio of its eigenvalue to the kept one. Where an eigenvalue that is left out is the larger one in size, the
iteration loses its way: with a second product, of W with what Z adds to Q, the Rayleigh-Ritz method finds the
best X in that span, which is never worse than the last.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from symrelu.operators.base import Operator
from symrelu.solvers.base import Factor, State, Vector, check_count, check_range
from symrelu.solvers.momentum import extrapolate, extrapolation_weight


@dataclass(frozen=True, eq=False, kw_only=True)
class EigenState(State):
    """State of :class:`Eigen`. ``U`` is the extrapolated factor: the one pass of a step is made there."""

    basis: Factor  # Q, orthonormal, spans U
    product: Factor  # R(U) Q
    eigenfactor: Factor  # U before the extrapolation
    since_restart: int
    eigenvalues: Vector  # of W in the span of Q and W Q, falling
    sweeps: int  # of the coming step


@dataclass(frozen=True)
class Eigen:
    """The exact U-step by eigenvectors of W, followed by a subspace iteration, with momentum.

    The objective never rises. A step costs ``sweeps`` evaluations, and one to three more where momentum or a
    single sweep would have raised it. Memory and arithmetic beside them are small; it needs no support, and can
    bring back a column that has vanished.

    Parameters
    ----------
    momentum : float, default=1.0
        In [0, 1]: step k after a restart extrapolates by ``momentum * (k - 1) / (k + 2)``. Where that raises
        the objective it is left out, and k begins anew.
    sweeps : int, default=1
        Products with each W. Many of them make the U-step exact. One is the fastest where it is enough; once it
        is not, there are two from then on.

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

    momentum: float = 1.0
    sweeps: int = 1

    def __post_init__(self) -> None:
        check_range(self, "momentum", 0, 1)
        check_count(self, "sweeps")

    def init(self, op: Operator, U0: Any) -> EigenState:
        """Evaluate at U0, which is also its own predecessor."""
        nothing = op.xp.zeros(min(2 * op.rank, op.n), dtype=U0.dtype, device=U0.device)
        return _evaluate(op, U0, U0, 0, nothing, self.sweeps)

    def step(self, op: Operator, state: EigenState) -> EigenState:
        """Go to the leading eigenvectors of W, extrapolate, and evaluate there; take back what went too far."""
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
        # From two sweeps on only rounding can raise it, where nothing is left to gain.
        return new if new.objective <= state.objective else replace(state, since_restart=0)


def _best_factor(op: Operator, state: EigenState, sweeps: int) -> tuple[Any, Any]:
    """Return the best factor that so many products with W find, turned to the last one, and eigenvalues."""
    span = _Span.of(op, state.basis, _times_W(op, state.U, state.basis, state.product))
    residual = op.frozen(state.U) if sweeps > 1 else None
    for sweep in range(1, sweeps):
        assert residual is not None
        span = span if sweep == 1 else span.turned(op)
        outside = span.outside
        span = span.completed(op, _times_W(op, state.U, outside, residual(outside)))
    U, eigenvalues = span.factor(op)
    return _aligned(op, U, state.eigenfactor), eigenvalues


def _evaluate(
    op: Operator, U: Any, eigenfactor: Any, since_restart: int, eigenvalues: Any, sweeps: int
) -> EigenState:
    Q = op.xp.linalg.qr(U)[0]
    passed = op.residual_product(U, Q)
    # U = Q (Q^T U), so that R U is at hand too.
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
    """W on the span of Q and of what W adds to it."""

    basis: Any  # [Q, outside], orthonormal
    product: Any  # W Q, or W [Q, outside] where it is complete
    core: Any  # W in this basis; zero from outside to outside where it is not complete

    @classmethod
    def of(cls, op: Operator, Q: Any, product: Any) -> _Span:
        """Return what one product tells."""
        xp, rank = op.xp, Q.shape[1]
        inside = Q.T @ product
        # With Q in the factorisation, what is outside is orthogonal to it even where W adds next to nothing.
        outside = xp.linalg.qr(xp.concat([Q, product - Q @ inside], axis=1))[0][:, rank:]
        height = outside.T @ product
        corner = xp.zeros((outside.shape[1], outside.shape[1]), dtype=Q.dtype, device=Q.device)
        core = _blocks(op, (inside + inside.T) / 2, height, corner)
        return cls(xp.concat([Q, outside], axis=1), product, core)

    @property
    def outside(self) -> Any:
        return self.basis[:, self.product.shape[1] :]

    def completed(self, op: Operator, product: Any) -> _Span:
        """Return the same with the product of W and what is outside."""
        corner = self.outside.T @ product
        rank = op.rank
        core = _blocks(op, self.core[:rank, :rank], self.core[rank:, :rank], (corner + corner.T) / 2)
        return _Span(self.basis, op.xp.concat([self.product, product], axis=1), core)

    def turned(self, op: Operator) -> _Span:
        """Return the span of the best vectors in this one, which is complete, and of what W adds to them."""
        values, vectors = op.xp.linalg.eigh(self.core)
        chosen = _columns(op, vectors, _extremes(op, values.shape[0]))
        return _Span.of(op, self.basis @ chosen, self.product @ chosen)

    def factor(self, op: Operator) -> tuple[Any, Any]:
        """Return the best factor for this part of W, and its eigenvalues."""
        xp = op.xp
        values, vectors = xp.linalg.eigh(self.core)
        chosen = _extremes(op, values.shape[0])
        leading = xp.take(values, _places(op, values, chosen))
        size = xp.sqrt(xp.clip(leading * op.signature - op.alpha / 2, min=0.0))
        return self.basis @ (_columns(op, vectors, chosen) * size), xp.flip(values)


def _blocks(op: Operator, upper: Any, height: Any, lower: Any) -> Any:
    """Return the symmetric matrix of these blocks, ``height`` left of ``lower``."""
    top = op.xp.concat([upper, height.T], axis=1)
    return op.xp.concat([top, op.xp.concat([height, lower], axis=1)])


def _extremes(op: Operator, count: int) -> list[int]:
    """Return where, among rising eigenvalues, the largest are for columns of sign +1, the lowest for -1."""
    from_the_top, from_the_bottom = iter(range(count - 1, -1, -1)), iter(range(count))
    return [next(from_the_top if sign > 0 else from_the_bottom) for sign in op.signs.tolist()]


def _places(op: Operator, like: Any, places: list[int]) -> Any:
    """Return integers as an array where another array lives."""
    return op.xp.asarray(places, dtype=op.xp.int64, device=like.device)


def _columns(op: Operator, A: Any, chosen: list[int]) -> Any:
    """Return some columns of a matrix."""
    return op.xp.take(A.T, _places(op, A, chosen), axis=0).T


def _aligned(op: Operator, U: Any, other: Any) -> Any:
    """Rotate the columns of equal sign such that U is as near as possible to ``other``; X stays the same."""
    signs = op.signs.tolist()
    order: list[int] = []
    parts = []
    for sign in sorted(set(signs)):
        chosen = [k for k, own in enumerate(signs) if own == sign]
        columns, others = _columns(op, U, chosen), _columns(op, other, chosen)
        left, _, right = op.xp.linalg.svd(columns.T @ others)
        parts.append(columns @ (left @ right))
        order += chosen
    rotated = op.xp.concat(parts, axis=1)
    return (
        rotated if order == sorted(order) else _columns(op, rotated, [order.index(k) for k in range(op.rank)])
    )
