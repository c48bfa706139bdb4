"""Settings chosen by hidden pairs: what the fits see, what is chosen, what is refused."""

import logging
import math
import os
import signal
import subprocess
import sys
import warnings
from dataclasses import replace

import joblib
import numpy as np
import pytest
from hidden_pairs import M, neighbors_by_hand, observed_pairs, split_of
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from symrelu import Status, decompose
from symrelu.datasets import make_relu_gram
from symrelu.fit import holdout, selection
from symrelu.fit.selection import select_rank
from symrelu.fit.settings import Limits
from symrelu.metrics import parameters_per_pair
from symrelu.problem import Problem

MASK = np.random.default_rng(0).random(M.shape) < 0.1
MASK = MASK | MASK.T
CHAIN = np.eye(40) + np.eye(40, k=1) + np.eye(40, k=-1)
QUICK = {"n_repeats": 2, "max_iter": 20, "random_state": 0}


@pytest.fixture
def fits(monkeypatch):
    """Record what select_rank asks of decompose, and what it gets."""
    calls = []

    def recorded(M, **settings):
        solution = decompose(M, **settings)
        calls.append((settings | {"mask": M.mask}, solution))
        return solution

    monkeypatch.setattr(selection, "decompose", recorded)
    return calls


# ---------------------------------------------------------------------------------- unknown, not zero


@pytest.mark.parametrize("mask", [None, MASK, sparse.csr_array(MASK)], ids=["no mask", "dense", "sparse"])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array], ids=["M dense", "M sparse"])
def test_fits_do_not_see_hidden_pairs(fits, form, mask):
    select_rank(form(M), [2, 3], n_negative=[0, 1], mask=mask, fraction=0.2, **QUICK)
    assert len(fits) == 4 * 2
    masks = [settings["mask"].toarray() for settings, _ in fits]
    unknown = np.zeros_like(MASK) if mask is None else MASK
    for k, hidden in enumerate(masks):
        assert_array_equal(hidden, hidden.T)
        assert (hidden & unknown == unknown).all(), "what is unknown stays so"
        assert_array_equal(hidden, masks[k - k % 4], "the same for all settings")
        new = np.triu(hidden & ~unknown, 1)
        assert not np.diag(hidden & ~unknown).any()
        positive, zeros = observed_pairs(M, unknown)
        assert np.sum(new & (M > 0)) == round(0.2 * len(positive))
        assert np.sum(new & (M == 0)) == math.ceil(0.2 * len(zeros))
    assert (masks[0] != masks[4]).any(), "each repeat hides others"


def test_hidden_values_do_not_matter(fits):
    split = split_of(M, MASK, fraction=0.2)
    changed = M.copy()
    changed[split.i, split.j] = changed[split.j, split.i] = np.where(split.truth > 0, 0.0, 3.0)
    assert (changed != M).sum() == 2 * len(split.i)
    setting = {"rank": 4, "n_negative": 1, "max_iter": 30}
    for matrix in (M, changed, sparse.csr_array(M), sparse.csr_array(changed)):
        trial = holdout.Trial(Problem.of(matrix, sparse.csr_array(MASK)), split)
        selection._fit_and_score(trial, setting, "error")
    factors = [solution.U for _, solution in fits]
    assert_array_equal(factors[0], factors[1])
    assert_array_equal(factors[2], factors[3])
    zero_instead = decompose(np.where(fits[0][0]["mask"].toarray(), 0, M), **setting, random_state=split.seed)
    assert abs(zero_instead.U - factors[0]).max() > 0.1


def test_settings_reach_the_fits(fits):
    chosen = select_rank(M, 3, alpha=0.1, zero_weight=0.5, diagonal="ignore", tol=0.1, **QUICK).chosen
    for settings, solution in fits:
        assert (solution.rank, solution.alpha, solution.zero_weight) == (3, 0.1, 0.5)
        assert solution.diagonal == "ignore"
        assert settings["tol"] == 0.1
    assert chosen == {
        "rank": 3,
        "n_negative": 0,
        "alpha": 0.1,
        "zero_weight": 0.5,
        "diagonal": "ignore",
        "tol": 0.1,
        "max_iter": 20,
    }
    assert decompose(M, **chosen, random_state=0).rank == 3


