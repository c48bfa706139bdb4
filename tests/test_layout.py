"""Where things are, and how large they may grow."""

import ast
from functools import cache
from pathlib import Path

import pytest

import symrelu

ROOT = Path(symrelu.__file__).parent
TESTS = Path(__file__).parent
FILES = sorted(ROOT.rglob("*.py"))
# The tests of its parts are those of a package, and __main__ only calls the command line.
MODULES = [path for path in FILES if path.stem not in {"__init__", "__main__"}]

MOST_LINES = 400  # of a file
MOST_BODY = 60  # lines of a function, without its signature and docstring


def name(path):
    return str(path.relative_to(ROOT))


@cache
def parsed(path):
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def functions_of(path):
    return (
        [node for node in ast.walk(parsed(path)) if isinstance(node, ast.FunctionDef)] if path.is_file() else []
    )


def has_tests(path):
    """Return whether a file has a test, as a function or as a method of a class."""
    return any(function.name.startswith("test_") for function in functions_of(path))


def modules_used(path):
    """Yield what a file of tests or its helpers import, public names as the modules that define them."""
    for node in ast.walk(parsed(path)):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            module = getattr(node, "module", None)
            for full in (f"{module}.{alias.name}" if module else alias.name for alias in node.names):
                yield symrelu._HOMES.get(full.removeprefix("symrelu."), full)
            helper = TESTS / f"{module}.py"
            yield from modules_used(helper) if helper.is_file() else ()
    shared = path.with_name("conftest.py")
    arguments = {argument.arg for function in functions_of(path) for argument in function.args.args}
    if path != shared and arguments & {function.name for function in functions_of(shared)}:
        yield from modules_used(shared)


@pytest.mark.parametrize("path", MODULES, ids=name)
def test_every_module_has_its_tests(path):
    """Nobody who changes a module has to search for its tests."""
    tests = TESTS / path.relative_to(ROOT).parent / f"test_{path.name}"
    assert tests.is_file(), f"{name(path)} needs {tests.relative_to(TESTS)}"
    assert has_tests(tests), f"{tests.relative_to(TESTS)} has no test"
    package = ".".join(("symrelu", path.relative_to(ROOT).parts[0].removesuffix(".py")))
    named = {f"{module}." for module in modules_used(tests)}
    assert any(module.startswith(f"{package}.") for module in named), f"it must import from {package}"


def test_folders_of_tests_are_those_of_the_packages():
    folders = {path.parent.relative_to(TESTS).as_posix() for path in TESTS.rglob("test_*.py")}
    folders -= {"browser"}  # what the page of ``report`` does in a browser
    assert folders == {path.parent.relative_to(ROOT).as_posix() for path in MODULES}


@pytest.mark.parametrize("path", FILES, ids=name)
def test_files_are_short(path):
    lines = len(path.read_text(encoding="utf-8").splitlines())
    assert lines <= MOST_LINES, f"{name(path)} has {lines} lines: split it by subject"


def body_lines(function):
    """Return how many lines a function takes from its first statement to its last."""
    statements = function.body[1:] if ast.get_docstring(function, clean=False) is not None else function.body
    return statements[-1].end_lineno - statements[0].lineno + 1 if statements else 0


@pytest.mark.parametrize("path", FILES, ids=name)
def test_functions_are_short(path):
    functions = (
        node for node in ast.walk(parsed(path)) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    )
    long = {node.name: body_lines(node) for node in functions if body_lines(node) > MOST_BODY}
    assert not long, f"{name(path)} has functions above {MOST_BODY} lines: {long}"


@pytest.mark.parametrize(
    ("source", "lines"),
    [
        ("def f(): pass", 1),
        ("def f():\n  '''Text.'''", 0),
        ("def f(\n  a,\n  b,\n):\n  '''Text.\n\n  More.\n  '''\n  c = a\n\n  return c", 3),
        ("def f(a):\n  def g():\n    '''Text.'''\n    return a\n  return g", 4),
    ],
)
def test_lines_of_a_body(source, lines):
    assert body_lines(ast.parse(source).body[0]) == lines
