"""Every public object documents its parameters, in the order of its signature."""

import inspect
import warnings

import pytest

import symrelu
from symrelu import baselines, datasets, fitted, graphs, metrics, operators, solvers
from symrelu.fit import loop, settings

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from numpydoc.docscrape import ClassDoc, FunctionDoc

MODULES = [symrelu, fitted, graphs, datasets, metrics, baselines, loop, operators, settings, solvers]
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


OBJECTS = dict(public_objects())


@pytest.mark.parametrize("name", OBJECTS)
def test_parameters_are_documented(name):
    thing = OBJECTS[name]
    assert thing.__doc__, f"{name} has no docstring"
    assert thing.__doc__.strip().splitlines()[0].endswith((".", ":")), "the summary is a sentence on one line"
    doc = ClassDoc(thing) if inspect.isclass(thing) else FunctionDoc(thing)
    documented = [p for entry in doc["Parameters"] for p in entry.name.split(", ")]
    if not documented:
        return
    actual = [
        ("**" if parameter.kind is parameter.VAR_KEYWORD else "") + parameter.name
        for parameter in inspect.signature(thing).parameters.values()
        if parameter.name != "self"
    ]
    assert documented == actual


@pytest.mark.parametrize(
    "name", [name for name in OBJECTS if inspect.isfunction(OBJECTS[name]) and not name.startswith(INTERNAL)]
)
def test_functions_with_arguments_document_them(name):
    thing = OBJECTS[name]
    doc = FunctionDoc(thing)
    if inspect.signature(thing).parameters:
        assert doc["Parameters"]
    assert doc["Returns"]
