"""Tables that fit the terminal."""

import pytest
from command_line import set_width
from rich.text import Text

from symrelu.cli import layout
from symrelu.cli.layout import fitting_table

HEADER = ["method", "a long heading", "number"]
ROWS = [["one", "0.123456789", "1"], ["the other", "2e-300", ""]]


@pytest.fixture
def shown(monkeypatch):
    """A function that prints a table at a width, and returns the lines."""

    def show(width, **options):
        set_width(monkeypatch, width)
        with layout.console.capture() as capture:
            table = fitting_table(HEADER, ROWS, **options)
            layout.console.print(table, soft_wrap=isinstance(table, Text))
        return capture.get().splitlines()

    return show


@pytest.mark.parametrize("width", [200, 43, 42, 34, 33, 20, 5])
def test_no_number_is_cut(width, shown):
    lines = shown(width, title="errors")
    text = "\n".join(lines)
    for word in ("0.123456789", "2e-300", "the other", "errors"):
        assert word in text
    assert "…" not in text
    assert "a long heading" in text or "heading" in text
    if width >= 33:
        assert max(map(len, lines)) <= width


def test_headings_take_several_lines_before_the_frame_goes(shown):
    assert any("a long heading" in line for line in shown(43))
    assert any("┃ heading" in line or " heading ┃" in line for line in shown(37))
    assert shown(20) == [
        "method: one",
        "  a long heading  0.123456789",
        "  number          1",
        "method: the other",
        "  a long heading  2e-300",
    ]


def test_control_characters_are_escaped():
    assert "\x1b" not in str(fitting_table(["a"], [["\x1b[31m" * 50]]))
