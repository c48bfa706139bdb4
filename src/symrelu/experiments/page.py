"""A self-contained HTML page of an experiment, which needs no other files, scripts or network access."""

from __future__ import annotations

import base64
import io
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from symrelu.experiments.cells import CellResult
from symrelu.experiments.environment import describe_environment
from symrelu.experiments.tables import Entry, Table

if TYPE_CHECKING:  # experiment.py imports this module
    from symrelu.experiments.experiment import Experiment, Figure, Results


def require_jinja2() -> Any:
    """Return jinja2, or raise an ImportError that says how to install it."""
    try:
        import jinja2
    except ImportError as error:
        raise ImportError("Pages need jinja2: pip install symrelu[report].") from error
    return jinja2


def render_page(
    experiment: Experiment,
    results: Results,
    tables: Sequence[Table],
    figures: Sequence[Figure],
    command: str = "",
) -> str:
    """Return the page of an experiment.

    Parameters
    ----------
    experiment : Experiment
    results : dict of Cell to CellResult
    tables : sequence of Table
    figures : sequence of Figure
    command : str
        The command that made the page.

    Returns
    -------
    html : str
    """
    seeds = sorted({cell.seed for cell in results})
    expected = len(set(experiment.cells()))  # a failed cell has no result
    facts = {
        "command": command or "reproduce(...) from Python",
        "cells": f"{len(results)} of {expected}",
        "seeds": ", ".join(map(str, seeds)),
        **(_merged_environments(result.environment for result in results.values()) or describe_environment()),
    }
    return str(
        _template().render(
            title=experiment.title,
            introduction=experiment.introduction(),
            tables=tables,
            figures=[(figure, _data_url(figure)) for figure in figures],
            facts=facts,
            stops=_count_stops(results.values()),
            spread=_relative_spread,
        )
    )


@lru_cache(maxsize=1)
def _template() -> Any:
    jinja2 = require_jinja2()
    # StrictUndefined: a misspelt name in the template is an error, not an empty string.
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("symrelu.experiments"), autoescape=True, undefined=jinja2.StrictUndefined
    )
    return environment.get_template("experiment.html")


def _merged_environments(environments: Iterable[Mapping[str, str]]) -> dict[str, str]:
    """Merge the environments of the cells; if they differ, list all values."""
    merged: dict[str, list[str]] = {}
    for environment in environments:
        for name, value in environment.items():
            values = merged.setdefault(name, [])
            if value not in values:
                values.append(value)
    return {name: "; ".join(values) for name, values in merged.items()}


def _count_stops(results: Iterable[CellResult]) -> dict[str, int]:
    """Count the fits by the reason why they stopped. A bound without iterations is not counted."""
    return dict(Counter(result.status for result in results if result.n_iter))


def _relative_spread(entry: Entry) -> str:
    """Write the standard deviation as a percentage of the mean."""
    if math.isnan(entry.spread) or not entry.value:
        return ""
    return f"± {100 * entry.spread / abs(entry.value):.2g} %"


def _data_url(figure: Figure) -> str:
    """Return the drawing as a data URL."""
    file = io.BytesIO()
    figure.drawing.savefig(file, format="png", dpi=130)
    return "data:image/png;base64," + base64.b64encode(file.getvalue()).decode()
