"""The data of a fit: a matrix from any library, read, checked, scaled and packed once."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from symrelu.files.block_folder import is_block_folder
from symrelu.graphs.adapters import aligned_mask, as_similarity
from symrelu.kernels.arpack import largest_eigenvalue
from symrelu.kernels.threads import single_threaded_blas
from symrelu.operators import (
    BACKENDS,
    Operator,
    as_operator,
    chosen_backend,
    operator_class,
    unknown_entries,
)
from symrelu.problem.distances import advice_on_distances, given_diagonal
from symrelu.problem.fingerprints import fingerprint
from symrelu.validation import (
    DIAGONAL_SETTINGS,
    SUPPORTS,
    above_diagonal,
    as_array,
    check_choice,
    check_items,
    check_mask,
    check_memory,
    check_observed,
    divided,
    exponent_of,
    hidden,
    off_diagonal,
    pair_mask,
    scaled,
    stored,
)

# What makes a Problem of a block folder: block_problem.py, which builds on this module, puts it here.
FOLDERS: list[Callable[..., Problem]] = []


@dataclass(frozen=True, eq=False, repr=False, init=False)
class Problem:
    """A checked similarity matrix with its unobserved entries.

    Use :meth:`of` to create one. :func:`symrelu.decompose`, :func:`symrelu.select_rank` and
    :mod:`symrelu.metrics` accept it in place of M, so that several fits of one matrix check and pack it only
    once. M and the mask are not copied unless they have to be converted: do not modify them while the Problem
    is in use.

    Attributes
    ----------
    M : csr_array or ndarray of shape (n, n)
        In its original units, with zeros at the unobserved entries.
    mask : csr_array or ndarray of bool of shape (n, n), or None
        True where M is unobserved.
    diagonal : {"fit", "ignore"}
        Whether the diagonal is fitted or treated as unobserved.
    labels : ndarray of object of shape (n,), or None
        Names of the items, if M had any; masks with names are aligned to them.

    Examples
    --------
    >>> from symrelu import Problem, decompose, metrics
    >>> from symrelu.datasets import make_relu_gram
    >>> problem = Problem.of(make_relu_gram(60, 3, random_state=0)[0], diagonal="ignore")
    >>> problem
    Problem(60 items, dense, float64, diagonal='ignore')
    >>> fits = [decompose(problem, rank, random_state=0) for rank in (2, 3)]
    >>> metrics.relative_error(problem, fits[1].U) < metrics.relative_error(problem, fits[0].U)
    True
    """

    M: Any
    mask: Any | None
    diagonal: str
    labels: np.ndarray | None

    def __init__(self, *_: Any, **__: Any) -> None:
        raise TypeError(
            "A Problem is created by Problem.of(M, mask, diagonal), which checks M. Call that instead."
        )

    @classmethod
    def _from_checked(cls, M: Any, mask: Any | None, diagonal: str, labels: np.ndarray | None) -> Problem:
        """Return a Problem of data that has been checked already."""
        # Past __init__, which raises, and past the frozen dataclass, which allows no assignment.
        problem = object.__new__(cls)
        vars(problem).update(M=M, mask=mask, diagonal=diagonal, labels=labels)
        return problem

    @classmethod
    def of(
        cls,
        M: Any,
        mask: Any | None = None,
        diagonal: str = "fit",
        *,
        name: str = "M",
        warn_if_distances: bool = False,
    ) -> Problem:
        """Check the similarity matrix in an object of any library, and return it as a Problem.

        Row names are used to align M and mask.

        Parameters
        ----------
        M : matrix, graph, table, tensor, block folder or Problem
            Anything that :func:`symrelu.graphs.as_similarity` reads, or the path of a block folder
            (:func:`symrelu.graphs.write_blocks`). A Problem is returned unchanged.
        mask : sparse or dense bool matrix of shape (n, n), or DataFrame, optional
            True where the entry is unobserved. It must be None if M is a Problem, which has its own mask.
        diagonal : {"fit", "ignore", "auto"}, default="fit"
            "ignore" treats the diagonal as unobserved. "auto" does so if every observed entry of the diagonal
            is zero, as in a graph, and fits it otherwise. A Problem keeps its own setting; "ignore" is an error
            if that is "fit".
        name : str, default="M"
            Name of M in messages.
        warn_if_distances : bool, default=False
            Whether to warn if M looks like distances, once for each Problem. Functions that fit M do.

        Returns
        -------
        problem : Problem
        """
        check_choice("diagonal", diagonal, DIAGONAL_SETTINGS)
        if isinstance(M, Problem):
            M._check_no_conflict(mask, diagonal, name)
            problem = M
        elif is_block_folder(M):
            problem = FOLDERS[0](M, mask, diagonal)
        else:
            matrix, labels = as_similarity(M)
            # A diagonal that "auto" ignores has no entries to remove, so it can be resolved after the checks.
            checked = "fit" if diagonal == "auto" else diagonal
            observed, mask = check_observed(matrix, aligned_mask(mask, labels), checked, name=name)
            if diagonal == "auto":
                diagonal = "fit" if observed.diagonal().any() else "ignore"
            problem = cls._from_checked(observed, mask, diagonal, labels)
            # Kept aside, because an ignored diagonal is no longer in M. It shows whether M holds distances.
            vars(problem)["_given_diagonal"] = given_diagonal(matrix)
        advice = problem.advice_on_distances(name) if warn_if_distances else None
        if warn_if_distances:
            problem.skip_advice_on_distances()
        if advice is not None:
            # The warning points to the caller of the function that called this one.
            warnings.warn(advice, UserWarning, stacklevel=3)
        return problem

    def advice_on_distances(self, name: str = "M") -> str | None:
        """Return how to convert M to similarities if it looks like distances, else None.

        Parameters
        ----------
        name : str, default="M"
            Name of M in the advice.

        Returns
        -------
        advice : str or None
        """
        given: np.ndarray | None = vars(self).get("_given_diagonal")
        return None if given is None else advice_on_distances(given, self, name)

    def skip_advice_on_distances(self) -> None:
        """Give no advice from now on: whoever has shown it calls this, so that many fits warn only once."""
        vars(self).pop("_given_diagonal", None)

    def _check_no_conflict(self, mask: Any | None, diagonal: str, name: str) -> None:
        """Raise a TypeError if mask or diagonal contradicts this Problem."""
        if mask is not None:
            raise TypeError(
                f"mask must be None if {name} is a Problem, which has its own mask. Pass {name}.hide(mask)."
            )
        if diagonal == "ignore" and self.diagonal == "fit":
            raise TypeError(
                f"{name} is a Problem with diagonal='fit', got diagonal='ignore' in addition. Leave diagonal "
                "out, or create the Problem by Problem.of(matrix, diagonal='ignore')."
            )

    def __repr__(self) -> str:
        kind = "sparse" if self.is_sparse else "dense"
        masked = "" if self.mask is None else ", with a mask"
        return f"Problem({self.n} items, {kind}, {self.dtype}{masked}, diagonal={self.diagonal!r})"

    def __getstate__(self) -> dict[str, Any]:
        """Drop what can be recomputed: another process packs the matrix itself."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @property
    def n(self) -> int:
        """Number of items."""
        return int(self.M.shape[0])

    @property
    def dtype(self) -> np.dtype[Any]:
        """float32 or float64."""
        return np.dtype(self.M.dtype)

    @property
    def is_sparse(self) -> bool:
        """Whether M is sparse and must not become n x n."""
        return not isinstance(self.M, np.ndarray)

    @cached_property
    def largest(self) -> float:
        """The largest entry."""
        return float(stored(self.M).max(initial=0))

    @cached_property
    def exponent(self) -> int:
        """The k for which M / 4^k has entries of order one; 0 if M needs no rescaling."""
        return exponent_of(self.largest)

    @property
    def scaled(self) -> Any:
        """M / 4^exponent."""
        return scaled(self.M, self.exponent)

    def scaled_alpha(self, alpha: float) -> float:
        """Return the Tikhonov weight for ``scaled`` that is equivalent to ``alpha`` for M."""
        try:
            return math.ldexp(alpha, -2 * self.exponent)
        except OverflowError:
            raise ValueError(f"alpha={alpha:g} is too large for the scale of M. Use a smaller one.") from None

    def alpha_of(self, shrinkage: float) -> float:
        """Return the Tikhonov weight alpha that has the same effect on M in any units.

        The penalty alpha/2 ||U||^2 lowers the eigenvalues of X by alpha/2, here ``shrinkage`` times the largest
        eigenvalue of M. At U = 0 the Hessian is alpha - 2 M, so from a shrinkage of 1 on, U = 0 is a minimum.
        """
        try:
            alpha = math.ldexp(
                2 * shrinkage * self._largest_eigenvalue if shrinkage else 0.0, 2 * self.exponent
            )
        except OverflowError:
            alpha = math.inf
        if math.isinf(alpha):  # also if the argument of ldexp is infinite, for which it does not raise
            raise ValueError(f"shrinkage={shrinkage:g} is too large for M. Use a smaller one.")
        return alpha

    @cached_property
    def _largest_eigenvalue(self) -> float:
        """The largest eigenvalue of ``scaled``, with zeros at the unobserved entries."""
        with single_threaded_blas():  # so that the digits do not depend on threads
            return largest_eigenvalue(self.scaled)

    @cached_property
    def unknown(self) -> Any | None:
        """The mask together with an ignored diagonal as a csr_array of bool; None if everything is observed."""
        return unknown_entries(self.n, self.diagonal, self.mask)

    @property
    def observed_zeros(self) -> int:
        """Number of observed off-diagonal entries that are zero."""
        unknown = 0 if self.mask is None else off_diagonal(self.mask)
        return self.n * (self.n - 1) - off_diagonal(self.M) - unknown

    def parameters_per_pair(self, rank: int) -> float:
        """Return the number of entries in a factor with ``rank`` columns per observed pair with M > 0."""
        # Pairs are stored twice, entries of the diagonal once.
        pairs = (np.count_nonzero(stored(self.M)) + np.count_nonzero(self.M.diagonal())) / 2
        return float(self.n * rank / pairs)

    def positive_pairs(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return i, j and M_ij of the observed pairs i < j with M_ij > 0."""
        return above_diagonal(self.M)

    def unknown_pairs(self) -> tuple[np.ndarray, np.ndarray]:
        """Return i and j of the unobserved pairs i < j."""
        if self.mask is None:
            return np.empty(0, np.int64), np.empty(0, np.int64)
        return above_diagonal(self.mask)[:2]

    def block(self, items: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the block of M for some items as an ndarray, and a boolean array of its observed entries."""
        M = as_array(self.M[items][:, items])
        known = np.ones(M.shape, bool) if self.mask is None else ~as_array(self.mask[items][:, items])
        if self.diagonal == "ignore":
            np.fill_diagonal(known, False)
        return M, known

    def fingerprint(self) -> dict[str, str | None]:
        """Return hashes of "mask" and of the observed part of "matrix", the same for dense and sparse."""
        return dict(self._fingerprints)

    @cached_property
    def _fingerprints(self) -> dict[str, str | None]:
        return {"mask": fingerprint(self.mask), "matrix": fingerprint(self.M)}

    def hide(self, mask_or_i: Any, j: Any | None = None) -> Problem:
        """Return a Problem with more entries hidden. M is not checked again.

        Parameters
        ----------
        mask_or_i : sparse or dense bool matrix of shape (n, n), DataFrame, or array-like of int
            True at the entries to hide; or the first items of the pairs to hide.
        j : array-like of int, optional
            The second items of the pairs; each pair is hidden in both directions.

        Returns
        -------
        problem : Problem
        """
        if mask_or_i is None:
            raise TypeError("hide requires a boolean matrix, or the items i and j of pairs, got None.")
        if j is None:
            further = sparse.csr_array(check_mask(aligned_mask(mask_or_i, self.labels), self.n))
        else:
            further = pair_mask(check_items("i", mask_or_i, self.n), check_items("j", j, self.n), self.n)
        # The sum of boolean sparse arrays is their union.
        union = further if self.mask is None else further + sparse.csr_array(self.mask)
        mask = sparse.csr_array(union, dtype=bool)
        return self._from_checked(self._without(mask), mask, self.diagonal, self.labels)

    def _without(self, mask: Any) -> Any:
        return hidden(self.M, mask)

    def divided(self, d: np.ndarray) -> Problem:
        """Return the Problem of scaled_ij / (d_i d_j), where ``scaled`` is M / 4^exponent.

        For positive d the result is symmetric and nonnegative because M is, so it is not checked again.

        Parameters
        ----------
        d : ndarray of shape (n,)
            Positive.

        Returns
        -------
        problem : Problem
        """
        return self._from_checked(divided(self.scaled, d), self.mask, self.diagonal, self.labels)

    def operator(
        self,
        signature: Any,
        *,
        alpha: float = 0.0,
        zero_weight: float = 1.0,
        support: str = "equal",
        backend: str = "auto",
        client: Any | None = None,
    ) -> Operator:
        """Return ``scaled`` as an operator. It is packed once for each backend and shared between models.

        Parameters
        ----------
        signature : array-like of shape (rank,)
            Signs of the columns of a factor.
        alpha : float, default=0.0
            Tikhonov weight in the units of ``scaled``, see :meth:`scaled_alpha`.
        zero_weight : float, default=1.0
            Weight in (0, 1] of the zeros of M.
        support : {"equal", "at_least"}, default="equal"
            Whether X = M is required where M > 0, or X >= M suffices.
        backend, client
            Representation of M, a name in ``symrelu.operators.BACKENDS``, and the cluster of the backend
            "dask".

        Returns
        -------
        operator : Operator
            With its own count of evaluations.
        """
        backend = chosen_backend(check_choice("backend", backend, BACKENDS), self.M, signature)
        if backend not in self._packed or not self._packed[backend].serves(client):
            self._packed[backend] = self._pack(backend, client)
        # Never the packed operator itself: each caller gets its own count of evaluations.
        at_least = check_choice("support", support, SUPPORTS) == "at_least"
        return self._packed[backend].with_model(
            signature, alpha=alpha, zero_weight=zero_weight, at_least=at_least
        )

    def release(self) -> None:
        """Let go of what operators hold outside of this process, such as temporary files."""
        while self._packed:
            self._packed.popitem()[1].release()

    def _pack(self, backend: str, client: Any | None) -> Operator:
        # A dense M is in memory already; only a conversion can exhaust it.
        if self.is_sparse and operator_class(backend).holds_all_pairs:
            check_memory(self.M.shape, self.dtype, "M")
        with single_threaded_blas():  # so that the digits of the norm do not depend on threads
            return as_operator(self.scaled, np.ones(1), mask=self.unknown, backend=backend, client=client)

    @cached_property
    def _packed(self) -> dict[str, Operator]:
        return {}