@pytest.mark.parametrize("scoring", ["error", "auc", "neighbors"])
def test_table_by_hand(fits, scoring):
    found = select_rank(M, [2, 4], n_negative=1, scoring=scoring, **(QUICK | {"n_repeats": 3}))
    assert [row["rank"] for row in found.table] == [2, 4]
    for k, row in enumerate(found.table):
        solutions = [solution for _, solution in fits[k::2]]
        hidden = [np.triu(settings["mask"].toarray(), 1) for settings, _ in fits[k::2]]
        assert row["converged"] == sum(solution.converged for solution in solutions)
        assert row["parameters_per_pair"] == parameters_per_pair(M, row["rank"])
        assert_allclose(row["mean"], np.mean(row["scores"]))
        assert_allclose(row["standard_error"], np.std(row["scores"], ddof=1) / math.sqrt(3))
        for score, solution, pairs in zip(row["scores"], solutions, hidden, strict=True):
            i, j = np.nonzero(pairs)
            X, truth = solution.score_pairs(i, j), M[i, j]
            if scoring == "auc":
                difference = X[truth > 0][:, None] - X[truth == 0]
                assert_allclose(score, np.mean(difference > 0))
            elif scoring == "neighbors":
                assert_allclose(score, neighbors_by_hand(X, i, j, truth))
            else:
                stands_for = [np.sum(np.triu(M == 0, 1)), np.sum(np.triu(M > 0, 1))]
                hidden_of = [np.sum(truth == 0), np.sum(truth > 0)]
                weight = np.divide(stands_for, hidden_of)[(truth > 0).astype(int)]
                wrong = weight @ (truth - np.maximum(0, X)) ** 2
                assert_allclose(score, math.sqrt(wrong / (weight @ truth**2)))


@pytest.mark.parametrize("scale", [1e-200, 1e200])
def test_scale_does_not_matter(scale):
    scale = 4.0 ** round(math.log(scale, 4))
    plain, scaled = (select_rank(M * s, [3, 4], n_negative=1, **QUICK) for s in (1.0, scale))
    for one, other in zip(plain.table, scaled.table, strict=True):
        assert_allclose(one["scores"], other["scores"], rtol=1e-6)


def test_float32():
    table = select_rank(sparse.csr_array(M.astype(np.float32)), [4], n_negative=1, **QUICK).table
    assert_allclose(table[0]["mean"], select_rank(M, [4], n_negative=1, **QUICK).table[0]["mean"], atol=0.01)


def test_matrix_without_zeros():
    positive = np.random.default_rng(0).random((20, 20)) + 0.1
    positive = positive + positive.T
    assert select_rank(positive, [1, 2], **QUICK).chosen["rank"] == 1
    for scoring in ("auc", "neighbors"):
        with pytest.raises(
            ValueError, match=f"scoring='{scoring}' needs zeros off the diagonal of M, got none"
        ):
            select_rank(positive, [1, 2], scoring=scoring, **QUICK)


# ---------------------------------------------------------------------------------- the same for the same seed


def test_seed_decides():
    def table(random_state):
        return select_rank(M, [2, 4], n_negative=1, **(QUICK | {"random_state": random_state})).table

    assert table(3) == table(3)
    assert table(3) != table(4)
    for make in (np.random.default_rng, np.random.RandomState):
        assert table(make(3)) == table(make(3))


def test_jobs_do_not_decide():
    # Large enough that joblib hands M to the workers as a memory map.
    large, _ = make_relu_gram(400, 3, shift=0.1, random_state=0)
    settings = {"ranks": [3, 4]} | QUICK | {"max_iter": 3}
    alone = select_rank(large, n_jobs=1, **settings)
    assert alone.table == select_rank(large, n_jobs=2, **settings).table
    with joblib.parallel_config("threading"):
        assert alone.table == select_rank(large, n_jobs=2, **settings).table


# ---------------------------------------------------------------------------------- what Ctrl-C leaves


def interrupt_after(monkeypatch, fits):
    """Let Ctrl-C come during the fit that follows so many; return the list of the fits made."""
    calls = []

    def interrupted(M, **settings):
        calls.append(settings)
        status = {"status": Status.INTERRUPTED} if len(calls) > fits else {}
        return replace(decompose(M, **settings), **status)

    monkeypatch.setattr(selection, "decompose", interrupted)
    return calls


def test_an_interrupt_before_the_first_score_is_raised(monkeypatch):
    calls = interrupt_after(monkeypatch, 0)
    with pytest.raises(KeyboardInterrupt):
        select_rank(M, [2, 3], **QUICK)
    assert len(calls) == 1


