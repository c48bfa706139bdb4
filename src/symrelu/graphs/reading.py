"""Read graphs from files: choose the reader by the extension, and apply the same rules to all formats."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from symrelu.files import read_matrix
from symrelu.files.checks import DamagedFile, WrongKind, check_readable, naming_damaged_file
from symrelu.files.matlab import read_matlab
from symrelu.graphs.columns import AUTO, ColumnChoice
from symrelu.graphs.edge_files import EdgeColumns, Numbering, TextOptions, check_known, read_edge_file
from symrelu.graphs.edges import Labelled, as_labels
from symrelu.graphs.graph_files import read_h5ad, read_network
from symrelu.graphs.matrix_rules import entries_once, similarity_of_matrix
from symrelu.graphs.pairs import DIRECTED, Pairs, Rules, check_weights, once_each, similarity_of, sort_pairs
from symrelu.graphs.parquet_files import read_parquet
from symrelu.validation import check_choice

_TEXT = (".csv", ".tsv", ".txt", ".edges", ".edgelist")
_TABLES = (".parquet", ".pq")
_NETWORKS = (".graphml", ".gml")
_MATRICES = (".mtx", ".npz", ".npy", ".mat")
_LISTS = (*_TEXT, *_TABLES)
_READABLE = (*_LISTS, *_NETWORKS, *_MATRICES, ".h5ad")
_COMPRESSED = (*_TEXT, *_NETWORKS, ".mtx")
# Options that not all formats have, with the extensions for which they mean something.
_MEANING = {
    "source": _LISTS,
    "target": _LISTS,
    "delimiter": _TEXT,
    "header": _TEXT,
    "weight": (*_LISTS, *_NETWORKS),
    "key": (".h5ad", ".mat"),
}


class GraphFile(NamedTuple):
    """A graph that was read from a file, and what a user should know about how it was read.

    Attributes
    ----------
    labelled : Labelled
        The matrix and the names.
    notes : tuple of str
        For example "31 repeated edges were added" and "12 self loops are on the diagonal".
    """

    labelled: Labelled
    notes: tuple[str, ...]


def read_graph(
    path: str | PathLike[str],
    *,
    source: str | int | None = None,
    target: str | int | None = None,
    weight: str | int | None = AUTO,
    delimiter: str | None = None,
    header: bool | str = AUTO,
    duplicates: str = "error",
    self_loops: str = "keep",
    directed: str = "error",
    key: str | None = None,
) -> Labelled:
    """Read the similarity matrix of a graph from a file, with the names of its nodes.

    Parameters
    ----------
    path : str or path-like
        The format is chosen by the extension:

        - lists of edges: .csv, .tsv, .txt, .edges or .edgelist, with or without a header. Empty lines and
          comments are skipped: lines that begin with "#" or "%" and a blank, or that have another number of
          cells than the edges. Names are text, exactly as they are in the file. Tables in .parquet files
          (requires pyarrow) are read in the same way;
        - graphs: .graphml or .gml (requires networkx). The names are the attributes "label" or "name" if these
          are all different, and the ids otherwise;
        - matrices without names: .mtx, .npz (scipy sparse, or one dense array), .npy, or .mat up to version 7;
        - .h5ad (requires anndata): a graph of the observations, with their names.

        Text files, .mtx, .graphml and .gml may be compressed by gzip, for example .csv.gz.
    source, target : str or int, optional
        Columns that hold the two ends, by name or by number counted from 1. Defaults to usual names such as
        "source" and "target" or "from" and "to", or to the first two columns.
    weight : str, int or None, default="auto"
        Column that holds the weights, or attribute of the edges of a graph. "auto" is "weight" if there is one,
        or the third column if it holds numbers and there is no header; otherwise all edges have weight 1. With
        None, weights are ignored: all edges, and all nonzeros of a matrix, count 1.
    delimiter : str, optional
        Character between the columns. Defaults to a tab for .tsv, and otherwise to what splits the first lines
        into equally many cells: a tab, a semicolon, "|", a comma or blanks, in this order, but the comma first
        in .csv files.
    header : bool, default="auto"
        Whether the first line names the columns. "auto" looks for usual names, and for a column with numbers
        in all lines except the first.
    duplicates : {"error", "max", "sum"}, default="error"
        How to combine the weights of an edge that is given more than once in the same direction.
    self_loops : {"keep", "drop", "error"}, default="keep"
        What to do with edges from a node to itself: put their weights on the diagonal, leave them out, or raise
        an error.
    directed : {"error", "max", "sum", "mean"}, default="error"
        How to combine the two directions of a pair if they differ. "error" refuses weights that differ between
        the directions, an asymmetric matrix, and a file that declares itself directed. In a list of edges, a
        direction that is not given does not count: the mean is that of the given ones. In a matrix it is zero.
        A symmetric list or matrix is not changed.
    key : str, optional
        Entry of ``obsp`` in an .h5ad file, see :func:`from_anndata`; variable in a .mat file, by default the
        only square matrix.

    Returns
    -------
    labelled : Labelled
        The matrix, and the names as strings in order of appearance (None if the file has none). The matrix of a
        list of edges is a csr_array with validated weights. The values of matrix files are validated by the
        fit.

    See Also
    --------
    read_graph_file : Also returns notes on how the file was read.
    from_edges : The same from objects in memory.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from symrelu.graphs import read_graph
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "friends.csv")
    ...     _ = path.write_text("from,to,weight\\nann,bob,2\\nbob,cid,0.5\\n")
    ...     matrix, labels = read_graph(path)
    >>> matrix.toarray()
    array([[0. , 2. , 0. ],
           [2. , 0. , 0.5],
           [0. , 0.5, 0. ]])
    >>> labels.tolist()
    ['ann', 'bob', 'cid']
    """
    options = _options(
        source=source,
        target=target,
        weight=weight,
        delimiter=delimiter,
        header=header,
        duplicates=duplicates,
        self_loops=self_loops,
        directed=directed,
        key=key,
    )
    return _read(Path(path), options).labelled


def read_graph_file(path: str | PathLike[str], **options: Any) -> GraphFile:
    """Read a graph as :func:`read_graph` does, and return notes on how the file was read.

    Parameters
    ----------
    path : str or path-like
    **options : keyword arguments
        Those of :func:`read_graph`.

    Returns
    -------
    file : GraphFile
    """
    return _read(Path(path), _options(**options))


def read_new_items(path: str | PathLike[str], labels: Iterable[Any], **options: Any) -> Labelled:
    """Read the similarities of new items to known ones, the input of ``transform``.

    Parameters
    ----------
    path : str or path-like
        A list of edges with a new item as the source and a known one as the target, or the file of a matrix
        with a row for each new item and a column for each known one, as for :func:`read_graph`.
    labels : iterable
        Names of the known items in the order of the columns; for example ``range(n)`` if they have none.
    **options : keyword arguments
        Those of :func:`read_graph`. ``self_loops`` and ``directed`` have no effect, because the two ends of an
        edge are items of different kinds.

    Returns
    -------
    labelled : Labelled
        A matrix of shape (n_new, n_known), and the names of the new items (None for the file of a matrix).
    """
    return read_new_items_file(path, labels, **options).labelled


def read_new_items_file(path: str | PathLike[str], labels: Iterable[Any], **options: Any) -> GraphFile:
    """Read new items as :func:`read_new_items` does, and return notes on how the file was read.

    Parameters
    ----------
    path : str or path-like
    labels : iterable
    **options : keyword arguments
        Those of :func:`read_new_items`.

    Returns
    -------
    file : GraphFile
    """
    path, settings = Path(path), _options(**options)
    extension = _extension(path, settings)
    known = [str(label) for label in labels]
    if extension in _MATRICES:
        return _read_new_rows(path, extension, settings, len(known))
    _check_list(
        path, extension, f" or a matrix ({', '.join(_MATRICES)}), to hold the similarities of new items"
    )
    new, targets = Numbering(), Numbering(zip(known, count()))
    edges = _read_edges(path, extension, settings.text, new, targets)
    check_known(path, new, targets, len(known))
    pairs = Pairs(edges.rows, edges.cols, list(new), known)
    with _naming(path):
        values = check_weights(pairs, _weights(edges))
        pairs, values, notes = once_each(*sort_pairs(pairs, values), settings.rules.duplicates)
    matrix = sparse.csr_array((values, (pairs.rows, pairs.cols)), shape=(len(new), len(known)))
    return GraphFile(Labelled(matrix, as_labels(list(new))), edges.notes + notes)


def read_pairs(path: Path) -> tuple[list[str], list[str], tuple[str, ...]]:
    """Return the names of the two ends in each line of a list of edges, and notes on how it was read."""
    settings = _options(weight=None)
    extension = _extension(path, settings)
    _check_list(path, extension)
    numbers = Numbering()
    edges = _read_edges(path, extension, settings.text, numbers, numbers)
    names = list(numbers)
    return [names[k] for k in edges.rows], [names[k] for k in edges.cols], edges.notes


def _check_list(path: Path, extension: str, others: str = "") -> None:
    if extension not in _LISTS:
        raise WrongKind(f"{path} must be a list of edges ({', '.join(_LISTS)}){others}, got {extension}.")


@dataclass(frozen=True)
class _Options:
    text: TextOptions
    rules: Rules
    key: str | None

    def chosen(self) -> list[str]:
        """Return the names of options that were given and that not all formats have."""
        columns = self.text.columns
        given = {
            "source": columns.source is not None,
            "target": columns.target is not None,
            "delimiter": self.text.delimiter is not None,
            "header": self.text.header != AUTO,
            "weight": columns.weight not in (AUTO, None),
            "key": self.key is not None,
        }
        return [name for name, chosen in given.items() if chosen]

    @property
    def weighted(self) -> bool:
        """Whether the weights count."""
        return self.text.columns.weight is not None


def _options(
    *,
    source: str | int | None = None,
    target: str | int | None = None,
    weight: str | int | None = AUTO,
    delimiter: str | None = None,
    header: bool | str = AUTO,
    duplicates: str = "error",
    self_loops: str = "keep",
    directed: str = "error",
    key: str | None = None,
) -> _Options:
    """Return the checked options of read_graph."""
    columns = ColumnChoice(source, target, weight)
    check_choice("directed", directed, DIRECTED)
    return _Options(TextOptions(columns, delimiter, header), Rules(duplicates, self_loops, directed), key)


def _extension(path: Path, options: _Options) -> str:
    """Return the extension of a readable file, without .gz; raise if an option means nothing for it."""
    suffixes = [suffix.lower() for suffix in path.suffixes[-2:]] or [""]
    compressed = suffixes[-1] == ".gz"
    extension = suffixes[0] if compressed and len(suffixes) == 2 else suffixes[-1]
    if extension not in _READABLE or (compressed and extension not in _COMPRESSED):
        raise WrongKind(
            f"{path} must be one of {', '.join(_READABLE)}; {', '.join(_COMPRESSED)} may be compressed by gzip "
            f"(.gz). Got the extension {''.join(suffixes) if compressed else extension!r}."
        )
    check_readable(path)
    for name in options.chosen():
        if extension not in _MEANING[name]:
            raise WrongKind(
                f"{path}: {name}= has no meaning for a {extension} file, only for {', '.join(_MEANING[name])}. "
                "Leave it out."
            )
    return extension


def _read(path: Path, options: _Options) -> GraphFile:
    extension = _extension(path, options)
    if extension in _LISTS:
        return _read_list(path, extension, options)
    if extension in _NETWORKS:
        return _read_network(path, extension, options)
    labelled = _read_annotated(path, options.key) if extension == ".h5ad" else None
    matrix = _read_matrix(path, extension, options) if labelled is None else labelled.matrix
    with _naming(path):
        combined = similarity_of_matrix(matrix, options.rules, options.weighted)
    return GraphFile(Labelled(combined.matrix, labelled and labelled.labels), combined.notes)


def _read_list(path: Path, extension: str, options: _Options) -> GraphFile:
    numbers = Numbering()
    edges = _read_edges(path, extension, options.text, numbers, numbers)
    _check_direction(path, edges.directed, options)
    names = list(numbers)
    with _naming(path):
        combined = similarity_of(Pairs(edges.rows, edges.cols, names), _weights(edges), options.rules)
    return GraphFile(Labelled(combined.matrix, as_labels(names)), edges.notes + combined.notes)


def _read_edges(
    path: Path, extension: str, options: TextOptions, sources: Numbering, targets: Numbering
) -> EdgeColumns:
    if extension in _TABLES:
        return read_parquet(path, options.columns, sources, targets)
    with naming_damaged_file(path, "text"):
        return read_edge_file(path, options, sources, targets)


def _read_network(path: Path, extension: str, options: _Options) -> GraphFile:
    network = read_network(path, extension, options.text.columns.weight)
    _check_direction(path, network.directed, options)
    with _naming(path):
        combined = similarity_of(network.pairs, network.weights, options.rules)
    return GraphFile(Labelled(combined.matrix, as_labels(network.pairs.names)), network.notes + combined.notes)


def _check_direction(path: Path, directed: bool, options: _Options) -> None:
    if directed and options.rules.directed == "error":
        raise WrongKind(
            f'{path} must be an undirected graph, but it declares itself directed. Pass directed="max" to keep '
            'the larger weight of the two directions of a pair, "sum" to add them, or "mean" to average them.'
        )


def _read_annotated(path: Path, key: str | None) -> Labelled:
    with _naming(path):
        return read_h5ad(path, key)


def _read_matrix(path: Path, extension: str, options: _Options) -> Any:
    return read_matlab(path, options.key) if extension == ".mat" else read_matrix(path)


def _weights(edges: EdgeColumns) -> np.ndarray:
    return np.ones(len(edges.rows)) if edges.weights is None else edges.weights


def _read_new_rows(path: Path, extension: str, options: _Options, n_known: int) -> GraphFile:
    matrix = _read_matrix(path, extension, options)
    if matrix.shape[1] != n_known:
        raise WrongKind(
            f"{path} must have a column for each of the {n_known} known items, got shape {matrix.shape}."
        )
    with _naming(path):
        rows, notes = entries_once(matrix, options.rules.duplicates, options.weighted)
    return GraphFile(Labelled(rows, None), notes)


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Put the name of the file in front of errors about its contents."""
    try:
        yield
    except (WrongKind, DamagedFile):
        raise
    except (ValueError, TypeError) as error:
        raise WrongKind(f"{path}: {error}") from error
