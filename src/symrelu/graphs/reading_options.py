"""The options of ``read_graph``, and the formats for which they mean something."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from symrelu.files.checks import WrongKind, check_readable
from symrelu.files.signatures import kind_of, refuse_other_kinds
from symrelu.graphs.columns import AUTO, ColumnChoice
from symrelu.graphs.edge_files import TextOptions
from symrelu.graphs.pairs import DIRECTED, Rules
from symrelu.validation import check_choice

TEXT = (".csv", ".tsv", ".txt", ".edges", ".edgelist")
TABLES = (".parquet", ".pq")
NETWORKS = (".graphml", ".gml")
MATRICES = (".mtx", ".npz", ".npy", ".mat")
LISTS = (*TEXT, *TABLES)
_READABLE = (*LISTS, *NETWORKS, *MATRICES, ".h5ad")
_COMPRESSED = (*TEXT, *NETWORKS, ".mtx")
# Options that not all formats have, with the extensions for which they mean something.
_MEANING = {
    "source": LISTS,
    "target": LISTS,
    "delimiter": TEXT,
    "header": TEXT,
    "decimal": TEXT,
    "weight": (*LISTS, *NETWORKS),
    "key": (".h5ad", ".mat"),
}


@dataclass(frozen=True)
class ReadingOptions:
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
            "decimal": self.text.decimal != AUTO,
            "weight": columns.weight not in (AUTO, None),
            "key": self.key is not None,
        }
        return [name for name, chosen in given.items() if chosen]

    @property
    def weighted(self) -> bool:
        """Whether the weights count."""
        return self.text.columns.weight is not None


def options_of(
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
) -> ReadingOptions:
    """Return the checked options of read_graph."""
    columns = ColumnChoice(source, target, weight)
    check_choice("directed", directed, DIRECTED)
    return ReadingOptions(
        TextOptions(columns, delimiter, header, decimal), Rules(duplicates, self_loops, directed), key
    )


def extension_of(path: Path, options: ReadingOptions) -> str:
    """Return the extension of a readable file, without .gz; raise if an option means nothing for it."""
    suffixes = [suffix.lower() for suffix in path.suffixes[-2:]] or [""]
    compressed = suffixes[-1] == ".gz"
    extension = suffixes[0] if compressed and len(suffixes) == 2 else suffixes[-1]
    if extension not in _READABLE or (compressed and extension not in _COMPRESSED):
        kind = kind_of(path) if path.is_file() else None
        if kind is not None and not kind.extensions:
            raise WrongKind(f"{path} must be a graph or a matrix, but it is {kind.what}. {kind.advice}")
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
    refuse_other_kinds(path, extension)
    return extension
