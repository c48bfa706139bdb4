"""Who may import whom."""

import ast
import re
import subprocess
import sys
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import symrelu
from symrelu import old_names
from symrelu.experiments import EXPERIMENTS, Experiment

ROOT = Path(symrelu.__file__).parent
# What takes longer to import than a fit needs: everything optional, scikit-learn, and parts of SciPy.
HEAVY = (
    "torch",
    "dask",
    "distributed",
    "matplotlib",
    "typer",
    "networkx",
    "rich",
    "pandas",
    "anndata",
    "jinja2",
    "pyarrow",
    "sklearn",
    "joblib",
    "scipy.optimize",
    "scipy.spatial",
    "scipy.special",
    "scipy.stats",
)

# The rule: imports point down. A package imports itself and the lines below its own, nothing else of symrelu.
# A public name such as symrelu.decompose counts as its home; old names are not for use inside the library.
LINES = """
    cli
    experiments report
    baselines estimators
    fit
    metrics
    problem solvers fitted datasets
    plots
    graphs operators
    validation
    files
    kernels
"""
LEVEL = {name: level for level, line in enumerate(LINES.split("\n")) for name in line.split()}
ENTRY_POINTS = {"__init__", "__main__", "old_names"}  # they may import everything
ABOVE_ALL = 0  # the level of names that LINES does not list: no package may import them

# Who imports symrelu itself, for its version alone.
READ_THE_VERSION = {
    "fit/checkpoint.py",
    "experiments/cells.py",
    "experiments/environment.py",
    "operators/cluster_clients.py",
    "report/writing.py",
}
# Who imports parts of symrelu by strings, from tables or folders of its own.
IMPORT_BY_STRING = {
    "__init__.py",
    "old_names.py",
    "operators/__init__.py",
    "fitted/__init__.py",
    "experiments/__init__.py",
    "cli/__init__.py",
    "cli/commands.py",
}

FILES = {path.relative_to(ROOT).as_posix(): path for path in sorted(ROOT.rglob("*.py"))}


@cache
def parsed(path):
    return ast.parse(path.read_text(encoding="utf-8"))


def imports(tree, *, for_types=True):
    """Return the modules a file imports at any place, those of ``if TYPE_CHECKING`` only if asked."""
    if not for_types:
        body = [node for node in tree.body if not ast.unparse(node).startswith("if TYPE_CHECKING")]
        tree = ast.Module(body, [])
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{ast.unparse(node)}: imports must be absolute"
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def layer_of(path):
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def wrong_imports(here, tree):
    """Return the layers and unknown names of symrelu that a module of the layer ``here`` must not import."""
    names = {name.split(".")[1] for name in imports(tree) if name.startswith("symrelu.")} - {"__version__"}
    layers = {symrelu._HOMES.get(name, f"symrelu.{name}").split(".")[1] for name in names}
    return {there for there in layers - {here} if LEVEL.get(there, ABOVE_ALL) <= LEVEL[here]}


@pytest.mark.parametrize("name", FILES)
def test_imports_point_one_way(name):
    here = layer_of(FILES[name])
    if here not in ENTRY_POINTS:
        wrong = wrong_imports(here, parsed(FILES[name]))
        assert not wrong, f"{here} must not import {wrong}: see LINES"


@pytest.mark.parametrize(
    ("here", "line", "wrong"),
    [
        ("fit", "from symrelu.kernels import threads", set()),
        ("kernels", "from symrelu.kernels.jit import compiled", set()),
        ("kernels", "from symrelu import __version__", set()),
        ("kernels", "from symrelu import PALM, SymReLU", {"solvers", "estimators"}),
        ("kernels", "import symrelu.fit.decompose as module", {"fit"}),
        ("kernels", "from symrelu import decompose", {"fit"}),
        ("cli", "from symrelu.loop import Limits", {"loop"}),
        ("cli", "from symrelu import linkage", {"linkage"}),
        ("cli", "from symrelu import old_names", {"old_names"}),
        ("cli", "from symrelu import *", {"*"}),
        ("solvers", "from symrelu import Problem", {"problem"}),
    ],
)
def test_what_the_rule_refuses(here, line, wrong):
    assert wrong_imports(here, ast.parse(f"def use():\n    {line}" if "*" not in line else line)) == wrong


def test_old_names_are_no_layers():
    assert not set(old_names.MOVED) & {*LEVEL, *symrelu._HOMES}


def uses_of_symrelu(tree):
    """Yield, as text, each ``import symrelu...``, and what is taken from the name ``symrelu``."""
    attributes = [node for node in ast.walk(tree) if isinstance(node, ast.Attribute)]
    taken = {id(node.value): ast.unparse(node) for node in attributes}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (ast.unparse(node) for alias in node.names if alias.name.split(".")[0] == "symrelu")
        elif isinstance(node, ast.Name) and node.id == "symrelu":
            yield taken.get(id(node), "symrelu")


@pytest.mark.parametrize("name", FILES)
def test_only_the_version_is_taken_from_symrelu_itself(name):
    allowed = {"import symrelu", "symrelu.__version__"} if name in READ_THE_VERSION else set()
    assert set(uses_of_symrelu(parsed(FILES[name]))) == allowed


