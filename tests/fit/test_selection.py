"""Settings chosen by hidden pairs: what is hidden, how it is judged, what is chosen."""

import math
import sys
import tracemalloc
from dataclasses import replace

import joblib
import numpy as np
import pytest
from helpers import problems
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from symrelu import Status, decompose
from symrelu.datasets import make_relu_gram
from symrelu.fit import holdout, selection
from symrelu.fit.selection import RankSelection, select_rank
from symrelu.metrics import parameters_per_pair, relative_error
from symrelu.plots import new_figure
from symrelu.problem import Problem

M, _ = make_relu_gram(40, 3, shift=0.1, random_state=0)
MASK = np.random.default_rng(0).random(M.shape) < 0.1
MASK = MASK | MASK.T
QUICK = {"n_repeats": 2, "max_iter": 20, "random_state": 0}


def split_of(M, unknown=None, fraction=0.1, zeros_per_positive=5.0, seed=0):
    unknown = None if unknown is None else sparse.csr_array(unknown)
    return holdout.random_split(
        holdout.observed_pairs(Problem.of(M, unknown)), fraction, zeros_per_positive, seed
    )


def observed_pairs(M, unknown):
    """Return the pairs i < j that are observed, positive ones and zeros, as sets."""
    pairs = [(i, j) for i in range(len(M)) for j in range(i + 1, len(M)) if not unknown[i, j]]
    positive = {(i, j) for i, j in pairs if M[i, j] > 0}
    return positive, set(pairs) - positive


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


# ---------------------------------------------------------------------------------- what is hidden


@given(problems(max_n=14), st.floats(0.01, 0.9), st.sampled_from([0.3, 1.0, 5.0]), st.integers(0, 99))
def test_hidden_pairs(problem, fraction, zeros_per_positive, seed):
    positive, zeros = observed_pairs(problem.M, problem.unknown)
    assume(len(positive) >= 2)
    split = split_of(problem.M, problem.unknown, fraction, zeros_per_positive, seed)
    hidden = list(zip(split.i.tolist(), split.j.tolist(), strict=True))
    assert len(set(hidden)) == len(hidden), "no pair twice"
    assert_array_equal(split.truth, [problem.M[pair] for pair in hidden])
    hidden_positive = [pair for pair in hidden if pair in positive]
    hidden_zeros = [pair for pair in hidden if pair in zeros]
    assert len(hidden_positive) + len(hidden_zeros) == len(hidden), "observed pairs i < j only"
    assert 1 <= len(hidden_positive) < len(positive), "something to judge by, something to fit"
    assert abs(len(hidden_positive) - fraction * len(positive)) <= 1
    expected = min(zeros_per_positive * len(hidden_positive), fraction * len(zeros))
    assert expected <= len(hidden_zeros) < expected + 1
    stands_for = [
        len(positive) / len(hidden_positive) if pair in positive else len(zeros) / len(hidden_zeros)
        for pair in hidden
    ]
    assert_allclose(split.weight, stands_for)


@given(problems(max_n=14), st.integers(0, 99))
def test_dense_and_sparse_hide_the_same(problem, seed):
    assume(len(observed_pairs(problem.M, problem.unknown)[0]) >= 2)
    dense = split_of(problem.M, problem.unknown, seed=seed)
    for one, other in zip(
        dense, split_of(sparse.csr_array(problem.M), problem.unknown, seed=seed), strict=True
    ):
        assert_array_equal(one, other)


@given(st.sets(st.integers(0, 60)), st.integers(1, 30))
def test_numbers_that_are_missing(numbers, count):
    expected = [k for k in range(200) if k not in numbers][:count]
    array = np.array(sorted(numbers), np.int64)
    assert_array_equal(holdout._kth_missing(array, np.arange(count)), expected)


