"""Block folders given to estimators in place of a matrix."""

from __future__ import annotations

from typing import Any

from symrelu.files.block_folder import is_block_folder
from symrelu.graphs import Labelled
from symrelu.problem import BlockProblem, Problem


def is_folder(X: Any) -> bool:
    """Return whether X is a block folder, also one with names next to it.

    Parameters
    ----------
    X : object

    Returns
    -------
    folder : bool
    """
    return is_block_folder(X.matrix if isinstance(X, Labelled) else X)


def folder_problem(estimator: Any, X: Any, mask: Any | None, diagonal: str) -> BlockProblem:
    """Return the problem of a block folder, and let the estimator know the names and their number.

    Parameters
    ----------
    estimator : estimator
        With the parameter ``client``, and ``_takes_folders``.
    X : BlockFolder, str, path-like or Labelled
    mask : sparse or dense bool matrix of shape (n, n), or None
    diagonal : {"fit", "ignore", "auto"}

    Returns
    -------
    problem : BlockProblem
    """
    if not estimator._takes_folders:
        raise TypeError(
            f"{type(estimator).__name__} needs X in the memory of one process, got a block folder. Pass a "
            "matrix. SymReLU and symrelu.decompose (symrelu embed and symrelu fit) can fit the folder."
        )
    folder = X.matrix if isinstance(X, Labelled) else X  # which has the names itself
    problem = Problem.of(folder, mask, diagonal, name="X")
    assert isinstance(problem, BlockProblem)
    problem.use_client(estimator.client)
    if problem.labels is not None:
        estimator.node_names_ = problem.labels
    estimator.n_features_in_ = problem.n
    return problem
