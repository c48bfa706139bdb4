"""Data that need no files: the paper's synthetic matrices and the graph of scikit-learn's digits."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.datasets import load_digits

from symrelu.graphs import self_tuning_graph
from symrelu.validation import check_integer, check_number, random_generator


def make_relu_gram(
    n: int, rank: int, *, shift: float = 0.0, random_state: Any = None
) -> tuple[np.ndarray, np.ndarray]:
    """Make the paper's synthetic matrix M = max(0, U U^T - shift * max(U U^T)) with normal U.

    With ``shift=0`` about half of the entries are zero and a fit of rank ``rank`` can be exact. With a shift, M
    is sparser and no U U^T of that rank reproduces it, but adding one column with a negative sign does.

    Parameters
    ----------
    n : int
        Size of the matrix (the paper's m).
    rank : int
        Columns of U (the paper's r-bar).
    shift : float, default=0.0
        The paper's p, in [0, 1]; with 1, all entries are zero.
    random_state : None, int, Generator or RandomState

    Returns
    -------
    M : ndarray of shape (n, n)
    U : ndarray of shape (n, rank)

    Examples
    --------
    >>> from symrelu.datasets import make_relu_gram
    >>> M, U = make_relu_gram(100, 3, shift=0.1, random_state=0)
    >>> M.shape, U.shape, bool((M >= 0).all())
    ((100, 100), (100, 3), True)
    """
    check_integer("n", n, 1)
    check_integer("rank", rank, 1)
    check_number("shift", shift, 0, 1)
    U = random_generator(random_state).standard_normal((n, rank))
    gram = U @ U.T
    gram = (gram + gram.T) / 2  # BLAS may round the two halves of a product differently
    return np.maximum(0, gram - shift * gram.max()), U


def load_digits_graph() -> tuple[Any, np.ndarray]:
    """Return the self-tuning graph of scikit-learn's 1797 digits, and their labels.

    Returns
    -------
    M : csr_array of shape (1797, 1797)
    labels : ndarray of shape (1797,)

    Examples
    --------
    >>> from symrelu.datasets import load_digits_graph
    >>> M, labels = load_digits_graph()
    >>> M.shape
    (1797, 1797)
    """
    digits = load_digits()
    return self_tuning_graph(digits.data), digits.target
