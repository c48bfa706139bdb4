"""The search for the smallest factor that gives back the neighbours of a graph."""

import logging
import re
from dataclasses import replace

import numpy as np
import pytest
from example_graphs import GRAPHS, counted, grid, random_graph
from numpy.testing import assert_array_equal

from symrelu.fit import narration, neighbor_search
from symrelu.fit.decompose import decompose
from symrelu.fit.neighbor_goal import Goal
from symrelu.fit.neighbor_search import search_neighbors
from symrelu.fitted.answers import counters_for
from symrelu.fitted.history import Status

QUICK = Goal(max_iter=200)


def searched(graph, goal=QUICK, **settings):
    return search_neighbors(graph.astype(np.float32), goal, **{"random_state": 0, **settings})


def assert_consistent(found, goal):
    """The table of attempts agrees with the result."""
    met = [attempt.rank for attempt in found.attempts if attempt.succeeded]
    rank = found.vectors.shape[1]
    assert rank in [attempt.rank for attempt in found.attempts]
    assert goal.is_met_by(found.certificate) == (rank in met)
    if goal.rank is None:
        assert rank == min(met, default=rank)
    seconds = [attempt.seconds for attempt in found.attempts]
    assert seconds == sorted(seconds)
    assert all(attempt.n_iter <= goal.max_iter for attempt in found.attempts)
    assert found.vectors.dtype == found.signature.dtype == goal.dtype


@pytest.mark.parametrize("name", GRAPHS)
def test_neighbours_are_exact(name):
    graph = GRAPHS[name]
    found = searched(graph)
    assert_consistent(found, QUICK)
    assert found.status is None
    certificate = found.certificate
    assert certificate.exact
    assert certificate.margin > 0
    assert counted(found.vectors, found.signature, graph, certificate.threshold).wrong_pairs == 0
    assert found.vectors.shape[1] < found.attempts[0].rank
    assert found.attempts[-1].rank in (1, found.vectors.shape[1] - 1)  # fewer columns were tried


@pytest.mark.parametrize(("name", "most"), [("star", 1), ("complete", 1), ("bipartite", 2), ("cycle", 6)])
def test_few_columns_are_enough(name, most):
    assert searched(GRAPHS[name]).vectors.shape[1] <= most


def test_a_lower_recall_needs_no_more_columns():
    graph = random_graph(60, 0.08, 3)
    ranks = []
    for recall in (1.0, 0.95, 0.8):
        goal = replace(QUICK, recall=recall)
        found = searched(graph, goal)
        assert_consistent(found, goal)
        assert min(found.certificate.recall, found.certificate.precision) >= recall
        ranks.append(found.vectors.shape[1])
    assert ranks == sorted(ranks, reverse=True)
    assert ranks[-1] < ranks[0]


@pytest.mark.parametrize("rank", [1, 2, 6, 16, 20])
@pytest.mark.parametrize("n_negative", [0, 1, 3])
def test_a_given_number_of_columns(rank, n_negative):
    goal = Goal(rank=rank, max_iter=100)
    found = searched(GRAPHS["path"], goal, n_negative=n_negative)
    assert found.vectors.shape == (20, rank)
    assert (found.signature < 0).sum() == min(n_negative, rank - 1)
    assert_consistent(found, goal)
    best = min(attempt.wrong_pairs for attempt in found.attempts if attempt.rank == rank)
    assert found.certificate.wrong_pairs == best


def test_a_later_attempt_with_the_given_columns_is_kept_only_if_it_is_better():
    graph, goal = random_graph(40, 0.4, 0), Goal(rank=16, max_iter=1)
    found = searched(graph, goal)
    wrong = [attempt.wrong_pairs for attempt in found.attempts if attempt.rank == 16]
    assert len(wrong) > 1
    assert found.certificate.wrong_pairs == min(wrong)


