import contextlib
import os

import pytest
import torch
from hypothesis import HealthCheck, settings

from symrelu.fitted import new_rows
from symrelu.kernels import threads

os.environ.setdefault("MPLBACKEND", "Agg")  # no windows

# Imported by tests under their own names: collected for doctests as well, they would register twice.
collect_ignore = ["example_experiment.py", "example_solver.py"]

# In the tests of these packages small passes run on threads too. Elsewhere that only takes time.
THREADED = {"kernels", "operators", "solvers", "fitted", "fit", "baselines"}
new_rows._NUMBERS_OF_A_WORKER = 1
# Those of torch wait by spinning: beside other tests they take longer than they save.
torch.set_num_threads(1)

settings.register_profile(
    "default", deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow]
)
# A landing must not depend on luck: in continuous integration the examples are fixed.
settings.register_profile("ci", settings.get_profile("default"), derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "default")


def pytest_collection_modifyitems(config, items):
    """Leave out scikit-learn's check of array API input: we claim none, so that it would only skip itself."""
    items[:] = [item for item in items if "check_array_api_input" not in item.name]


def pytest_configure(config):
    config.addinivalue_line("markers", "blas_threads: a test of threads, during which BLAS keeps its own")


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

    monkeypatch.setattr("symrelu.fit.decompose.run", work)
    monkeypatch.setattr("symrelu.problem.problem.as_operator", work)
