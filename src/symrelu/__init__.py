"""ReLU-based symmetric matrix decomposition: M ~ max(0, U U^T) for nonnegative sparse symmetric M."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from symrelu import old_names

if TYPE_CHECKING:  # the imports that __getattr__ below makes, for type checkers and editors
    from symrelu import (
        baselines,
        datasets,
        estimators,
        experiments,
        files,
        fit,
        fitted,
        graphs,
        kernels,
        metrics,
        operators,
        plots,
        problem,
        report,
        solvers,
        validation,
    )
    from symrelu.estimators import LinkPredictor, NeighborEmbedding, SymReLU, SymReLUClustering
    from symrelu.fit.checkpoint import Checkpoint
    from symrelu.fit.cost import Cost, estimate_cost
    from symrelu.fit.decompose import decompose
    from symrelu.fit.rank_selection import RankSelection
    from symrelu.fit.selection import select_rank
    from symrelu.fitted import History, Solution, Status
    from symrelu.problem import Problem
    from symrelu.solvers import AAPB, LBFGS, PALM, Eigen, Newton

__version__ = "0.2.0.dev0"

__all__ = [
    "AAPB",
    "LBFGS",
    "PALM",
    "Checkpoint",
    "Cost",
    "Eigen",
    "History",
    "LinkPredictor",
    "NeighborEmbedding",
    "Newton",
    "Problem",
    "RankSelection",
    "Solution",
    "Status",
    "SymReLU",
    "SymReLUClustering",
    "baselines",
    "datasets",
    "decompose",
    "estimate_cost",
    "graphs",
    "metrics",
    "plots",
    "report",
    "select_rank",
]

# Public name -> its module, which is imported on first use, so that `import symrelu` is fast.
_HOMES = {
    "AAPB": "symrelu.solvers",
    "LBFGS": "symrelu.solvers",
    "Newton": "symrelu.solvers",
    "PALM": "symrelu.solvers",
    "Eigen": "symrelu.solvers",
    "Checkpoint": "symrelu.fit.checkpoint",
    "Cost": "symrelu.fit.cost",
    "estimate_cost": "symrelu.fit.cost",
    "decompose": "symrelu.fit.decompose",
    "RankSelection": "symrelu.fit.rank_selection",
    "select_rank": "symrelu.fit.selection",
    "History": "symrelu.fitted",
    "Solution": "symrelu.fitted",
    "Status": "symrelu.fitted",
    "Problem": "symrelu.problem",
    "LinkPredictor": "symrelu.estimators",
    "NeighborEmbedding": "symrelu.estimators",
    "SymReLU": "symrelu.estimators",
    "SymReLUClustering": "symrelu.estimators",
}
# Subpackages and modules that are attributes after `import symrelu`, also imported on first use.
_PACKAGES = (
    "baselines",
    "datasets",
    "estimators",
    "experiments",
    "files",
    "fit",
    "fitted",
    "graphs",
    "kernels",
    "metrics",
    "operators",
    "plots",
    "problem",
    "report",
    "solvers",
    "validation",
)


if not TYPE_CHECKING:  # a type checker that saw it would accept any name

    def __getattr__(name: str) -> Any:
        if name in _HOMES:
            value = getattr(import_module(_HOMES[name]), name)
        elif name in _PACKAGES:
            value = import_module(f"symrelu.{name}")
        else:
            raise AttributeError(f"module 'symrelu' has no attribute {name!r}")
        globals()[name] = value  # further accesses do not call __getattr__
        return value


def __dir__() -> list[str]:
    # Neither what this file imports nor the deprecated modules: tab completion should not suggest them.
    return sorted({*(name for name in globals() if name.startswith("__")), *__all__, *_PACKAGES})


old_names.install()
