"""Parse the parameter section of a numpydoc docstring, and rebuild the docstring from the entries."""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

_HEADING = "Parameters"
_WIDTH = 108  # 112, the line length of the source, less the indentation of a description


class Entry(NamedTuple):
    """The entry of one parameter, or of several that share a description."""

    names: tuple[str, ...]
    kind: str  # the text after the colon
    lines: tuple[str, ...]  # the description

    @classmethod
    def of(cls, name: str, kind: str, text: str) -> Entry:
        """Return an entry whose description is one paragraph."""
        lines = textwrap.wrap(text, _WIDTH, break_long_words=False, break_on_hyphens=False)
        return cls((name,), kind, tuple(lines))

    @property
    def first_sentence(self) -> str:
        """The description up to its first full stop, without code markup."""
        text = " ".join(line.strip() for line in self.lines).replace("``", "")
        return re.split(r"\.(?=\s|$)", text)[0]


def read_parameters(doc: str) -> dict[str, Entry]:
    """Return the entries of a numpydoc docstring by parameter name."""
    _, inside, _ = _parts(doc)
    entries: list[Entry] = []
    for line in inside:
        if line and not line[0].isspace():
            names, _, kind = line.partition(" : ")
            entries.append(Entry(tuple(names.split(", ")), kind, ()))
        elif entries:
            entries[-1] = entries[-1]._replace(lines=(*entries[-1].lines, line[4:]))
    return {name: entry for entry in entries for name in entry.names}


def with_parameters(doc: str, entries: Iterable[Entry]) -> str:
    """Return a docstring with its entries replaced by these."""
    before, _, after = _parts(doc)
    inside = [_HEADING, "-" * len(_HEADING)]
    for entry in dict.fromkeys(entries):  # a shared entry appears once, at its first parameter
        inside.append(", ".join(entry.names) + (f" : {entry.kind}" if entry.kind else ""))
        inside.extend(f"    {line}".rstrip() for line in entry.lines)
    parts = ("\n".join(part).strip("\n") for part in (before, inside, after))
    return "\n\n".join(part for part in parts if part)


def _parts(doc: str) -> tuple[list[str], list[str], list[str]]:
    """Return the lines before, inside and after the parameter section, without its heading."""
    lines = inspect.cleandoc(doc).splitlines()
    sections = [k for k, rule in enumerate(lines[1:]) if rule and set(rule) == {"-"}]
    if not sections:
        return lines, [], []
    begin = next((k for k in sections if lines[k] == _HEADING), None)
    if begin is None:
        return lines[: sections[0]], [], lines[sections[0] :]
    end = next((k for k in sections if k > begin), len(lines))
    inside = "\n".join(lines[begin + 2 : end]).rstrip().splitlines()
    return lines[:begin], inside, lines[end:]


def parameters_of(thing: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    """Return the parameters by their names in a docstring, where ``**`` belongs to the name."""
    parameters = inspect.signature(thing).parameters.values()
    return {("**" if p.kind is p.VAR_KEYWORD else "") + p.name: p for p in parameters}


def default_of(parameter: inspect.Parameter) -> str:
    """Return the default as numpydoc appends it to a type."""
    value = parameter.default
    if value is inspect.Parameter.empty:
        return ""
    if value is None:
        return ", optional"
    if isinstance(value, str):
        return f', default="{value}"'
    if isinstance(value, float) and 0 < abs(value) < 1e-3:  # 1e-4 and 1e-7, not 0.0001 and 1e-07
        return f", default={np.format_float_scientific(value, trim='-', exp_digits=1)}"
    return f", default={value!r}"
