"""Fits that cannot fit into memory are refused before any work, with the figures and what to do."""

from dataclasses import replace

import numpy as np
import pytest
from problems_of_size import CASE, graph, memory

from symrelu import LBFGS, PALM, Problem, SymReLU, decompose
from symrelu.fit import memory_check as module
from symrelu.fit.memory_model import memory_of
from symrelu.kernels.memory import in_words


def pretend(monkeypatch, available):
    monkeypatch.setattr(module, "available_memory", lambda: available)


def fail(*_, **__):
    raise AssertionError("work was done")


def test_what_cannot_fit_is_refused_before_any_work(monkeypatch):
    M = graph(500, 6)
    needed = memory(Problem.of(M), 64, init="random").least
    pretend(monkeypatch, int(needed / 1.25) + 1)  # the count may be too high by a quarter
    decompose(M, 64, init="random", max_iter=20)
    pretend(monkeypatch, int(needed / 1.25) - 1)
    decompose(M, 64, init="random", max_iter=2)  # few past steps
    monkeypatch.setattr(Problem, "operator", fail)
    with pytest.raises(MemoryError) as refused:
        decompose(M, 64, init="random", max_iter=20)
    message = str(refused.value)
    assert f"500 items with rank 64 needs {in_words(needed)} in addition to M" in message
    remedies = "solver=LBFGS(memory=3) or solver='palm' (fewer arrays) or backend='dask' on a cluster."
    assert message.endswith(f"Use a smaller rank, M in float32, {remedies}")
    pretend(monkeypatch, memory(Problem.of(M), 64, init="random", solver=LBFGS(memory=3)).least)
    with pytest.raises(AssertionError, match="work was done"):  # the remedy helps
        decompose(M, 64, init="random", solver=LBFGS(memory=3))
    pretend(monkeypatch, int(needed / 1.25) - 1)
    with pytest.raises(MemoryError, match="items with rank 64 needs"):
        SymReLU(64, n_negative=0, diagonal="fit", init="random").fit(M)


def test_nothing_is_refused_if_the_system_does_not_say_what_is_available(monkeypatch):
    pretend(monkeypatch, None)
    monkeypatch.setattr(module, "memory_of", fail)
    assert decompose(graph(60, 6), 2, max_iter=1).n_iter == 1


def test_a_list_that_may_stay_short_is_no_reason_to_refuse(monkeypatch):
    M = graph(500, 6)
    counted = memory(Problem.of(M), 8, backend="active")
    pretend(monkeypatch, counted.least)
    assert decompose(M, 8, backend="active", max_iter=1).n_iter == 1


@pytest.mark.parametrize(
    ("case", "remedies"),
    [
        (
            replace(CASE, dtype=np.dtype("float32"), solver=PALM()),
            "Use a smaller rank or backend='dask' on a cluster.",
        ),
        (replace(CASE, backend="dense"), "M in float32, backend='sparse' or backend='dask'"),
        (replace(CASE, backend="dask", dtype=np.dtype("float32"), solver=PALM()), "Use a smaller rank."),
    ],
)
def test_remedies_are_those_that_help(case, remedies):
    assert remedies in module.refusal(case, memory_of(case), 1000)