@pytest.mark.parametrize(
    ("fits", "known", "candidates"),
    [
        (1, [1], [2]),  # a single score each: all that is known
        (2, [1, 1], [2, 3]),
        (4, [2, 1, 1], [2]),  # two scores count more than one
        (5, [2, 2, 1], [2, 3]),
    ],
)
@pytest.mark.parametrize("rule", ["best", "one_standard_error"])
def test_an_interrupt_returns_what_is_known(monkeypatch, rule, fits, known, candidates):
    whole = select_rank(M, [2, 3, 4], n_negative=1, rule=rule, **QUICK)
    assert whole.complete
    calls = interrupt_after(monkeypatch, fits)
    found = select_rank(M, [2, 3, 4], n_negative=1, rule=rule, **QUICK)
    assert len(calls) == fits + 1, "no fit after it"
    assert not found.complete
    assert found.n_fits == fits
    assert [np.isfinite(row["scores"]).sum() for row in found.table] == known
    for row, count, complete in zip(found.table, known, whole.table, strict=False):
        assert row["scores"][:count] == complete["scores"][:count]
        assert_allclose(row["mean"], np.mean(complete["scores"][:count]))
        assert math.isnan(row["standard_error"]) == (count == 1)
    means = {row["rank"]: row["mean"] for row in found.table}
    assert found.best["rank"] == min(candidates, key=lambda rank: means[rank])
    assert found.chosen["rank"] in candidates


