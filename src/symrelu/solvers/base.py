"""The interface of a solver: an immutable value with ``init`` and ``step``, and a flat state between steps."""

from __future__ import annotations

import math
import numbers
from dataclasses import dataclass, replace
from typing import Annotated, Any, Protocol, Self, runtime_checkable

from symrelu.operators.base import Evaluation, Operator

# Annotations for the arrays of a state, with their shape; None means any length.
Factor = Annotated[Any, ("n", "rank")]
Factors = Annotated[tuple[Any, ...], (None, "n", "rank")]  # states share them; nobody writes to them
Vector = Annotated[Any, (None,)]


class Numbers(tuple[float, ...]):
    """Python floats in a state: of any length, and on the host, whatever the operator's arrays are."""

    __slots__ = ()


@dataclass(frozen=True, eq=False, kw_only=True)
class State:
    """The progress of a solver: arrays and numbers only, so that it can be saved to a file.

    A checkpoint is validated against the annotations: ``float``, ``int`` and ``bool`` for numbers, ``Factor``,
    ``Factors`` and ``Vector`` for arrays, and ``Numbers``.

    Parameters
    ----------
    U : array of shape (n, rank)
        The factor.
    objective : float
        latent_loss + alpha/2 ||U||^2 at U.
    gradient_norm : float
        Norm of the gradient of the objective, at U if gradient_at_U is true.
    latent_loss, loss, latent_norm : float
        As in :class:`~symrelu.operators.Evaluation`, at U.
    gradient_at_U : bool, default=True
        If false, gradient_norm is an approximation that cost nothing, and the loop computes the exact one
        before it declares U stationary.
    """

    U: Factor
    objective: float
    gradient_norm: float
    latent_loss: float
    loss: float
    latent_norm: float
    gradient_at_U: bool = True

    @classmethod
    def after(cls, op: Operator, U: Any, passed: Evaluation, gradient: Any, /, **further: Any) -> Self:
        """Return the state after a pass at U; ``further`` holds the fields that a subclass adds."""
        return cls(
            U=U,
            objective=objective(op, U, passed.latent_loss),
            gradient_norm=math.sqrt(square_norm(op, gradient)),
            latent_loss=passed.latent_loss,
            loss=passed.loss,
            latent_norm=passed.latent_norm,
            **further,
        )


@runtime_checkable
class Solver(Protocol):
    """An optimisation method. It holds hyperparameters only: iterates are in the state, data in the operator.

    In addition to the methods, a solver can declare five attributes. ``State`` is the class of its states,
    which is needed to read a checkpoint; ``requires`` names optional attributes of operators, such as
    ``solve_rows``; ``unsupported_advice`` is the last sentence of the error for an operator without them, and
    says what to do instead; ``factors_held`` is the number of arrays of the size of U that a step holds at
    most, and ``systems_held`` that of arrays with rank x rank numbers for each row (half of one is a triangle),
    which it gives up before it evaluates, for :func:`symrelu.estimate_cost`. A solver without them requires
    nothing and cannot resume from a checkpoint.
    """

    def init(self, op: Operator, U0: Any) -> State:
        """Evaluate at the starting factor."""

    def step(self, op: Operator, state: Any) -> State:
        """Make one step and evaluate at the new factor."""


def check_supported(owner: str, requires: Any, kind: type[Operator], instead: str) -> None:
    """Raise a TypeError unless an operator class offers what a solver or a start requires."""
    # requires = "solve_rows" is an easy mistake, and would be read letter by letter.
    requires = (requires,) if isinstance(requires, str) else requires or ()
    missing = sorted(name for name in requires if not kind.offers(name))
    if missing:
        raise TypeError(
            f"{owner} requires {' and '.join(missing)} of the operator, which {kind.__name__} does not offer. "
            f"{instead}"
        )


def confirmed(op: Operator, state: State) -> State:
    """Return the state with the exact gradient norm at its U, which costs a pass."""
    product = op.residual_product(state.U, state.U).product
    norm = math.sqrt(square_norm(op, op.alpha * state.U - 2 * product * op.signature))
    return replace(state, gradient_norm=norm, gradient_at_U=True)


def inner(op: Operator, A: Any, B: Any) -> float:
    """Return <A, B>, summed in float64 for float32 arrays too."""
    return op.inner(A, B)


def square_norm(op: Operator, A: Any) -> float:
    """Return ||A||_F^2, summed in float64."""
    return inner(op, A, A)


def objective(op: Operator, U: Any, latent_loss: float) -> float:
    """Return latent_loss + alpha / 2 ||U||^2."""
    return latent_loss + op.alpha / 2 * square_norm(op, U) if op.alpha else latent_loss


def check_count(solver: Any, name: str) -> None:
    """Raise a ValueError unless a hyperparameter is a positive integer."""
    value = getattr(solver, name)
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ValueError(f"{type(solver).__name__}({name}=...) must be a positive integer, got {value!r}.")


def check_range(solver: Any, name: str, low: float, high: float, *, low_included: bool = True) -> None:
    """Convert a hyperparameter to a Python float, or raise if it is not between ``low`` and ``high``.

    A Python float, because a NumPy float64 scalar would turn float32 factors into float64 ones.
    """
    owner, value = type(solver).__name__, getattr(solver, name)
    end = "]" if math.isfinite(high) else ")"
    interval = f"{'[' if low_included else '('}{low:g}, {high:g}{end}"
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise TypeError(f"{owner}({name}=...) must be a number in {interval}, got {value!r}.")
    number = float(value)
    above = low <= number if low_included else low < number
    if not (above and number <= high and math.isfinite(number)):
        raise ValueError(f"{owner}({name}=...) must be in {interval}, got {value!r}.")
    object.__setattr__(solver, name, number)  # solvers are frozen; this runs in __post_init__ only