def imports_by_string(tree):
    """Yield, as text, the calls of import_module whose argument does not name another library."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith(("import_module", "__import__")):
            call = ast.unparse(node)
            if not re.search(r"""import\w*\(f?['"](?!symrelu\b)\w[\w.{}]*['"]\)$""", call):
                yield call


@pytest.mark.parametrize("name", sorted(set(FILES) - IMPORT_BY_STRING))
def test_no_part_of_symrelu_is_imported_by_a_string(name):
    assert not list(imports_by_string(parsed(FILES[name])))


@pytest.mark.parametrize(
    ("call", "seen"),
    [
        ("import_module('pandas')", False),
        ("import_module(f'matplotlib.{module}')", False),
        ("import_module('symrelu')", True),
        ("importlib.import_module('symrelu.fit.decompose')", True),
        ("import_module(f'symrelu.{name}')", True),
        ("import_module('.fit', 'symrelu')", True),
        ("import_module(f'{__name__}.x')", True),
        ("import_module(name)", True),
        ("__import__('symrelu.fit')", True),
    ],
)
def test_which_imports_by_a_string_are_seen(call, seen):
    assert bool(list(imports_by_string(ast.parse(call)))) == seen


CONTRACT = (["symrelu", "operators", "base"], ["symrelu", "solvers"])


@pytest.mark.parametrize("path", sorted((ROOT / "solvers").glob("*.py")), ids=lambda path: path.name)
def test_solvers_know_the_contract_alone(path):
    ours = [name.split(".") for name in imports(parsed(path)) if name.split(".")[0] == "symrelu"]
    assert not [parts for parts in ours if not any(parts[: len(part)] == part for part in CONTRACT)]


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
        part: {
            name.removeprefix(prefix)
            for name in imports(parsed(path), for_types=False)
            if name.startswith(prefix)
        }
        & set(parts)
        for part, path in parts.items()
    }
    assert set(TopologicalSorter(needs).static_order()) == set(parts)  # a circle raises


@pytest.mark.parametrize("path", sorted((ROOT / "cli").glob("*.py")), ids=lambda path: path.name)
def test_the_command_line_knows_no_experiment_by_name(path):
    known = {make.__module__ for make in EXPERIMENTS.values()} | {"symrelu.experiments.paper"}
    classes = {f"symrelu.experiments.{kind.__name__}" for kind in Experiment.__subclasses__()}
    assert not (known | classes) & set(imports(parsed(path)))


@pytest.mark.parametrize("path", sorted((ROOT / "solvers").glob("*.py")), ids=lambda path: path.name)
def test_solvers_know_no_array_library(path):
    roots = {name.split(".")[0] for name in imports(parsed(path))}
    assert not roots & {"numpy", "scipy", "torch", "dask", "numba"}


# Who may ask whether a matrix is sparse. Above the operators it is the Problem that knows.
ASKS_WHETHER_SPARSE = {"validation", "problem", "graphs", "datasets", "files", "operators"}
ASKS_ONCE = {"fitted", "plots"}  # in one place, of rows or matrices that are no Problem


SPARSE_CLASS = re.compile(r"\b((bsr|coo|csc|csr|dia|dok|lil)_(array|matrix)|sparray|spmatrix)\b")


def asks_whether_sparse(node):
    if isinstance(node, ast.Call) and ast.unparse(node.func) in {"isinstance", "issubclass"}:
        return bool(SPARSE_CLASS.search(ast.unparse(node)))
    name = getattr(node, "id", getattr(node, "attr", ""))  # of a variable or an attribute
    return name.startswith(("issparse", "isspmatrix"))


@pytest.mark.parametrize("name", FILES)
def test_few_ask_whether_a_matrix_is_sparse(name):
    layer = layer_of(FILES[name])
    if layer not in ASKS_WHETHER_SPARSE:
        questions = sum(map(asks_whether_sparse, ast.walk(parsed(FILES[name]))))
        assert questions <= (layer in ASKS_ONCE), f"{layer} must not ask: see symrelu.problem.Problem"


@pytest.mark.parametrize(
    ("line", "questions"),
    [
        ("issparse(M)", 1),
        ("scipy.sparse.issparse(M) or issparse(N)", 2),
        ("list(map(issparse, parts))", 1),
        ("isinstance(M, csr_array)", 1),
        ("isinstance(M, (np.ndarray, sparse.spmatrix))", 1),
        ("isinstance(M, np.ndarray) and csr_array(M)", 0),
    ],
)
def test_which_questions_are_seen(line, questions):
    assert sum(map(asks_whether_sparse, ast.walk(ast.parse(line)))) == questions


@pytest.mark.parametrize(
    "program", ["import symrelu", "from symrelu import decompose", "import symrelu.graphs, symrelu.solvers"]
)
def test_import_loads_nothing_heavy(program):
    program += f"; import sys; print([name for name in {HEAVY!r} if name in sys.modules])"
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ast.literal_eval(result.stdout) == []


def test_queries_elsewhere_are_imported_when_they_are_used():
    pytest.importorskip("torch")
    program = "import sys, symrelu.fitted as f; print('torch' in sys.modules, f.on_cluster.top_k.__name__)"
    program += "; print(f.on_device.transform.__name__); f.on_nothing"
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert result.stdout.split() == ["False", "top_k", "transform"]
    assert "module 'symrelu.fitted' has no attribute 'on_nothing'" in result.stderr


def test_public_names():
    assert symrelu.__all__ == [
        "AAPB",
        "LBFGS",
        "PALM",
        "Checkpoint",
        "Cost",
        "Eigen",
        "History",
        "LinkPredictor",
        "NeighborEmbedding",
        "Newton",
        "Problem",
        "RankSelection",
        "Solution",
        "Status",
        "SymReLU",
        "SymReLUClustering",
        "baselines",
        "datasets",
        "decompose",
        "estimate_cost",
        "graphs",
        "metrics",
        "plots",
        "report",
        "select_rank",
    ]
    assert set(symrelu.__all__) <= set(dir(symrelu))