def test_an_interrupt_among_the_scores(monkeypatch):
    """Ctrl-C may come between two fits, too."""
    monkeypatch.setattr(selection.SearchNarrator, "fitted", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    found = select_rank(M, [2, 3], **QUICK)
    assert (found.complete, found.n_fits) == (False, 1)


@pytest.mark.parametrize("backend", ["loky", "threading"])
def test_an_interrupt_of_parallel_fits(monkeypatch, backend):
    scores = []

    def fitted(narrator, setting, repeat, scoring, score):
        scores.append(score)
        if len(scores) == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(selection.SearchNarrator, "fitted", fitted)
    with joblib.parallel_config(backend):
        found = select_rank(M, [2, 3, 4, 5], n_jobs=2, **QUICK)
    assert (found.complete, found.n_fits) == (False, 3)
    assert sorted(scores) == sorted(x for row in found.table for x in row["scores"] if not math.isnan(x))


LONG_SELECTION = """
import logging
from symrelu import select_rank
from symrelu.datasets import make_relu_gram
logging.basicConfig()
M, _ = make_relu_gram(300, 3, shift=0.1, random_state=0)
found = select_rank(M, range(2, 200), n_repeats=9, max_iter=20, tol=0, random_state=0, verbose=2, n_jobs={jobs})
print(found.complete, found.n_fits, found.chosen["rank"])
"""


@pytest.mark.parametrize("jobs", [1, 2])
def test_control_c(jobs):
    """A real one, sent after the first score to all processes, as a terminal does; all would take minutes."""
    command = [sys.executable, "-c", LONG_SELECTION.format(jobs=jobs)]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        assert any(" fits done" in line for line in process.stderr)
        os.killpg(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=300)
    finally:
        process.kill()
    assert process.returncode == 0, err
    assert "Traceback" not in err
    complete, n_fits, rank = out.split()
    assert complete == "False"
    assert 1 <= int(n_fits) < 198 * 9
    assert 2 <= int(rank) < 200


# ---------------------------------------------------------------------------------- what it says


def test_lines(caplog):
    with caplog.at_level(logging.INFO, "symrelu"):
        found = select_rank(M, [2, 3], n_negative=1, verbose=2, **QUICK)
    lines = [record.getMessage() for record in caplog.records]
    assert lines[0].startswith("rank 2, 1 negative, repeat 1 of 2: step 1, relative error ")
    assert lines[0].endswith("; no score so far")
    scored = [line for line in lines if "; " in line and ": error " in line]
    assert [line.split(":")[0] for line in scored] == [
        f"rank {rank}, 1 negative, repeat {repeat} of 2" for repeat in (1, 2) for rank in (2, 3)
    ]
    best = min(found.table, key=lambda row: row["mean"])
    assert scored[-1].endswith(
        f"; 4 fits done, best so far rank {best['rank']}, error {best['mean']:.4g} +- "
        f"{best['standard_error']:.2g}"
    )
    assert lines[-1] == repr(found)


def test_lines_of_parallel_fits(caplog):
    with caplog.at_level(logging.INFO, "symrelu"):
        select_rank(M, [2, 3], verbose=2, n_jobs=2, **QUICK)
    lines = [record.getMessage() for record in caplog.records]
    assert len(lines) == 5, "each score, and the choice"


def test_silent_by_default(caplog):
    with caplog.at_level(logging.DEBUG, "symrelu"):  # numba logs what it compiles
        select_rank(M, [2, 3], **QUICK)
    assert not caplog.records


# ---------------------------------------------------------------------------------- what is chosen


@pytest.mark.parametrize(
    ("scoring", "best", "simplest"),
    [("auc", 4, 3), ("error", 2, 2)],  # means .81, .91, .93 and .92 with standard errors .01, .01, .02 and .01
)
def test_rules(monkeypatch, scoring, best, simplest):
    scores = {2: [0.80, 0.82], 3: [0.90, 0.92], 4: [0.91, 0.95], 6: [0.91, 0.93]}

    def fit_and_score(trial, setting, scoring, callback):
        return scores[setting["rank"]].pop(0), True

    monkeypatch.setattr(selection, "_fit_and_score", fit_and_score)
    found = select_rank(M, scores, scoring=scoring, **QUICK)
    assert [row["scores"] for row in found.table] == [[0.80, 0.82], [0.90, 0.92], [0.91, 0.95], [0.91, 0.93]]
    assert (found.best["rank"], found.chosen["rank"]) == (best, simplest)
    scores |= {row["rank"]: list(row["scores"]) for row in found.table}
    assert select_rank(M, scores, scoring=scoring, rule="best", **QUICK).chosen["rank"] == best


@pytest.mark.parametrize("rule", ["best", "one_standard_error"])
@pytest.mark.parametrize(
    ("scoring", "scores", "warned"),
    [
        ("error", {2: 1.25, 3: 1.5}, True),
        ("error", {2: 1.25, 3: 1.0}, True),
        ("error", {2: 1.25, 3: 0.9}, False),
        ("auc", {2: 0.5, 3: 0.25}, True),
        ("auc", {2: 0.25, 3: 0.75}, False),
        ("neighbors", {2: 0.25, 3: 0.5}, True),
        ("neighbors", {2: 0.75, 3: 0.25}, False),
    ],
)
def test_no_setting_beats_the_baseline(monkeypatch, scoring, scores, warned, rule):
    monkeypatch.setattr(selection, "_fit_and_score", lambda *arguments: (scores[arguments[1]["rank"]], True))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = select_rank(M, list(scores), scoring=scoring, rule=rule, **QUICK)
    assert len(caught) == warned
    if warned:
        best = (min if scoring == "error" else max)(scores.values())
        assert caught[0].category is UserWarning
        assert caught[0].filename == __file__
        assert str(caught[0].message).startswith(
            f"No setting predicts held-out pairs better than zero everywhere: the best mean {scoring} is "
            f"{best:.4g}, that of zero is {found.baseline:g}. Do not rely on the choice; try"
        )


def test_the_scores_survive_warnings_as_errors(monkeypatch, caplog):
    monkeypatch.setattr(selection, "_fit_and_score", lambda *_: (1.25, True))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert select_rank(M, [2, 3], **QUICK).table[0]["mean"] == 1.25
    (record,) = caplog.records
    assert record.getMessage().startswith("No setting predicts held-out pairs better than zero")


@pytest.mark.parametrize(("tol", "rank"), [(1e-4, 2), (1e-6, 3)])
def test_errors_below_the_tolerance_are_equal(monkeypatch, tol, rank):
    monkeypatch.setattr(
        selection, "_fit_and_score", lambda *arguments: ({2: 8e-5, 3: 1e-5}[arguments[1]["rank"]], True)
    )
    assert select_rank(M, [2, 3], tol=tol, **QUICK).chosen["rank"] == rank
    monkeypatch.setattr(
        selection, "_fit_and_score", lambda *arguments: (1 - {2: 8e-5, 3: 1e-5}[arguments[1]["rank"]], True)
    )
    assert select_rank(M, [2, 3], tol=tol, scoring="auc", **QUICK).chosen["rank"] == 3


def test_grid_goes_from_simple_to_complex():
    table = select_rank(
        M, [3, 1, 3], n_negative=["auto", 1, 0], alpha=(0, 0.5), zero_weight=np.array([0.5, 1.0]), **QUICK
    ).table
    columns = [tuple(row[name] for name in selection.GRID) for row in table]
    weights = [(0.5, 1.0), (0.5, 0.5), (0.0, 1.0), (0.0, 0.5)]
    models = [(1, 0), (1, "auto"), (3, 0), (3, 1), (3, "auto")]  # 1 column cannot have 1 negative one
    assert columns == [model + weight for model in models for weight in weights]


def test_given_ranks_are_all_fitted_and_others_searched(fits):
    exact, _ = make_relu_gram(100, 5, random_state=0)
    settings = QUICK | {"max_iter": 60}
    searched = select_rank(exact, **settings)
    ranks = [row["rank"] for row in searched.table]
    assert ranks == [1, 2, 3, 4, 5, 6, 8], "none beyond an exact fit"
    assert searched.chosen["rank"] == 5, "which no default rank is"
    assert len(fits) == 2 * len(ranks) == searched.n_fits
    given = select_rank(exact, ranks, **settings)
    assert given.table == searched.table, "a fit does not depend on the fits before it"
    assert [row["rank"] for row in select_rank(exact, range(1, 26, 6), **QUICK).table] == [1, 7, 13, 19, 25]


def test_other_parameters_are_tried_at_each_rank():
    exact, _ = make_relu_gram(60, 2, shift=0.1, random_state=1)
    found = select_rank(exact, n_negative=[0, 1], alpha=[0, 0.01], **(QUICK | {"max_iter": 50}))
    tried = {row["rank"] for row in found.table}
    assert len(found.table) == 4 * len(tried) - 2, "one column cannot be negative"
    assert (found.chosen["rank"], found.chosen["n_negative"]) == (3, 1)


def test_search_does_not_depend_on_the_jobs():
    settings = QUICK | {"n_negative": 1, "scoring": "neighbors"}
    assert select_rank(M, n_jobs=1, **settings).table == select_rank(M, n_jobs=2, **settings).table


def test_search_where_few_columns_are_not_enough():
    assert select_rank(make_relu_gram(60, 3, random_state=0)[0], n_negative=9, **QUICK).table[0]["rank"] == 12


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, (200, 3e-3)),
        ({"max_iter": 7}, (7, 3e-3)),
        ({"ftol": 1e-8, "max_iter": 1000}, (1000, 1e-8)),
        ({"solver": "lbfgs"}, (200, 3e-3)),
        ({"solver": "aapb"}, (1000, 1e-8)),  # its steps are smaller
    ],
)
def test_limits(monkeypatch, settings, expected):
    seen = []

    def fit_and_score(trial, setting, scoring, callback):
        seen.append(tuple(setting.get(name, getattr(Limits, name)) for name in ("max_iter", "ftol")))
        return 0.5, True

    monkeypatch.setattr(selection, "_fit_and_score", fit_and_score)
    chosen = select_rank(M, 2, n_repeats=2, **settings).chosen
    assert set(seen) == {expected}
    assert {name: chosen[name] for name in settings} == settings
    assert not {"max_iter", "ftol"} & (chosen.keys() - settings.keys()), "the final fit has its own limits"


