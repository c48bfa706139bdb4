"""Hidden links and negatives: what is drawn and how often, from which graphs; the result as text and tables."""

import itertools
from dataclasses import FrozenInstanceError

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from symrelu.fit.link_evaluation import METRICS, LinkEvaluation, LinkMetrics, evaluate_scores, link_splits
from symrelu.problem import Problem


def graph_of(n=40, density=0.15, seed=0):
    rng = np.random.default_rng(seed)
    links = np.triu(rng.random((n, n)) < density, 1) * rng.uniform(0.5, 2, (n, n))
    return links + links.T


def splits_of(B, mask=None, fraction=0.1, n_splits=3, seed=0):
    problem = Problem.of(B, mask, "ignore")
    return list(link_splits(problem, fraction, n_splits, np.random.default_rng(seed)))


@pytest.mark.parametrize("kind", [np.array, sparse.csr_array])
@pytest.mark.parametrize("density", [0.05, 0.15, 0.9])  # negatives drawn by rejection, and from a list
@pytest.mark.parametrize("masked", [False, True])
def test_links_become_zeros_and_negatives_have_no_link(kind, density, masked):
    B = graph_of(density=density)
    mask = np.abs(np.arange(40)[:, None] - np.arange(40)) == 3 if masked else None
    observed = np.where(mask, 0, B) if masked else B
    n_links = np.count_nonzero(observed) // 2
    for split in splits_of(kind(B), mask):
        assert sparse.issparse(split.train) == (kind is not np.array)
        train = split.train.toarray() if sparse.issparse(split.train) else split.train
        i, j = split.links
        assert len(i) == round(0.1 * n_links)
        assert np.all(observed[i, j] > 0)
        expected = observed.copy()
        expected[i, j] = expected[j, i] = 0
        assert_array_equal(train, expected)
        for a, b in (split.uniform, split.by_degree):
            assert len(a) == len(i)
            assert np.all(a < b)
            assert not B[a, b].any()
            assert not masked or not mask[a, b].any()


@pytest.mark.parametrize("density", [0.1, 0.6])
def test_negatives_are_drawn_with_the_right_frequencies(density):
    B = graph_of(9, density, seed=3)
    degree = np.count_nonzero(B, axis=1)
    pairs = [(i, j) for i, j in itertools.combinations(range(9), 2) if not B[i, j]]
    splits = splits_of(B, fraction=0.3, n_splits=4000)
    drawn = {
        name: np.concatenate([getattr(split, name) for split in splits], axis=1)
        for name in ("uniform", "by_degree")
    }
    weights = {"uniform": np.ones(len(pairs)), "by_degree": np.array([degree[i] * degree[j] for i, j in pairs])}
    for name, (a, b) in drawn.items():
        found = np.array([np.sum((a == i) & (b == j)) for i, j in pairs]) / len(a)
        share = weights[name] / weights[name].sum()
        assert_allclose(found, share, atol=5 * np.sqrt(share.max() / len(a)))


def test_same_seed_same_pairs():
    B = graph_of()
    for one, two in zip(splits_of(B), splits_of(sparse.csr_array(B)), strict=True):
        for name in ("links", "uniform", "by_degree"):
            assert_array_equal(getattr(one, name), getattr(two, name))
    assert not np.array_equal(splits_of(B)[0].links, splits_of(B, seed=1)[0].links)
    assert not np.array_equal(splits_of(B)[0].links, splits_of(B)[1].links)


STAR = np.zeros((5, 5))
STAR[0, 1:] = STAR[1:, 0] = 1
CLIQUE = np.pad(1 - np.eye(6), (0, 200))  # the only linked nodes are all linked with each other


@pytest.mark.parametrize(
    ("B", "fraction", "message"),
    [
        (STAR, 0.1, "must hide at least one and leave at least one, got a graph with 4 links"),
        (STAR, 0.99, "must hide at least one and leave at least one, got a graph with 4 links"),
        (1 - np.eye(6), 0.2, "it is complete: all of its 15 observed pairs are links"),
        (CLIQUE, 0.2, "nearly all nodes that have a link are linked with each other"),
        (CLIQUE[:7, :7], 0.2, "nearly all nodes that have a link are linked with each other"),
    ],
    ids=["too few to hide", "too few to keep", "complete", "clique, drawn", "clique, listed"],
)
def test_graphs_that_cannot_be_split(B, fraction, message):
    with pytest.raises(ValueError, match=message):
        splits_of(B, fraction=fraction)


def test_few_negatives_are_drawn_repeatedly():
    B = 1 - np.eye(12)
    B[0, 1] = B[1, 0] = 0
    (split,) = splits_of(B, fraction=0.5, n_splits=1)
    assert split.uniform.shape == split.by_degree.shape == split.links.shape
    assert_array_equal(np.unique(split.uniform, axis=1), [[0], [1]])


def test_metrics_of_a_predictor_that_knows_the_links():
    B = graph_of()
    (split,) = splits_of(B, fraction=0.5, n_splits=1)
    metrics = evaluate_scores(lambda i, j: B[i, j], split)
    assert metrics == LinkMetrics(1, 1, 1, 1, 1)
    assert evaluate_scores(lambda i, j: np.zeros(len(i)), split).auc_uniform == 0.5


@pytest.fixture
def evaluation():
    first, second = LinkMetrics(0.9, 0.8, 0.7, 0.6, 0.5), LinkMetrics(0.7, 0.6, 0.5, 0.4, 0.3)
    return LinkEvaluation((first, second), n_hidden=12, n_links=120)


def test_the_result_is_a_frozen_value_with_means(evaluation):
    assert_allclose([getattr(evaluation.mean, name) for name in METRICS], [0.8, 0.7, 0.6, 0.5, 0.4])
    for thing, name in ((evaluation, "splits"), (evaluation.mean, "mrr")):
        with pytest.raises(FrozenInstanceError):
            setattr(thing, name, None)


def test_the_result_as_text(evaluation):
    assert repr(evaluation) == (
        "LinkEvaluation(auc_uniform=0.800, auc_degree=0.700; 2 splits, 12 of 120 links hidden)"
    )
    assert str(evaluation).splitlines() == [
        "12 of 120 links hidden, 2 splits: mean (lowest to highest)",
        "  AUC, uniform negatives                 0.800 (0.700 to 0.900)",
        "  AUC, negatives drawn by degree         0.700 (0.600 to 0.800)",
        "  average precision, drawn by degree     0.600 (0.500 to 0.700)",
        "  Hits@50, drawn by degree               0.500 (0.400 to 0.600)",
        "  MRR, drawn by degree                   0.400 (0.300 to 0.500)",
    ]


def test_hits_among_few_negatives_are_not_shown_as_numbers():
    nan = float("nan")
    evaluation = LinkEvaluation((LinkMetrics(0.9, 0.8, 0.7, nan, 0.5),), n_hidden=12, n_links=120)
    assert str(evaluation).splitlines()[4] == (
        "  Hits@50, drawn by degree               not defined with fewer than 50 negatives"
    )


def test_the_result_as_a_table(evaluation):
    records = evaluation.records()
    assert [record["split"] for record in records] == [0, 1]
    assert [record["hits_at_50"] for record in records] == [0.6, 0.4]
    pandas = pytest.importorskip("pandas")
    frame = evaluation.to_frame()
    assert list(frame.columns) == ["split", "n_hidden", *METRICS]
    pandas.testing.assert_frame_equal(frame, pandas.DataFrame(records))


def test_a_table_without_pandas(evaluation, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pandas", None)
    with pytest.raises(ImportError, match="to_frame needs pandas"):
        evaluation.to_frame()
