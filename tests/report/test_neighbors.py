import numpy as np
import report_pages
from numpy.testing import assert_array_equal
from scipy import sparse

from symrelu.problem import Problem
from symrelu.report.neighbors import Links


def random_graph(n=40, density=0.2, weighted=True):
    rng = np.random.default_rng(0)
    half = np.triu(rng.random((n, n)) < density, 1) * (rng.integers(1, 9, (n, n)) if weighted else 1.0)
    half[:3] = half[:, :3] = 0  # nodes without a link, also the first
    half[-1] = half[:, -1] = 0
    return half + half.T


def pairs_of(links):
    return list(zip(links.i.tolist(), links.j.tolist(), strict=True))


def test_links_are_those_of_the_matrix():
    M = random_graph()
    for given in (M, sparse.csr_array(M)):
        links = Links.of(Problem.of(given, None, "ignore"))
        i, j = np.nonzero(np.triu(M))
        assert_array_equal(links.i, i)
        assert_array_equal(links.j, j)
        assert_array_equal(links.weights, M[i, j])
        assert_array_equal(links.degrees(), (M > 0).sum(axis=1))
        assert_array_equal(links.strengths(), M.sum(axis=1))


def test_coded_links_are_read_back():
    links = Links.of(Problem.of(random_graph(), None, "ignore"))
    coded = links.encoded()
    assert report_pages.links({"names": range(40), "links": coded}) == pairs_of(links)
    levels = report_pages.numbers(coded["weights"], np.uint8).astype(int)
    order = np.argsort(links.weights, kind="stable")
    assert (np.diff(levels[order]) >= 0).all()
    assert len(set(levels)) == len(set(links.weights)) > 1


def test_equal_weights_are_left_out():
    links = Links.of(Problem.of(random_graph(weighted=False), None, "ignore"))
    assert links.encoded()["weights"] is None
    assert not links.are_weighted


def test_no_links():
    none = Links(3, *(np.empty(0, dtype=int),) * 2, np.empty(0))
    assert report_pages.links({"names": range(3), "links": none.encoded()}) == []
    assert none.strongest(2).i.tolist() == []
    assert none.degrees().tolist() == [0, 0, 0]


def test_the_strongest_links_of_either_end_stay():
    M = random_graph()
    links = Links.of(Problem.of(M, None, "ignore"))
    kept = set(pairs_of(links.strongest(2)))
    expected = set()
    for node in range(40):
        others = [other for other in np.argsort(-M[node], kind="stable") if M[node, other] > 0][:2]
        expected |= {(min(node, other), max(node, other)) for other in map(int, others)}
    assert kept == expected
    assert pairs_of(links.strongest(40)) == pairs_of(links)
