"""Cards of notebooks: small pieces of valid HTML that show hostile texts as text."""

from html.parser import HTMLParser

import numpy as np
import pytest

from symrelu import decompose, select_rank
from symrelu.fitted import Certificate, History
from symrelu.plots.cards import card, curve

M = np.kron(np.eye(3), np.ones((4, 4)))
HOSTILE = '<script>alert(1)</script> </td></table> "quoted" & \N{GRINNING FACE} \N{HEBREW LETTER ALEF}'


class Reader(HTMLParser):
    """Check that every tag is closed in order, and collect tags, attributes and text."""

    def __init__(self, html):
        super().__init__()
        self.open, self.tags, self.attributes, self.text = [], [], [], ""
        self.feed(html)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        self.tags.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


def sound(html):
    """Return a reader of a card that is valid and asks nothing of anybody."""
    read = Reader(html)
    assert "script" not in read.tags
    assert not {name for name, _ in read.attributes} & {"src", "href", "onclick", "class", "id"}
    assert all("url(" not in value and "http" not in value for _, value in read.attributes)
    assert len(html) < 8000
    return read


def test_texts_are_escaped():
    read = sound(card(HOSTILE, [(HOSTILE, HOSTILE)], curve=curve([0, 1], [1, 2], HOSTILE), note=HOSTILE))
    assert read.text.count("<script>alert(1)</script>") == 5
    assert dict(read.attributes)["aria-label"] == HOSTILE


def test_colours_are_those_of_the_page():
    html = card("title", [("name", "value")])
    assert "color:inherit" in html
    assert "background:#" not in html


def test_a_solution():
    solution = decompose(M, 3, random_state=0, max_iter=20)
    read = sound(solution._repr_html_())
    assert "polyline" in read.tags
    for text in (f"{solution.relative_error:.4g}", solution.status.value, solution.solver, "SymmetricReLU"):
        assert text in read.text


def test_a_solution_with_a_hostile_solver():
    from dataclasses import replace

    solution = replace(decompose(M, 3, random_state=0, max_iter=2), solver=HOSTILE)
    assert "<script>" in sound(solution._repr_html_()).text


@pytest.mark.parametrize("records", [0, 1, 2, 500])
def test_a_history(records):
    counts = np.arange(records)
    errors = 1.0 / (1 + counts)
    history = History(counts, 2 * counts, 0.1 * counts, errors, errors, errors, errors)
    read = sound(history._repr_html_())
    assert str(records) in read.text
    assert ("polyline" in read.tags) == (records > 1)


def test_a_selection():
    found = select_rank(M, [2, 3], n_repeats=2, max_iter=5, random_state=0)
    read = sound(found._repr_html_())
    assert f"rank={found.chosen['rank']}" in read.text
    assert "polyline" in read.tags


def test_a_certificate():
    exact = Certificate(0, 0, 0, 1_000_000, 5000, 0.125, 0.5)
    assert "Certificate: exact" in sound(exact._repr_html_()).text
    wrong = Certificate(7, 3, 4, 1_000_000, 5000, -0.1, 0.5)
    text = sound(wrong._repr_html_()).text
    assert "not exact" in text
    assert "7 of 1,000,000" in text
    assert "3 of 5,000" in text


@pytest.mark.parametrize("y", [[], [1.0], [0.0, -1.0], [np.nan, np.inf]])
def test_nothing_to_draw(y):
    assert curve(np.arange(len(y)), y, "nothing") == ""


def test_points_of_a_curve():
    html = curve([0, 1, 2], [1.0, 10.0, 100.0], "rising")
    assert 'points="2.0,50.0 92.0,26.0 182.0,2.0"' in html
    assert 'points="2.0,26.0 182.0,26.0"' in curve([0, 1], [3.0, 3.0], "level")
