"""Every public object, and all that the API page lists, documents itself and its parameters."""

import ast
import dataclasses
import inspect
import re
import warnings
from contextlib import suppress
from enum import Enum
from functools import cached_property
from importlib import import_module
from pathlib import Path
from types import FunctionType

import pytest

import symrelu
from symrelu import baselines, datasets, fitted, graphs, metrics, operators, solvers
from symrelu.fit import loop, settings

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from numpydoc.docscrape import ClassDoc, FunctionDoc

SOURCES = Path(symrelu.__file__).parent
PAGE = Path(__file__).parent.parent / "docs" / "api.rst"
MODULES = [symrelu, fitted, graphs, datasets, metrics, baselines, loop, operators, settings, solvers]
# For those who extend the library: there a sentence and the annotations may be enough.
INTERNAL = (
    "symrelu.fit.loop",
    "symrelu.operators",
    "symrelu.fit.settings",
    "symrelu.solvers",
    "symrelu.fit.starts",
    "symrelu.fit.stopping",
    "symrelu.validation",
)


def public_objects():
    for module in MODULES:
        for name in getattr(module, "__all__", dir(module)):
            thing = getattr(module, name)
            ours = getattr(thing, "__module__", "").startswith("symrelu")
            if ours and not name.startswith("_") and (inspect.isfunction(thing) or inspect.isclass(thing)):
                yield f"{thing.__module__}.{name}", thing


def paths_on(page):
    """Yield the full path of each entry of the autosummary tables of a page."""
    module, in_table = "", False
    for line in page.splitlines():
        if match := re.match(r"\.\. (currentmodule|module|autosummary):: *(\S*)", line):
            in_table = match[1] == "autosummary"
            module = module if in_table else match[2]
        elif line and not line[0].isspace():
            in_table = False
        elif in_table and (entry := line.strip()) and not entry.startswith(":"):
            path = entry.split()[0].lstrip("~")
            yield path if path.startswith("symrelu.") else f"{module}.{path}"


def found(path):
    """Return the object at a path of modules, classes and attributes, or None if it is not there."""
    module, *names = path.split(".")
    thing = import_module(module)
    with suppress(ImportError):
        import_module(path.rpartition(".")[0])  # a module that its package does not import
    with warnings.catch_warnings():
        warnings.simplefilter("error", DeprecationWarning)  # what moved is no longer at its old path
        for name in names:
            try:
                thing = getattr(thing, name)
            except (AttributeError, DeprecationWarning):
                return None
    return thing


def public_methods(kind):
    """Return the methods and properties under public names that a class has from classes of ours."""
    ours = [base for base in reversed(kind.__mro__) if base.__module__.startswith("symrelu")]
    members = {name: member for base in ours for name, member in vars(base).items()}
    return {
        name: getattr(kind, name) if isinstance(member, (classmethod, staticmethod)) else member
        for name, member in members.items()
        if not name.startswith("_") and isinstance(member, METHODS)
    }


METHODS = (FunctionType, classmethod, staticmethod, property, cached_property)
LISTED = list(paths_on(PAGE.read_text(encoding="utf-8"))) if PAGE.is_file() else []
ON_PAGE = {path: thing for path in LISTED if (thing := found(path)) is not None}
OBJECTS = dict(public_objects()) | {f"{thing.__module__}.{thing.__name__}": thing for thing in ON_PAGE.values()}


def summary(thing):
    """Return the first paragraph of a docstring, as one line where it is one."""
    return (inspect.getdoc(thing) or "").partition("\n\n")[0]


@pytest.mark.skipif(not PAGE.is_file(), reason="docs/ is part of the repository only")
def test_the_api_page_is_read():
    assert {"symrelu.decompose", "symrelu.SymReLU", "symrelu.graphs.from_edges"} <= set(LISTED)
    assert len(LISTED) == len(set(LISTED)), "an object is listed twice"


def test_paths_of_the_api_page_are_current():
    assert not set(LISTED) - set(ON_PAGE), "the page must list each object at its present path"


def test_entries_of_a_page():
    page = """
.. currentmodule:: symrelu

.. autosummary::
   :toctree: generated/

   decompose
   ~fitted.Tree

Text of symrelu.

   indented

.. currentmodule:: symrelu.graphs
.. autosummary::

   from_edges
   symrelu.metrics.random_mask
"""
    names = ("decompose", "fitted.Tree", "graphs.from_edges", "metrics.random_mask")
    assert list(paths_on(page)) == [f"symrelu.{name}" for name in names]


def test_what_is_public_in_a_class():
    assert {"converged", "advice"} <= set(public_methods(symrelu.Status))
    assert "fit_transform" in public_methods(symrelu.SymReLU)
    assert "set_params" not in public_methods(symrelu.SymReLU), "scikit-learn documents its own"


