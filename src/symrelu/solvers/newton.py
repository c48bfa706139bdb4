"""Newton's method on the pairs that have curvature: few evaluations, many cheap products.

The objective has curvature on the support and on the zeros of M with X > 0. In the late part of a signed fit
these are a few dozen pairs per row, so a product H[D] of the second derivative with a direction costs far less
than a pass over all pairs. A step minimises the quadratic model

    q(D) = <G, D> + 1/2 <D, H[D]>,        G the gradient,

by conjugate gradients (Steihaug, Toint), inside of ||D|| <= radius ||U||, and then evaluates the objective at
U + D. The ratio of the fall of the objective to that of the model decides whether U + D is accepted, and what
the next radius is.

Two things make it work. A long step makes zeros positive whose X was negative, and the model of the second
derivative at U alone knows nothing of them: many such steps raise the objective. Therefore zeros within a
*reach* of some part of the radius have a part of their curvature (``Operator.curvature``). And the
preconditioner is the exact second derivative with respect to each row alone, on the same pairs. It needs a
ridge, for rows with fewer pairs than columns: a multiple of the size of R, as in
:mod:`symrelu.solvers.lbfgs`, which stands for what the matrices of the rows leave out.

Steps are those of LBFGS at large errors, where the quadratic model holds for short steps only, and while there
are more positive zeros than entries of the support, where products are not cheap.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple

from symrelu.operators.base import Curvature, Operator
from symrelu.solvers.base import check_count, check_range, inner, square_norm
from symrelu.solvers.lbfgs import LBFGS, LBFGSState

_MOST_ZEROS = 1.0  # positive zeros, as a multiple of the support: with more, products are not cheap
_FIRST_RADIUS, _LARGEST_RADIUS = 0.1, 0.4
# Times the radius. Most pairs change by less, because most changes of rows are nearly orthogonal.
_FIRST_REACH, _LEAST_REACH, _LARGEST_REACH = 0.2, 0.03, 1.0
_NARROW, _WIDEN = 0.8, 2.0
_CAUTIOUS = 1.1  # a larger ratio of the falls: the model has more curvature than needed
_RIDGE = 20.0  # times ||R|| / sqrt(n)
_NEGLIGIBLE = 1e-6  # fraction of the curvature that is added to the ridge
_ROUNDING = 10  # times rank and eps: the fraction of the curvature that rounding may remove
_FORCING = 0.3  # the norm of the gradient of the model is reduced to this part
_SUFFICIENT = 1e-4  # least ratio of the falls with which a step is accepted
_POOR, _GOOD = 0.25, 0.6  # ratios below and above which the radius is changed
_SHRINK, _KEEP, _GROW = 0.35, 1.5, 2.0  # the next radius, as a multiple of the length of the step


@dataclass(frozen=True, eq=False, kw_only=True)
class NewtonState(LBFGSState):
    """State of :class:`Newton`: that of LBFGS, and two numbers about the next step.

    ``radius`` is its length, relative to U; ``reach``, relative to the radius, is that of zeros in the model.
    """

    radius: float
    reach: float


class Minimum(NamedTuple):
    """A step, by how much the model falls along it, and whether it ends at the border of the trust region."""

    D: Any
    fall: float
    bounded: bool


@dataclass(frozen=True)
class Newton:
    """Newton's method by truncated conjugate gradients, for signed fits. It never increases the objective.

    A step costs one evaluation, and up to ``products`` products on the pairs that have curvature, which are not
    counted as evaluations. As long as the relative error is large or these pairs are many, as in the model
    without negative columns, it makes steps of :class:`LBFGS`. ``backend="active"`` keeps a list of the pairs;
    with other backends each step scans all pairs for them, which counts as another evaluation.

    Parameters
    ----------
    products : int, default=12
        Largest number of products in a step.
    switch : float, default=0.4
        Relative error above which the steps are those of LBFGS.
    memory : int, default=10
        Number of past steps to keep for steps of LBFGS.

    Examples
    --------
    >>> from symrelu import Newton, decompose
    >>> from symrelu.datasets import load_digits_graph
    >>> M = load_digits_graph()[0]
    >>> settings = {"n_negative": 1, "diagonal": "ignore", "backend": "active", "random_state": 0, "tol": 1e-2}
    >>> decompose(M, 20, solver=Newton(), **settings).relative_error <= 1e-2
    True
    """

    State = NewtonState
    requires = LBFGS.requires | {"curvature"}
    unsupported_advice = "Use backend='active', or the solver LBFGS."

    systems_held = 0.5  # triangles

    products: int = 12
    switch: float = 0.4
    memory: int = 10

    def __post_init__(self) -> None:
        check_count(self, "products")
        check_range(self, "switch", 0, math.inf)
        check_count(self, "memory")

    def init(self, op: Operator, U0: Any) -> NewtonState:
        """Evaluate at U0."""
        return _extended(self._lbfgs.init(op, U0), _FIRST_RADIUS, _FIRST_REACH)

    def step(self, op: Operator, state: NewtonState) -> NewtonState:
        """Move to the minimum of the model inside the trust region, if the objective falls as it says."""
        early = (
            math.sqrt(2 * state.loss) > self.switch * op.norm
            or state.active_zeros > _MOST_ZEROS * op.n_positive
        )
        curvature = None if early else op.curvature(state.U, state.reach * state.radius)
        if curvature is None:
            # A shorter reach has fewer pairs.
            radius = max(state.radius / 2, min(state.radius, _FIRST_RADIUS))
            return _extended(self._lbfgs.step(op, state), radius, state.reach)
        size = math.sqrt(square_norm(op, state.U))
        found = _minimum(op, state, curvature, state.radius * size, self.products)
        del curvature  # its arrays are large
        if not found.fall > 0:  # nothing to gain, or rounding errors have spoilt the systems
            return _extended(self._lbfgs.step(op, state), state.radius, state.reach)
        trial = self._lbfgs.init(op, op.add_scaled(state.U, 1.0, found.D))
        ratio = (state.objective - trial.objective) / found.fall
        radius = _next_radius(found, ratio) * math.sqrt(square_norm(op, found.D)) / size
        radius = min(max(radius, op.eps), _LARGEST_RADIUS)
        reach = _next_reach(state.reach, ratio)
        if ratio >= _SUFFICIENT:
            return _extended(replace(trial, damping=state.damping), radius, reach)
        return replace(state, radius=radius, reach=reach)

    @property
    def factors_held(self) -> int:
        """Arrays of the size of U that a step holds at most."""
        return self._lbfgs.factors_held + 6  # those of conjugate gradients

    @property
    def _lbfgs(self) -> LBFGS:
        return LBFGS(self.memory)


def _extended(state: LBFGSState, radius: float, reach: float) -> NewtonState:
    values = {field.name: getattr(state, field.name) for field in fields(LBFGSState)}
    return NewtonState(**values, radius=radius, reach=reach)


def _next_radius(found: Minimum, ratio: float) -> float:
    """Return the next radius as a multiple of the length of the step (the shortest for NaN)."""
    if not ratio >= _POOR:
        return _SHRINK
    return _GROW if found.bounded and ratio > _GOOD else _KEEP


def _next_reach(reach: float, ratio: float) -> float:
    if not ratio >= _POOR:
        reach *= _WIDEN
    elif ratio > _CAUTIOUS:
        reach *= _NARROW
    return min(max(reach, _LEAST_REACH), _LARGEST_REACH)


def _ridge(op: Operator, state: NewtonState) -> float:
    rank = state.U.shape[1]
    size = square_norm(op, state.U) / rank + op.norm  # of the curvature; positive even if U is zero
    neglected = _RIDGE * math.sqrt(2 * state.latent_loss / op.n)
    return op.alpha + neglected + max(_NEGLIGIBLE, _ROUNDING * rank * op.eps) * size


def _minimum(op: Operator, state: NewtonState, curvature: Curvature, longest: float, products: int) -> Minimum:
    """Reduce the model by preconditioned conjugate gradients, until ||D|| reaches ``longest``."""
    solve = curvature.row_solver(_ridge(op, state))
    D, residual, fall, square = 0 * state.U, -state.gradient, 0.0, 0.0
    Z = solve(residual)
    P, reduction = Z, inner(op, residual, Z)
    enough = _FORCING**2 * reduction
    for _ in range(products):
        square_P = square_norm(op, P)
        if not (reduction > 0 and square_P > 0):
            break
        HP = curvature.product(P)
        along = inner(op, P, HP)
        border = _to_border(square, inner(op, D, P), square_P, longest)
        t = min(reduction / along, border) if along > 0 else border
        D = op.add_scaled(D, t, P)
        fall += t * reduction - t * t * along / 2
        if t == border:
            return Minimum(D, fall, True)
        square = square_norm(op, D)
        residual = op.add_scaled(residual, -t, HP)
        Z = solve(residual)
        before, reduction = reduction, inner(op, residual, Z)
        if reduction <= enough:
            break
        P = op.add_scaled(Z, reduction / before, P)
    return Minimum(D, fall, False)


def _to_border(square: float, across: float, square_P: float, longest: float) -> float:
    """Return the t > 0 with ||D + t P|| = longest, from ||D||^2, <D, P> and ||P||^2."""
    room = max(longest**2 - square, 0.0)
    root = math.sqrt(across**2 + square_P * room)
    # The larger root of the quadratic equation, without cancellation.
    return room / (root + across) if across > 0 else (root - across) / square_P
