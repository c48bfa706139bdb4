"""Names that the columns of lists of edges usually have, in several languages."""

from __future__ import annotations

import re
from collections.abc import Sequence

from symrelu.graphs.edges import USUAL_WEIGHT

# The two ends, the first match is taken. A line with such a pair names the columns.
_ENDS = (
    ("source", "target"),
    ("from", "to"),
    ("src", "dst"),
    ("src", "dest"),
    ("src", "tgt"),
    ("source", "destination"),
    ("origin", "destination"),
    ("source_id", "target_id"),
    ("from_id", "to_id"),
    ("from_node", "to_node"),
    ("fromnodeid", "tonodeid"),
    ("node1", "node2"),
    ("node_1", "node_2"),
    ("node_a", "node_b"),
    ("id1", "id2"),
    ("id_1", "id_2"),
    ("first", "second"),
    ("follower", "followee"),
    ("follower", "followed"),
    ("citing", "cited"),
    ("sender", "receiver"),
    ("sender", "recipient"),
    ("ego", "alter"),
    ("von", "nach"),
    ("quelle", "ziel"),
    ("origine", "destination"),
    ("origine", "destinazione"),
    ("départ", "arrivée"),
    ("origen", "destino"),
    ("origem", "destino"),
    ("fuente", "destino"),
    ("van", "naar"),
    ("från", "till"),
    ("fra", "til"),
    ("źródło", "cel"),
    ("откуда", "куда"),
    ("источник", "цель"),
    ("起点", "终点"),
)
# Those that may also be one word of several, as in "customer from". "first name" and "second name" are no ends.
_ENDS_AS_WORDS = [pair for pair in _ENDS if pair[0].isalpha() and pair[1].isalpha() and pair[0] != "first"]
# Pairs that may be names of nodes too: they are the ends if something else says that the line is a header.
_ENDS_IN_A_HEADER = (
    ("a", "b"),
    ("i", "j"),
    ("u", "v"),
    ("x", "y"),
    ("s", "t"),
    ("row", "col"),
    ("row", "column"),
    ("start", "end"),
    ("head", "tail"),
    ("parent", "child"),
    ("de", "a"),
    ("de", "à"),
    ("da", "a"),
    ("de", "para"),
)
_NUMBERED = re.compile(r"(?P<stem>.*[^\W\d_])_?(?P<number>[12ab])")  # protein1 and protein2, city_a and city_b

_WEIGHT_WORDS = """
    weight weights w wt wgt edge_weight value values val score scores combined_score strength tie_strength
    similarity sim affinity proximity intensity correlation corr count counts freq frequency occurrences
    cooccurrences co_occurrences gewicht gewichte gewichtung wert stärke anzahl häufigkeit ähnlichkeit poids
    valeur force fréquence similarité nombre peso pesos valor fuerza frecuencia similitud frequência valore
    frequenza aantal vikt vægt vekt waga вес 权重 重み
"""
_INDEX_WORDS = """
    id ids index idx row_id rowid row_number row nr no num number edge_id edgeid edge line zeile lfd_nr key
    __index_level_0__
"""
_OTHER_WORDS = """
    id ids index idx edge_id edgeid time times timestamp timestamps timeset datetime date day month year hour
    week start_time end_time interval datum zeit jahr monat tag année fecha año type label kind category group
"""
_WEIGHTS = frozenset(_WEIGHT_WORDS.split())
_INDEXES = frozenset(["", *_INDEX_WORDS.split()])  # names of columns that may number the rows
_NO_WEIGHTS = frozenset(_OTHER_WORDS.split())


def folded(names: Sequence[str]) -> list[str]:
    """Return names in the form in which they are compared. The first may begin with the # of a comment."""
    return [re.sub(r"[\s.-]+", "_", name.strip().lstrip("#%").strip().casefold()) for name in names]


def clear_ends(names: Sequence[str]) -> tuple[int, int] | None:
    """Return the positions of two names that only columns of ends have, or None."""
    return _find(folded(names), _ENDS)


def usual_ends(names: Sequence[str]) -> tuple[int, int] | None:
    """Return the positions of two names that columns of ends usually have in a header, or None."""
    small = folded(names)
    return _find(small, _ENDS) or _find(small, _ENDS_IN_A_HEADER) or _numbered(small) or ends_by_words(names)


def _find(names: list[str], pairs: Sequence[tuple[str, str]]) -> tuple[int, int] | None:
    for first, second in pairs:
        if first in names and second in names:
            return names.index(first), names.index(second)
    return None


def ends_by_words(names: Sequence[str], *, alike: bool = False) -> tuple[int, int] | None:
    """Return the positions of the only two names with a pair of usual names among their words, or None.

    Parameters
    ----------
    names : sequence of str
        For example "customer from" and "customer to".
    alike : bool, default=False
        Whether the other words of the two must be the same.

    Returns
    -------
    ends : tuple of int, or None
    """
    words = [name.split("_") for name in folded(names)]
    for pair in _ENDS_AS_WORDS:
        found = [[k for k, own in enumerate(words) if word in own] for word in pair]
        (first, *more), (second, *others) = (places or [-1] for places in found)
        if more or others or -1 in (first, second) or first == second:
            continue
        rests = [[word for word in words[k] if word not in pair] for k in (first, second)]
        is_time = any(_NO_WEIGHTS.intersection(rest) for rest in rests)
        if not is_time and (rests[0] == rests[1] or not alike):
            return first, second
    return None


def _numbered(names: list[str]) -> tuple[int, int] | None:
    """Return the positions of the only two names that differ in the number or letter at their end."""
    found: dict[tuple[str, str], int] = {}
    for k, name in enumerate(names):
        match = _NUMBERED.fullmatch(name)
        if match:
            found[match["stem"], match["number"]] = k
    second = {"1": "2", "a": "b"}
    pairs = [
        (place, found[stem, second[number]])
        for (stem, number), place in found.items()
        if (stem, second.get(number)) in found
    ]
    return pairs[0] if len(pairs) == 1 else None


def weight_columns(names: Sequence[str], numeric: Sequence[bool]) -> list[int]:
    """Return the positions of usual names of weights: all that are called "weight", or others with numbers."""
    small = folded(names)
    by_name = [k for k, name in enumerate(small) if name == USUAL_WEIGHT]
    return by_name or [k for k, name in enumerate(small) if name in _WEIGHTS and numeric[k]]


def is_index(name: str) -> bool:
    """Return whether a column with this name usually numbers the rows; pandas calls one "Unnamed: 0"."""
    (small,) = folded([name])
    return small in _INDEXES or small.startswith("unnamed:")


def is_no_weight(name: str) -> bool:
    """Return whether a column with this name never holds weights, even if it holds numbers."""
    return folded([name])[0] in _NO_WEIGHTS
