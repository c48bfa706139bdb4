"""The common parts of operators on NumPy arrays: conversion, and what follows from the support of M."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from symrelu.kernels.row_systems import solve_systems, whitening
from symrelu.kernels.sparse_products import sparse_product
from symrelu.kernels.threads import compile_rounds
from symrelu.kernels.vectors import (
    add_scaled,
    combined,
    compile_for,
    cross_gram,
    inner,
    inner_each,
    product,
    scale_columns,
)
from symrelu.operators.base import Operator


class HostOperator(Operator):
    """An operator whose arrays are NumPy arrays."""

    xp = np

    def asarray(self, A: np.ndarray) -> np.ndarray:
        return np.asarray(A, dtype=self.dtype)  # keeps the memory order, on which the last digits depend

    def to_numpy(self, A: np.ndarray) -> np.ndarray:
        return A


class ThreadedOperator(HostOperator):
    """An operator that works on its NumPy arrays in threads and without temporary arrays."""

    def inner(self, A: np.ndarray, B: np.ndarray) -> float:
        return inner(A, B)

    def add_scaled(self, A: np.ndarray, weight: float, B: np.ndarray) -> np.ndarray:
        return add_scaled(A, weight, B)

    def inner_each(self, A: np.ndarray, others: Sequence[np.ndarray]) -> list[float]:
        return inner_each(A, others)

    def combined(
        self, scale: float, A: np.ndarray, weights: Sequence[float], others: Sequence[np.ndarray]
    ) -> np.ndarray:
        return combined(scale, A, weights, others)

    def scale_columns(self, A: np.ndarray, weights: np.ndarray) -> np.ndarray:
        return scale_columns(A, weights)

    def gram(self, V: np.ndarray) -> np.ndarray:
        return cross_gram(V, V)


class shared_property(cached_property[Any]):  # lower case: @shared_property
    """A property of the data alone, computed once for all operators that share the data."""

    def __get__(self, instance: Any, owner: type[Any] | None = None) -> Any:
        if instance is None:
            return self
        assert self.attrname is not None
        if self.attrname not in instance._shared:
            instance._shared[self.attrname] = self.func(instance)
        return instance._shared[self.attrname]


class SupportOperator(ThreadedOperator):
    """An operator that can list the positive entries of M.

    Parameters
    ----------
    unknown : csr_array of bool, or None
        True where the entry is unobserved.
    **problem
        Passed on to :class:`~symrelu.operators.base.Operator`.
    """

    def __init__(self, *, unknown: Any | None, **problem: Any) -> None:
        super().__init__(**problem)
        self._unknown = unknown
        self._shared: dict[str, Any] = {}  # the same object in every copy that with_model makes

    @property
    @abstractmethod
    def support(self) -> tuple[np.ndarray, np.ndarray]:
        """Where M is positive and observed: ``indptr`` (int64) and ``indices`` (int32) of the rows (CSR)."""

    @abstractmethod
    def row_maxima(self) -> np.ndarray:
        """Return the largest observed entry of each row."""

    @property
    def n_positive(self) -> int:
        return len(self.support[1])

    def imputed_matmul(self, V: np.ndarray, fill: float) -> np.ndarray:
        # A sum over the zeros of a row is the sum over all entries minus the others: nothing is n x n.
        filled = self.matmul(V) + fill * (V.sum(axis=0) - sparse_product(self._not_zero, V))
        return filled if self._unknown is None else filled + self._unknown_diagonal[:, None] * V

    @shared_property
    def _not_zero(self) -> Any:
        """A sparse matrix with 1 where M is positive or unobserved."""
        indptr, indices = self.support
        ones = np.ones(len(indices), self.dtype)
        support = sparse.csr_array((ones, indices, indptr), shape=(self.n, self.n))
        return support if self._unknown is None else support + self._unknown.astype(self.dtype)

    @shared_property
    def _unknown_diagonal(self) -> np.ndarray:
        """The largest entry of each row whose diagonal entry is unobserved, else zero."""
        assert self._unknown is not None
        return np.where(self._unknown.diagonal(), self.row_maxima(), self.dtype.type(0))

    def solve_rows(self, V: np.ndarray, ridge: np.ndarray, *right: np.ndarray) -> tuple[np.ndarray, ...]:
        C = whitening(ridge)
        return solve_systems(*self.support, product(V, C), C, right)

    def warm_up(self) -> None:
        # No rows at all: compiling needs the types, not the work. The first step has one right-hand side, the
        # others have two.
        one, no_rows = np.ones((1, 1), self.dtype), (np.zeros(1, np.int64), np.empty(0, np.int32))
        whitening(one)
        compile_rounds()
        compile_for(self.dtype)
        for sides in ((one[:0],), (one[:0], one[:0])):
            solve_systems(*no_rows, one, one, sides)
