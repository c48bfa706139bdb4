"""Who may import whom."""

import ast
import subprocess
import sys
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import symrelu
from symrelu.experiments import EXPERIMENTS, Experiment

ROOT = Path(symrelu.__file__).parent
HEAVY = ("torch", "dask", "matplotlib", "typer", "networkx", "rich", "pandas", "anndata", "jinja2", "sklearn")

# The rule: imports point down. A package imports itself and the lines below its own, nothing else of symrelu.
LINES = """
    cli
    experiments
    baselines estimators
    fit
    metrics plots
    problem solvers fitted datasets
    graphs operators
    validation
    files
    kernels
"""
LEVEL = {name: level for level, line in enumerate(LINES.split("\n")) for name in line.split()}
ENTRY_POINTS = {"__init__", "__main__", "old_names"}  # they may import everything


def imports(path, *, for_types=True):
    """Return the modules a file imports at any place, those of ``if TYPE_CHECKING`` only if asked."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    if not for_types:
        tree.body = [node for node in tree.body if not ast.unparse(node).startswith("if TYPE_CHECKING")]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def layer_of(path):
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def layers_imported(path):
    ours = (name.split(".") for name in imports(path) if name.startswith("symrelu."))
    return {parts[1] for parts in ours} & set(LEVEL)


@pytest.mark.parametrize("path", sorted(ROOT.rglob("*.py")), ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_point_one_way(path):
    here = layer_of(path)
    if here not in ENTRY_POINTS:
        wrong = {there for there in layers_imported(path) - {here} if LEVEL[there] <= LEVEL[here]}
        assert not wrong, f"{here} must not import {wrong}: see LINES"


@pytest.mark.parametrize("path", sorted((ROOT / "solvers").glob("*.py")), ids=lambda path: path.name)
def test_solvers_know_the_contract_alone(path):
    names = {name for name in imports(path) if name.startswith("symrelu.")}
    assert not [n for n in names if not n.startswith(("symrelu.solvers", "symrelu.operators.base"))]


def test_every_layer_has_its_line():
    assert {layer_of(path) for path in ROOT.rglob("*.py")} == {*LEVEL, *ENTRY_POINTS}


def test_top_level_holds_packages():
    assert {path.stem for path in ROOT.glob("*.py")} == {
        "__init__",
        "__main__",
        "metrics",
        "old_names",
    }


@pytest.mark.parametrize("package", sorted(path.parent.name for path in ROOT.glob("*/__init__.py")))
def test_parts_of_a_package_import_one_another_in_no_circle(package):
    parts = {path.stem: path for path in (ROOT / package).glob("*.py")}
    prefix = f"symrelu.{package}."
    needs = {
        part: {name.removeprefix(prefix) for name in imports(path, for_types=False) if name.startswith(prefix)}
        & set(parts)
        for part, path in parts.items()
    }
    assert set(TopologicalSorter(needs).static_order()) == set(parts)  # a circle raises


@pytest.mark.parametrize("path", sorted((ROOT / "cli").glob("*.py")), ids=lambda path: path.name)
def test_the_command_line_knows_no_experiment_by_name(path):
    known = {make.__module__ for make in EXPERIMENTS.values()} | {"symrelu.experiments.paper"}
    classes = {f"symrelu.experiments.{kind.__name__}" for kind in Experiment.__subclasses__()}
    assert not (known | classes) & set(imports(path))


@pytest.mark.parametrize("path", sorted((ROOT / "solvers").glob("*.py")), ids=lambda path: path.name)
def test_solvers_know_no_array_library(path):
    roots = {name.split(".")[0] for name in imports(path)}
    assert not roots & {"numpy", "scipy", "torch", "dask", "numba"}


# Who may ask whether a matrix is sparse. Above the operators it is the Problem that knows.
ASKS_WHETHER_SPARSE = {"validation", "problem", "graphs", "datasets", "files", "operators"}
ASKS_ONCE = {"fitted", "plots"}  # in one place, of rows or matrices that are no Problem


@pytest.mark.parametrize("path", sorted(ROOT.rglob("*.py")), ids=lambda path: str(path.relative_to(ROOT)))
def test_few_ask_whether_a_matrix_is_sparse(path):
    layer = layer_of(path)
    if layer not in ASKS_WHETHER_SPARSE:
        questions = path.read_text(encoding="utf-8").count("issparse(")
        assert questions <= (layer in ASKS_ONCE), f"{layer} must not ask: see symrelu.problem.Problem"


def test_import_loads_nothing_heavy():
    program = f"import sys, symrelu; print([name for name in {HEAVY!r} if name in sys.modules])"
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    loaded = ast.literal_eval(result.stdout)
    # scikit-learn itself imports pandas and rich where they are installed.
    assert set(loaded) <= {"pandas", "rich"}


def test_public_names():
    assert symrelu.__all__ == [
        "AAPB",
        "LBFGS",
        "PALM",
        "Checkpoint",
        "Eigen",
        "History",
        "LinkPredictor",
        "Problem",
        "RankSelection",
        "Solution",
        "Status",
        "SymReLU",
        "SymReLUClustering",
        "baselines",
        "datasets",
        "decompose",
        "graphs",
        "metrics",
        "select_rank",
    ]
    assert set(symrelu.__all__) <= set(dir(symrelu))
