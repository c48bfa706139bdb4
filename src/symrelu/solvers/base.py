"""What a solver is: a frozen value with ``init`` and ``step``, and a flat state between its steps."""

from __future__ import annotations

import math
import numbers
from dataclasses import dataclass, replace
from typing import Annotated, Any, Protocol, Self, runtime_checkable

from symrelu.operators.base import Evaluation, Operator

# The arrays of a state, of the operator's kind, with their shape; None is any length.
Factor = Annotated[Any, ("n", "rank")]
Factors = Annotated[Any, (None, "n", "rank")]
Vector = Annotated[Any, (None,)]


@dataclass(frozen=True, eq=False, kw_only=True)
class State:
    """Where a solver stands: arrays and numbers only, so that a file can hold it.

    ``objective``, ``latent_loss``, ``loss`` and ``latent_norm`` belong to ``U``. So does ``gradient_norm``
    where ``gradient_at_U`` says so; else it is a near substitute that cost nothing, and the loop asks for the
    true one before it calls ``U`` stationary.

    The annotations are what a checkpoint is held against: ``float``, ``int`` and ``bool`` for numbers,
    ``Factor``, ``Factors`` and ``Vector`` for arrays.
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
        """Return the state after a pass at U, with the further fields of a solver's own state."""
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
    """How to move. Hyperparameters only: what evolves is in the state, what is fitted in the operator.

    Two things are declared beside its methods. ``State`` is the class of its states, by which a checkpoint is
    read; ``requires`` names what it asks of an operator that only some offer, such as ``solve_rows``. A solver
    without them requires nothing, and cannot go on from a checkpoint.
    """

    def init(self, op: Operator, U0: Any) -> State:
        """Evaluate at the starting factor."""

    def step(self, op: Operator, state: Any) -> State:
        """Move once and evaluate at the new factor."""


def check_offers(owner: str, requires: Any, kind: type[Operator], instead: str) -> None:
    """Raise unless a kind of operator offers what a solver or a start requires."""
    requires = (requires,) if isinstance(requires, str) else requires or ()
    missing = sorted(name for name in requires if not kind.offers(name))
    if missing:
        raise TypeError(
            f"{owner} needs {' and '.join(missing)} of the matrix, which {kind.__name__} does not offer. "
            f"{instead}"
        )


def confirmed(op: Operator, state: State) -> State:
    """Return a state with the gradient norm at its own U, which costs a pass."""
    product = op.residual_product(state.U, state.U).product
    norm = math.sqrt(square_norm(op, op.alpha * state.U - 2 * product * op.signature))
    return replace(state, gradient_norm=norm, gradient_at_U=True)


def inner(op: Operator, A: Any, B: Any) -> float:
    """Return <A, B>, summed in float64."""
    return float(op.xp.sum(A * B, dtype=op.xp.float64))


def square_norm(op: Operator, A: Any) -> float:
    """Return ||A||_F^2, summed in float64."""
    return inner(op, A, A)


def objective(op: Operator, U: Any, latent_loss: float) -> float:
    """Return latent_loss + alpha / 2 ||U||^2."""
    return latent_loss + op.alpha / 2 * square_norm(op, U)


def check_count(solver: Any, name: str) -> None:
    """Raise unless a hyperparameter is a positive integer."""
    value = getattr(solver, name)
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ValueError(f"{type(solver).__name__}({name}=...) must be a positive integer, got {value!r}.")


def check_range(solver: Any, name: str, low: float, high: float, *, low_included: bool = True) -> None:
    """Make a hyperparameter a plain float, or raise unless it is between ``low`` and ``high``.

    Plain, because a NumPy double would turn float32 factors into float64 ones.
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
    object.__setattr__(solver, name, number)
