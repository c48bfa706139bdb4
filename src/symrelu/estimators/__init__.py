"""scikit-learn estimators on top of :func:`symrelu.decompose`. They contain no numerics."""

from __future__ import annotations

from symrelu.estimators.clustering import SymReLUClustering
from symrelu.estimators.embedding import SymReLU
from symrelu.estimators.links import LinkPredictor
from symrelu.estimators.neighbors import NeighborEmbedding

__all__ = ["LinkPredictor", "NeighborEmbedding", "SymReLU", "SymReLUClustering"]
