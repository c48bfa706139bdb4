"""What others do with the same matrix, for comparison."""

from symrelu.baselines.coupled import symmetric_nmf
from symrelu.baselines.eigen import truncated_eigen
from symrelu.baselines.symanls import SymANLS
from symrelu.baselines.symhals import SymHALS

__all__ = ["SymANLS", "SymHALS", "symmetric_nmf", "truncated_eigen"]