def test_float16():
    goal = replace(QUICK, dtype=np.dtype("float16"))
    found = searched(GRAPHS["grid"], goal)
    assert found.certificate.exact
    assert_consistent(found, goal)


def test_vectors_that_lose_pairs_by_rounding_end_the_attempt(monkeypatch):
    """A fit without a step and without a wrong pair is the same again: more phases would not end."""
    solutions = []

    def solved(*arguments, **settings):
        solutions.append(replace(decompose(*arguments, **settings), n_iter=0))
        return solutions[-1]

    monkeypatch.setattr(neighbor_search, "decompose", solved)
    monkeypatch.setattr(Goal, "is_met_by", lambda goal, certificate: False)
    found = searched(GRAPHS["one edge"])
    assert len(solutions) < 20
    assert [attempt.succeeded for attempt in found.attempts] == [False]


def test_the_same_seed_gives_the_same_vectors():
    first, second, other = (searched(GRAPHS["sparse"], random_state=seed) for seed in (0, 0, 1))
    assert_array_equal(first.vectors, second.vectors)
    assert [attempt.rank for attempt in first.attempts] == [attempt.rank for attempt in second.attempts]
    assert other.certificate.exact


def interrupting(monkeypatch, at, how):
    """Let Ctrl-C come in the call of decompose with this number."""
    calls = []

    def decompose_until(*arguments, **settings):
        calls.append(arguments[1])
        if len(calls) < at:
            return decompose(*arguments, **settings)
        if how is KeyboardInterrupt:
            raise KeyboardInterrupt
        return replace(decompose(*arguments, **settings), status=how)

    monkeypatch.setattr(neighbor_search, "decompose", decompose_until)


@pytest.mark.parametrize("how", [KeyboardInterrupt, Status.INTERRUPTED, Status.MAX_TIME])
def test_an_interrupted_search_returns_the_smallest_so_far(monkeypatch, how):
    complete = searched(GRAPHS["sparse"])
    interrupting(monkeypatch, 4, how)
    found = searched(GRAPHS["sparse"])
    assert found.status is (Status.INTERRUPTED if how is KeyboardInterrupt else how)
    assert found.certificate.exact
    assert_consistent(found, QUICK)
    assert complete.vectors.shape[1] < found.vectors.shape[1] <= found.attempts[0].rank


def test_ctrl_c_before_anything_was_found(monkeypatch):
    interrupting(monkeypatch, 1, KeyboardInterrupt)
    with pytest.raises(KeyboardInterrupt):
        searched(GRAPHS["sparse"])


@pytest.mark.parametrize("where", ["separation", "certify"])
def test_ctrl_c_between_the_fits(monkeypatch, where):
    original, calls = getattr(neighbor_search, where), []

    def counting(*arguments, **settings):
        calls.append(where)
        if len(calls) == 5:
            raise KeyboardInterrupt
        return original(*arguments, **settings)

    monkeypatch.setattr(neighbor_search, where, counting)
    found = searched(GRAPHS["star"])
    assert found.status is Status.INTERRUPTED
    assert_consistent(found, QUICK)


def test_the_time_limit_returns_what_was_found():
    found = searched(random_graph(80, 0.2, 0), Goal(max_time=1e-9))
    assert found.status is Status.MAX_TIME
    assert len(found.attempts) == 1
    assert found.vectors.shape == (80, 11)


def test_lines_of_the_log(caplog, monkeypatch):
    monkeypatch.setattr(narration, "_SECONDS_BETWEEN_LINES", 0.0)
    with caplog.at_level(logging.INFO, logger="symrelu"):
        found = searched(GRAPHS["star"], verbose=1)
    lines = [record.getMessage() for record in caplog.records]
    ends = [line for line in lines if re.match(r"\d+ columns?: \d+ wrong pairs? after", line)]
    assert len(ends) == len(found.attempts)
    assert ends[0].startswith("7 columns: 0 wrong pairs after ")
    assert any("columns: fitting; no number of columns is known to be enough; " in line for line in lines)
    assert any("; 7 columns are enough; " in line for line in lines)
    assert not any(re.search(r"\b1 (columns|wrong pairs)", line) for line in lines)
    assert any(line.startswith("1 column: ") for line in ends)
    caplog.clear()
    with caplog.at_level(logging.INFO, logger="symrelu"):
        searched(random_graph(80, 0.2, 0), Goal(max_iter=300), verbose=1)
    assert any("wrong pairs at the last count" in record.getMessage() for record in caplog.records)
    caplog.clear()
    searched(GRAPHS["star"])
    assert not caplog.records


