"""Names of 0.1.0: each path on its API page is importable, and the old ones say where to go."""

import ast
import importlib.util
import warnings
from importlib import import_module
from pathlib import Path

import pytest
from fresh_imports import run_programs

import symrelu
from symrelu import old_names

# docs/api.rst of 0.1.0.
PAGE = [
    "decompose",
    "SymReLU",
    "SymReLUClustering",
    "LinkPredictor",
    "select_rank",
    "LBFGS",
    "Eigen",
    "AAPB",
    "PALM",
    "Solution",
    "History",
    "Status",
    "RankSelection",
    "Checkpoint",
    "linkage.Tree",
    "loop.Progress",
    "loop.Limits",
    "graphs.self_tuning_graph",
    "graphs.SelfTuningGraph",
    "graphs.as_similarity",
    "graphs.Labelled",
    "graphs.from_edges",
    "graphs.from_networkx",
    "graphs.from_igraph",
    "graphs.from_pandas",
    "graphs.from_anndata",
    "graphs.from_torch",
    "graphs.embedding_frame",
    "graphs.write_anndata",
    "datasets.make_relu_gram",
    "datasets.load_digits_graph",
    "datasets.load_orl",
    "datasets.load_yaleb",
    "datasets.load_coil20",
    "datasets.load_coil100",
    "datasets.load_pie",
    "datasets.load_tdt2",
    "datasets.load_graph",
    "datasets.Dataset",
    "datasets.GraphDataset",
    "metrics.relative_error",
    "metrics.half_squared_error",
    "metrics.held_out_error",
    "metrics.random_mask",
    "metrics.parameters_per_pair",
    "metrics.clustering_accuracy",
    "linkage.average_linkage",
    "linkage.average_linkage_of_factor",
    "baselines.symmetric_nmf",
    "baselines.SymHALS",
    "baselines.SymANLS",
    "baselines.truncated_eigen",
    "baselines.three_block_nmd",
    "experiments.Synthetic",
    "experiments.Real",
    "experiments.Ablation",
    "experiments.Signed",
    "experiments.find_data_sets",
    "experiments.find_signed_data",
    "experiments.reproduce",
    "experiments.run_cells",
    "experiments.Cell",
    "experiments.CellResult",
    "experiments.CellStore",
    "experiments.Monitor",
    "operators.Operator",
    "operators.Evaluation",
    "operators.as_operator",
    "solvers.Solver",
    "solvers.State",
    "solvers.get_solver",
]
MOVED = {f"{old}.{name}": home for old, names in old_names.MOVED.items() for name, home in names.items()}


@pytest.mark.parametrize("path", PAGE)
def test_a_path_of_the_page_is_importable(path):
    module, _, name = f"symrelu.{path}".rpartition(".")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        value = getattr(import_module(module), name)
    assert callable(value)
    assert [warning.category for warning in caught] == [DeprecationWarning] * (path in MOVED)


@pytest.mark.parametrize("path", MOVED)
def test_a_moved_name_says_where_it_is(path):
    module, _, name = path.rpartition(".")
    home, _, new_name = MOVED[path].rpartition(".")
    message = f"symrelu.{path} is deprecated .* Use {MOVED[path]} instead"
    with pytest.warns(DeprecationWarning, match=message) as caught:
        value = getattr(getattr(symrelu, module), name)
    assert value is getattr(import_module(home), new_name)
    assert caught[0].filename == __file__


STATEMENTS = ("import symrelu.loop", "from symrelu import loop", "from symrelu.loop import Limits")


@pytest.fixture(scope="module")
def imports():
    programs = {each: f"{each}; import symrelu; symrelu.loop.Limits(max_iter=3)" for each in STATEMENTS}
    programs |= {each: f"import symrelu; print(symrelu.{each}.__name__)" for each in symrelu._PACKAGES}
    return run_programs(programs, "-W", "error::UserWarning")


@pytest.mark.parametrize("statement", STATEMENTS)
def test_each_kind_of_import(statement, imports):
    assert imports[statement].returncode == 0, imports[statement].stderr


def test_a_star_import_works_as_it_did():
    namespace = {}
    with pytest.warns(DeprecationWarning, match=r"symrelu\.linkage\.\w+ is deprecated") as caught:
        exec("from symrelu.linkage import *", namespace)  # as users write it
    assert len(caught) == 3
    assert namespace["average_linkage"] is symrelu.fitted.average_linkage
    assert {name for name in namespace if not name.startswith("__")} == {
        "Tree",
        "average_linkage",
        "average_linkage_of_factor",
    }


def test_tools_that_look_for_old_modules_find_them():
    assert importlib.util.find_spec("symrelu.linkage").name == "symrelu.linkage"


def test_completion_suggests_public_names_only():
    names = {name for name in dir(symrelu) if not name.startswith("_")}
    assert names == {*symrelu.__all__, *symrelu._PACKAGES}


def test_old_modules_hold_nothing_else():
    assert dir(symrelu.loop) == ["Limits", "Progress"]
    with pytest.raises(AttributeError, match=r"module 'symrelu.loop' has no attribute 'run'"):
        symrelu.loop.run  # noqa: B018
    assert not {path.stem for path in Path(symrelu.__file__).parent.iterdir()} & set(old_names.MOVED)


# ------------------------------------------------------------------------ the public names, loaded late


def test_type_checkers_see_what_is_loaded():
    """The imports of ``if TYPE_CHECKING`` and the table that the interpreter uses agree."""
    tree = ast.parse(Path(symrelu.__file__).read_text(encoding="utf-8"))
    (block,) = (node for node in tree.body if ast.unparse(node).startswith("if TYPE_CHECKING:"))
    seen = {alias.name: node.module for node in block.body for alias in node.names}
    packages = {name for name, module in seen.items() if module == "symrelu"}
    assert packages == set(symrelu._PACKAGES)
    assert {name: module for name, module in seen.items() if name not in packages} == symrelu._HOMES
    assert set(symrelu.__all__) <= set(seen)


@pytest.mark.parametrize("package", symrelu._PACKAGES)
def test_packages_are_attributes_from_the_start(package, imports):
    assert imports[package].returncode == 0, imports[package].stderr
    assert imports[package].stdout == f"symrelu.{package}\n"


def test_decompose_is_the_function_and_nothing_else():
    assert callable(symrelu.decompose)
    with pytest.raises(ImportError):
        import_module("symrelu.decompose")


def test_unknown_names_are_refused():
    with pytest.raises(AttributeError, match="no attribute 'recompose'"):
        symrelu.recompose  # noqa: B018
