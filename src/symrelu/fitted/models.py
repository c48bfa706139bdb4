"""Fitted models: frozen values that answer queries about X without forming an n x n array."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

import numpy as np
from scipy import sparse

from symrelu.fitted.canonical_form import canonical_factor
from symrelu.fitted.new_rows import explained_squares, transform_rows
from symrelu.kernels.scores import largest_of_rows, pair_scores
from symrelu.kernels.threads import single_threaded_blas
from symrelu.validation import (
    SUPPORTS,
    check_choice,
    check_integer,
    check_items,
    check_number,
    check_rows,
    is_well_formed_sparse,
)

__all__ = ["FittedModel", "Linear", "OneFactor", "SymmetricReLU", "TwoFactor"]


@dataclass(frozen=True, eq=False, repr=False)
class FittedModel(ABC):
    """Base class of the fitted models: X = left right^T, and queries for parts of X.

    Parameters
    ----------
    U : ndarray of shape (n, rank)
        The left factor.
    signature : ndarray of shape (rank,)
        Signs of its columns, +1 or -1.
    """

    U: np.ndarray
    signature: np.ndarray

    formula: ClassVar[str]
    relu: ClassVar[bool] = True  # whether M is modelled by max(0, X) rather than X

    def __post_init__(self) -> None:
        U, signature = self.U, self.signature
        _check_factor("U", U)
        _check_floats("signature", signature)
        if signature.shape != U.shape[1:]:
            raise ValueError(f"U of shape {U.shape} does not match a signature of shape {signature.shape}.")
        if not np.isin(signature, (-1, 1)).all():
            raise ValueError(f"signature must be +1 or -1 for each column, got {signature.tolist()}.")

    @property
    def left(self) -> np.ndarray:
        """The left factor, of shape (n, rank)."""
        return self.U

    @property
    @abstractmethod
    def right(self) -> np.ndarray:
        """The right factor, of shape (n, rank)."""

    @property
    def scoring(self) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        """Two factors, and scales or None, from which scores are computed."""
        return self.left, self.right, None

    @property
    def n(self) -> int:
        """Number of items."""
        return len(self.U)

    @property
    def rank(self) -> int:
        """Number of columns of U."""
        return int(self.U.shape[1])

    @property
    def n_negative(self) -> int:
        """Number of columns that enter X with a minus sign."""
        return int(np.sum(self.signature < 0))

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of U, and of everything computed from it."""
        return self.U.dtype

    def __repr__(self) -> str:
        return f"{type(self).__name__}(n={self.n}, rank={self.rank}, n_negative={self.n_negative})"

    def score_pairs(self, i: Any, j: Any) -> np.ndarray:
        """Return X[i, j]. Negative entries of X still rank pairs, even if M is modelled by max(0, X).

        Parameters
        ----------
        i, j : array-like of int
            Indices of items, with shapes that broadcast.

        Returns
        -------
        scores : ndarray
        """
        left, right = self.left, self.right
        i, j = np.broadcast_arrays(check_items("i", i, len(left)), check_items("j", j, len(left)))
        scores = pair_scores(left, right, i.ravel(), j.ravel())
        return scores.reshape(i.shape)

    def reconstruct(self, rows: Any) -> np.ndarray:
        """Return rows of the model of M: max(0, X), or X itself if the model has no ReLU.

        Parameters
        ----------
        rows : array-like of int

        Returns
        -------
        reconstruction : ndarray of shape (len(rows), n)
        """
        left, right = self.left, self.right
        block = left[check_items("rows", rows, len(left))] @ right.T
        return np.maximum(block, 0, out=block) if self.relu else block

    def top_k(self, nodes: Any, k: int, *, exclude: Any | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Return for each node the k other items with the largest X.

        Parameters
        ----------
        nodes : array-like of int
        k : int
        exclude : sparse or dense matrix of shape (n, n), optional
            Pairs with a nonzero entry are left out. Pass M itself to get only pairs that are not in it.

        Returns
        -------
        items : ndarray of int of shape (len(nodes), k)
            In descending order of X; ties go to the lower index. -1 if there are fewer than k.
        scores : ndarray of shape (len(nodes), k)
            X of these pairs; minus infinity if there are fewer than k.
        """
        nodes, excluded = check_nodes(nodes, k, exclude, self.n)
        left, right, scales = self.scoring
        return largest_of_rows(left, right, nodes, k, excluded, scales)


@dataclass(frozen=True, eq=False, repr=False)
class OneFactor(FittedModel):
    """A model with X = (U * signature) U^T, which is symmetric.

    Parameters
    ----------
    U : ndarray of shape (n, rank)
    signature : ndarray of shape (rank,)
        Signs of the columns of U, +1 or -1.
    """

    @property
    def right(self) -> np.ndarray:
        """The right factor, U * signature."""
        return self.U * self.signature

    def canonicalize(self) -> Self:
        """Return the model with the same X and a factor that depends only on X, so that runs can be compared.

        Its columns are the eigenvectors of X scaled by the roots of the absolute eigenvalues, for each sign in
        descending order of magnitude. The entry of largest magnitude in each column is positive. Eigenvectors
        of equal eigenvalues are determined only up to a rotation.
        """
        return replace(self, U=canonical_factor(self.U, self.signature))


@dataclass(frozen=True, eq=False, repr=False)
class SymmetricReLU(OneFactor):
    """M ~ max(0, (U * signature) U^T), the model of :func:`symrelu.decompose`.

    Parameters
    ----------
    U : ndarray of shape (n, rank)
        The factor, with one row for each item.
    signature : ndarray of shape (rank,)
        Signs of its columns, +1 or -1.
    alpha : float, default=0.0
        Tikhonov weight of the fit, which also applies to new rows.
    zero_weight : float, default=1.0
        Weight in (0, 1] of the zeros of M, and of those of new rows.
    support : {"equal", "at_least"}, default="equal"
        Whether X = M is required where M > 0, or X >= M suffices; also of new rows.

    Examples
    --------
    >>> import numpy as np
    >>> from symrelu.fitted import SymmetricReLU
    >>> U = np.array([[1.0, 1.0], [2.0, 0.0], [0.0, 3.0]])
    >>> model = SymmetricReLU(U, signature=np.array([1.0, -1.0]))
    >>> model.score_pairs(0, [1, 2])
    array([ 2., -3.])
    >>> model.reconstruct(0)
    array([[0., 2., 0.]])
    >>> model.transform([[1.0, 6.0, 0.0]]).round(6)  # the row of a new item
    array([[3., 2.]])
    """

    alpha: float = 0.0
    zero_weight: float = 1.0
    support: str = "equal"

    formula: ClassVar[str] = "M ~ max(0, X)"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_number("alpha", self.alpha)
        check_number("zero_weight", self.zero_weight, 0, 1, low_included=False)
        check_choice("support", self.support, SUPPORTS)

    def transform(self, M_new: Any, mask: Any | None = None) -> np.ndarray:
        """Return the factor rows of new items from their similarities to the fitted ones.

        Each row minimises the objective of the fit with all other rows held fixed, a convex problem. If the
        minimum is not unique, the one of least norm is returned. A fitted item gets its own row back, up to
        the convergence error of the fit; with ``diagonal="ignore"``, its similarity to itself must be masked.

        With ``support="at_least"``, many rows often reach all similarities, so the minimum is rarely unique.
        A fitted item then gets a row with the same cost or a lower one, which is in general not its own.

        Parameters
        ----------
        M_new : sparse matrix, sparse array or array-like of shape (n_new, n)
        mask : sparse or dense bool matrix of shape (n_new, n), optional
            True where a similarity is unobserved. A zero means X <= 0; an unobserved entry is not fitted.

        Returns
        -------
        U_new : ndarray of shape (n_new, rank)
        """
        return self.transform_checked(*check_rows(M_new, self.n, mask))

    def score(self, M_new: Any, mask: Any | None = None) -> float:
        """Return the explained share of new rows, 1 - ||M_new - max(0, X_new)||^2 / ||M_new||^2.

        With ``support="at_least"``, entries with X_new > M_new > 0 add nothing to the error.

        Parameters
        ----------
        M_new : sparse matrix, sparse array or array-like of shape (n_new, n)
        mask : sparse or dense bool matrix of shape (n_new, n), optional
            True where a similarity is unobserved.

        Returns
        -------
        score : float
            1 is exact; 0 is no better than predicting zero everywhere.
        """
        return self.score_checked(*check_rows(M_new, self.n, mask))

    @property
    def of_rows(self) -> dict[str, Any]:
        """What the problems of new rows have in common, as arguments of ``transform_rows``."""
        return {
            "U": self.U,
            "signature": self.signature,
            "alpha": self.alpha,
            "zero_weight": self.zero_weight,
            "at_least": self.support == "at_least",
        }

    def transform_checked(self, M_new: Any, mask: Any | None) -> np.ndarray:
        """Apply :meth:`transform` to rows and a mask that :func:`symrelu.validation.check_rows` returned."""
        with single_threaded_blas():  # transform_rows distributes the rows over threads itself
            return transform_rows(M_new, **self.of_rows, mask=mask)

    def score_checked(self, M_new: Any, mask: Any | None) -> float:
        """Apply :meth:`score` to rows and a mask that :func:`symrelu.validation.check_rows` returned."""
        return self.explained(M_new, self.transform_checked(M_new, mask), mask)

    def explained(self, M_new: Any, U_new: np.ndarray, mask: Any | None) -> float:
        """Return the share of new rows that their factor rows explain, see :meth:`score`."""
        return explained_squares(M_new, U_new, self.right, mask, at_least=self.support == "at_least")


@dataclass(frozen=True, eq=False, repr=False)
class Linear(OneFactor):
    """M ~ (U * signature) U^T without a ReLU: symmetric NMF and the truncated eigendecomposition.

    Parameters
    ----------
    U : ndarray of shape (n, rank)
        A nonnegative factor, or eigenvectors scaled by the roots of the absolute eigenvalues.
    signature : ndarray of shape (rank,)
        Signs of its columns, +1 or -1.

    Examples
    --------
    >>> import numpy as np
    >>> from symrelu.fitted import Linear
    >>> U = np.array([[1.0, 1.0], [2.0, 0.0], [0.0, 3.0]])
    >>> Linear(U, signature=np.array([1.0, -1.0])).reconstruct(0)
    array([[ 0.,  2., -3.]])
    """

    formula: ClassVar[str] = "M ~ X, without a ReLU"
    relu: ClassVar[bool] = False


@dataclass(frozen=True, eq=False, repr=False)
class TwoFactor(FittedModel):
    """M ~ max(0, U V^T), the model of 3B-NMD. X need not be symmetric.

    Parameters
    ----------
    U, V : ndarray of shape (n, rank)
        The left and the right factor.

    Attributes
    ----------
    signature : ndarray of shape (rank,)
        All ones: V may have any sign.

    Examples
    --------
    >>> import numpy as np
    >>> from symrelu.fitted import TwoFactor
    >>> model = TwoFactor(U=np.array([[1.0], [2.0]]), V=np.array([[3.0], [-1.0]]))
    >>> model.score_pairs([0, 1], [1, 0])
    array([-1.,  6.])
    >>> model.reconstruct([0, 1])
    array([[3., 0.],
           [6., 0.]])
    """

    signature: np.ndarray = field(init=False)  # not a parameter: __post_init__ sets it to ones
    V: np.ndarray

    formula: ClassVar[str] = "M ~ max(0, U V^T)"

    def __post_init__(self) -> None:
        _check_factor("U", self.U)
        _check_factor("V", self.V)
        if self.V.shape != self.U.shape:
            raise ValueError(f"V of shape {self.V.shape} does not match U of shape {self.U.shape}.")
        object.__setattr__(self, "signature", np.ones(self.rank, self.dtype))

    @property
    def right(self) -> np.ndarray:
        """The right factor, V."""
        return self.V


def _check_factor(name: str, factor: Any) -> None:
    """Raise unless a factor is a nonempty matrix of floats."""
    _check_floats(name, factor)
    if factor.ndim != 2 or 0 in factor.shape:
        raise ValueError(f"{name} must be a matrix, got shape {factor.shape}.")


def _check_floats(name: str, array: Any) -> None:
    if not isinstance(array, np.ndarray) or array.dtype.kind != "f":
        raise TypeError(
            f"{name} must be an array of floats, got {getattr(array, 'dtype', type(array).__name__)}."
        )


def largest(values: np.ndarray, k: int) -> np.ndarray:
    """Return the indices of the k largest finite values, in descending order; ties go to the lower index."""
    if k < len(values):
        # Sort only the candidates. All values equal to the k-th largest stay in, so that ties are resolved
        # below.
        threshold = np.partition(values, -k)[-k]
        places = np.flatnonzero(values >= threshold)
    else:
        places = np.arange(len(values))
    places = places[values[places] > -np.inf]
    return places[np.argsort(-values[places], kind="stable")][:k]


def check_nodes(nodes: Any, k: Any, exclude: Any | None, n: int) -> tuple[np.ndarray, Any | None]:
    """Return the nodes and the pairs to leave out of a ``top_k`` query, validated."""
    nodes = check_items("nodes", nodes, n)
    if nodes.ndim != 1:
        raise ValueError(f"nodes must be one-dimensional, got shape {nodes.shape}.")
    check_integer("k", k, 1)
    return nodes, None if exclude is None else check_exclude(exclude, n)


def check_exclude(exclude: Any, n: int) -> Any:
    """Return the pairs to leave out as a csr_array, validated."""
    is_well_formed_sparse(exclude, "exclude")
    matrix = sparse.csr_array(exclude)
    if matrix.shape != (n, n):
        raise ValueError(f"exclude must have shape {(n, n)}, like the fitted matrix, got {matrix.shape}.")
    return matrix
