"""The solvers, one per module. :func:`get_solver` returns a solver by name.

============ ================================================================================
base         the interface of a solver, and the state between its steps
aapb         accelerated alternating partial Bregman method (NSMD-AAPB)
eigen        exact minimisation over U by eigenvectors of the latent matrix
lbfgs        limited-memory BFGS with a preconditioner for each row
newton       truncated Newton method on the pairs that have curvature
palm         proximal alternating linearised minimisation (PALM, iPALM)
alternating  the objective as a function of U for a fixed latent matrix: gradient and change
momentum     extrapolation weights
line_search  step lengths along a direction
cubic        the positive root of the cubic in the Bregman step
============ ================================================================================
"""

from __future__ import annotations

from typing import Any

from symrelu.solvers.aapb import AAPB
from symrelu.solvers.base import Solver, State
from symrelu.solvers.eigen import Eigen
from symrelu.solvers.lbfgs import LBFGS
from symrelu.solvers.newton import Newton
from symrelu.solvers.palm import PALM

__all__ = ["AAPB", "LBFGS", "PALM", "SOLVERS", "Eigen", "Newton", "Solver", "State", "get_solver"]

SOLVERS: dict[str, type[Any]] = {
    "aapb": AAPB,
    "eigen": Eigen,
    "lbfgs": LBFGS,
    "newton": Newton,
    "palm": PALM,
}


def get_solver(solver: Any) -> Solver:
    """Return the solver with a given name, or the given instance itself.

    Parameters
    ----------
    solver : str or Solver
        A name in ``SOLVERS`` (the solver with its default settings), or an instance.

    Returns
    -------
    solver : Solver
    """
    known = ", ".join(repr(name) for name in SOLVERS)
    if isinstance(solver, str):
        if solver not in SOLVERS:
            raise ValueError(f"solver must be one of {known} or a solver instance, got {solver!r}.")
        instance: Solver = SOLVERS[solver]()
        return instance
    # A class has init and step too, so it would pass the check below.
    if isinstance(solver, type):
        raise TypeError(
            f"solver must be an instance, got the class {solver.__name__}. Pass {solver.__name__}()."
        )
    if not isinstance(solver, Solver):
        raise TypeError(
            f"solver must be one of {known} or an object with init and step, got {type(solver).__name__}."
        )
    return solver
