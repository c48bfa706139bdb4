"""The matrices of the experiments.

A case is a frozen value whose repr contains everything that determines its matrix, because stored results are
looked up by it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, ClassVar, Protocol, TypeVar

from symrelu.datasets import load_digits_graph, load_graph, make_relu_gram
from symrelu.datasets.published import find_dataset, load_dataset
from symrelu.graphs import self_tuning_graph


class Case(Hashable, Protocol):
    """A matrix that can be loaded."""

    @property
    def name(self) -> str:
        """Name to print."""

    @property
    def n(self) -> int:
        """Size of the matrix."""

    @property
    def random(self) -> bool:
        """Whether each seed gives a different matrix."""

    def load(self, seed: int) -> Any:
        """Return the matrix of that seed."""


@dataclass(frozen=True)
class ReluGram:
    """The paper's synthetic matrix; each seed gives a different one.

    Parameters
    ----------
    n, planted_rank : int
        The paper's m and r-bar.
    shift : float
        The paper's p.
    """

    n: int
    planted_rank: int
    shift: float
    random: ClassVar[bool] = True

    def __post_init__(self) -> None:
        # 0 and 0.0 must have the same repr, or their results would be stored twice.
        object.__setattr__(self, "shift", float(self.shift))

    @property
    def name(self) -> str:
        """Name to print, in the paper's notation."""
        return f"m={self.n}, r̄={self.planted_rank}, p={self.shift:g}"

    def load(self, seed: int) -> Any:
        """Return a dense matrix."""
        return make_relu_gram(self.n, self.planted_rank, shift=self.shift, random_state=seed)[0]


@dataclass(frozen=True)
class DigitsGraph:
    """The graph of scikit-learn's digits, which needs no files."""

    name: ClassVar[str] = "digits"
    n: ClassVar[int] = 1797
    random: ClassVar[bool] = False

    def load(self, seed: int) -> Any:
        """Return a csr_array."""
        return load_digits_graph()[0]


@dataclass(frozen=True)
class SampleGraph:
    """The self-tuning graph of one of the paper's data sets.

    Parameters
    ----------
    key : str
        Name of the set in the paper.
    name : str
        Name to print. It says so if the set is a reconstruction.
    n : int
        Number of samples.
    sha256 : str
        SHA-256 of the file, so that stored results of a different file are not reused.
    data_home : str or None
        Folder of the file. It does not identify the case.
    """

    key: str
    name: str = field(repr=False, compare=False)
    n: int
    sha256: str
    data_home: str | None = field(default=None, repr=False, compare=False)
    random: ClassVar[bool] = False

    @classmethod
    def find(cls, key: str, data_home: str | None = None) -> SampleGraph:
        """Return the case of a set, or raise a FileNotFoundError that says what is missing."""
        found = find_dataset(key, data_home)
        return cls(key, found.name, found.n_samples, found.sha256, data_home)

    def load(self, seed: int) -> Any:
        """Return a csr_array, or raise if the file has changed since :meth:`find`."""
        if find_dataset(self.key, self.data_home).sha256 != self.sha256:
            raise ValueError(f"The file of {self.name} has changed since it was found. Run the command again.")
        return self_tuning_graph(load_dataset(self.key, self.data_home).data)


@dataclass(frozen=True)
class PublishedGraph:
    """One of the small graphs, whose file must have the listed SHA-256.

    Parameters
    ----------
    name : str
        As :func:`symrelu.datasets.load_graph` takes it.
    n : int
        Number of nodes.
    data_home : str or None
        Folder of the file. It does not identify the case.
    """

    name: str
    n: int
    data_home: str | None = field(default=None, repr=False, compare=False)
    random: ClassVar[bool] = False

    @classmethod
    def find(cls, name: str, data_home: str | None = None) -> PublishedGraph:
        """Return the case of a graph, or raise a FileNotFoundError that says what is missing."""
        return cls(name, find_dataset(name, data_home).n_samples, data_home)

    def load(self, seed: int) -> Any:
        """Return a csr_array."""
        return load_graph(self.name, self.data_home).M


Found = TypeVar("Found", bound=Case)


def find_cases(find: Callable[[str], Found], names: Iterable[str]) -> tuple[tuple[Found, ...], tuple[str, ...]]:
    """Return the cases whose files were found, and the error message of each of the others."""
    cases, missing = [], []
    for name in names:
        try:
            cases.append(find(name))
        except (OSError, ValueError) as error:
            missing.append(str(error))
    return tuple(cases), tuple(missing)


def matrix_of(case: Case, seed: int) -> Any:
    """Return ``case.load(seed)``, from memory if it is the matrix of the previous call."""
    return _load_cached(case, seed if case.random else 0)


# One matrix is enough, because the cells of an experiment are ordered by matrix.
@lru_cache(maxsize=1)
def _load_cached(case: Case, seed: int) -> Any:
    return case.load(seed)