@pytest.mark.parametrize(("shift", "expected", "seed"), [(0.0, (4, 0), 0), (0.1, (5, 1), 1)])
def test_finds_the_rank(shift, expected, seed):
    exact, _ = make_relu_gram(150, 4, shift=shift, random_state=seed)
    chosen = select_rank(
        exact, range(2, 8), n_negative=[0, 1], n_repeats=2, max_iter=100, random_state=seed
    ).chosen
    assert (chosen["rank"], chosen["n_negative"]) == expected


def test_finds_the_rank_in_noise():
    rng = np.random.default_rng(0)
    U, noise = rng.standard_normal((150, 4)), rng.standard_normal((150, 150))
    noisy = sparse.csr_array(np.maximum(0, U @ U.T + 0.3 * (noise + noise.T)))
    found = select_rank(noisy, range(2, 8), max_iter=100, random_state=0)
    assert found.chosen["rank"] == 4
    errors = [row["mean"] for row in found.table]
    fits = [decompose(noisy, rank, max_iter=100, random_state=0).relative_error for rank in range(2, 8)]
    assert fits[-1] < fits[2], "the fit goes on to fall"
    assert errors[-1] > 1.05 * errors[2], "the error of hidden pairs does not"


@pytest.fixture(scope="module")
def found():
    return select_rank(M, [2, 3, 4], n_negative=[0, 1], **QUICK)


