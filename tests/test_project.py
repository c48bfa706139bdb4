"""The files around the code: what is installed, what the README and continuous integration run."""

import ast
import re
import tomllib
from pathlib import Path

import pytest
from choices import CORE, QUICK
from lower_bounds import lower_bounds, requirements

import symrelu

ROOT = Path(__file__).parents[1]
SOURCE = Path(symrelu.__file__).parent
PYPROJECT = ROOT / "pyproject.toml"
pytestmark = pytest.mark.skipif(not (ROOT / "Makefile").is_file(), reason="only in the repository")

# Distribution -> what is imported, where the names differ.
MODULES = {"scikit-learn": "sklearn", "faiss-cpu": "faiss", "dask": "distributed"}
# Tools that are commands, plugins or names in a configuration: where each is used.
TOOLS = {
    "ruff": "Makefile",
    "mypy": "Makefile",
    "oxlint": "Makefile",
    "pre-commit": "CONTRIBUTING.md",
    "pytest-xdist": "Makefile",
    "sphinx": "Makefile",
    "sphinx-gallery": "docs/conf.py",
    "pydata-sphinx-theme": "docs/conf.py",
    "sphinx-mathjax-offline": "docs/conf.py",
    "numpydoc": "docs/conf.py",
}
WORDS_OF_TOOLS = {
    "sphinx-gallery": "sphinx_gallery",
    "pydata-sphinx-theme": "pydata_sphinx_theme",
    "sphinx-mathjax-offline": "sphinx-mathjax-offline",
    "pytest-xdist": "-n $(JOBS)",
}


def project():
    return tomllib.loads(PYPROJECT.read_text(encoding="utf-8"))["project"]


def text(path):
    return (ROOT / path).read_text(encoding="utf-8")


def imported_modules():
    """Return the first names of all modules that are imported, also by a string, or in a documentation page."""
    files = [
        path for folder in ("src", "tests", "benchmarks", "docs") for path in (ROOT / folder).rglob("*.py")
    ]
    found = set()
    for path in files:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                found |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                found.add(node.module or "")
            elif isinstance(node, ast.Call) and re.search(
                r"(import_module|importorskip)$", ast.unparse(node.func)
            ):
                found |= {part.value for part in node.args if isinstance(part, ast.Constant)}
    for page in (ROOT / "docs").glob("*.rst"):
        found |= set(re.findall(r"^\W*import (\w+)", page.read_text(encoding="utf-8"), re.MULTILINE))
    return {str(name).split(".")[0] for name in found}


EXTRAS = sorted(
    {name for extra in project()["optional-dependencies"] for name, _ in requirements(project(), extra)}
)


def test_every_requirement_is_used():
    modules = imported_modules()
    for name in (*EXTRAS, *(name for name, _ in requirements(project()))):
        if name in TOOLS:
            assert WORDS_OF_TOOLS.get(name, name) in text(TOOLS[name]), name
        else:
            # pandas imports pyarrow when it is asked for parquet.
            used = {MODULES.get(name, name.replace("-", "_"))} | ({"pandas"} if name == "pyarrow" else set())
            assert used & modules, f"{name} is installed by pyproject.toml, but nothing imports it"


def test_every_requirement_has_one_lower_bound():
    # torch and triton are pinned for the tests, but not for users.
    bounds = lower_bounds(project()["optional-dependencies"].keys() - {"torch", "cuda", "all"})
    assert set(EXTRAS) <= set(bounds)
    assert bounds["numpy"] == "2.1"


@pytest.mark.parametrize(
    ("lines", "message"), [(["numpy"], "must have a lower bound"), (["numpy~=2.1"], "must have the form")]
)
def test_other_requirements_are_refused(lines, message):
    with pytest.raises(ValueError, match=message):
        list(requirements({"name": "symrelu", "dependencies": lines}))


def test_two_bounds_of_one_package_are_refused(tmp_path):
    path = tmp_path / "pyproject.toml"
    path.write_text(
        '[project]\nname = "p"\ndependencies = ["a>=1"]\n[project.optional-dependencies]\nx = ["a>=2"]'
    )
    with pytest.raises(ValueError, match="a has two lower bounds, 1 and 2"):
        lower_bounds(["x"], path)


def test_extras_named_in_messages_exist():
    extras = project()["optional-dependencies"]
    for path in (*SOURCE.rglob("*.py"), *(ROOT / "docs").glob("*.rst"), ROOT / "README.md"):
        for names in re.findall(r"(?:symrelu|install '\.)\[([\w,-]+)\]", path.read_text(encoding="utf-8")):
            assert set(names.split(",")) <= set(extras), path


def test_versions_agree():
    cited = re.search(r"^version: (\S+)$", text("CITATION.cff"), re.MULTILINE)[1]
    releases = re.findall(r"^## \[(\d\S*)\]", text("CHANGELOG.md"), re.MULTILINE)
    # During development, the citation is that of the latest release.
    assert cited == (releases[0] if ".dev" in symrelu.__version__ else symrelu.__version__)
    assert "version" in project()["dynamic"]


def test_addresses_agree():
    address = project()["urls"]["Source"]
    for path in ("CITATION.cff", "README.md", "SECURITY.md", ".github/ISSUE_TEMPLATE/config.yml"):
        assert address in text(path), path
    assert all(url.startswith(address) for url in project()["urls"].values())


WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_actions_are_pinned_and_may_only_read(path):
    workflow = path.read_text(encoding="utf-8")
    used = re.findall(r"uses: (\S+)(.*)", workflow)
    assert used
    for action, comment in used:
        assert re.fullmatch(r"[\w/-]+@[0-9a-f]{40}", action), action
        assert re.fullmatch(r"\s+# v\d+\.\d+\.\d+", comment), action
    assert re.findall(r"^ *permissions:\n((?: +\S.*\n)+)", workflow, re.MULTILINE) == ["  contents: read\n"]


def test_classifiers_are_the_tested_versions():
    classifiers = re.findall(r"Python :: (3\.\d+)", " ".join(project()["classifiers"]))
    tested = re.search(r"python-version: \[(.*)\]", text(".github/workflows/ci.yml"))[1]
    assert classifiers == re.findall(r"3\.\d+", tested)
    assert project()["requires-python"] == f">={classifiers[0]}"


@pytest.mark.parametrize(
    "path", ["README.md", "CONTRIBUTING.md", "RELEASING.md", ".ci/run", ".github/workflows/ci.yml"]
)
def test_commands_of_make_exist(path):
    targets = set(re.findall(r"^([\w-]+):(?!=)", text("Makefile"), re.MULTILINE))
    assert {"demo", "test", "test-quick", "test-lowest"} <= targets
    commands = re.findall(r"(?:^ *|`|run: )make ([\w-]+)", text(path), re.MULTILINE)
    assert set(commands) <= targets


@pytest.mark.parametrize("choice", [QUICK, CORE], ids=["quick", "core"])
def test_a_choice_of_tests_touches_every_package(choice):
    assert {path.split("/")[0] for path in choice} >= {
        path.parent.name for path in SOURCE.glob("*/__init__.py")
    }
    for beginning in choice:
        path, _, name = beginning.partition("::")
        assert (ROOT / "tests" / path).exists(), path
        assert not name or f"def {name}" in text(f"tests/{path}"), beginning


def test_nothing_passes_allow_pickle_to_savez():
    """NumPy 2.1 would store it as an array; files.without_objects has the same effect."""
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func).startswith("np.savez"):
                assert "allow_pickle" not in {keyword.arg for keyword in node.keywords}, path
