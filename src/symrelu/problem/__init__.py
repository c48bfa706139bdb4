"""The data of a fit: a matrix that has been read, checked, scaled and packed once."""

from symrelu.problem.block_problem import BlockProblem
from symrelu.problem.fingerprints import RowIndex, fingerprint
from symrelu.problem.problem import Problem
from symrelu.problem.reading import complete, gpu_of, read_hidden, remember_gpu

__all__ = [
    "BlockProblem",
    "Problem",
    "RowIndex",
    "complete",
    "fingerprint",
    "gpu_of",
    "read_hidden",
    "remember_gpu",
]
