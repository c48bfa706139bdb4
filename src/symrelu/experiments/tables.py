"""Tables of our numbers and the paper's, written as CSV, Markdown, reStructuredText and LaTeX."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from symrelu.experiments.cells import CellResult


@dataclass(frozen=True)
class Entry:
    """One number of a table.

    Parameters
    ----------
    value : float
        Mean over the seeds.
    spread : float
        Standard deviation over the seeds; NaN for one seed.
    count : int
        Number of seeds.
    ran_away : int
        Number of fits that ended worse than they began. Their best factor is used in the mean.
    paper : float or None
        The number in the paper.
    """

    value: float
    spread: float = math.nan
    count: int = 1
    ran_away: int = 0
    paper: float | None = None

    @classmethod
    def of(
        cls,
        results: Sequence[CellResult],
        number: Callable[[CellResult], float],
        paper: float | None = None,
    ) -> Entry | None:
        """Summarise the results of all seeds; return None if there are no results."""
        if not results:
            return None
        values = [number(result) for result in results]
        return cls(
            value=float(np.mean(values)),
            spread=float(np.std(values, ddof=1)) if len(values) > 1 else math.nan,
            count=len(values),
            ran_away=sum(result.ran_away for result in results),
            paper=paper,
        )


Format = Callable[[float], str]


def scientific(digits: int) -> Format:
    """Return a format with ``digits`` decimals, which for 1 writes 0.00241 as 2.4e-3."""

    def form(value: float) -> str:
        mantissa, exponent = f"{value:.{digits}e}".split("e")
        return f"{mantissa}e{int(exponent)}"

    return form


def fixed(digits: int) -> Format:
    """Return a format with ``digits`` decimals and no exponent."""
    return lambda value: f"{value:.{digits}f}"


@dataclass(frozen=True)
class Table:
    """A table of entries.

    Parameters
    ----------
    name : str
        Stem of the file names.
    title : str
    corner : str
        Heading of the row labels.
    columns : tuple of str
    rows : tuple of (str, tuple of Entry or None)
        Label and entries; None stands for a cell that was not run.
    form : callable
        Format of the values.
    paper_form : callable
        Format of the paper's values.
    note : str
        Remark below the table.
    seeds : int
        Number of seeds that an entry should have; entries with fewer are marked.
    """

    name: str
    title: str
    corner: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[Entry | None, ...]], ...]
    # RUF009 warns about calls in defaults; a function without state can be shared by all instances.
    form: Format = scientific(2)  # noqa: RUF009
    paper_form: Format = scientific(1)  # noqa: RUF009
    note: str = ""
    seeds: int = 1

    @property
    def _entries(self) -> list[Entry]:
        return [entry for _, row in self.rows for entry in row if entry is not None]

    @property
    def has_paper(self) -> bool:
        """Whether any entry has a number from the paper."""
        return any(entry.paper is not None for entry in self._entries)

    def marks(self, entry: Entry) -> str:
        """Return the marks of an entry, which :attr:`remarks` explains."""
        return "*" * (entry.ran_away > 0) + "†" * (entry.count < self.seeds)

    def text(self, entry: Entry | None) -> str:
        """Return an entry as text: the value, its marks, and the paper's value in brackets."""
        if entry is None:
            return "n/a"
        text = self.form(entry.value) + self.marks(entry)
        return text if entry.paper is None else f"{text} ({self.paper_form(entry.paper)})"

    @property
    def remarks(self) -> str:
        """The note, the number of seeds, and the meaning of the marks."""
        shown = "".join(map(self.marks, self._entries))
        return " ".join(
            filter(
                None,
                (
                    self.note,
                    f"Mean over {self.seeds} seeds." if self.seeds > 1 else "One seed.",
                    "*: a fit ended worse than it began; its best factor is used." if "*" in shown else "",
                    "†: fits are missing." if "†" in shown else "",
                ),
            )
        )

    @property
    def legend(self) -> str:
        """The remarks, and the meaning of the brackets."""
        return " ".join(filter(None, (self.remarks, "In brackets: the paper." if self.has_paper else "")))

    def to_csv(self) -> str:
        """Return a CSV table with one line per entry, in full precision."""
        file = io.StringIO()
        writer = csv.writer(file, lineterminator="\n")
        # The committed files under results/ have these column names.
        writer.writerow(["row", "column", "mean", "standard deviation", "fits", "ran away", "paper"])
        for label, row in self.rows:
            for column, entry in zip(self.columns, row, strict=True):
                if entry is not None:
                    spread = "" if math.isnan(entry.spread) else repr(entry.spread)
                    paper = "" if entry.paper is None else entry.paper
                    # repr keeps all digits of a float.
                    numbers = [repr(entry.value), spread, entry.count, entry.ran_away, paper]
                    writer.writerow([label, column, *numbers])
        return file.getvalue()

    def to_markdown(self) -> str:
        """Return the table in GitHub's Markdown."""
        lines = [f"### {self.title}", "", _markdown_row([self.corner, *self.columns])]
        lines.append("|---|" + "---:|" * len(self.columns))
        lines += [_markdown_row([label, *map(self.text, row)]) for label, row in self.rows]
        return "\n".join([*lines, "", *([self.legend, ""] if self.legend else [])])

    def to_rst(self) -> str:
        """Return the table for Sphinx, with its name as the target of references."""
        lines = [f".. list-table:: {self.title}", f"   :name: {self.name}", "   :header-rows: 1", ""]
        for row in [[self.corner, *self.columns], *([label, *map(self.text, row)] for label, row in self.rows)]:
            cells = [cell.replace("*", r"\*") for cell in row]  # a bare * would start emphasis
            lines += [f"   {'* -' if k == 0 else '  -'} {cell}" for k, cell in enumerate(cells)]
        legend = self.legend.replace("*", r"\*")
        return "\n".join([*lines, "", *([legend, ""] if legend else [])])

    def to_latex(self) -> str:
        """Return the table for LaTeX with the booktabs package."""
        lines = [
            r"\begin{table}",
            rf"\caption{{{_escape_latex(self.title)}. {_escape_latex(self.legend)}}}",
            rf"\begin{{tabular}}{{l{'r' * len(self.columns)}}}",
            r"\toprule",
            _latex_row([self.corner, *self.columns]),
            r"\midrule",
            *(_latex_row([label, *map(self.text, row)]) for label, row in self.rows),
            r"\bottomrule",
            r"\end{tabular}",
            r"\end{table}",
        ]
        return "\n".join(lines) + "\n"


def _markdown_row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", r"\|") for cell in cells) + " |"


# Characters of our titles and labels that LaTeX treats specially or may lack in its fonts.
_LATEX_ESCAPES = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "ᵀ": r"$^T$",
    "½": r"$\frac12$",
    "²": r"$^2$",
    "‖": r"$\|$",
    "†": r"$\dagger$",
}


def _escape_latex(text: str) -> str:
    escaped = "".join(_LATEX_ESCAPES.get(letter, letter) for letter in text)
    return escaped.replace("r̄", r"$\bar{r}$")  # two characters: r and a combining bar


def _latex_row(cells: Sequence[str]) -> str:
    return " & ".join(map(_escape_latex, cells)) + r" \\"