def test_a_callback_sees_each_attempt_and_ends_the_search():
    seen = []

    def stop_at_three(found):
        seen.append(found)
        return len(seen) == 3

    found = searched(GRAPHS["star"], callback=stop_at_three)
    assert [len(one.attempts) for one in seen] == [1, 2, 3]
    assert found.status is Status.CALLBACK
    assert_array_equal(found.vectors, seen[-1].vectors)


def test_more_columns_are_tried_until_the_neighbours_are_exact():
    graph = random_graph(60, 0.5, 0)
    found = searched(graph, Goal(max_iter=400))
    assert found.certificate.exact
    assert max(attempt.rank for attempt in found.attempts) > 16


def test_the_steps_of_an_attempt_are_limited():
    found = searched(grid(6, 6), Goal(max_iter=7))
    assert all(attempt.n_iter <= 7 for attempt in found.attempts)


def test_an_attempt_keeps_its_best_factor(monkeypatch):
    """Steps lower the loss, not the number of wrong pairs, which may rise again."""
    graph, counts = random_graph(40, 0.2, 0), []
    separate = neighbor_search.separation

    def spy(*arguments, **settings):
        found = separate(*arguments, **settings)
        counts.append(found.wrong)
        return found

    monkeypatch.setattr(neighbor_search, "separation", spy)
    found = searched(graph, Goal(rank=2, max_iter=300))
    last = [k for k, attempt in enumerate(found.attempts) if attempt.rank == 2][-1]
    phases = found.attempts[last].n_iter // neighbor_search.PHASE
    # The last count is that of the stored vectors, those before it are the phases of the attempt.
    assert found.certificate.wrong_pairs <= min(counts[-1 - phases :]) + 1


@pytest.mark.parametrize("seed", [0, 1])
def test_the_rank_that_was_found_can_be_given(seed):
    graph = random_graph(30, 0.2, seed)
    found = searched(graph, Goal(max_iter=400))
    given = searched(graph, Goal(rank=found.vectors.shape[1], max_iter=400))
    assert given.certificate.wrong_pairs == found.certificate.wrong_pairs == 0


def test_a_search_does_not_grow_without_end(monkeypatch):
    monkeypatch.setattr(neighbor_search, "_MOST_COLUMNS", 4)
    monkeypatch.setattr(neighbor_search, "_COLUMNS_PER_DOUBLING", 0.2)
    found = searched(random_graph(40, 0.5, 0), Goal(max_iter=20))
    assert [attempt.rank for attempt in found.attempts] == [2, 3, 4]
    assert not found.certificate.exact


def test_a_search_passes_its_backend_on(monkeypatch):
    """A GPU makes all steps of a phase in high precision: faster ones before them would not be counted."""
    asked = set()

    def solved(*arguments, **settings):
        asked.add((settings.pop("backend"), settings.pop("precision")))
        return decompose(*arguments, **settings)

    monkeypatch.setattr(neighbor_search, "decompose", solved)
    monkeypatch.setattr(neighbor_search, "counters_for", lambda backend: counters_for("auto"))
    expected = {"dense": ("dense", "auto"), "cuda": ("cuda", "high")}
    for backend, settings in expected.items():
        assert searched(GRAPHS["one edge"], backend=backend).certificate.exact
        assert asked == {settings}
        asked.clear()
