"""The exact U-step, by eigenvectors.

For a given W the best U is known: the eigenvectors of W of the largest eigenvalues e, times
sqrt(max(e - alpha/2, 0)); for the columns of negative sign those of the lowest, with -e. An eigendecomposition
a step would cost many products with W, and W changes with every step. So the eigenvectors are followed by a
subspace iteration that starts from the last ones.

With Q an orthonormal basis of the columns of U, and Z = W Q the one product of a step,

    W ~ Q Z^T + Z Q^T - Q (Q^T Z) Q^T,

the part of W in the tangent space of the matrices of this rank at X. It is exact if W has rank r and range Q,
and its error is of second order in the angle between Q and the eigenvectors. Its own eigenvectors lie in the
span of Q and Z, and come from a symmetric matrix of size 2 r. What it lacks is the part of W outside of Q; more
products with the same W (``sweeps``) bring it in.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from symrelu.operators.base import Operator
from symrelu.solvers.base import State, check_range, objective, square_norm


@dataclass(frozen=True, eq=False, kw_only=True)
class EigenState(State):
    """State of :class:`Eigen`. ``U`` is the extrapolated factor: the one pass of a step is made there."""

    basis: Any  # Q, orthonormal, spans U
    product: Any  # R(U) Q
    eigenfactor: Any  # U before the extrapolation
    since_restart: int
    eigenvalues: Any  # of W in the tangent space, falling


@dataclass(frozen=True)
class Eigen:
    """The exact U-step by eigenvectors of W, followed by a subspace iteration, with momentum.

    A step costs ``sweeps`` evaluations. Its memory and its arithmetic beside them are small, it needs no line
    search and no support, and it can bring back a column that has vanished.

    Parameters
    ----------
    momentum : float, default=1.0
        In [0, 1]: step k after a restart extrapolates by ``momentum * (k - 1) / (k + 2)``. A restart follows
        where the objective rose.
    sweeps : int, default=1
        Products with each W. Many of them make the U-step exact. One is the fastest, but loses its way where
        eigenvalues that are left out exceed in size those that are kept, as they may if the columns of one
        sign are too few.

    Examples
    --------
    >>> from symrelu import Eigen, decompose
    >>> from symrelu.datasets import make_relu_gram
    >>> M, _ = make_relu_gram(200, 5, random_state=0)
    >>> decompose(M, 5, solver=Eigen(), random_state=0).relative_error < 1e-4
    True
    """

    momentum: float = 1.0
    sweeps: int = 1

    def __post_init__(self) -> None:
        check_range(self, "momentum", 0, 1)
        if isinstance(self.sweeps, bool) or not isinstance(self.sweeps, int) or self.sweeps < 1:
            raise ValueError(f"Eigen(sweeps=...) must be a positive integer, got {self.sweeps!r}.")

    def init(self, op: Operator, U0: Any) -> EigenState:
        """Evaluate at U0, which is also its own predecessor."""
        nothing = op.xp.zeros(min(2 * op.rank, op.n), dtype=U0.dtype)
        return _evaluate(op, U0, U0, since_restart=0, eigenvalues=nothing)

    def step(self, op: Operator, state: State) -> EigenState:
        """Go to the leading eigenvectors of W, extrapolate, and evaluate there."""
        assert isinstance(state, EigenState)
        ritz = _Ritz.of(op, state.basis, _times_W(op, state.U, state.basis, state.product))
        if self.sweeps > 1:
            residual = op.frozen(state.U)
            for _ in range(self.sweeps - 1):
                ritz = ritz.refined(op, lambda V: _times_W(op, state.U, V, residual(V)))
        U, eigenvalues = ritz.factor(op)
        U = _aligned(op, U, state.eigenfactor)
        k = state.since_restart
        b = self.momentum * max(0, k - 1) / (k + 2)
        Y = U + b * (U - state.eigenfactor) if b > 0 else U
        new = _evaluate(op, Y, U, k + 1, eigenvalues)
        return replace(new, since_restart=0, eigenfactor=Y) if new.objective > state.objective else new


def _evaluate(op: Operator, U: Any, eigenfactor: Any, since_restart: int, eigenvalues: Any) -> EigenState:
    Q = op.xp.linalg.qr(U)[0]
    passed = op.residual_product(U, Q)
    # U = Q (Q^T U), so that R U is at hand too.
    gradient = op.alpha * U - 2 * (passed.product @ (Q.T @ U)) * op.signature
    return EigenState(
        U=U,
        objective=objective(op, U, passed.latent_loss),
        gradient_norm=math.sqrt(square_norm(op, gradient)),
        latent_loss=passed.latent_loss,
        loss=passed.loss,
        latent_norm=passed.latent_norm,
        basis=Q,
        product=passed.product,
        eigenfactor=eigenfactor,
        since_restart=since_restart,
        eigenvalues=eigenvalues,
    )


def _times_W(op: Operator, U: Any, V: Any, residual_product: Any) -> Any:
    """Return W V = (U*s) U^T V + R(U) V."""
    return (U * op.signature) @ (U.T @ V) + residual_product


class _Ritz(NamedTuple):
    """Vectors with their products: W on the span of ``basis`` and of what W adds to it."""

    basis: Any  # Q, orthonormal
    product: Any  # W Q
    outside: Any  # orthonormal, spans W Q - Q (Q^T W Q)
    core: Any  # W in the basis [Q, outside], without its part from outside to outside

    @classmethod
    def of(cls, op: Operator, Q: Any, product: Any) -> _Ritz:
        xp = op.xp
        inside = Q.T @ product
        # With Q in the factorisation, what is outside is orthogonal to it even where W adds next to nothing.
        outside = xp.linalg.qr(xp.concat([Q, product - Q @ inside], axis=1))[0][:, Q.shape[1] :]
        height = outside.T @ product
        corner = xp.zeros((outside.shape[1], outside.shape[1]), dtype=Q.dtype)
        upper = xp.concat([(inside + inside.T) / 2, height.T], axis=1)
        return cls(Q, product, outside, xp.concat([upper, xp.concat([height, corner], axis=1)]))

    def refined(self, op: Operator, times_W: Callable[[Any], Any]) -> _Ritz:
        """Return the extreme eigenvectors of W in the span of [Q, outside], from one more product."""
        xp, rank = op.xp, op.rank
        product = times_W(self.outside)
        corner = self.outside.T @ product
        core = self.core.copy()
        core[rank:, rank:] = (corner + corner.T) / 2
        values, vectors = xp.linalg.eigh(core)
        chosen = vectors[:, _extremes(op, values.shape[0])]
        Q = xp.concat([self.basis, self.outside], axis=1) @ chosen
        return _Ritz.of(op, Q, xp.concat([self.product, product], axis=1) @ chosen)

    def factor(self, op: Operator) -> tuple[Any, Any]:
        """Return the best factor for this part of W, and its eigenvalues."""
        xp = op.xp
        values, vectors = xp.linalg.eigh(self.core)
        chosen = _extremes(op, values.shape[0])
        size = xp.sqrt(xp.clip(values[chosen] * op.signature - op.alpha / 2, 0, None))
        U = xp.concat([self.basis, self.outside], axis=1) @ (vectors[:, chosen] * size)
        return U, values[::-1]


def _extremes(op: Operator, count: int) -> Any:
    """Return where, among rising eigenvalues, the largest are for columns of sign +1, the lowest for -1."""
    xp, positive = op.xp, op.signature > 0
    n_positive = int(xp.sum(positive))
    places = xp.empty(op.rank, dtype=xp.int64)
    places[positive] = xp.arange(count - 1, count - 1 - n_positive, -1)
    places[~positive] = xp.arange(op.rank - n_positive)
    return places


def _aligned(op: Operator, U: Any, other: Any) -> Any:
    """Rotate the columns of equal sign such that U is as near as possible to ``other``; X stays the same."""
    rotated = U.copy()
    for sign in (1.0, -1.0):
        columns = op.signature == sign
        if columns.any():
            left, _, right = op.xp.linalg.svd(U[:, columns].T @ other[:, columns])
            rotated[:, columns] = U[:, columns] @ (left @ right)
    return rotated
