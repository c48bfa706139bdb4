"""Starting factors: "random", "uniform" (scaled to M), "spectral", "imputed" (eigenpairs), or an array.

"multilevel" is the imputed start of a smaller matrix; what follows from it is in ``levels.py``.

They are computed on the host, so that a seed gives the same start for every backend. :func:`_on_host` converts
the arrays of products with M.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from scipy.sparse.linalg import LinearOperator

from symrelu.kernels.arpack import arpack_applicable, largest_eigenpairs, search_vectors
from symrelu.operators.base import Operator
from symrelu.solvers.base import check_supported
from symrelu.validation import check_choice, check_start, random_generator

Product = Callable[[np.ndarray], np.ndarray]

_STREAM = 1  # random stream: a start must be independent of data generated from the same seed

# Relative size of the noise in a spectral start. Without it, the eigenvectors of a block-diagonal matrix are a
# saddle point that no step leaves: each is zero outside its own block.
_SPECTRAL_NOISE = 1e-2

# Relative tolerance of the eigenvalues. More digits would be wasted, since the noise is as large.
_EIGEN_TOLERANCE = 1e-2


def check_init(init: Any, n: int, rank: int, dtype: Any, largest: float = 0.0) -> Any:
    """Return ``init`` validated: the name of a start, or a factor for a matrix with this largest entry."""
    if isinstance(init, str):
        return check_choice("init", init, STARTS)
    return check_start(init, n, rank, dtype, largest)


def start(op: Operator, init: Any, random_state: Any = None) -> Any:
    """Return a starting factor for ``op``, as an array of its kind.

    Parameters
    ----------
    op : Operator
    init : {"random", "uniform", "spectral", "imputed", "multilevel"} or array-like of shape (n, rank)
        "multilevel" is the same as "imputed" here. An array must be in the units of the operator.
    random_state : None, int, Generator or RandomState

    Returns
    -------
    U0 : array of shape (n, rank)
    """
    rng = random_generator(random_state, _STREAM)
    init = check_init(init, op.n, op.rank, op.dtype)
    U0 = _MAKERS[init](op, rng) if isinstance(init, str) else init
    return op.asarray(np.ascontiguousarray(U0))


def random_start(op: Operator, rng: Any) -> np.ndarray:
    """Return normally distributed columns, scaled such that ||U U^T||_F = ||M||_F."""
    return _scaled(op, rng.standard_normal((op.n, op.rank)))


def uniform_start(op: Operator, rng: Any) -> np.ndarray:
    """Return columns uniform in [0, 1), the usual start of nonnegative methods, scaled in the same way."""
    return _scaled(op, rng.random((op.n, op.rank)))


def _scaled(op: Operator, U: np.ndarray) -> np.ndarray:
    return U * np.sqrt(op.norm / np.linalg.norm(U.T @ U))


def spectral_start(op: Operator, rng: Any) -> np.ndarray:
    """Return the leading eigenvectors of M times the root of their eigenvalues, padded with noise.

    The first negative column is constant: a threshold that is subtracted from every pair.
    """
    U0 = _from_eigenpairs(op, _on_host(op, op.matmul), rng)
    negative = np.flatnonzero(op.signs < 0)
    if negative.size:  # the column subtracts its square from every pair: half the mean entry of M
        U0[:, negative[0]] = np.sqrt(_total(op) / op.n**2 / 2)
    return U0


def imputed_start(op: Operator, rng: Any) -> np.ndarray:
    """Return the leading eigenvectors of M with its zeros replaced by a negative number.

    A zero of M means X <= 0, not X = 0. Minus the mean of the positive entries is a reasonable guess for X
    there, and gives a matrix whose eigenvectors are close to the solution: those of the largest eigenvalues for
    the positive columns, those of the lowest for the negative ones. The matrix is the sum of M, a sparse matrix
    and a constant, and is never formed.
    """
    imputed = _imputed(op)
    U0 = _from_eigenpairs(op, imputed, rng)
    negative = np.flatnonzero(op.signs < 0)
    if negative.size:
        values, vectors = _leading_eigenpairs(op, lambda V: -imputed(V), negative.size, rng)
        usable = values > op.eps * op.norm
        kept = negative[: int(np.sum(usable))]
        U0[:, kept] = vectors[:, usable] * np.sqrt(values[usable])
    return U0


def count_negative(op: Operator, random_state: Any = None) -> int:
    """Return the number of negative columns that ``n_negative="auto"`` stands for.

    Replace the zeros of M by a negative number, take the ``rank`` eigenvalues of largest magnitude, and count
    the negative ones. At least one column stays positive.
    """
    rng = random_generator(random_state, _STREAM)
    values, _ = _leading_eigenpairs(op, _imputed(op), op.rank, rng, by_magnitude=True)
    # Eigenvalues that are zero up to rounding must not count as negative.
    rounding = 1e3 * op.eps * np.abs(values).max(initial=0.0)
    return min(int(np.sum(values < -rounding)), op.rank - 1)


def _imputed(op: Operator) -> Product:
    """Return the product with M after its zeros are replaced by minus the mean of its positive entries."""
    fill = -_total(op) / max(1, op.n_positive)
    return _on_host(op, partial(op.imputed_matmul, fill=fill))


def _total(op: Operator) -> float:
    """Return the sum of the entries of M."""
    ones = np.ones((op.n, 1), op.dtype)
    return float(np.sum(_on_host(op, op.matmul)(ones), dtype=np.float64))


def _on_host(op: Operator, product: Callable[[Any], Any]) -> Product:
    """Wrap a product of the operator as a function of numpy arrays."""
    return lambda V: op.to_numpy(product(op.asarray(np.ascontiguousarray(V))))


def _from_eigenpairs(op: Operator, product: Product, rng: Any) -> np.ndarray:
    """Return scaled leading eigenvectors in the positive columns, and noise in all others.

    Columns without a positive eigenvalue would be zero, and a zero column stays zero in every step. They get
    noise of the size of the smallest other column.
    """
    positive = np.flatnonzero(op.signs > 0)
    values, vectors = _leading_eigenpairs(op, product, positive.size, rng)
    usable = values > op.eps * op.norm  # smaller ones are rounding errors
    columns = vectors[:, usable] * np.sqrt(values[usable])
    smallest = np.linalg.norm(columns, axis=0).min() if columns.size else np.sqrt(op.norm)
    noise = rng.standard_normal((op.n, op.rank)) * smallest / np.sqrt(op.n)
    U0 = noise.copy()
    kept = positive[: columns.shape[1]]
    U0[:, kept] = columns + _SPECTRAL_NOISE * noise[:, kept]
    return U0


def _leading_eigenpairs(
    op: Operator, product: Product, k: int, rng: Any, *, by_magnitude: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """Return up to k of the largest eigenvalues in descending order, and their eigenvectors."""
    if k == 0:
        return np.empty(0), np.empty((op.n, 0))
    if arpack_applicable(k, op.n):
        M = _linear_operator(op, product)
        v0, further = search_vectors(op.n, rng)
        values, vectors = largest_eigenpairs(
            M, k, v0, further, by_magnitude=by_magnitude, tolerance=_EIGEN_TOLERANCE
        )
    else:  # ARPACK is unsuitable, and U is so wide that a dense M fits in memory too
        values, vectors = np.linalg.eigh(product(np.eye(op.n, dtype=op.dtype)).astype(np.float64))
    order = np.argsort(-np.abs(values) if by_magnitude else -values, kind="stable")[:k]
    return values[order], vectors[:, order]


def _linear_operator(op: Operator, product: Product) -> LinearOperator:
    """Wrap a product as a scipy LinearOperator in float64, regardless of the dtype of M."""

    def multiply(v: np.ndarray) -> np.ndarray:
        return product(v.reshape(op.n, -1)).astype(np.float64)

    return LinearOperator((op.n, op.n), matvec=multiply, matmat=multiply, dtype=np.float64)


_MAKERS = {
    "random": random_start,
    "uniform": uniform_start,
    "spectral": spectral_start,
    "imputed": imputed_start,
    "multilevel": imputed_start,  # of its smallest matrix: see symrelu.fit.levels
}
STARTS = tuple(_MAKERS)
_REQUIRES = dict.fromkeys(("imputed", "multilevel"), ("imputed_matmul", "n_positive"))


def check_start_supported(kind: type[Operator], init: Any, n_negative: Any = 0) -> None:
    """Raise unless a class of operators offers what a start, or ``n_negative="auto"``, requires."""
    requires = _REQUIRES.get(init, ()) if isinstance(init, str) else ()
    check_supported(f"init={init!r}", requires, kind, "Pass init='random', 'uniform' or 'spectral'.")
    if isinstance(init, str) and init == "multilevel" and not kind.has_local_matrix:
        raise ValueError(
            f"init='multilevel' requires a matrix in this process, which {kind.__name__} does not have. Pass "
            "init='imputed'."
        )
    if n_negative == "auto":
        check_supported("n_negative='auto'", _REQUIRES["imputed"], kind, "Pass a number.")
