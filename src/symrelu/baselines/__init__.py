"""What others do with the same matrix, for comparison."""

from symrelu.baselines.eigen import TruncatedEigen, truncated_eigen

__all__ = ["TruncatedEigen", "truncated_eigen"]
