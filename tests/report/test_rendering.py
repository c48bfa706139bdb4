import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from report_pages import Page, sha256

from symrelu import report
from symrelu.cli import tables
from symrelu.report.columns import Column
from symrelu.report.contents import Contents
from symrelu.report.neighbors import Links
from symrelu.report.rendering import policy, render
from symrelu.report.summary import Summary

FOLDER = Path(report.__file__).parent
NO_LINKS = Links(1, np.empty(0, int), np.empty(0, int), np.empty(0))


def contents(**changes):
    made = Contents(
        title="A page",
        version="1.2",
        summary=Summary((("nodes", "1"),), ("One sentence.",), ("Try this.",)),
        names=["a"],
        has_names=True,
        positions=np.zeros((1, 2)),
        links=NO_LINKS,
        columns=[Column.of("degree", [0])],
        colour="degree",
        curve=None,
        spectrum=np.array([1.0]),
        matrices=(np.ones((1, 1)), np.ones((1, 1))),
        matrix_titles=("M", "model"),
    )
    return replace(made, **changes)


def test_parts_of_a_page():
    page = Page(render(contents()))
    assert page.html.startswith("<!DOCTYPE html>")
    for part in ("A page", "nodes", "One sentence.", "Try this.", "symrelu 1.2"):
        assert part in page.text
    assert page.data["names"] == ["a"]
    assert "{{" not in re.sub(r"<script>.*", "", page.html, flags=re.DOTALL)


def test_the_policy_allows_this_style_and_this_script_alone():
    page = Page(render(contents()))
    rules = dict(rule.strip().split(" ", 1) for rule in page.policy.split(";"))
    assert rules == {
        "default-src": "'none'",
        "style-src": sha256(page.style),
        "script-src": sha256(page.program),
        "base-uri": "'none'",
        "form-action": "'none'",
        "require-trusted-types-for": "'script'",
    }
    assert page.policy == policy(page.style, page.program)
    # The policy comes before anything that it has to govern.
    assert page.html.index("Content-Security-Policy") < page.html.index("<style>")


def test_nothing_in_the_page_is_run_or_loaded_from_elsewhere():
    page = Page(render(contents()))
    names = {name for _, name, _ in page.attributes}
    assert not {name for name in names if name.startswith("on")} | (names & {"style", "src", "srcset"})
    assert [value for _, name, value in page.attributes if name == "href"] == ["#nodes-heading"]
    addresses = re.findall(r"https?://[^\"'\s)]+", page.html)
    assert addresses == ["http://www.w3.org/2000/svg"]  # the name of a kind of element, which nothing loads


HOSTILE = "<script>alert(1)</script></title><!-- {{data}} \u202e\u05d0 &amp; \udcff\0"


def test_texts_stay_texts():
    summary = Summary(((HOSTILE, HOSTILE),), (HOSTILE,), (HOSTILE,))
    page = Page(render(contents(title=HOSTILE, summary=summary, names=[HOSTILE], notes=(HOSTILE,))))
    shown = HOSTILE.replace("\udcff", "\ufffd").replace("\0", "\ufffd")
    assert page.texts.count(shown) == 7  # of title, heading, fact (two), sentence, advice and note
    assert page.data["names"] == [HOSTILE]
    assert len(page.scripts) == 2


@pytest.mark.parametrize("name", ["page.js", "page.css"])
def test_the_program_and_the_style_can_stand_in_a_page(name):
    text = (FOLDER / name).read_text(encoding="utf-8")
    assert "</" not in re.sub(r"</?[a-z]+>` ", "", text)
    assert "<!--" not in text
    assert "\0" not in text


def test_the_program_sets_no_markup():
    text = (FOLDER / "page.js").read_text(encoding="utf-8")
    for word in (
        "innerHTML",
        "outerHTML",
        "insertAdjacentHTML",
        "document.write",
        "eval(",
        "Function(",
        "fetch(",
    ):
        assert word not in text


def test_elements_that_the_program_asks_for_exist():
    page = Page(render(contents()))
    ids = {value for _, name, value in page.attributes if name == "id"}
    asked = set(re.findall(r'\$\("([\w-]+)"\)', page.program))
    assert asked <= ids
    for _, name, value in page.attributes:
        if name in ("for", "aria-labelledby", "aria-describedby", "aria-controls"):
            assert value in ids


def test_the_rules_for_csv_are_those_of_the_command_line():
    program = (FOLDER / "page.js").read_text(encoding="utf-8")
    found = dict(re.findall(r"const (STARTS_FORMULA|PLAIN_NUMBER|NEEDS_QUOTES) = /(.*)/;", program))
    assert found == {
        "STARTS_FORMULA": "^" + tables._STARTS_FORMULA.pattern,  # Python matches at the beginning
        "PLAIN_NUMBER": f"^{tables._PLAIN_NUMBER.pattern}$",  # and fullmatch to the end
        "NEEDS_QUOTES": tables._NEEDS_QUOTES.pattern,
    }


def test_the_limit_holds_with_the_note(monkeypatch):
    """Even if the page without its note would have just the size that is allowed."""
    i, j = np.triu_indices(40, 1)
    given = contents(
        names=[str(k) for k in range(40)],
        positions=np.random.default_rng(0).random((40, 2)),
        links=Links(40, i, j, np.ones(len(i))),
        columns=[Column.of("degree", [39] * 40)],
    )
    without_note = replace(given.limited(10), notes=())
    limit = len(render(without_note).encode())
    monkeypatch.setattr("symrelu.report.contents.size_limit", lambda n: limit)
    page = render(given)
    assert "To keep this page small" in page
    assert len(page.encode()) <= limit
