"""Results of a fit: the fitted model, the history, and files for them. Nothing here runs a fit."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from symrelu.fitted.certificate import Certificate
from symrelu.fitted.history import History, Record, Status
from symrelu.fitted.link_scores import LinkScores
from symrelu.fitted.linkage_tree import Tree, average_linkage, average_linkage_of_factor
from symrelu.fitted.logistic import Logistic
from symrelu.fitted.models import FittedModel, Linear, OneFactor, SymmetricReLU, TwoFactor
from symrelu.fitted.neighbor_vectors import NeighborVectors
from symrelu.fitted.solution import Solution

__all__ = [
    "Certificate",
    "FittedModel",
    "History",
    "Linear",
    "LinkScores",
    "Logistic",
    "NeighborVectors",
    "OneFactor",
    "Record",
    "Solution",
    "Status",
    "SymmetricReLU",
    "Tree",
    "TwoFactor",
    "average_linkage",
    "average_linkage_of_factor",
]

# Modules that need more than symrelu itself does; they are imported when they are used.
_QUERIES_ELSEWHERE = ("on_cluster", "on_device")

if not TYPE_CHECKING:  # a type checker that saw it would accept any name

    def __getattr__(name: str) -> Any:
        if name not in _QUERIES_ELSEWHERE:
            raise AttributeError(f"module 'symrelu.fitted' has no attribute {name!r}")
        return import_module(f"symrelu.fitted.{name}")
