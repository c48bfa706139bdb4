from dataclasses import replace

import networkx as nx
import numpy as np
import pytest

from symrelu import Status
from symrelu.problem import Problem
from symrelu.report.hidden import HiddenPairs
from symrelu.report.neighbors import Links
from symrelu.report.summary import summarise
from symrelu.report.views import View


@pytest.fixture
def summary_of(miserables):
    """A function that returns the summary of a model as one text."""
    problem = Problem.of(miserables, None, "ignore")

    def summary(model, labels=None, hidden=None):
        found = summarise(View.of(model), problem, Links.of(problem), labels, hidden, "Nothing was hidden.")
        return dict(found.facts), " ".join(found.sentences), " ".join(found.advice)

    return summary


def test_a_factor(models, summary_of):
    solution = models["Solution"]
    facts, text, advice = summary_of(solution)
    assert "77 nodes and 254 links, on average 6.6 for each node, with weights from 1 to 31." in text
    assert "Solution fitted a factor with 8 columns, 1 of them negative" in text
    assert f"relative error is {solution.relative_error:.3g} " in text
    assert "2.4 numbers for each link" in text
    assert "30 steps" in text
    assert "Nothing was hidden." in text
    assert facts["nodes"] == "77"
    assert "had not converged" in advice
    assert "symrelu neighbors" in advice


def test_hidden_pairs(models, summary_of):
    facts, text, advice = summary_of(models["SymReLU"], hidden=HiddenPairs(25, 125, 0.9561, 0.6))
    assert facts["hidden links ranked right"] == "95.6 %"
    assert "did not see 25 links and 125 other pairs" in text
    assert "relative error on hidden pairs is 0.6 " in text
    assert "badly" not in advice
    for bad in (HiddenPairs(25, 125, 0.52, None), HiddenPairs(25, 125, 0.9, 1.2)):
        assert "Hidden pairs are predicted badly" in summary_of(models["SymReLU"], hidden=bad)[2]


def test_shares_are_not_rounded_to_all(models, summary_of):
    assert "in > 99.9 % of" in summary_of(models["SymReLU"], hidden=HiddenPairs(2, 2, 0.99999, None))[1]
    assert "in 100 % of" in summary_of(models["SymReLU"], hidden=HiddenPairs(2, 2, 1.0, None))[1]


def test_clusters(models, summary_of):
    labels = models["directions"].labels_
    facts, text, _ = summary_of(models["directions"], labels)
    assert facts["clusters"] == "5"
    assert "There are 5 clusters of" in text
    assert "it need not be close" in text
    assert "relative error" not in facts
    one_large = np.zeros(77, dtype=int)
    one_large[:2] = 1, 2
    assert "One cluster holds 75 of 77 items" in summary_of(models["SymReLU"], one_large)[2]


def test_certificates(models, summary_of):
    vectors = models["NeighborEmbedding"]
    certificate = vectors.certificate_
    facts, text, _ = summary_of(vectors)
    assert facts["wrong pairs"] == f"{certificate.wrong_pairs:,}"
    assert "All 2,926 pairs of nodes were compared" in text
    assert ("none is wrong" in text) == certificate.exact
    view, problem = View.of(vectors), Problem.of(vectors.vectors_.graph.astype(float), None, "ignore")
    for wrong in (0, 7):
        other = replace(view, certificate=replace(certificate, wrong_pairs=wrong, missing=wrong))
        found = summarise(other, problem, Links.of(problem), None, None, "")
        assert ("none is wrong" in " ".join(found.sentences)) == (wrong == 0)
        assert any("more columns" in text for text in found.advice) == (wrong > 0)


def test_every_reason_to_stop_has_words(models, summary_of):
    for status in Status:
        _, text, _ = summary_of(replace(models["Solution"], status=status))
        assert "It stopped because " in text


def test_a_fit_that_stopped_before_its_matrix(models, summary_of):
    for level in (0, 2):
        _, text, _ = summary_of(replace(models["Solution"], level=level))
        assert ("Only smaller matrices were fitted" in text) == bool(level)


def test_nodes_without_links(models):
    M = np.zeros((77, 77))
    M[0, 1] = M[1, 0] = 1
    problem = Problem.of(M, None, "ignore")
    found = summarise(View.of(models["Solution"]), problem, Links.of(problem), None, None, "")
    assert "75 nodes have no link." in found.sentences[0]
    assert "1 link," in found.sentences[0]
    assert any("leave them out" in text for text in found.advice)


def test_nodes_without_a_cluster_are_left_out(models, summary_of, miserables):
    names = list(miserables)
    labels = np.arange(77) % 2
    labels[:20] = -1
    facts, text, _ = summary_of(models["SymReLU"], labels)
    rest = miserables.subgraph(names[20:])
    expected = nx.community.modularity(rest, [set(names[20::2]), set(names[21::2])])
    assert float(facts["modularity"]) == pytest.approx(expected, abs=6e-4)
    assert facts["clusters"] == "2"
    assert "20 nodes have no cluster." in text
