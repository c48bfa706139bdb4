"""The data of a fit: a matrix that has been read, checked, scaled and packed once."""

from symrelu.problem.block_problem import BlockProblem
from symrelu.problem.fingerprints import RowIndex, fingerprint
from symrelu.problem.problem import Problem
from symrelu.problem.reading import complete, read_hidden

__all__ = ["BlockProblem", "Problem", "RowIndex", "complete", "fingerprint", "read_hidden"]
