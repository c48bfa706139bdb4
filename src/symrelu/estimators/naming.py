"""Names of nodes in the queries of the estimators: find a node by its name, and answer with names."""

from __future__ import annotations

import numbers
from collections import Counter
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.validation import check_is_fitted

from symrelu.estimators.rankings import Ranking
from symrelu.fitted.answers import answers_of
from symrelu.fitted.queries import ModelQueriesMixin
from symrelu.kernels.one_time_warnings import warn_once
from symrelu.validation import check_items

# difflib takes up to a second for these, and time in proportion: too long to wait for an error with more.
_COMPARED_NAMES = 20_000
_NUMBERS_ARE_INDICES = (
    "Numbers always mean indices: for names that are numbers or tuples of numbers, pass index_of(names)."
)
_INTEGER_NAMES = (
    "The names of the nodes are integers, but not 0, 1, 2, ... in this order, and numbers in queries mean "
    "indices. Pass index_of(names) to ask by name; node_names_ holds the names of the indices."
)
_NAMED = (
    "Pass indices, or fit a graph with names: a networkx graph, a labelled DataFrame, or "
    "symrelu.graphs.Labelled(matrix, names)."
)


@dataclass(frozen=True, eq=False, repr=False)
class NameIndex:
    """The names of the nodes, and the index of each.

    Parameters
    ----------
    names : ndarray of object of shape (n,)
    """

    names: np.ndarray

    def index_of(self, names: Any) -> Any:
        """Return the index of a name, or an array of the indices of several names.

        Parameters
        ----------
        names : hashable, or list or array of names
            A tuple is one name.

        Returns
        -------
        index : int, or ndarray of int with the shape of ``names``
        """
        names = _without_numpy(names)
        if _is_one(names):
            return self._position(names)
        if isinstance(names, set):
            raise TypeError("names must have an order, got a set. Pass a list.")
        indices = [self.index_of(name) for name in names]
        if len({np.shape(part) for part in indices}) > 1:
            raise ValueError("names must be one name or an array of names, got lists of different lengths.")
        return np.array(indices, dtype=np.int64)

    def __reduce__(self) -> tuple[Any, ...]:
        return NameIndex, (self.names,)  # without the dict, which is built again from the names

    def __contains__(self, name: Hashable) -> bool:
        return name in self._positions

    @cached_property
    def are_other_integers(self) -> bool:
        """Whether the names are integers, but not the indices."""
        return all(isinstance(name, numbers.Integral) for name in self.names) and any(
            name != place for place, name in enumerate(self.names)
        )

    @cached_property
    def has_numbers(self) -> bool:
        """Whether some name could be mistaken for indices: a number, or a tuple, which may hold numbers."""
        return any(isinstance(name, (numbers.Number, tuple)) for name in self.names)

    @cached_property
    def _positions(self) -> dict[Hashable, int]:
        return {name: k for k, name in enumerate(self.names)}

    @cached_property
    def _repeated(self) -> dict[Hashable, int]:
        """Names that belong to several nodes, as the names of cells in an AnnData may, with their number."""
        if len(self._positions) == len(self.names):
            return {}
        return {name: count for name, count in Counter(self.names.tolist()).items() if count > 1}

    def _position(self, name: Hashable) -> int:
        place = self._positions.get(name)
        if place is None:
            raise ValueError(self._unknown(name))
        if name in self._repeated:
            raise ValueError(
                f"The name {name!r} must belong to one node, but {self._repeated[name]} nodes have it. "
                "Pass the index of the node."
            )
        return place

    def _unknown(self, name: Hashable) -> str:
        """Return the error message for a name that no node has."""
        message = f"{name!r} is not one of the {len(self.names)} names of nodes."
        if isinstance(name, tuple) and all(_is_one(part) and part in self._positions for part in name):
            return f"{message} A tuple is one name: pass a list of several names."
        if len(self.names) > _COMPARED_NAMES:
            return message
        # As text, so that "12" finds the name 12.
        texts = {str(other): other for other in self.names}
        closest = get_close_matches(str(name), texts, n=1)
        return f"{message} The closest one is {texts[closest[0]]!r}." if closest else message


class Nodes(NamedTuple):
    """Nodes of a query as indices (unchecked if they were given as indices), and whether they were names."""

    indices: Any
    by_name: bool


