"""Settings chosen by hidden pairs: what the fits see, what is chosen, what is refused."""

import math
from dataclasses import replace

import joblib
import numpy as np
import pytest
from hidden_pairs import M, observed_pairs, split_of
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from symrelu import Status, decompose
from symrelu.datasets import make_relu_gram
from symrelu.fit import holdout, selection
from symrelu.fit.selection import select_rank
from symrelu.metrics import parameters_per_pair
from symrelu.problem import Problem

MASK = np.random.default_rng(0).random(M.shape) < 0.1
MASK = MASK | MASK.T
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


@pytest.mark.parametrize("scoring", ["error", "auc"])
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
    with pytest.raises(ValueError, match=r"scoring='auc' needs zeros off the diagonal of M, got none"):
        select_rank(positive, [1, 2], scoring="auc", **QUICK)


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


def test_an_interrupted_fit_interrupts_all(monkeypatch):
    calls = []

    def interrupted(M, **settings):
        calls.append(settings)
        return replace(decompose(M, **settings), status=Status.INTERRUPTED)

    monkeypatch.setattr(selection, "decompose", interrupted)
    with pytest.raises(KeyboardInterrupt):
        select_rank(M, [2, 3], **QUICK)
    assert len(calls) == 1


# ---------------------------------------------------------------------------------- what is chosen


@pytest.mark.parametrize(
    ("rows", "lower_is_better", "slack", "best", "simplest"),
    [
        ([(5, 1), (3, 1), (2, 1.5), (4, 1)], True, 0, 2, 1),
        ([(5, 1), (3.6, 1), (2, 1.5), (2.1, 9)], True, 0, 2, 2),
        ([(5, 9), (2, 3), (3, 1)], True, 0, 1, 0),  # the bar of the best one counts, not one's own
        ([(6, 9), (2, 3), (3, 1)], True, 0, 1, 1),
        ([(2, 0), (2, 0)], True, 0, 0, 0),  # of equals the simpler
        ([(0.5, 0.1), (0.8, 0.1), (0.9, 0.15)], False, 0, 2, 1),
        ([(0.5, 0.1), (0.8, 0.1), (0.9, 0.05)], False, 0, 2, 2),
        ([(9e-5, 0), (1e-5, 1e-6)], True, 1e-4, 1, 0),
        ([(9e-5, 0), (1e-5, 1e-6)], True, 0, 1, 1),
    ],
)
def test_one_standard_error(rows, lower_is_better, slack, best, simplest):
    table = [{"mean": mean, "standard_error": bar} for mean, bar in rows]
    assert selection._choices(table, lower_is_better=lower_is_better, slack=slack) == (best, simplest)


@pytest.mark.parametrize(
    ("scoring", "best", "simplest"),
    [("auc", 4, 3), ("error", 2, 2)],  # means .81, .91, .93 and .92 with standard errors .01, .01, .02 and .01
)
def test_rules(monkeypatch, scoring, best, simplest):
    scores = {2: [0.80, 0.82], 3: [0.90, 0.92], 4: [0.91, 0.95], 6: [0.91, 0.93]}

    def fit_and_score(trial, setting, scoring):
        return scores[setting["rank"]].pop(0), True

    monkeypatch.setattr(selection, "_fit_and_score", fit_and_score)
    found = select_rank(M, scores, scoring=scoring, **QUICK)
    assert [row["scores"] for row in found.table] == [[0.80, 0.82], [0.90, 0.92], [0.91, 0.95], [0.91, 0.93]]
    assert (found.best["rank"], found.chosen["rank"]) == (best, simplest)
    scores |= {row["rank"]: list(row["scores"]) for row in found.table}
    assert select_rank(M, scores, scoring=scoring, rule="best", **QUICK).chosen["rank"] == best


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


@pytest.mark.parametrize(
    ("matrix", "ranks"),
    [
        (np.ones((8, 8)), [1, 2]),  # n / 4
        (np.ones((32, 32)), [1, 2, 3, 4, 6, 8]),
        (np.eye(64) + np.eye(64, k=1) + np.eye(64, k=-1), [1, 2, 3, 4, 6, 8, 12]),  # 127 positive pairs
        (np.ones((600, 600)), [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128]),
        (np.ones((1, 1)), [1]),
    ],
)
def test_default_ranks(matrix, ranks):
    assert selection._default_ranks(Problem.of(matrix)) == ranks


def test_default_ranks_are_used():
    assert [row["rank"] for row in select_rank(M, **QUICK).table] == selection._default_ranks(Problem.of(M))


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
        ({"scoring": "r2"}, ValueError, "scoring must be one of 'error', 'auc', got 'r2'"),
        ({"rule": "first"}, ValueError, "rule must be one of 'one_standard_error', 'best', got 'first'"),
        ({"diagonal": "zero"}, ValueError, "diagonal must be one of 'fit', 'ignore', 'auto', got 'zero'"),
        ({"mask": MASK[:5, :5]}, ValueError, r"mask must have the shape of M, \(40, 40\), got \(5, 5\)"),
        ({"random_state": -1}, ValueError, "random_state must be None, a nonnegative integer"),
        ({"n_jobs": 0}, ValueError, "n_jobs must be an integer other than 0, or None, got 0"),
        ({"n_jobs": 1.5}, TypeError, "n_jobs must be an integer other than 0, or None, got 1.5"),
        ({"solver": "newton"}, ValueError, "solver must be one of"),
        ({"backend": "gpu"}, ValueError, "backend must be one of"),
        ({"init": "zeros"}, ValueError, "init must be one of"),
        (
            {"init": np.ones((40, 2))},
            TypeError,
            "init must be the name of a start, got ndarray: a factor may reveal",
        ),
        ({"max_iter": 0}, ValueError, "max_iter must be an integer of at least 1, got 0"),
        ({"tol": -1}, ValueError, "tol must be a finite number >= 0, got -1"),
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
