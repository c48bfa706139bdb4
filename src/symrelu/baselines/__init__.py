"""Other decompositions of the same matrix, for comparison."""

from symrelu.baselines.coupled import symmetric_nmf
from symrelu.baselines.eigenpairs import truncated_eigen
from symrelu.baselines.lpca import logistic_pca
from symrelu.baselines.symanls import SymANLS
from symrelu.baselines.symhals import SymHALS
from symrelu.baselines.three_block import three_block_nmd

__all__ = ["SymANLS", "SymHALS", "logistic_pca", "symmetric_nmf", "three_block_nmd", "truncated_eigen"]
