"""A solver that follows a script, and problems to run it on."""

from dataclasses import dataclass

import numpy as np
from helpers import OPERATORS, PROBLEMS, start

from symrelu.solvers import State


def problem_and_start(label="plain"):
    problem = PROBLEMS[label]
    return OPERATORS["sparse"](problem), start(problem)


@dataclass(frozen=True)
class Scripted:
    """A solver whose objectives, losses and gradients are given beforehand; the factor at step k is all k."""

    objectives: tuple[float, ...]
    stop_at: int = -1
    error: type[BaseException] = KeyboardInterrupt
    nan_factor_at: int = -1
    losses: tuple[float, ...] = ()
    gradients: tuple[float, ...] = ()

    def init(self, op, U0):
        return self._state(0, U0)

    def step(self, op, state):
        k = int(state.latent_norm) + 1
        if k == self.stop_at:
            raise self.error
        return self._state(k, state.U)

    def _state(self, k, U):
        value = self.objectives[min(k, len(self.objectives) - 1)]
        factor = np.full_like(U, np.nan) if k == self.nan_factor_at else np.full_like(U, float(k))
        return State(
            U=factor,
            objective=value,
            gradient_norm=self.gradients[k] if self.gradients else 1e9,
            latent_loss=value,
            loss=self.losses[k] if self.losses else value,
            latent_norm=float(k),
        )
