"""What a fit on a GPU holds, next to what was measured on one."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from symrelu.fit import device_memory, memory_check
from symrelu.fit.memory_model import Case, memory_of
from symrelu.fit.settings import Limits, Model, Run, Start
from symrelu.problem import Problem

pytest.importorskip("torch")
cuda = pytest.importorskip("symrelu.operators.cuda")


@pytest.fixture
def gpu(monkeypatch):
    """Pretend that there is a GPU with so many free bytes."""

    def set_free(free):
        monkeypatch.setattr(cuda.CudaOperator, "check_available", lambda: None)
        monkeypatch.setattr(cuda.CudaOperator, "free_memory", lambda: free)

    return set_free


def settings(rank, **run):
    model, start = Model(rank=rank, n_negative=1, diagonal="ignore"), Start(init="multilevel", random_state=0)
    return model, start, Run(backend="cuda", **run), Limits()


def case_of(n, entries, rank, gpu):
    gpu(2**40)
    small = Problem.of(sparse.csr_array(np.ones((8, 8), np.float32)))
    case = Case.of(small, *settings(min(rank, 8)))
    return replace(case, n=n, entries=entries, hidden=n, rank=rank)


@pytest.mark.parametrize(
    ("n", "entries", "gibibytes"),
    [
        (64_000, 728_146, 0.993),
        (64_000, 1_032_834, 0.694),
        (262_144, 2_981_894, 2.13),
        (262_144, 4_271_920, 2.33),
        (1_000_000, 11_375_818, 7.15),
    ],
)
def test_the_figure_is_that_of_the_benchmark(n, entries, gibibytes, gpu):
    """Peaks of fits at rank 32 in float32: results/gpu/fits.json."""
    announced = memory_of(case_of(n, entries, 32, gpu)).total / 2**30
    assert gibibytes <= announced <= 1.7 * gibibytes


def test_a_fit_that_does_not_fit_on_the_gpu_is_refused_with_the_figures(gpu):
    M = sparse.random_array((200, 200), density=0.1, rng=np.random.default_rng(0), dtype=np.float32)
    problem = Problem.of(sparse.csr_array(M + M.T))
    gpu(10_000)
    with pytest.raises(MemoryError, match=r"needs .* MB in addition to M; 10 kB are available"):
        memory_check.check_memory_of_fit(problem, *settings(8))
    gpu(10**9)
    memory_check.check_memory_of_fit(problem, *settings(8))
    assert device_memory.free_on_device() == 10**9
