"""What the documentation shows: commands print what a page says, examples run, links lead somewhere."""

import doctest
import re
import runpy
import shutil
import subprocess
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from command_line import set_width, symrelu

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
pytestmark = pytest.mark.skipif(not DOCS.is_dir(), reason="only in the repository")

# Installation, and what takes minutes: other tests and the Makefile run these.
NOT_RUN = (
    # What needs a cluster and a large file: tests/cli/test_blocks.py runs the same commands.
    "symrelu blocks edges.csv",
    "symrelu fit graph.blocks",
    "symrelu embed graph.blocks",
    "dask ",
    "pip ",
    "python3 -m venv",
    "source ",
    "git ",
    "make ",
    "python -m pytest",
    "cp ",
    "symrelu demo",
    "symrelu reproduce",
)
NUMBER = re.compile(r"(?<![\w.])-?\d+\.\d+(?:e-?\d+)?(?![\w.]*\.\.\.)")
RELATIVE = 0.01  # what a number may differ by on another machine


def console_blocks(page):
    """Yield each command of a page with the output below it, as (command, output)."""
    for block in re.findall(r"^\.\. code-block:: console\n\n((?:(?:   .*)?\n)+)", page, re.MULTILINE):
        lines = [line[3:] for line in block.rstrip().replace("\\\n", "").splitlines()]
        for command, *output in _split(lines):
            yield command, "\n".join(output)


def _split(lines):
    """Yield the lines of each command: the first without its prompt, the others as they are."""
    starts = [i for i, line in enumerate(lines) if line.startswith("$ ")]
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        yield [lines[start].removeprefix("$ "), *lines[start + 1 : end]]


def agrees(shown, printed):
    """Return whether a page shows what was printed, up to blanks, ``...`` and the last digits of numbers."""
    numbers = [float(number) for number in NUMBER.findall(shown)]
    pattern = r"\s+".join(_pattern(word) for word in shown.split())
    match = re.fullmatch(pattern, printed.strip(), re.DOTALL)
    if not match:
        return False
    close = (abs(float(a) - b) <= RELATIVE * abs(b) for a, b in zip(match.groups(), numbers, strict=True))
    return all(close)


def _pattern(word):
    parts = NUMBER.split(word)
    between = r"(-?\d+\.?\d*(?:e-?\d+)?)"
    return between.join(re.escape(part).replace(r"\.\.\.", ".*?") for part in parts)


@pytest.mark.parametrize(
    ("shown", "printed", "same"),
    [
        ("nodes 77", " nodes   77  \n", True),
        ("nodes 77", "nodes 78", False),
        ("nodes 77", "nodes 77 and more", False),
        ("Ann,0,0.9477", "Ann,0,0.94771234", True),
        ("Ann,0,0.9477", "Ann,0,0.90771234", False),
        ("Ann,0,0.9477", "Bob,0,0.9477", False),
        ("error 1.2e-06 in", "error 1.2001e-06 in", True),
        ("threshold ... (margin 0.36)", "threshold 5.1 (margin 0.3601)", True),
        ("a ... z", "a b\nc\nz", True),
        ("a ... z", "a b", False),
        ("x5 changed", "x6 changed", False),
    ],
)
def test_comparison_of_output(shown, printed, same):
    assert agrees(shown, printed) is same


def test_commands_of_a_page():
    page = "Text\n\n.. code-block:: console\n\n   $ one\n   two\n\n   three\n   $ four\\\n     five\n\nText\n"
    assert list(console_blocks(page)) == [("one", "two\n\nthree"), ("four     five", "")]


def cells(folder):
    """Write the cells of the page on single-cell data, by running its examples."""
    page = (DOCS / "howto/single_cell.rst").read_text(encoding="utf-8").partition("Clusters\n---")[0]
    names = {}
    for example in doctest.DocTestParser().get_examples(page):
        exec(example.source, names)
    names["adata"].write_h5ad(folder / "cells.h5ad")


PAGES = sorted(DOCS.rglob("*.rst")) if DOCS.is_dir() else []
PAGES = [page for page in PAGES if not {"auto_examples", "generated", "_build"} & set(page.parts)]
WITH_COMMANDS = [
    page
    for page in PAGES
    if any(not command.startswith(NOT_RUN) for command, _ in console_blocks(page.read_text(encoding="utf-8")))
]


def test_pages_have_commands():
    names = {page.stem for page in WITH_COMMANDS}
    assert {"index", "embed", "communities", "links", "neighbors", "new_items", "rank", "long_runs"} <= names


@pytest.mark.parametrize("page", WITH_COMMANDS, ids=lambda page: page.relative_to(DOCS).as_posix())
def test_commands_print_what_the_page_shows(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    set_width(monkeypatch, 100)
    shutil.copy(ROOT / "examples/les_miserables.csv", tmp_path)
    text = page.read_text(encoding="utf-8")
    if "cells.h5ad" in text:
        cells(tmp_path)
    for command, shown in console_blocks(text):
        if command.startswith(NOT_RUN):
            continue
        printed = run(command, monkeypatch, capsys)
        assert not shown or agrees(shown, printed), f"$ {command}\n{printed}"


def run(command, monkeypatch, capsys):
    """Run a command of a page, ``symrelu`` in this process, and return what a terminal would show."""
    program, *arguments = command.split()
    if program == "symrelu":
        code, out, err = symrelu(monkeypatch, capsys, *arguments)
        assert code == 0, f"$ {command}\n{err}"
        notes = [line for line in err.splitlines() if line.startswith(("Note", "Warning"))]  # no progress
        return "\n".join((*notes, out))
    result = subprocess.run(command, shell=True, capture_output=True, text=True, timeout=60)
    assert result.returncode == 0, f"$ {command}\n{result.stderr}"
    return result.stdout


EXAMPLES = sorted((ROOT / "examples").rglob("plot_*.py"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_gallery(path, monkeypatch):
    plt = pytest.importorskip("matplotlib.pyplot")
    monkeypatch.setattr(plt, "show", lambda: None)
    runpy.run_path(str(path))
    assert plt.get_fignums(), "an example of the gallery draws something"
    plt.close("all")


MARKDOWN = [*ROOT.glob("*.md"), ROOT / "benchmarks/README.md"] if DOCS.is_dir() else []


def anchors(path):
    """Return the anchors that GitHub gives to the headings of a Markdown file."""
    headings = re.findall(r"^#+ (.*)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("path", MARKDOWN, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_links_of_markdown_files(path):
    text = path.read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        url = urlsplit(target)
        if url.scheme:
            assert url.scheme in ("https", "mailto"), target
            assert url.netloc or url.path, target
            continue
        file = path.parent / url.path if url.path else path
        assert file.exists(), f"{path.name} links to {target}"
        assert not url.fragment or file.suffix != ".md" or url.fragment in anchors(file), target


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(DOCS).as_posix())
def test_addresses_and_files_that_a_page_names(page):
    text = page.read_text(encoding="utf-8")
    for address in re.findall(r"<(\w+://[^>]*)>", text):
        assert re.fullmatch(r"https://[\w.-]+\.\w+(/\S*)?", address), address
    for name in re.findall(r"``((?:benchmarks|results|examples|docs)/[\w./-]+)``", text):
        assert (ROOT / name).exists(), name


@pytest.mark.parametrize("page", ["architecture", "api"])
def test_complete_pages_leave_nothing_out(page):
    """``make docs`` checks this too, but is not part of the tests."""
    checks = runpy.run_path(str(DOCS / "completeness.py"))["CHECKS"]
    assert checks[page]((DOCS / f"{page}.rst").read_text(encoding="utf-8")) == []
