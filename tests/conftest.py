import contextlib
import os
import signal
from importlib.util import find_spec

import pytest
from choices import CORE, QUICK
from hypothesis import HealthCheck, settings

from symrelu.fitted import new_rows
from symrelu.kernels import threads

os.environ.setdefault("MPLBACKEND", "Agg")  # no windows
# A job that a script starts in the background ignores Ctrl-C, and so would processes to which tests send it.
signal.signal(signal.SIGINT, signal.default_int_handler)

# Imported by tests under their own names: collected for doctests as well, they would register twice.
collect_ignore = ["example_experiment.py", "example_solver.py"]
collect_ignore.append("compiled_kernels.py")  # a program, which needs triton without its interpreter
if find_spec("array_api_strict") is None:
    collect_ignore.append("strict_operator.py")
if find_spec("distributed") is None:
    collect_ignore.append("scripted_client.py")  # a client of Dask
if find_spec("torch") is None:
    collect_ignore += ["small_blocks.py", "transfers.py"]

# In the tests of these packages small passes run on threads too. Elsewhere that only takes time.
THREADED = {"kernels", "operators", "solvers", "fitted", "fit", "baselines"}
new_rows._NUMBERS_OF_A_WORKER = 1
HAS_CALLBACKS = find_spec("sklearn.callback") is not None
HAS_TORCH = find_spec("torch") is not None
if not HAS_CALLBACKS:
    # Next to array-api-compat, scikit-learn 1.6 imports its estimator checks only with this variable. SciPy,
    # which is imported already, does not see it.
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SCIPY_ARRAY_API", "1")
        import sklearn.utils.estimator_checks  # noqa: F401
# Threads of torch wait by spinning: next to other tests they take longer than they save.
if HAS_TORCH:
    import torch

    torch.set_num_threads(1)
    if not torch.cuda.is_available():
        # Triton reads this when a kernel is defined: without a GPU, its interpreter runs kernels on the CPU.
        os.environ.setdefault("TRITON_INTERPRET", "1")

settings.register_profile(
    "default",
    deadline=None,
    max_examples=50,
    # Older versions of hypothesis draw more examples that a test does not accept.
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
# A landing must not depend on luck: in continuous integration the examples are fixed.
settings.register_profile("ci", settings.get_profile("default"), derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "default")


def pytest_collection_modifyitems(config, items):
    """Leave out scikit-learn's check of array API input: we claim none, so that it would only skip itself."""
    items[:] = [item for item in items if "check_array_api_input" not in item.name]
    for item in items:
        add_choices(item)
        if not HAS_CALLBACKS and item.get_closest_marker("requires_callbacks"):
            item.add_marker(pytest.mark.skip(reason="sklearn.callback is in scikit-learn 1.9 and newer"))
        if not HAS_TORCH and uses_torch(item):
            item.add_marker(pytest.mark.skip(reason="torch is not installed"))


def pytest_ignore_collect(collection_path, config):
    """Leave out files without a test of the choice that -m names: to import all takes half a minute."""
    choice = {"quick": QUICK, "core": CORE}.get(config.getoption("markexpr"))
    name = collection_path.as_posix().rpartition("/tests/")[2]
    if choice and collection_path.name.startswith("test_"):
        return True if not any(name.startswith(part.partition("::")[0]) for part in choice) else None
    return None


def add_choices(item):
    """Mark the tests that `make test-quick` and `make test-lowest` run."""
    _, below, name = f"/{item.nodeid}".partition("/tests/")
    for marker, beginnings in (("quick", QUICK), ("core", CORE)):
        if below and name.startswith(beginnings):
            item.add_marker(marker)


def uses_torch(item):
    """Return whether a parameter of a test, such as its backend, is torch."""
    parameters = item.callspec.params.values() if hasattr(item, "callspec") else ()
    return any(str(value).startswith("torch") for value in parameters if isinstance(value, str))


def pytest_configure(config):
    config.addinivalue_line("markers", "blas_threads: a test of threads, during which BLAS keeps its own")
    config.addinivalue_line("markers", "quick: a test that `make test-quick` runs (tests/choices.py)")
    config.addinivalue_line("markers", "core: a test that `make test-lowest` runs (tests/choices.py)")
    config.addinivalue_line("markers", "requires_callbacks: a test of scikit-learn's callbacks")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item, nextitem):
    """Run small passes on threads in the tests of ``THREADED``, but BLAS on one: its threads wait spinning."""
    with contextlib.ExitStack() as stack:
        if item.path.parent.name in THREADED:
            patch = stack.enter_context(pytest.MonkeyPatch.context())
            patch.setattr(threads, "MIN_WORK_OF_A_THREAD", 1)
        if not item.get_closest_marker("blas_threads"):
            stack.enter_context(threads.single_threaded_blas())
        return (yield)


@pytest.fixture
def no_work(monkeypatch):
    """Make any work fail: errors must come before it."""

    def work(*args, **kwargs):
        raise AssertionError("work started")

    monkeypatch.setattr("symrelu.fit.levels.run", work)
    monkeypatch.setattr("symrelu.problem.problem.as_operator", work)
