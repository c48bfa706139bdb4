"""The scikit-learn shell over :func:`symrelu.decompose`. No numerics of its own."""

from __future__ import annotations

from symrelu.estimators.clustering import SymReLUClustering
from symrelu.estimators.embedding import SymReLU
from symrelu.estimators.links import LinkPredictor

__all__ = ["LinkPredictor", "SymReLU", "SymReLUClustering"]
