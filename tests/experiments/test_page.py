"""The page of results."""

import re

import pytest
from small_cells import Tiny

from symrelu.experiments import reproduce


def test_the_page_needs_nothing_else(tmp_path):
    _, written = reproduce(Tiny(), tmp_path, command="symrelu reproduce <tiny>")
    page = written[0].read_text(encoding="utf-8")
    assert not re.search(r"<(script|link|iframe)", page)
    assert set(re.findall(r'(?:src|href)="([^"]{0,22})', page)) == {"data:image/png;base64,"}
    assert "Tiny &lt;experiment&gt;" in page
    assert "symrelu reproduce &lt;tiny&gt;" in page
    for fact in ("numpy", "scipy", "processor", "threads", "seeds", "10 of 10", "paper 5.0e-1", "±"):
        assert fact in page
    assert "MAX_ITER 8" in page  # and two eigenvalue bounds


def test_jinja2_is_asked_for_before_the_work(tmp_path, monkeypatch, fits):
    import sys

    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(ImportError, match=r"pip install symrelu\[report\]"):
        reproduce(Tiny(), tmp_path)
    assert not fits
