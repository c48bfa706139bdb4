"""Quality measures of a factor: pure functions that never form n x n entries for a sparse M."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy import sparse
from scipy.optimize import linear_sum_assignment
from sklearn.metrics.cluster import contingency_matrix
from sklearn.utils import check_consistent_length, column_or_1d

from symrelu.files.block_folder import is_block_folder
from symrelu.fitted.clusters import modularity_of
from symrelu.kernels import threads
from symrelu.kernels.scores import pair_scores
from symrelu.operators import Operator
from symrelu.problem import BlockProblem, Problem, read_hidden
from symrelu.validation import (
    SUPPORTS,
    check_choice,
    check_factor,
    check_integer,
    check_number,
    random_generator,
    scale_exponent,
    scaled,
)

_ENTRY_BATCH = 65536
_STREAM = 2  # of random numbers: masks must be independent of data and starts with the same seed


def relative_error(
    M: Any,
    U: Any,
    signature: Any | None = None,
    *,
    diagonal: str = "fit",
    mask: Any | None = None,
    support: str = "equal",
    backend: str = "auto",
) -> float:
    """Return ||M - max(0, X)||_F / ||M||_F, X = (U * signature) U^T, over the observed entries.

    Parameters
    ----------
    M : sparse matrix, sparse array or array-like of shape (n, n), or a graph
        As for :func:`symrelu.decompose`.
    U : array-like of shape (n, rank)
    signature : array-like of shape (rank,), optional
        Signs of the columns; +1 by default.
    diagonal : {"fit", "ignore", "auto"}, default="fit"
        As for :func:`symrelu.decompose`.
    mask : sparse or dense bool matrix of shape (n, n), optional
        True where the entry is unobserved.
    support : {"equal", "at_least"}, default="equal"
        With "at_least", entries with X > M > 0 count as exact: only what X lacks there is an error.
    backend : str, default="auto"
        As for :func:`symrelu.decompose`; "cuda" computes on a GPU.

    Returns
    -------
    error : float

    Examples
    --------
    >>> import numpy as np
    >>> from symrelu.metrics import relative_error
    >>> relative_error(np.eye(3), np.zeros((3, 1)))
    1.0
    >>> U = 2 * np.eye(3)
    >>> relative_error(np.eye(3), U), relative_error(np.eye(3), U, support="at_least")
    (3.0, 0.0)
    """
    op, U = _operator(Problem.of(M, mask, diagonal), U, signature, support, backend)
    return op.relative_error(op.loss(op.asarray(U)).loss)


def half_squared_error(
    M: Any,
    U: Any,
    signature: Any | None = None,
    *,
    diagonal: str = "fit",
    mask: Any | None = None,
    support: str = "equal",
    backend: str = "auto",
) -> float:
    """Return relative_error^2 / 2, as reported in the paper's table of real data.

    Parameters
    ----------
    M, U, signature, diagonal, mask, support, backend
        As for :func:`relative_error`.

    Returns
    -------
    error : float
    """
    error = relative_error(M, U, signature, diagonal=diagonal, mask=mask, support=support, backend=backend)
    return error**2 / 2


def held_out_error(M: Any, U: Any, signature: Any | None = None, *, mask: Any, support: str = "equal") -> float:
    """Return the relative error over the held-out entries, which were hidden from a fit.

    Parameters
    ----------
    M : sparse matrix, sparse array or array-like of shape (n, n)
        With the true values at the masked entries.
    U : array-like of shape (n, rank)
    signature : array-like of shape (rank,), optional
    mask : sparse or dense bool matrix of shape (n, n)
        True at the held-out entries, the mask of the fit.
    support : {"equal", "at_least"}, default="equal"
        As for :func:`relative_error`.

    Returns
    -------
    error : float
        ||M - max(0, X)|| / ||M||, both over the masked entries; infinite if M is zero at all of them.

    Examples
    --------
    >>> import numpy as np
    >>> from symrelu.metrics import held_out_error
    >>> U, mask = np.ones((3, 1)), np.eye(3, dtype=bool)
    >>> held_out_error(np.ones((3, 3)), U, mask=mask)
    0.0
    """
    at_least = check_choice("support", support, SUPPORTS) == "at_least"
    folder = Problem.of(M) if is_block_folder(M) else M
    if isinstance(folder, BlockProblem):
        U, signature = _check_factor(folder.M, U, signature)
        return folder.held_out_error(U, signature, mask, at_least=at_least)
    M, mask = read_hidden(M, mask)
    U, signature = _check_factor(M, U, signature)
    # Squares of very large or very small entries would overflow or underflow.
    k = scale_exponent(M)
    M, U = scaled(M, k), np.ldexp(U, -k)
    V = U * signature
    rows, cols = (np.asarray(index) for index in sparse.coo_array(mask).coords)
    # In batches, because the held-out entries may outnumber those of M.
    wrong = total = 0.0
    for batch in threads.slices(len(rows), _ENTRY_BATCH):
        i, j = rows[batch], cols[batch]
        truth = np.asarray(M[i, j], dtype=np.float64).ravel()
        error = truth - np.maximum(0, pair_scores(U, V, i, j))
        if at_least:
            error[(truth > 0) & (error < 0)] = 0
        wrong += float(np.sum(error**2, dtype=np.float64))
        total += float(np.sum(truth**2))
    return math.sqrt(wrong / total) if total else math.inf


def random_mask(n: int, fraction: float, *, random_state: Any = None) -> Any:
    """Return a symmetric boolean matrix that hides about a fraction of all pairs, for a held-out error.

    Parameters
    ----------
    n : int
        Number of items.
    fraction : float
        Fraction of the off-diagonal pairs to hide, in (0, 0.99]. The diagonal is never hidden.
    random_state : None, int, Generator or RandomState

    Returns
    -------
    mask : csr_array of bool of shape (n, n)

    Examples
    --------
    >>> from symrelu.metrics import random_mask
    >>> mask = random_mask(100, 0.1, random_state=0)
    >>> mask.shape, round(mask.nnz / 100**2, 2)
    ((100, 100), 0.1)
    """
    check_integer("n", n, 1)
    check_number("fraction", fraction, 0, 0.99, low_included=False)
    rng = random_generator(random_state, _STREAM)
    # A Poisson number of draws with replacement hides each pair independently, with probability ``fraction``.
    # Draws on the diagonal are dropped.
    count = rng.poisson(-math.log(1 - fraction) * n * n / 2)
    i, j = (n * rng.random((2, count))).astype(np.int64)  # a RandomState has no integers()
    i, j = i[i != j], j[i != j]
    pairs = sparse.csr_array((np.ones(len(i), dtype=bool), (i, j)), shape=(n, n))
    return sparse.csr_array(pairs + pairs.T, dtype=bool)


def parameters_per_pair(M: Any, rank: int, *, diagonal: str = "fit", mask: Any | None = None) -> float:
    """Return the number of entries of a factor per observed pair with M > 0; from 1, a fit can interpolate.

    Parameters
    ----------
    M
        As for :func:`relative_error`.
    rank : int
        Number of columns of the factor.
    diagonal, mask
        As for :func:`relative_error`.

    Returns
    -------
    ratio : float

    Examples
    --------
    >>> import numpy as np
    >>> from symrelu.metrics import parameters_per_pair
    >>> parameters_per_pair(np.ones((3, 3)), rank=2)
    1.0
    """
    return Problem.of(M, mask, diagonal).parameters_per_pair(check_integer("rank", rank, 1))


def _operator(
    problem: Problem, U: Any, signature: Any | None, support: str, backend: str
) -> tuple[Operator, np.ndarray]:
    """Return M as an operator, and U in the units of the operator."""
    U, signature = _check_factor(problem.M, U, signature)
    op = problem.operator(signature, support=support, backend=backend)
    return op, np.ldexp(U, -problem.exponent)


def _check_factor(M: Any, U: Any, signature: Any | None) -> tuple[np.ndarray, np.ndarray]:
    U = check_factor(U, M.dtype, "U")
    if U.ndim != 2 or len(U) != M.shape[0]:
        raise ValueError(f"U must have shape (n, rank) with n = {M.shape[0]}, got {U.shape}.")
    signature = np.ones(U.shape[1], M.dtype) if signature is None else np.asarray(signature, M.dtype)
    if signature.shape != (U.shape[1],) or not np.isin(signature, (-1, 1)).all():
        raise ValueError(f"signature must be {U.shape[1]} numbers +1 or -1, got {signature!r}.")
    return U, signature


def clustering_accuracy(labels_true: Any, labels_pred: Any) -> float:
    """Return the fraction of samples labelled correctly, under the best matching of the labels.

    Parameters
    ----------
    labels_true, labels_pred : array-like of shape (n_samples,)

    Returns
    -------
    accuracy : float

    Examples
    --------
    >>> from symrelu.metrics import clustering_accuracy
    >>> clustering_accuracy([0, 0, 1, 1], ["b", "b", "a", "a"])
    1.0
    """
    labels_true, labels_pred = column_or_1d(labels_true), column_or_1d(labels_pred)
    check_consistent_length(labels_true, labels_pred)
    counts = contingency_matrix(labels_true, labels_pred)
    # linear_sum_assignment minimises, hence the sign.
    return float(counts[linear_sum_assignment(-counts)].sum() / len(labels_true))


def modularity(M: Any, labels: Any, *, mask: Any | None = None) -> float:
    r"""Return the modularity of a partition: the weight inside clusters, compared with chance.

    .. math::

        \sum_c \Big( \frac{w_c}{w} - \frac{d_c^2}{w^2} \Big),

    where :math:`w_c` is the sum of the entries of M inside cluster c, :math:`d_c` that of the rows of its
    items, and w that of all entries.

    Parameters
    ----------
    M : matrix, graph, table, tensor or Problem
        Symmetric and nonnegative. The diagonal is ignored.
    labels : array-like of shape (n,)
        Cluster of each item.
    mask : sparse or dense bool matrix of shape (n, n), optional
        True where M is unobserved; such entries count as zero.

    Returns
    -------
    modularity : float
        Below 1. Near 0 if there are not more links inside clusters than by chance.

    Examples
    --------
    >>> import numpy as np
    >>> from symrelu.metrics import modularity
    >>> M = np.kron(np.eye(2), np.ones((5, 5)))
    >>> modularity(M, np.repeat([0, 1], 5))
    0.5
    """
    problem = Problem.of(M) if mask is None else Problem.of(M).hide(mask)
    codes = np.unique(column_or_1d(labels), return_inverse=True)[1]
    if len(codes) != problem.n:
        raise ValueError(f"labels must have one entry for each of the {problem.n} items, got {len(codes)}.")
    if isinstance(problem, BlockProblem):
        return problem.modularity(codes)
    return modularity_of(problem.scaled, codes)
