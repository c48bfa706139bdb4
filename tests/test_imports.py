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
FACES = {"__init__", "__main__", "cli", "demo"}  # they may use everything
HEAVY = ("torch", "dask", "matplotlib", "typer", "networkx", "rich", "pandas", "anndata", "jinja2")

# Layer -> what of symrelu it may import. Kernels know nothing, solvers only the operator contract.
ALLOWED = {
    "kernels": {"kernels"},
    "operators": {"operators", "kernels"},
    "solvers": {"solvers", "operators.base"},
    "files": {"memory"},
    "validation": {"memory", "kernels", "validation"},
    "canonical": set(),
    "docstrings": set(),
    "memory": set(),
    "transform": {"memory", "kernels"},
    "fitted": {"memory", "canonical", "kernels.threads", "transform", "validation"},
    "linkage": {"memory", "kernels", "validation"},
    "solution": {"files", "fitted", "validation"},
    "stopping": {"operators.base", "settings", "solution", "solvers.base"},  # of the settings the names alone
    "loop": {"operators.base", "settings", "solution", "solvers.base", "stopping"},
    "observers": {"loop", "solution"},
    "progress": {"loop"},
    "checkpoint": {"files", "solution", "solvers.base", "validation"},
    "resuming": {
        "checkpoint",
        "loop",
        "observers",
        "operators.base",
        "solution",
        "solvers.base",
        "stopping",
    },
    "start": {"kernels.arpack", "operators.base", "solvers.base", "validation"},
    "settings": {"checkpoint", "docstrings", "operators", "problem", "solvers", "start", "validation"},
    "graphs": {"graphs", "validation"},
    "distances": set(),
    "problem": {"distances", "graphs", "kernels.threads", "operators", "validation"},
    "decompose": {
        "checkpoint",
        "fitted",
        "kernels.threads",
        "loop",
        "observers",
        "operators",
        "problem",
        "progress",
        "resuming",
        "settings",
        "solution",
        "solvers",
        "start",
        "validation",
    },
    "metrics": {"operators", "problem", "validation"},
    "datasets": {"datasets", "files", "graphs", "validation"},
    "baselines": {
        "baselines",
        "fitted",
        "kernels.arpack",
        "kernels.threads",
        "loop",
        "observers",
        "operators.base",
        "operators.host",
        "problem",
        "settings",
        "solution",
        "solvers.base",
        "start",
        "validation",
    },
    "holdout": {"problem"},
    "rank_selection": {"holdout", "plots"},
    "selection": {
        "decompose",
        "holdout",
        "kernels.threads",
        "problem",
        "rank_selection",
        "settings",
        "solution",
        "validation",
    },
    "estimators": {
        "checkpoint",
        "decompose",
        "distances",
        "estimators",
        "fitted",
        "graphs",
        "linkage",
        "loop",
        "memory",
        "problem",
        "selection",
        "settings",
        "solution",
        "validation",
    },
    "plots": {"files", "kernels", "solution"},
    "experiments": {
        "baselines",
        "datasets",
        "decompose",
        "experiments",
        "files",
        "metrics",
        "graphs",
        "kernels.threads",
        "loop",
        "plots",
        "settings",
        "solution",
        "solvers",
        "validation",
    },
}


def imports(path):
    """Return the modules a file imports at any place."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def layer_of(path):
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


@pytest.mark.parametrize("path", sorted(ROOT.rglob("*.py")), ids=lambda path: str(path.relative_to(ROOT)))
def test_layers(path):
    layer = layer_of(path)
    if layer in FACES:
        return
    ours = {name.removeprefix("symrelu.") for name in imports(path) if name.startswith("symrelu.")}
    modules = {name for name in ours if (ROOT / name.replace(".", "/")).with_suffix(".py").exists()}
    packages = {name for name in ours if (ROOT / name.replace(".", "/") / "__init__.py").exists()}
    for name in modules | packages:
        allowed = ALLOWED[layer]
        assert name in allowed or name.split(".")[0] in allowed, f"{layer} must not import symrelu.{name}"


@pytest.mark.parametrize("package", ["graphs", "validation"])
def test_parts_of_a_package_import_one_another_in_no_circle(package):
    parts = {path.stem: path for path in (ROOT / package).glob("*.py")}
    prefix = f"symrelu.{package}."
    needs = {
        part: {name.removeprefix(prefix) for name in imports(path) if name.startswith(prefix)} & set(parts)
        for part, path in parts.items()
    }
    assert set(TopologicalSorter(needs).static_order()) == set(parts)  # a circle raises


def test_every_layer_is_listed():
    layers = {layer_of(path) for path in ROOT.rglob("*.py")}
    assert layers == set(ALLOWED) | FACES


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
ASKS_ONCE = {"transform", "plots"}  # in one place, of rows or matrices that are no Problem


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
