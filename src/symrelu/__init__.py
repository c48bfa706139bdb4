"""ReLU-based symmetric matrix decomposition: M ~ max(0, U U^T) for nonnegative sparse symmetric M."""

from symrelu import baselines, datasets, graphs, metrics
from symrelu.checkpoint import Checkpoint
from symrelu.decompose import decompose
from symrelu.estimators import LinkPredictor, SymReLU, SymReLUClustering
from symrelu.problem import Problem
from symrelu.selection import RankSelection, select_rank
from symrelu.solution import History, Solution, Status
from symrelu.solvers import AAPB, LBFGS, PALM, Eigen

__version__ = "0.2.0.dev0"

__all__ = [
    "AAPB",
    "LBFGS",
    "PALM",
    "Checkpoint",
    "Eigen",
    "History",
    "LinkPredictor",
    "Problem",
    "RankSelection",
    "Solution",
    "Status",
    "SymReLU",
    "SymReLUClustering",
    "baselines",
    "datasets",
    "decompose",
    "graphs",
    "metrics",
    "select_rank",
]