@pytest.mark.parametrize("n", [2, 3, 50])
def test_numbers_of_pairs(n):
    i, j = np.triu_indices(n, 1)
    assert_array_equal(holdout._items(np.arange(n * (n - 1) // 2), n), (i, j))


def test_every_pair_is_hidden_equally_often():
    draws = 1500
    times = np.zeros((8, 8))
    N = (make_relu_gram(8, 2, random_state=1)[0] > 0).astype(float)
    for seed in range(draws):
        split = split_of(N, fraction=0.3, seed=seed)
        times[split.i, split.j] += 1
    for pairs in observed_pairs(N, np.zeros((8, 8), bool)):
        counts = np.array([times[pair] for pair in pairs])
        p = counts.mean() / draws
        assert abs(counts / draws - p).max() < 4.5 * math.sqrt(p * (1 - p) / draws)


def test_large_graphs_need_no_square_memory():
    n, edges = 200_000, 400_000
    i, j = np.random.default_rng(0).integers(0, n, (2, edges))
    graph = sparse.csr_array((np.ones(edges), (i, j)), shape=(n, n))
    graph = sparse.csr_array(graph + graph.T)
    tracemalloc.start()
    split = split_of(graph)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 100e6, "n x n bits would be 5e9 bytes"
    assert len(split.i) > 200_000
    assert (split.i < split.j).all()
    assert_array_equal(np.asarray(graph[split.i, split.j]).ravel(), split.truth)
    assert np.unique(split.i).max() > n - 5000, "up to the last rows"
    assert split.weight[-1] > 9e4, "a hidden zero stands for many"


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
        selection._judge(trial, setting, "error")
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


# ---------------------------------------------------------------------------------- how it is judged


def test_error_by_its_formula():
    split = split_of(M, MASK, fraction=0.3)
    X = np.random.default_rng(1).standard_normal(len(split.i))
    positive, zeros = observed_pairs(M, MASK)
    hidden = dict(zip(zip(split.i.tolist(), split.j.tolist(), strict=True), X, strict=True))
    on_positive = [(M[pair] - max(0, x)) ** 2 for pair, x in hidden.items() if pair in positive]
    on_zeros = [max(0, x) ** 2 for pair, x in hidden.items() if pair in zeros]
    squares = [M[pair] ** 2 for pair in hidden if pair in positive]
    wrong = len(positive) * np.mean(on_positive) + len(zeros) * np.mean(on_zeros)
    assert_allclose(holdout._error(X, split), math.sqrt(wrong / (len(positive) * np.mean(squares))))


def test_error_over_all_pairs_is_the_relative_error():
    U = np.random.default_rng(2).standard_normal((40, 4))
    i, j = np.nonzero(np.triu(~MASK, 1))
    every = holdout.Split(i, j, M[i, j], np.ones(len(i)), 0)
    error = holdout._error((U @ U.T)[i, j], every)
    assert_allclose(error, relative_error(M, U, diagonal="ignore", mask=MASK))
    assert holdout._error(np.zeros(len(i)), every) == holdout.BASELINES["error"]


def test_sums_are_unbiased():
    U = np.random.default_rng(3).standard_normal((40, 3))
    wrong = np.where(MASK, 0, M - np.maximum(0, U @ U.T))
    exact = np.sum(np.triu(wrong, 1) ** 2)
    splits = [split_of(M, MASK, zeros_per_positive=1.0, seed=seed) for seed in range(500)]
    estimates = [holdout._weighted_square_sum(wrong[split.i, split.j], split) for split in splits]
    standard_error = np.std(estimates) / math.sqrt(len(estimates))
    assert standard_error < 0.03 * exact
    assert abs(np.mean(estimates) - exact) < 4 * standard_error


def test_auc_counts_pairs_in_the_right_order():
    split = split_of(M, fraction=0.3)
    X = np.random.default_rng(4).integers(0, 9, len(split.i)).astype(float)
    positive, zeros = X[split.truth > 0], X[split.truth == 0]
    right = [(p > z) + (p == z) / 2 for p in positive for z in zeros]
    assert_allclose(holdout._auc(X, split), np.mean(right))
    assert holdout._auc(0 * X, split) == holdout.BASELINES["auc"]


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

    def judge(trial, setting, scoring):
        return scores[setting["rank"]].pop(0), True

    monkeypatch.setattr(selection, "_judge", judge)
    found = select_rank(M, scores, scoring=scoring, **QUICK)
    assert [row["scores"] for row in found.table] == [[0.80, 0.82], [0.90, 0.92], [0.91, 0.95], [0.91, 0.93]]
    assert (found.best["rank"], found.chosen["rank"]) == (best, simplest)
    scores |= {row["rank"]: list(row["scores"]) for row in found.table}
    assert select_rank(M, scores, scoring=scoring, rule="best", **QUICK).chosen["rank"] == best


@pytest.mark.parametrize(("tol", "rank"), [(1e-4, 2), (1e-6, 3)])
def test_errors_below_the_tolerance_are_equal(monkeypatch, tol, rank):
    monkeypatch.setattr(
        selection, "_judge", lambda *arguments: ({2: 8e-5, 3: 1e-5}[arguments[1]["rank"]], True)
    )
    assert select_rank(M, [2, 3], tol=tol, **QUICK).chosen["rank"] == rank
    monkeypatch.setattr(
        selection, "_judge", lambda *arguments: (1 - {2: 8e-5, 3: 1e-5}[arguments[1]["rank"]], True)
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


# ---------------------------------------------------------------------------------- how it is shown


@pytest.fixture(scope="module")
def found():
    return select_rank(M, [2, 3, 4], n_negative=[0, 1], **QUICK)


def test_repr(found):
    row = next(row for row in found.table if (row["rank"], row["n_negative"]) == (4, 1))
    assert found.chosen["rank"] == 4
    assert repr(found) == (
        "RankSelection(rank=4, n_negative=1, alpha=0.0, zero_weight=1.0; "
        f"error {row['mean']:.4g} +- {row['standard_error']:.2g}, 6 settings x 2 repeats)"
    )
    assert found.baseline == 1.0


def test_frame(found):
    frame = found.to_frame()
    assert list(frame.columns) == [
        *selection.GRID,
        *("mean", "standard_error", "converged", "parameters_per_pair", "score_0", "score_1"),
    ]
    assert_array_equal(frame["rank"], [2, 2, 3, 3, 4, 4])
    assert_allclose(frame[["score_0", "score_1"]], [row["scores"] for row in found.table])


def test_frame_needs_pandas(found, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="to_frame needs pandas: pip install pandas"):
        found.to_frame()


def test_plot_needs_matplotlib(found, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"pip install symrelu\[plot\]"):
        found.plot()


def test_a_notebook_shows_the_plot(found):
    """Axes of its own are in a figure of pyplot, and those of others stay where they are."""
    pyplot = pytest.importorskip("matplotlib.pyplot")
    before = pyplot.get_fignums()
    ax = found.plot()
    assert ax.figure.number in set(pyplot.get_fignums()) - set(before)
    assert found.plot(ax) is ax
    assert len(pyplot.get_fignums()) == len(before) + 1


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


def drawn(ax):
    """Return label -> places, means and bars of the lines with error bars."""
    lines = {}
    for container in ax.containers:
        line, _, (bars,) = container.lines
        lengths = [(segment[1, 1] - segment[0, 1]) / 2 for segment in bars.get_segments()]
        lines[container.get_label()] = (*np.asarray(line.get_data(), float), lengths)
    return lines


def test_plot(found):
    ax = new_figure().add_subplot()
    assert found.plot(ax) is ax
    lines = drawn(ax)
    assert sorted(lines) == ["n_negative=0", "n_negative=1"]
    for negative in (0, 1):
        rows = [row for row in found.table if row["n_negative"] == negative]
        for column, values in zip(
            ("rank", "mean", "standard_error"), lines[f"n_negative={negative}"], strict=True
        ):
            assert_allclose(values, [row[column] for row in rows], atol=1e-12)
    (ring,) = (artist for artist in ax.collections if artist.get_label() == "chosen")
    assert_allclose(np.asarray(ring.get_offsets()), [[4, found.table[-1]["mean"]]])
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("rank", "relative error of hidden pairs")


def handmade(scoring, means, bar=0.01, **axis):
    """Return a selection of given means along one axis of the grid."""
    ((name, values),) = axis.items()
    setting = {"rank": 3, "n_negative": 0, "alpha": 0.0, "zero_weight": 1.0}
    score = {"standard_error": bar, "scores": [0, 0]}
    table = [setting | {name: v, "mean": mean} | score for v, mean in zip(values, means, strict=True)]
    return RankSelection(table, table[0], table[0], scoring, "best")


def labels(axis):
    return [tick.get_text() for tick in axis.get_ticklabels()]


def test_plot_of_other_axes():
    ax = handmade("auc", [0.9, 0.8, 0.7], alpha=[10.0, 0.1, 0.0]).plot()
    ((_, (x, y, _)),) = drawn(ax).items()
    assert_array_equal(x, [0, 1, 2])
    assert_array_equal(y, [0.7, 0.8, 0.9])
    assert labels(ax.xaxis) == ["0.0", "0.1", "10.0"]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("alpha", "AUC of hidden pairs")
    ax = handmade("error", [0.5, 0.6, 0.7], n_negative=[0, 2, "auto"]).plot()
    assert labels(ax.xaxis) == ["0", "2", "auto"]


def test_plot_chooses_its_scales():
    ax = handmade("error", [0.5, 0.6], rank=[3, 8]).plot()
    assert (ax.get_xscale(), ax.get_yscale()) == ("linear", "linear")
    ax = handmade("error", [0.5, 0.001], bar=1e-4, rank=[1, 8]).plot()
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log")
    ax = handmade("error", [0.5] * 30, rank=range(20, 50)).plot()
    assert labels(ax.xaxis) == [str(rank) for rank in range(20, 50, 3)]


@pytest.mark.parametrize(
    ("scoring", "means", "shown"),
    [
        ("error", [0.5, 1.2], True),
        ("error", [0.5, 0.6], False),
        ("auc", [0.4, 0.9], True),
        ("auc", [0.8, 0.9], False),
    ],
)
def test_plot_shows_the_baseline_where_it_is_near(scoring, means, shown):
    ax = handmade(scoring, means, rank=[2, 3]).plot()
    names = [text.get_text() for text in ax.get_legend().get_texts()]
    assert ("predicting zero" in names) == shown
    assert "chosen" in names


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
        ({"n_negative": [3, 4]}, ValueError, r"ranks must have one above n_negative, got ranks \[2, 3\]"),
        ({"alpha": [0, -1]}, ValueError, "alpha must be a finite number >= 0, got -1"),
        ({"zero_weight": [1, 0]}, ValueError, r"zero_weight must be a number in \(0, 1\], got 0"),
        ({"n_repeats": 1}, ValueError, "n_repeats must be an integer of at least 2 .one score has no"),
        ({"fraction": 0.95}, ValueError, r"fraction must be a number in \(0, 0.9\], got 0.95"),
        ({"zeros_per_positive": 0}, ValueError, "zeros_per_positive must be a finite number > 0, got 0"),
        ({"scoring": "r2"}, ValueError, "scoring must be one of 'error', 'auc', got 'r2'"),
        ({"rule": "first"}, ValueError, "rule must be one of 'one_standard_error', 'best', got 'first'"),
        ({"diagonal": "zero"}, ValueError, "diagonal must be one of 'fit', 'ignore', got 'zero'"),
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
            "init must be the name of a start, got ndarray: a factor may know",
        ),
        ({"max_iter": 0}, ValueError, "max_iter must be an integer of at least 1, got 0"),
        ({"tol": -1}, ValueError, "tol must be a finite number >= 0, got -1"),
        ({"callback": print}, TypeError, "select_rank passes on only solver, init, tol, .*, got 'callback'"),
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
