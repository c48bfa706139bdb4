"""Vectors of the nodes of a graph whose inner products above a threshold are its edges, with the proof."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass, fields
from functools import cached_property
from os import PathLike
from typing import Any

import numpy as np
from scipy import sparse

from symrelu.files import check_names, read_header, read_npz, without_objects, write_atomically
from symrelu.files.entries import names_of_json, names_to_json
from symrelu.fitted.certificate import Certificate, certify
from symrelu.fitted.models import SymmetricReLU
from symrelu.operators import BACKENDS
from symrelu.validation import check_choice, check_integer, check_number

FORMAT = "symrelu.fitted.NeighborVectors"
FORMAT_VERSION = 1
DTYPES = ("float32", "float16")

_MARGIN_TOLERANCE = 1e-6
_ARRAYS = {"neighbor_vectors", "item_vectors", "signature", "indptr", "indices"}


@dataclass(frozen=True, eq=False, repr=False)
class NeighborVectors:
    """One vector for each node of a graph: two nodes are neighbours if their score is above the threshold.

    The score of nodes i and j is ``query_vectors[i] @ item_vectors[j]``, so that ``item_vectors`` can be put
    into any index for inner products and ``query_vectors`` can be searched in it. Queries here compute in
    float32.

    Parameters
    ----------
    item_vectors : ndarray of float32 or float16 of shape (n, rank)
    signature : ndarray of shape (rank,)
        Signs of the columns, +1 or -1.
    graph : csr_array of bool of shape (n, n)
        The neighbours that the vectors stand for. Symmetric, with an empty diagonal.
    certificate : Certificate
        The comparison of all pairs with the graph, and the threshold.
    names : ndarray of object of shape (n,), optional
        Names of the nodes. Queries here use indices; the names are only stored.
    backend : str, default="auto"
        On whose device a :class:`~symrelu.NeighborEmbedding` with these vectors answers. Queries here use none;
        it is only stored.
    """

    item_vectors: np.ndarray
    signature: np.ndarray
    graph: Any
    certificate: Certificate
    names: np.ndarray | None = None
    backend: str = "auto"

    @property
    def threshold(self) -> float:
        """Pairs with a score above it are neighbours."""
        return self.certificate.threshold

    @property
    def query_vectors(self) -> np.ndarray:
        """The vectors to search for, ``item_vectors * signature``."""
        return self.item_vectors * self.signature

    @property
    def scoring_model(self) -> SymmetricReLU:
        """The model whose X are the scores, in float32."""
        return SymmetricReLU(self._items, self.signature.astype(np.float32))

    def __repr__(self) -> str:
        n, rank = self.item_vectors.shape
        return f"NeighborVectors(n={n}, rank={rank}, wrong_pairs={self.certificate.wrong_pairs})"

    def neighbors(self, node: int) -> np.ndarray:
        """Return the other nodes with a score above the threshold, the largest score first.

        Parameters
        ----------
        node : int

        Returns
        -------
        nodes : ndarray of int
        """
        check_integer("node", node, 0, len(self.item_vectors) - 1)
        items = self._items
        scores = items @ (items[node] * self.signature.astype(np.float32))
        scores[node] = -np.inf
        found = np.flatnonzero(scores > np.float32(self.threshold))
        return found[np.argsort(-scores[found], kind="stable")]

    def top_k(self, nodes: Any, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Return for each node the k other nodes with the largest scores, neighbours or not.

        Parameters
        ----------
        nodes : array-like of int
        k : int

        Returns
        -------
        items : ndarray of int of shape (len(nodes), k)
            In descending order of score; ties go to the lower index. -1 if there are fewer than k.
        scores : ndarray of float32 of shape (len(nodes), k)
            Neighbours have scores above the threshold. Minus infinity if there are fewer than k.
        """
        return self.scoring_model.top_k(nodes, k)

    def place(self, rows: Any) -> np.ndarray:
        """Return the vectors of new nodes from their neighbours among the nodes of the graph.

        The aim is a score of at least twice the threshold for each neighbour, and of at most zero for all other
        nodes.

        Parameters
        ----------
        rows : csr_array of shape (n_new, n)
            Its stored entries are the neighbours.

        Returns
        -------
        item_vectors : ndarray of shape (n_new, rank)
        """
        model = SymmetricReLU(
            self.item_vectors.astype(np.float64), self.signature.astype(np.float64), support="at_least"
        )
        wanted = np.full(rows.nnz, 2 * self.threshold)
        rows = sparse.csr_array((wanted, rows.indices, rows.indptr), shape=rows.shape)
        return model.transform(rows).astype(self.item_vectors.dtype)

    def certify(self) -> Certificate:
        """Compare all pairs with the graph again."""
        return certify(self.item_vectors, self.signature, self.graph, self.threshold)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the vectors, graph, certificate, names and backend to an npz file (arrays and JSON, no pickle).

        Names must be strings, integers or tuples of these; others raise an error before anything is written.

        Parameters
        ----------
        path : str or path-like
        """
        header = {"format": FORMAT, "version": FORMAT_VERSION, "certificate": asdict(self.certificate)}
        if self.names is not None:
            header["names"] = names_to_json(self.names)
        if self.backend != "auto":  # otherwise earlier versions can read the file
            header["backend"] = check_choice("backend", self.backend, BACKENDS)
        with write_atomically(path) as file:
            arrays = without_objects(
                neighbor_vectors=np.array(json.dumps(header)),
                item_vectors=self.item_vectors,
                signature=self.signature,
                indptr=self.graph.indptr.astype(np.int64),
                indices=self.graph.indices.astype(np.int64),
            )
            np.savez(file, **arrays)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> NeighborVectors:
        """Read a file that :meth:`save` wrote, and compare all pairs with the graph again.

        A file whose vectors do not have the certificate that it claims is refused.

        Parameters
        ----------
        path : str or path-like

        Returns
        -------
        vectors : NeighborVectors
        """
        arrays = read_npz(path, "NeighborVectors")
        try:
            return cls._of_arrays(arrays)
        except (TypeError, ValueError, KeyError) as error:
            reason = str(error).rstrip(".")
            raise ValueError(f"{path} cannot be read as NeighborVectors: {reason}.") from error

    @classmethod
    def _of_arrays(cls, arrays: dict[str, np.ndarray]) -> NeighborVectors:
        check_names("it", arrays, _ARRAYS)
        header = read_header(arrays, "neighbor_vectors")
        check_names("its header", header, {"format", "version", "certificate"}, {"names", "backend"})
        if (header["format"], header["version"]) != (FORMAT, FORMAT_VERSION):
            raise ValueError(f"its format is not {FORMAT}, version {FORMAT_VERSION}")
        vectors, signature = arrays["item_vectors"], arrays["signature"]
        _check_vectors(vectors, signature)
        graph = _graph_of(arrays["indptr"], arrays["indices"], len(vectors))
        check_names("its certificate", header["certificate"], {field.name for field in fields(Certificate)})
        claimed = header["certificate"]
        found = certify(vectors, signature, graph, check_number("threshold", claimed["threshold"]))
        _check_claim(claimed, found)
        names = names_of_json(header["names"], len(vectors)) if "names" in header else None
        backend = check_choice("backend", header.get("backend", "auto"), BACKENDS)
        return cls(vectors, signature.astype(vectors.dtype), graph, found, names, backend)

    @cached_property
    def _items(self) -> np.ndarray:
        return self.item_vectors.astype(np.float32, copy=False)


def check_dtype(dtype: Any) -> None:
    """Raise unless vectors can be stored in a type, given as a string, a class or a dtype."""
    try:
        # NumPy takes None for float64, and has more names for a type than are accepted here.
        name = np.dtype(dtype).name if isinstance(dtype, (type, np.dtype)) else dtype
    except TypeError:  # a class that is no type of NumPy
        name = dtype
    check_choice("dtype", name, DTYPES)


def _check_claim(claimed: dict[str, Any], found: Certificate) -> None:
    """Raise if the certificate in a file is not the one of its vectors."""
    for name, number in asdict(found).items():
        # The margin may differ in its last digits on another machine.
        tolerance = _MARGIN_TOLERANCE if name == "margin" else 0.0
        if not math.isclose(claimed[name], number, rel_tol=tolerance, abs_tol=tolerance):
            raise ValueError(
                f"its certificate says {name} = {claimed[name]}, but a count of all pairs gives {number}: the "
                "file was changed after it was written"
            )


def _check_vectors(vectors: np.ndarray, signature: np.ndarray) -> None:
    if vectors.ndim != 2 or vectors.dtype.name not in DTYPES or not np.isfinite(vectors).all():
        raise ValueError(f"item_vectors must be a matrix of finite numbers in {' or '.join(DTYPES)}")
    if vectors.shape[1] == 0 or signature.shape != vectors.shape[1:] or not np.isin(signature, (-1, 1)).all():
        raise ValueError("signature must be +1 or -1 for each column of item_vectors")


def _graph_of(indptr: np.ndarray, indices: np.ndarray, n: int) -> Any:
    """Return the graph in a file, or raise if it is not symmetric or has loops."""
    if any(array.dtype.kind not in "iu" or array.ndim != 1 for array in (indptr, indices)):
        raise ValueError("indptr and indices of its graph must be lists of integers")
    graph = sparse.csr_array((np.ones(len(indices), bool), indices, indptr), shape=(n, n))
    graph.check_format(full_check=True)
    if (graph != graph.T).nnz or graph.diagonal().any() or not graph.has_canonical_format:
        raise ValueError("its graph is not symmetric without loops")
    return graph
