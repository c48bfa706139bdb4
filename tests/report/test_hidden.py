import numpy as np
import pytest
from scipy import sparse
from solutions import with_model

from symrelu import LinkPredictor, SymReLU, decompose
from symrelu.datasets import make_relu_gram
from symrelu.problem import Problem
from symrelu.report.hidden import measure_hidden, was_interrupted, why_not_hidden


@pytest.fixture(scope="module")
def planted():
    return sparse.csr_array(make_relu_gram(80, 3, random_state=0)[0])


def test_hidden_pairs_of_a_planted_factor_are_predicted(planted):
    problem = Problem.of(planted)
    solution = decompose(problem, 3, random_state=0)
    hidden = measure_hidden(solution, problem, 0.1, seed=1)
    links = len(problem.positive_pairs()[0])
    assert hidden.links == round(0.1 * links)
    assert hidden.others > 0
    assert hidden.auc > 0.99
    assert hidden.error < 0.05


def test_a_random_graph_cannot_be_predicted():
    rng = np.random.default_rng(0)
    half = np.triu(rng.random((80, 80)) < 0.1, 1).astype(float)
    problem = Problem.of(sparse.csr_array(half + half.T), None, "ignore")
    hidden = measure_hidden(decompose(problem, 8, random_state=0), problem, 0.2, seed=0)
    assert hidden.auc < 0.7
    assert hidden.error > 0.9


@pytest.mark.parametrize("kind", ["SymReLU", "linkage", "directions", "LinkPredictor"])
def test_every_estimator_is_fitted_again(models, miserables, kind):
    problem = Problem.of(miserables, None, "ignore")
    before = models[kind].embedding_.copy()
    hidden = measure_hidden(models[kind], problem, 0.1, seed=0)
    assert (hidden.links, hidden.others) == (25, 125)
    assert hidden.auc > 0.7
    # Only models of M itself, with full weight on the zeros, aim at its values.
    assert (hidden.error is not None) == (kind in ("SymReLU", "linkage"))
    assert (models[kind].embedding_ == before).all()


def test_what_was_chosen_by_the_data_is_not_chosen_again(planted, monkeypatch):
    model = SymReLU(3, random_state=0).fit(planted)
    model.set_params(n_components="auto", checkpoint="no_such_folder/x.ckpt")
    monkeypatch.setattr("symrelu.estimators.embedding.select_rank", None)
    assert measure_hidden(model, Problem.of(planted), 0.1, seed=0).auc > 0.9


def test_why_nothing_is_hidden(models, miserables):
    problem = Problem.of(miserables, None, "ignore")
    assert why_not_hidden(models["SymReLU"], problem) == ""
    assert "store the links" in why_not_hidden(models["NeighborEmbedding"], problem)
    other = with_model(models["Solution"], "TwoFactor")
    assert "TwoFactor is not fitted again" in why_not_hidden(other, problem)
    assert "too few pairs" in why_not_hidden(models["SymReLU"], Problem.of(np.eye(3)))
    assert "too few pairs" in why_not_hidden(models["SymReLU"], Problem.of(np.ones((4, 4))))


@pytest.fixture
def ctrl_c(monkeypatch):
    """Let Ctrl-C end every fit after its first evaluation."""

    def press(record):
        raise KeyboardInterrupt

    def interrupted(*arguments, **settings):
        return decompose(*arguments, **settings | {"callback": press})

    for module in ("symrelu.report.hidden", "symrelu.estimators.base"):
        monkeypatch.setattr(f"{module}.decompose", interrupted)


@pytest.mark.parametrize("kind", ["Solution", "SymReLU", "linkage", "directions", "LinkPredictor"])
def test_ctrl_c_gives_no_numbers(kind, models, miserables, ctrl_c):
    with pytest.raises(KeyboardInterrupt):
        measure_hidden(models[kind], Problem.of(miserables, None, "ignore"), 0.1, seed=0)


@pytest.mark.filterwarnings("ignore")
def test_whether_a_fit_was_interrupted(models, miserables, ctrl_c):
    assert not any(map(was_interrupted, models.values()))
    assert was_interrupted(LinkPredictor(3, n_init=2, random_state=0).fit(miserables))
