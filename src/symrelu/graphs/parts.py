"""Files that are read in parts, because they may be larger than the memory."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from symrelu.files.checks import WrongKind, naming_damaged_file
from symrelu.graphs.edge_files import Numbering, Spill, TextOptions, read_edge_file
from symrelu.graphs.pairs import Rules
from symrelu.graphs.reading import check_direction
from symrelu.graphs.reading_options import TEXT, extension_of, options_of

_MATRICES = (".mtx", ".npz")


class FileInParts(NamedTuple):
    """A file that can be read in parts, and how."""

    path: Path
    extension: str
    text: TextOptions
    rules: Rules
    weighted: bool

    @property
    def is_list(self) -> bool:
        """Whether it is a list of edges."""
        return self.extension in TEXT

    def read_list(self, numbers: Numbering, spill: Spill) -> tuple[str, ...]:
        """Pass the edges of a list on to ``spill``, and return notes on how it was read."""
        with naming_damaged_file(self.path, "text"):
            edges = read_edge_file(self.path, self.text, numbers, numbers, spill)
        check_direction(self.path, edges.directed, self.rules)
        return edges.notes


def open_parts(path: Path, options: Mapping[str, Any]) -> FileInParts:
    """Return a file with the options of ``read_graph``, or raise if it cannot be read in parts."""
    settings = options_of(**options)
    extension = extension_of(path, settings)
    if extension not in (*TEXT, *_MATRICES):
        raise WrongKind(
            f"{path} must be a list of edges ({', '.join(TEXT)}) or a sparse matrix ({', '.join(_MATRICES)}) "
            f"to be read in parts, got {extension}."
        )
    return FileInParts(path, extension, settings.text, settings.rules, settings.weighted)
