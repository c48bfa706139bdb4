"""Tables and a figure of what the tasks measured."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from pathlib import Path
from textwrap import fill
from typing import Any, NamedTuple

import numpy as np

from symrelu.plots import new_figure, save_figure
from tasks.base import Table, Task


class Line(NamedTuple):
    """A method on a data set, over all seeds."""

    task: str
    data: str
    method: str
    setting: str  # the best one in hindsight
    measure: str
    mean: float
    deviation: float
    seeds: int
    seconds: float
    values: str  # by seed


def summarise(task: Task, records: list[dict[str, Any]]) -> list[Line]:
    """Return the mean and standard deviation for each method, data set and measure, at the best setting."""
    groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for record in records:
        if record["task"] == task.name:
            groups.setdefault((record["data"], record["method"]), []).append(record)
    lines = []
    for (data, method), group in groups.items():
        best = _best_setting(group, task.hindsight)
        chosen = [record for record in group if record["setting"] == best]
        for measure in dict.fromkeys(record["measure"] for record in chosen):
            mine = sorted(
                (record for record in chosen if record["measure"] == measure), key=lambda r: int(r["seed"])
            )
            values = np.array([float(record["value"]) for record in mine])
            seconds = float(np.median([float(record["seconds"]) for record in mine]))
            lines.append(
                Line(
                    task.name,
                    data,
                    method,
                    best,
                    measure,
                    float(values.mean()),
                    float(values.std()),
                    len(values),
                    round(seconds, 3),
                    " ".join(f"{value:.4f}" for value in values),
                )
            )
    places = {name: k for k, name in enumerate((*task.data, *task.methods))}
    return sorted(lines, key=lambda line: (places[line.data], places[line.method]))


def _best_setting(group: list[dict[str, Any]], measure: str) -> str:
    values: dict[str, list[float]] = {}
    for record in group:
        if record["measure"] == measure:
            values.setdefault(record["setting"], []).append(float(record["value"]))
    return max(values, key=lambda setting: np.mean(values[setting]))


def filled(task: Task, table: Table, lines: list[Line]) -> tuple[list[str], dict[str, list[Line | None]]]:
    """Return the columns of a table that have values, and the lines of each row."""
    cells = {
        (line.method, line.data): line
        for line in lines
        if line.task == task.name and table.measures.get(line.data) == line.measure
    }
    data = [name for name in table.measures if any(name == key[1] for key in cells)]
    rows = {method: [cells.get((method, name)) for name in data] for method in table.methods or task.methods}
    return data, {method: found for method, found in rows.items() if any(found)}


def markdown(task: Task, table: Table, lines: list[Line]) -> str:
    """Return a table, empty if nothing of it was measured."""
    data, found = filled(task, table, lines)
    if not data:
        return ""
    rows = [f"## {table.title}", "", "| | " + " | ".join(data) + " |", "|---" * (len(data) + 1) + "|"]
    rows += ["| " + " | ".join([method, *map(_cell, cells)]) + " |" for method, cells in found.items()]
    return "\n".join(rows)


def _cell(line: Line | None) -> str:
    if line is None:
        return "n/a"
    if line.measure == "clusters":
        return ", ".join(f"{float(value):.0f}" for value in line.values.split())
    setting = f" ({line.setting})" if line.setting else ""
    return f"{line.mean:.3f} ± {line.deviation:.3f}{setting}"


def _short_cell(line: Line | None) -> str:
    if line is None or line.measure == "clusters":
        return _cell(line)
    return f"{line.mean:.3f}".replace("0.", ".", 1)


def gains(task: Task, lines: list[Line]) -> str:
    """Return sentences that say what each ingredient adds to the mean of the first measure."""
    means = {
        (line.method, line.data): line.mean
        for line in lines
        if line.task == task.name and line.measure == task.hindsight
    }
    sentences = []
    for what, with_it, without_it in task.controls:
        both = [name for name in task.data if (with_it, name) in means and (without_it, name) in means]
        parts = [f"{name} {means[with_it, name] - means[without_it, name]:+.3f}" for name in both]
        if parts:
            sentences.append(f"- {what[0].upper()}{what[1:]} adds: {', '.join(parts)}.")
    return "\n".join(sentences)


def page(tasks: Iterable[Task], lines: list[Line]) -> str:
    """Return all tables as Markdown."""
    parts = []
    for task in tasks:
        parts += [markdown(task, table, lines) for table in task.tables]
        parts.append(gains(task, lines))
    return "\n\n".join(part for part in parts if part)


def write(tasks: list[Task], lines: list[Line], folder: Path) -> None:
    """Write the tables as CSV and Markdown, and a figure."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "usefulness.md").write_text(page(tasks, lines) + "\n", encoding="utf-8")
    with open(folder / "usefulness.csv", "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(Line._fields)
        writer.writerows(lines)
    (folder / "tables").mkdir(exist_ok=True)
    for task in tasks:
        for table in task.tables:
            write_table(task, table, lines, folder / "tables" / f"{table.name}.csv")
    draw(tasks, lines, folder / "usefulness.png")


def write_table(task: Task, table: Table, lines: list[Line], path: Path) -> None:
    """Write the means of a table, rounded, as the documentation shows them."""
    data, found = filled(task, table, lines)
    if not data:
        return
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["", *data])
        for method, cells in found.items():
            writer.writerow([method, *map(_short_cell, cells)])


def draw(tasks: list[Task], lines: list[Line], path: Path) -> None:
    """Draw the first table of each task, one below the other."""
    shown = [task for task in tasks if any(line.task == task.name for line in lines)]
    figure = new_figure(figsize=(11, 4.2 * len(shown)))
    for place, task in enumerate(shown, start=1):
        ax = figure.add_subplot(len(shown), 1, place)
        table = task.tables[0]
        data, found = filled(task, table, lines)
        for k, (method, cells) in enumerate(found.items()):
            points = [line for line in cells if line is not None]
            ours = method in ("SymReLUClustering", "LinkPredictor", "LinkPredictor().embedding_")
            control = method.startswith("control") or "0.1.0" in method
            ax.errorbar(
                [data.index(line.data) + (k + 0.5 - len(found) / 2) * 0.8 / len(found) for line in points],
                [line.mean for line in points],
                yerr=[line.deviation for line in points],
                fmt="D" if ours else ("s" if control else "o"),
                markersize=7 if ours else 5,
                color="black" if ours else f"C{k % 10}",
                markerfacecolor="white" if control else None,
                label=method,
            )
        ax.set_xticks(range(len(data)), [fill(name, 11) for name in data], fontsize=8)
        ax.set_title(table.title, fontsize=10)
        ax.grid(axis="y", alpha=0.3)
        ax.legend(frameon=False, fontsize=7, loc="center left", bbox_to_anchor=(1.0, 0.5))
    save_figure(figure, path)