# ---------------------------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"ranks": 0}, ValueError, r"ranks must be an integer from 1 to 40 \(the size of M\), got 0"),
        ({"ranks": [2, 41]}, ValueError, "ranks must be an integer from 1 to 40 .*, got 41"),
        ({"ranks": 2.5}, TypeError, "ranks must be an integer .*, got 2.5"),
        ({"ranks": "auto"}, TypeError, "ranks must be an integer .*, got 'auto'"),
        ({"ranks": []}, ValueError, "ranks must have at least one value, got none"),
        (
            {"n_negative": -1},
            ValueError,
            r"n_negative must be an integer from 0 to 39 \(n - 1\) or 'auto', got -1",
        ),
        ({"n_negative": "some"}, ValueError, "n_negative must be 'auto' or an integer, got 'some'"),
        ({"n_negative": [3, 4]}, ValueError, r"ranks must have one larger than n_negative, got ranks \[2, 3\]"),
        ({"alpha": [0, -1]}, ValueError, "alpha must be a finite number >= 0, got -1"),
        ({"zero_weight": [1, 0]}, ValueError, r"zero_weight must be a number in \(0, 1\], got 0"),
        ({"n_repeats": 1}, ValueError, "n_repeats must be an integer of at least 2 .one score has no"),
        ({"fraction": 0.95}, ValueError, r"fraction must be a number in \(0, 0.9\], got 0.95"),
        ({"zeros_per_positive": 0}, ValueError, "zeros_per_positive must be a finite number > 0, got 0"),
        ({"scoring": "r2"}, ValueError, "scoring must be one of 'error', 'auc', 'neighbors', got 'r2'"),
        ({"rule": "first"}, ValueError, "rule must be one of 'one_standard_error', 'best', got 'first'"),
        ({"diagonal": "zero"}, ValueError, "diagonal must be one of 'fit', 'ignore', 'auto', got 'zero'"),
        ({"mask": MASK[:5, :5]}, ValueError, r"mask must have the shape of M, \(40, 40\), got \(5, 5\)"),
        ({"random_state": -1}, ValueError, "random_state must be None, a nonnegative integer"),
        ({"n_jobs": 0}, ValueError, "n_jobs must be an integer other than 0, or None, got 0"),
        ({"n_jobs": 1.5}, TypeError, "n_jobs must be an integer other than 0, or None, got 1.5"),
        ({"solver": "gradient"}, ValueError, "solver must be one of"),
        ({"backend": "gpu"}, ValueError, "backend must be one of"),
        ({"init": "zeros"}, ValueError, "init must be one of"),
        (
            {"init": np.ones((40, 2))},
            TypeError,
            "init must be the name of a start, got ndarray: a factor may reveal",
        ),
        ({"max_iter": 0}, ValueError, "max_iter must be an integer of at least 1, got 0"),
        ({"tol": -1}, ValueError, "tol must be a finite number >= 0, got -1"),
        ({"support": "most"}, ValueError, "support must be one of 'equal', 'at_least', got 'most'"),
        ({"verbose": -1}, ValueError, "verbose must be an integer of at least 0, got -1"),
        (
            {"scoring": "neighbors", "M": CHAIN, "fraction": 0.01, "zeros_per_positive": 0.01},
            ValueError,
            "no node has both a positive pair and a zero among them. Raise zeros_per_positive or fraction",
        ),
        (
            {"checkpoint": "x"},
            TypeError,
            "select_rank passes on only solver, .*init, tol, .*, got 'checkpoint'",
        ),
        ({"callback": print}, TypeError, "select_rank passes on only solver, .*init, tol, .*, got 'callback'"),
        ({"M": -M}, ValueError, "M must be nonnegative"),
        (
            {"M": np.eye(5)},
            ValueError,
            "M must have at least two observed positive pairs off the diagonal, .* got 0",
        ),
        (
            {"mask": np.ones((40, 40)) > np.eye(40)},
            ValueError,
            "M must have at least two observed positive pairs .* got 0",
        ),
    ],
)
def test_errors(settings, error, message, monkeypatch):
    monkeypatch.setattr(selection, "decompose", lambda *_, **__: pytest.fail("work began before the check"))
    with pytest.raises(error, match=message):
        select_rank(**({"M": M, "ranks": [2, 3]} | QUICK | settings))
