"""Results of a fit: the fitted model, the history, and files for them. Nothing here runs a fit."""

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
