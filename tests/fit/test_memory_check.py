"""Fits that cannot fit into memory are refused before any work, with the figures and what to do."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
from problems_of_size import CASE, graph, memory

from symrelu import LBFGS, PALM, NeighborEmbedding, Problem, SymReLU, decompose
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
    of_the_solver = "solver=LBFGS(memory=3) (fewer past steps), solver='palm' (fewer arrays)"
    others = f"{of_the_solver} or backend='dask' on a cluster."
    assert "Use a smaller rank (at most 6" in message
    assert message.endswith(f"), M in float32, {others}")
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
            "Use a smaller rank (at most 7) or backend='dask' on a cluster.",
        ),
        (replace(CASE, backend="dense"), "M in float32, backend='sparse'"),
        (replace(CASE, backend="dask", dtype=np.dtype("float32"), solver=PALM()), "(at most 7)."),
    ],
)
def test_remedies_are_those_that_apply(case, remedies, monkeypatch):
    monkeypatch.setattr(module, "_fits", lambda *_: True)
    assert remedies in str(module.refusal(case, memory_of(case), 1000))


@pytest.mark.parametrize("share", [0.1, 0.3, 0.5, 0.7])
@pytest.mark.parametrize("n_negative", [0, 1])
def test_each_remedy_is_enough(share, n_negative):
    case = replace(CASE, rank=100, n_negative=n_negative)
    available = int(share * memory_of(case).least)
    texts = [one.text for one in module.refusal(case, memory_of(case), available).remedies]
    changes = {
        "M in float32": {"dtype": np.dtype("float32")},
        "solver=LBFGS(memory=3) (fewer past steps)": {"solver": LBFGS(3)},
        "solver='palm' (fewer arrays)": {"solver": PALM()},
    }
    for text, changed in changes.items():
        fits = not module.cannot_fit(memory_of(replace(case, **changed)), available)
        assert (text in texts) == fits
    rank = int(texts[0].split()[-1][:-1])
    refused = [module.cannot_fit(memory_of(replace(case, rank=k)), available) for k in (rank, rank + 1)]
    assert refused == [False, True]


def test_where_no_rank_is_small_enough_none_is_advised():
    case = replace(CASE, n_negative=2, rank=3)  # which needs a positive column
    assert [one.changes for one in module.refusal(case, memory_of(case), 1000).remedies] == [
        ("backend", "client")
    ]


def test_the_parts_of_a_refusal_add_up(monkeypatch):
    """Those of the peak without a list; a signed factor is copied in a pass."""
    case = replace(CASE, rank=1000, n_negative=1)
    sizes = []
    monkeypatch.setattr(module, "in_words", lambda size: sizes.append(size) or "")
    assert "the start and sorting" in str(module.refusal(case, memory_of(case), 10**6))
    needed, _, *parts = sizes
    assert sum(parts) == needed


def test_remedies_are_those_that_can_be_chosen(monkeypatch):
    monkeypatch.setattr(module, "_fits", lambda *_: True)
    refusal = module.refusal(CASE, memory_of(CASE), 1000)
    only_rank = f"{refusal.figures} Use a smaller rank (at most 7)."
    assert str(refusal.within(["rank", "backend"])) == only_rank  # no client
    assert str(refusal.within([])) == f"{refusal.figures} Use a machine with more memory."


def test_a_refusal_comes_back_from_another_process():
    error = module.TooLittleMemory(module.refusal(CASE, memory_of(CASE), 1000))
    there = pickle.loads(pickle.dumps(error))
    assert (str(there), there.refusal) == (str(error), error.refusal)


@pytest.mark.parametrize(
    ("settings", "remedies"),
    [({"n_components": 30}, r"a smaller rank \(at most 29\)"), ({}, "a machine with more memory")],
)
def test_a_search_advises_what_it_has(settings, remedies, monkeypatch):
    pretend(monkeypatch, 1000)
    monkeypatch.setattr(module, "_fits", lambda *_: True)
    with pytest.raises(module.TooLittleMemory, match=rf"Use {remedies}\.$"):
        NeighborEmbedding(**settings).fit(graph(100, 6))
