"""The matrices of the experiments. A case is a frozen value whose repr says all that determines its matrix."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, ClassVar, Protocol

from symrelu.datasets import load_digits_graph, load_graph, make_relu_gram
from symrelu.datasets.published import find_dataset, load_dataset
from symrelu.graphs import self_tuning_graph


class Case(Hashable, Protocol):
    """Something that gives a matrix."""

    @property
    def name(self) -> str:
        """What to print."""

    @property
    def n(self) -> int:
        """Size of the matrix."""

    @property
    def random(self) -> bool:
        """Whether each seed is another matrix."""

    def load(self, seed: int) -> Any:
        """Return the matrix of that seed."""


@dataclass(frozen=True)
class ReluGram:
    """The paper's synthetic matrix; each seed is another one.

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
        object.__setattr__(self, "shift", float(self.shift))  # one value, one repr

    @property
    def name(self) -> str:
        """What to print, in the paper's letters."""
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
        The paper's name of the set.
    name : str
        What to print: it says so where the set is a reconstruction.
    n : int
        Number of samples.
    sha256 : str
        Of the file, so that results of another file are not taken for results of this one.
    data_home : str or None
        Where the file lies; not part of what the case is.
    """

    key: str
    name: str = field(repr=False, compare=False)
    n: int
    sha256: str
    data_home: str | None = field(default=None, repr=False, compare=False)
    random: ClassVar[bool] = False

    @classmethod
    def find(cls, key: str, data_home: str | None = None) -> SampleGraph:
        """Return the case of a set; FileNotFoundError says what is missing."""
        found = find_dataset(key, data_home)
        return cls(key, found.name, found.n_samples, found.sha256, data_home)

    def load(self, seed: int) -> Any:
        """Return a csr_array, or raise if the file is not the one that was found."""
        if find_dataset(self.key, self.data_home).sha256 != self.sha256:
            raise ValueError(f"The file of {self.name} has changed since it was found. Run the command again.")
        return self_tuning_graph(load_dataset(self.key, self.data_home).data)


@dataclass(frozen=True)
class PublishedGraph:
    """One of the small graphs; its file must be the known one.

    Parameters
    ----------
    name : str
        As :func:`symrelu.datasets.load_graph` takes it.
    n : int
        Number of nodes.
    data_home : str or None
        Where the file lies; not part of what the case is.
    """

    name: str
    n: int
    data_home: str | None = field(default=None, repr=False, compare=False)
    random: ClassVar[bool] = False

    @classmethod
    def find(cls, name: str, data_home: str | None = None) -> PublishedGraph:
        """Return the case of a graph; FileNotFoundError says what is missing."""
        return cls(name, find_dataset(name, data_home).n_samples, data_home)

    def load(self, seed: int) -> Any:
        """Return a csr_array."""
        return load_graph(self.name, self.data_home).M


def matrix_of(case: Case, seed: int) -> Any:
    """Return ``case.load(seed)``. Most fits of the same matrix follow each other, so that one is kept."""
    return _load(case, seed if case.random else 0)


@lru_cache(maxsize=1)
def _load(case: Case, seed: int) -> Any:
    return case.load(seed)
