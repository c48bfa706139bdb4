"""The scikit-learn shell over :func:`symrelu.decompose`. No numerics of its own."""

from __future__ import annotations

from symrelu.estimators.embedding import SymReLU

__all__ = ["SymReLU"]
