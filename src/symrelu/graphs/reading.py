"""Read graphs from files: choose the reader by the extension, and apply the same rules to all formats."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import count
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from symrelu.files import read_matrix
from symrelu.files.checks import DamagedFile, WrongKind, naming_damaged_file
from symrelu.files.matlab import read_matlab
from symrelu.graphs.columns import AUTO
from symrelu.graphs.edge_files import EdgeColumns, Numbering, TextOptions, check_known, read_edge_file
from symrelu.graphs.edges import Labelled, as_labels
from symrelu.graphs.graph_files import read_network
from symrelu.graphs.h5ad_files import read_h5ad
from symrelu.graphs.matrix_rules import entries_once, similarity_of_matrix
from symrelu.graphs.pairs import Pairs, Rules, check_weights, once_each, similarity_of, sort_pairs
from symrelu.graphs.parquet_files import read_parquet
from symrelu.graphs.reading_options import (
    LISTS,
    MATRICES,
    NETWORKS,
    TABLES,
    ReadingOptions,
    extension_of,
    options_of,
)
from symrelu.graphs.remarks import warn_of


class GraphFile(NamedTuple):
    """A graph that was read from a file, and what a user should know about how it was read.

    Attributes
    ----------
    labelled : Labelled
        The matrix and the names.
    notes : tuple of str
        Harmless facts, for example "31 repeated edges were added" and "12 self loops are on the diagonal". What
        may be wrong is a :class:`GraphFileWarning`.
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
    decimal: str = AUTO,
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
        "source" and "target", "from" and "to" or "Kunde von" and "Kunde nach", or to the first two columns that
        are neither weights nor dates nor numbers of the rows (an "id" or "index" of different integers).
    weight : str, int or None, default="auto"
        Column that holds the weights, or attribute of the edges of a graph. "auto" is "weight" if there is one,
        or numbers with another usual name such as "value", "score" or "Gewicht"; without a header, it is the
        third column if it holds numbers. Otherwise all edges have weight 1. With None, weights are ignored: all
        edges, and all nonzeros of a matrix, count 1.
    delimiter : str, optional
        Character between the columns. Defaults to a tab for .tsv, and otherwise to what splits the first lines
        into equally many cells: a tab, a semicolon, "|", a comma or blanks, in this order, but the comma first
        in .csv files.
    header : bool, default="auto"
        Whether the first line names the columns. "auto" looks for usual names, and for a column with numbers
        in all lines except the first.
    decimal : {"auto", ".", ","}, default="auto"
        Decimal mark of the weights. "auto" finds a decimal comma if it can be nothing else: in files that are
        not split at commas, unless all numbers look like 1,234.
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

    Warns
    -----
    GraphFileWarning
        If the graph may not be the one that is meant: columns were guessed, numbers that may be weights were
        not read, or names differ in blanks only. Passing the options that the warning names silences it.

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
    options = options_of(
        source=source,
        target=target,
        weight=weight,
        delimiter=delimiter,
        header=header,
        decimal=decimal,
        duplicates=duplicates,
        self_loops=self_loops,
        directed=directed,
        key=key,
    )
    return _told(path, _read(Path(path), options)).labelled


def read_graph_file(path: str | PathLike[str], **options: Any) -> GraphFile:
    """Read a graph as :func:`symrelu.graphs.read_graph` does, and return notes on how the file was read.

    Parameters
    ----------
    path : str or path-like
    **options : keyword arguments
        Those of :func:`read_graph`.

    Returns
    -------
    file : GraphFile
    """
    return _told(path, _read(Path(path), options_of(**options)))


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
    return _told(path, _read_new_items(path, labels, options)).labelled