@pytest.mark.parametrize("path", ON_PAGE)
def test_what_the_api_page_lists_has_a_summary(path):
    thing = ON_PAGE[path]
    described = {path: summary(thing)}
    if inspect.isclass(thing):
        described |= {f"{path}.{name}": summary(method) for name, method in public_methods(thing).items()}
    bad = {name: text for name, text in described.items() if not text.endswith(".") or "\n" in text}
    assert not bad, "the summary must be one line that ends with a period"


@pytest.mark.parametrize("name", OBJECTS)
def test_parameters_are_documented(name):
    thing = OBJECTS[name]
    assert thing.__doc__, f"{name} has no docstring"
    assert thing.__doc__.strip().splitlines()[0].endswith((".", ":")), "the summary is a sentence on one line"
    doc = documentation(thing)
    documented, attributes = names_in(doc["Parameters"]), names_in(doc["Attributes"])
    if documented:
        assert documented == arguments(thing)
    elif needs_parameters(name) and inspect.isclass(thing):
        missing = [field for field in fields(thing) if field not in attributes]
        assert not missing, "a class needs the section Parameters, or Attributes that cover its fields"


def documentation(thing):
    """Return the docstring in sections, without the members that numpydoc would add to those of a class."""
    return (
        ClassDoc(thing, config={"show_class_members": False}) if inspect.isclass(thing) else FunctionDoc(thing)
    )


def names_in(section):
    return [name for entry in section for name in entry.name.split(", ")]


def arguments(thing):
    return [
        ("**" if parameter.kind is parameter.VAR_KEYWORD else "") + parameter.name
        for parameter in inspect.signature(thing).parameters.values()
        if parameter.name != "self"
    ]


def fields(kind):
    """Return what a class stores of the arguments it takes; nothing if users do not call it with any."""
    if issubclass(kind, (Enum, BaseException)) or getattr(kind, "_is_protocol", False):
        return []
    return (
        [field.name for field in dataclasses.fields(kind)]
        if dataclasses.is_dataclass(kind)
        else arguments(kind)
    )


def needs_parameters(name):
    return OBJECTS[name] in ON_PAGE.values() or not name.startswith(INTERNAL)


@pytest.mark.parametrize(
    "name", [name for name in OBJECTS if inspect.isfunction(OBJECTS[name]) and needs_parameters(name)]
)
def test_functions_with_arguments_document_them(name):
    thing = OBJECTS[name]
    doc = documentation(thing)
    signature = inspect.signature(thing)
    if signature.parameters:
        assert doc["Parameters"]
    if signature.return_annotation not in (None, "None"):
        assert doc["Returns"]


def trees():
    for path in sorted(SOURCES.rglob("*.py")):
        yield path.relative_to(SOURCES).as_posix(), ast.parse(path.read_text(encoding="utf-8"))


TREES = dict(trees())
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


@pytest.mark.parametrize("file", TREES)
def test_headings_have_their_own_line(file):
    """A heading that was joined with its underline is no section any more."""
    nodes = (node for node in ast.walk(TREES[file]) if isinstance(node, DOCUMENTED))
    lines = (line for node in nodes for line in (ast.get_docstring(node) or "").splitlines())
    assert not [line for line in lines if re.search(r"\w -{3,}", line)]


def strings(tree):
    """Yield the texts of a file, docstrings too: a formatted one whole, with {} for each value in it."""
    parts = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            yield "".join(part.value if isinstance(part, ast.Constant) else "{}" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in parts:
            yield node.value


def paths_in(text):
    """Yield each path ``symrelu.x.y`` of a text, and whether the text calls it."""
    for match in re.finditer(r"(?<![\w./-])symrelu((?:\.[A-Za-z_]\w*)+)(\(?)", text):
        yield f"symrelu{match[1]}", bool(match[2])


@pytest.mark.parametrize("file", TREES)
def test_paths_in_texts_exist(file):
    """No message sends the user to a name that is not there, or to call what cannot be called."""
    named = {pair for text in strings(TREES[file]) for pair in paths_in(text)}
    things = {path: thing_at(path) for path, _ in named}
    assert not [path for path, thing in things.items() if thing is None]
    assert not [path for path, called in named if called and not callable(things[path])]


def thing_at(path):
    """Return the object or the module at a path, or None."""
    parts = path.split(".")
    for k in range(1, len(parts) + 1):  # a module is an attribute of its package once it is imported
        with suppress(ModuleNotFoundError):
            import_module(".".join(parts[:k]))
    return found(path)


def test_paths_of_a_text():
    text = "Pass symrelu.graphs.from_edges({}).matrix. See symrelu.Status, or symrelu. Not my.symrelu.x."
    assert list(paths_in(text)) == [("symrelu.graphs.from_edges", True), ("symrelu.Status", False)]
    tree = ast.parse("x = f'call symrelu.{name}(' 'symrelu.decompose' f'({M})'")
    assert [pair for text in strings(tree) for pair in paths_in(text)] == [("symrelu.decompose", True)]
