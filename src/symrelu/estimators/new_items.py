"""Read the similarities of new items, or their edges, and recognise items of ``fit`` among them."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import csr_array, eye_array
from sklearn.utils.validation import check_is_fitted

from symrelu.fitted.solution import Solution
from symrelu.graphs.adapters import aligned_mask
from symrelu.graphs.tables import flags_of
from symrelu.problem import Problem, RowIndex
from symrelu.validation import check_rows, read_rows


class NewItemsMixin:
    """For estimators with a method that takes new items, as rows of similarities or as samples."""

    solution_: Solution
    embedding_: np.ndarray
    _read_new_rows: Any
    _in_order: Any
    _graph: Any
    _row_index: RowIndex

    @property
    def diagonal_(self) -> str:
        """Whether the diagonal was fitted ("fit") or treated as unobserved ("ignore")."""
        return self.solution_.diagonal

    def _keep_rows(self, matrix: Any, problem: Problem) -> None:
        """Keep hashes of the rows, so that ``transform`` leaves out the diagonal that was not fitted."""
        if problem.diagonal == "ignore":
            # As passed, and not problem.M, which differs by rounding if X is not exactly symmetric.
            self._row_index = RowIndex.of(*read_rows(matrix, problem.n, problem.mask, "X"))

    def _new_rows(self, X: Any, mask: Any | None) -> tuple[Any, Any, np.ndarray]:
        """Return the similarities of new items, their mask, and the row of each in ``embedding_``.

        That is -1 if the item is new, or if its similarities were observed at other places than in ``fit``.
        """
        check_is_fitted(self)
        precomputed = not hasattr(self, "_graph")
        if precomputed and hasattr(mask, "columns"):
            mask = self._mask_in_order(mask, X)
        matrix = self._read_new_rows(X, finite=not precomputed)
        if precomputed:
            M_new, unknown = check_rows(matrix, len(self.embedding_), aligned_mask(mask, None), name="X")
            if not hasattr(self, "_row_index"):
                return M_new, unknown, np.full(M_new.shape[0], -1)
            own, same_mask = self._row_index.find(M_new, unknown)
            return *self._without_own_entries(M_new, unknown, own), np.where(same_mask, own, -1)
        if mask is not None:
            raise ValueError(
                "mask marks similarities: it requires affinity='precomputed', got samples. Leave it out."
            )
        M_new, same = self._graph.rows(matrix)
        own = same if self.diagonal_ == "ignore" else np.full(len(same), -1)
        return *self._without_own_entries(M_new, None, own), same

    def _without_own_entries(self, M_new: Any, unknown: Any, own: np.ndarray) -> tuple[Any, Any]:
        """Return new rows and their mask without the similarities of fitted items to themselves."""
        known = np.flatnonzero(own >= 0)
        if len(known):
            places = csr_array((np.ones(len(known), bool), (known, own[known])), shape=M_new.shape)
            # The sum of boolean sparse arrays is their union.
            unknown = places if unknown is None else csr_array(csr_array(unknown) + places, dtype=bool)
        return check_rows(M_new, len(self.embedding_), unknown, name="X")

    def _mask_in_order(self, mask: Any, X: Any) -> Any:
        """Return a mask DataFrame as an array, with its columns in the order of the fitted items."""
        if hasattr(X, "columns") and not X.index.equals(mask.index):
            raise ValueError("mask must have the rows of X in the same order. Pass mask.loc[X.index].")
        return flags_of(self._in_order(mask, "mask") if hasattr(self, "node_names_") else mask)


def find_nodes(rows: Any, index: RowIndex, graph: Any) -> np.ndarray:
    """Return the node of a graph that each row of edges to its nodes belongs to, or -1.

    Parameters
    ----------
    rows : csr_array or ndarray of shape (n_new, n)
    index : RowIndex
        Of the rows of ``fit``, as they were passed.
    graph : csr_array of bool of shape (n, n)
        Its edges, without weights and loops.

    Returns
    -------
    nodes : ndarray of int of shape (n_new,)
    """
    # Weights first: nodes with the same edges, as in a complete graph, differ by their weights.
    known, _ = index.find(rows, None)
    others = np.flatnonzero(known < 0)
    if len(others):
        with_loops = csr_array(graph + eye_array(graph.shape[0], dtype=bool))
        # This index recognises rows with and without a loop.
        known[others], _ = RowIndex.of(with_loops, None).find(edges_in(rows[others]), None)
    return known


def edges_in(matrix: Any) -> Any:
    """Return where a matrix is positive, as a canonical csr_array of bool."""
    edges = csr_array(matrix > 0)
    edges.sum_duplicates()
    return edges