def read_new_items_file(path: str | PathLike[str], labels: Iterable[Any], **options: Any) -> GraphFile:
    """Read new items as :func:`symrelu.graphs.read_new_items` does, and return notes on how it was read.

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
    return _told(path, _read_new_items(path, labels, options))


def _read_new_items(path: str | PathLike[str], labels: Iterable[Any], options: Mapping[str, Any]) -> GraphFile:
    path, settings = Path(path), options_of(**options)
    extension = extension_of(path, settings)
    known = [str(label) for label in labels]
    if extension in MATRICES:
        return _read_new_rows(path, extension, settings, len(known))
    _check_list(path, extension, f" or a matrix ({', '.join(MATRICES)}), to hold the similarities of new items")
    new, targets = Numbering(), Numbering(zip(known, count()))
    edges = _read_edges(path, extension, settings.text, new, targets)
    check_known(path, new, targets, len(known))
    pairs = Pairs(edges.rows, edges.cols, list(new), known)
    with naming_file(path):
        values = check_weights(pairs, _weights(edges))
        pairs, values, notes = once_each(*sort_pairs(pairs, values), settings.rules.duplicates)
    matrix = sparse.csr_array((values, (pairs.rows, pairs.cols)), shape=(len(new), len(known)))
    return GraphFile(Labelled(matrix, as_labels(list(new))), edges.notes + notes)


def read_pairs(path: Path) -> tuple[list[str], list[str], tuple[str, ...]]:
    """Return the names of the two ends in each line of a list of edges, and notes on how it was read."""
    settings = options_of(weight=None)
    extension = extension_of(path, settings)
    _check_list(path, extension)
    numbers = Numbering()
    edges = _read_edges(path, extension, settings.text, numbers, numbers)
    names = list(numbers)
    notes = warn_of(path, edges.notes, stacklevel=3)
    return [names[k] for k in edges.rows], [names[k] for k in edges.cols], notes


def _told(path: str | PathLike[str], file: GraphFile) -> GraphFile:
    """Warn of the doubts among the notes. To be called by a public function, for the place of the warning."""
    return file._replace(notes=warn_of(path, file.notes, stacklevel=4))


def _check_list(path: Path, extension: str, others: str = "") -> None:
    if extension not in LISTS:
        raise WrongKind(f"{path} must be a list of edges ({', '.join(LISTS)}){others}, got {extension}.")


def _read(path: Path, options: ReadingOptions) -> GraphFile:
    extension = extension_of(path, options)
    if extension in LISTS:
        return _read_list(path, extension, options)
    if extension in NETWORKS:
        return _read_network(path, extension, options)
    labelled = _read_annotated(path, options.key) if extension == ".h5ad" else None
    matrix = _read_matrix(path, extension, options) if labelled is None else labelled.matrix
    with naming_file(path):
        combined = similarity_of_matrix(matrix, options.rules, options.weighted)
    return GraphFile(Labelled(combined.matrix, labelled and labelled.labels), combined.notes)


def _read_list(path: Path, extension: str, options: ReadingOptions) -> GraphFile:
    numbers = Numbering()
    edges = _read_edges(path, extension, options.text, numbers, numbers)
    check_direction(path, edges.directed, options.rules)
    names = list(numbers)
    with naming_file(path):
        combined = similarity_of(Pairs(edges.rows, edges.cols, names), _weights(edges), options.rules)
    return GraphFile(Labelled(combined.matrix, as_labels(names)), edges.notes + combined.notes)


def _read_edges(
    path: Path, extension: str, options: TextOptions, sources: Numbering, targets: Numbering
) -> EdgeColumns:
    if extension in TABLES:
        return read_parquet(path, options.columns, sources, targets)
    with naming_damaged_file(path, "text"):
        return read_edge_file(path, options, sources, targets)


def _read_network(path: Path, extension: str, options: ReadingOptions) -> GraphFile:
    network = read_network(path, extension, options.text.columns.weight)
    check_direction(path, network.directed, options.rules)
    with naming_file(path):
        combined = similarity_of(network.pairs, network.weights, options.rules)
    return GraphFile(Labelled(combined.matrix, as_labels(network.pairs.names)), network.notes + combined.notes)


def check_direction(path: Path, directed: bool, rules: Rules) -> None:
    """Raise if a file declares itself directed, and no rule says how to combine the directions."""
    if directed and rules.directed == "error":
        raise WrongKind(
            f'{path} must be an undirected graph, but it declares itself directed. Pass directed="max" to keep '
            'the larger weight of the two directions of a pair, "sum" to add them, or "mean" to average them.'
        )


def _read_annotated(path: Path, key: str | None) -> Labelled:
    with naming_file(path):
        return read_h5ad(path, key)


def _read_matrix(path: Path, extension: str, options: ReadingOptions) -> Any:
    return read_matlab(path, options.key) if extension == ".mat" else read_matrix(path)


def _weights(edges: EdgeColumns) -> np.ndarray:
    return np.ones(len(edges.rows)) if edges.weights is None else edges.weights


def _read_new_rows(path: Path, extension: str, options: ReadingOptions, n_known: int) -> GraphFile:
    matrix = _read_matrix(path, extension, options)
    if matrix.shape[1] != n_known:
        raise WrongKind(
            f"{path} must have a column for each of the {n_known} known items, got shape {matrix.shape}."
        )
    with naming_file(path):
        rows, notes = entries_once(matrix, options.rules.duplicates, options.weighted)
    return GraphFile(Labelled(rows, None), notes)


@contextmanager
def naming_file(path: Path) -> Iterator[None]:
    """Put the name of the file in front of errors about its contents."""
    try:
        yield
    except (WrongKind, DamagedFile):
        raise
    except (ValueError, TypeError) as error:
        raise WrongKind(f"{path}: {error}") from error