class NodeNamesMixin:
    """Find nodes by the names that the input of ``fit`` had, for estimators with ``node_names_``."""

    node_names_: np.ndarray

    def index_of(self, names: Any) -> Any:
        """Return the indices of nodes from their names in the input of ``fit``.

        Parameters
        ----------
        names : hashable, or list or array of names
            A tuple is one name.

        Returns
        -------
        index : int, or ndarray of int with the shape of ``names``
            Positions in ``node_names_``.
        """
        check_is_fitted(self)
        index = self._name_index
        if index is None:
            raise ValueError(f"index_of requires names, but the input of fit had none. {_NAMED}")
        return index.index_of(names)

    @property
    def _name_index(self) -> NameIndex | None:
        """The index of ``node_names_``, built at the first query after a fit; None without names."""
        names = getattr(self, "node_names_", None)
        if names is None:
            return None
        cached: NameIndex | None = getattr(self, "_cached_names", None)
        if cached is None or cached.names is not names:
            cached = self._cached_names = NameIndex(names)
        return cached

    def _find_queried(self, argument: str, nodes: Any, *, ndim: int | None = None) -> Nodes:
        """Return the nodes of a query as indices, given by indices or by names.

        ``ndim`` is the largest number of dimensions that the query may have.
        """
        index = self._name_index
        if _are_numbers(nodes):
            if index is not None and index.has_numbers:
                if isinstance(nodes, tuple) and nodes in index:
                    raise ValueError(f"{argument}={nodes!r} is a name made of numbers. {_NUMBERS_ARE_INDICES}")
                _check_indices(argument, nodes, len(index.names), ndim)
                if index.are_other_integers:
                    warn_once("integer names", _INTEGER_NAMES, UserWarning, stacklevel=5)
            return Nodes(nodes, False)
        if index is None:
            raise TypeError(
                f"{argument} must be integers (indices of items, from 0), got {nodes!r:.80}: the input of fit "
                f"had no names. {_NAMED}"
            )
        for name in _flat(nodes):
            if isinstance(name, numbers.Number):
                raise TypeError(
                    f"{argument} must be all indices or all names, got the number {name!r} in a list of names. "
                    f"{_NUMBERS_ARE_INDICES}"
                )
        return Nodes(index.index_of(nodes), True)

    def _ranking_of(self, nodes: Any, search: Callable[[Any], tuple[np.ndarray, np.ndarray]]) -> Ranking:
        """Return the items and scores that a search by indices finds for nodes, by name if asked by name."""
        indices, by_name = self._find_queried("nodes", nodes, ndim=1)
        items, scores = search(indices)
        return Ranking.of(np.atleast_1d(indices), items, scores, getattr(self, "node_names_", None), by_name)


class NamedQueriesMixin(NodeNamesMixin, ModelQueriesMixin):
    """Queries of a model for nodes given by index or by name."""

    backend: str

    def score_pairs(self, i: Any, j: Any) -> np.ndarray:
        """Return X[i, j]. Negative entries of X still rank pairs, even if M is modelled by max(0, X).

        Parameters
        ----------
        i, j : array-like of int, or names
            Indices of items, or their names if the input of ``fit`` had names, with shapes that broadcast.
            Numbers always mean indices; see :meth:`index_of` for names that are numbers.

        Returns
        -------
        scores : ndarray
        """
        model = self._model
        return model.score_pairs(self._find_queried("i", i).indices, self._find_queried("j", j).indices)

    def reconstruct(self, rows: Any) -> np.ndarray:
        """Return rows of the model of M: max(0, X).

        Parameters
        ----------
        rows : array-like of int, or names
            Indices of items, or their names if the input of ``fit`` had names. Numbers always mean indices;
            see :meth:`index_of` for names that are numbers.

        Returns
        -------
        reconstruction : ndarray of shape (len(rows), n)
            Its columns are in the order of ``node_names_``.
        """
        model = self._model
        return model.reconstruct(self._find_queried("rows", rows).indices)

    def top_k(self, nodes: Any, k: int, *, exclude: Any | None = None) -> Ranking:
        """Return for each node the k other items with the largest X.

        Parameters
        ----------
        nodes : array-like of int, or names
            Indices of items, or their names if the input of ``fit`` had names. Numbers always mean indices;
            see :meth:`index_of` for names that are numbers.
        k : int
        exclude : sparse or dense matrix of shape (n, n), optional
            Pairs with a nonzero entry are left out. Pass M itself to get only pairs that are not in it.

        Returns
        -------
        items : ndarray of shape (len(nodes), k)
            In descending order of X; ties go to the lower index. Names if ``nodes`` are names, and None if
            there are fewer than k; otherwise indices, and -1 if there are fewer than k.
        scores : ndarray of shape (len(nodes), k)
            X of these pairs; minus infinity if there are fewer than k.

        Notes
        -----
        The two are a named tuple, whose method ``to_frame`` returns a table with the columns ``node``, ``item``
        and ``score``, with names if the input of ``fit`` had names.
        """
        answers = answers_of(self._model, self.backend)
        return self._ranking_of(nodes, lambda found: answers.top_k(found, k, exclude=exclude))


def _check_indices(argument: str, nodes: Any, n: int, ndim: int | None) -> None:
    """Raise an error about numbers as names for indices that do not exist, or tuples of numbers."""
    try:
        shape = check_items(argument, nodes, n).shape
    except (IndexError, TypeError) as error:
        raise type(error)(f"{error} {_NUMBERS_ARE_INDICES}") from error
    if ndim is not None and np.ndim(nodes) > ndim:
        dimensions = "one index" if ndim == 0 else "one-dimensional"
        raise ValueError(f"{argument} must be {dimensions}, got shape {shape}. {_NUMBERS_ARE_INDICES}")


def _are_numbers(nodes: Any) -> bool:
    """Whether a query consists of numbers, or is empty."""
    try:
        array = np.asarray(nodes)
    except ValueError:  # tuples of different lengths
        return False
    return array.dtype.kind in "biufc" or array.size == 0


def _is_one(names: Any) -> bool:
    """Whether an object is one name: lists and arrays have no hash."""
    try:
        hash(names)
    except TypeError:
        return False
    return True


def _without_numpy(names: Any) -> Any:
    """Return an array of names as lists, or as one name if it has no dimension."""
    return names.tolist() if isinstance(names, np.ndarray) else names


def _flat(names: Any) -> Iterator[Any]:
    """Yield the single names of a list of any depth."""
    names = _without_numpy(names)
    if _is_one(names):
        yield names
    else:
        for part in names:
            yield from _flat(part)
