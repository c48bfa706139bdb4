"""The data of a fit: a matrix that has been read, checked, scaled and packed once."""

from symrelu.problem.fingerprints import RowIndex, fingerprint
from symrelu.problem.problem import Problem
from symrelu.problem.reading import complete, read_hidden

__all__ = ["Problem", "RowIndex", "complete", "fingerprint", "read_hidden"]
