"""The data of a fit: checked once, packed once, whoever asks and however often."""

import pickle
import weakref

import networkx
import numpy as np
import pandas
import pytest
from helpers import problems
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from scipy import sparse

from symrelu import (
    LinkPredictor,
    SymReLU,
    SymReLUClustering,
    baselines,
    decompose,
    metrics,
    select_rank,
    validation,
)
from symrelu.datasets import make_relu_gram
from symrelu.estimators import new_items
from symrelu.fit import selection
from symrelu.fitted import models
from symrelu.graphs import adapters
from symrelu.operators import DenseOperator, SparseOperator
from symrelu.problem import Problem
from symrelu.validation import NothingObserved

DENSE, _ = make_relu_gram(40, 3, shift=0.1, random_state=0)
SPARSE = sparse.csr_array(DENSE)
QUICK = {"max_iter": 3, "random_state": 0}


# ---------------------------------------------------------------------------------- how often


class Counts:
    """Full checks of a matrix and operators built since the last look, and graphs read."""

    def __init__(self, monkeypatch):
        self.checks = self.packings = self.graphs = 0
        self._spy(monkeypatch, validation.matrices, "_check_symmetric", "checks")
        self._spy(monkeypatch, DenseOperator, "__init__", "packings")
        self._spy(monkeypatch, SparseOperator, "__init__", "packings")
        self._spy(monkeypatch, adapters, "from_networkx", "graphs")

    def _spy(self, monkeypatch, owner, name, counter):
        original = getattr(owner, name)

        def counted(*arguments, **settings):
            setattr(self, counter, getattr(self, counter) + 1)
            return original(*arguments, **settings)

        monkeypatch.setattr(owner, name, counted)

    def take(self):
        counts = self.checks, self.packings
        self.checks = self.packings = 0
        return counts


@pytest.fixture
def counts(monkeypatch):
    return Counts(monkeypatch)


def ring(n):
    """Return a graph of n nodes as a sparse matrix, each joined to the next two."""
    i = np.arange(n)
    graph = sparse.csr_array(
        (np.ones(2 * n), (np.tile(i, 2), np.concatenate([i + 1, i + 2]) % n)), shape=(n, n)
    )
    return sparse.csr_array(graph + graph.T)


COUNTED = {
    "decompose": (lambda M: decompose(M, 3, **QUICK), 1, 1),
    "decompose, another backend": (lambda M: decompose(M, 3, backend="dense", **QUICK), 1, 1),
    "SymReLU": (lambda M: SymReLU(3, **QUICK, tol=1.0).fit(M), 1, 1),
    "SymReLU, three starts": (lambda M: SymReLU(3, n_init=3, **QUICK, tol=1.0).fit(M), 1, 1),
    "select_rank": (lambda M: select_rank(M, [2, 3], n_repeats=2, **QUICK), 1, 2),
    "select_rank, masked": (
        lambda M: select_rank(M, [2, 3], n_repeats=2, mask=np.eye(M.shape[0], dtype=bool), **QUICK),
        1,
        2,
    ),
    "LinkPredictor": (lambda M: LinkPredictor(3, n_init=5, **QUICK).fit(M), 1, 1),
    "LinkPredictor, another backend": (
        lambda M: LinkPredictor(3, n_init=2, backend="dense", **QUICK).fit(M),
        1,
        1,
    ),
    "SymReLUClustering": (lambda M: SymReLUClustering(3, **QUICK).fit(M), 1, 2),  # two methods
}


@pytest.mark.parametrize("form", [DENSE, SPARSE], ids=["dense", "sparse"])
@pytest.mark.parametrize("call", COUNTED)
def test_checks_and_packings(call, form, counts):
    work, checks, packings = COUNTED[call]
    work(form)
    assert counts.take() == (checks, packings)


def test_a_fit_of_2000_items_checks_once_and_packs_once(counts):
    SymReLU(4, max_iter=2, tol=1.0, random_state=0).fit(ring(2000))
    assert counts.take() == (1, 1)


@pytest.mark.parametrize(
    ("estimator", "packings"),
    [(SymReLU(3, tol=1.0, **QUICK), 1), (SymReLUClustering(3, **QUICK), 2)],
    ids=["SymReLU", "clustering"],
)
def test_a_graph_is_read_once(estimator, packings, counts):
    estimator.fit(networkx.karate_club_graph())
    assert counts.graphs == 1
    assert counts.take() == (1, packings)


@pytest.mark.parametrize("form", [DENSE, SPARSE], ids=["dense", "sparse"])
def test_a_problem_is_checked_and_packed_once_for_all(form, counts):
    problem = Problem.of(form)
    assert counts.take() == (1, 0)
    solutions = [decompose(problem, rank, alpha=alpha, **QUICK) for rank in (2, 3) for alpha in (0.0, 0.1)]
    errors = [metrics.relative_error(problem, solution.U) for solution in solutions]
    assert_array_equal(errors, [metrics.relative_error(problem, solution.U) for solution in solutions])
    metrics.half_squared_error(problem, solutions[0].U)
    metrics.parameters_per_pair(problem, 3)
    metrics.held_out_error(problem, solutions[0].U, mask=np.eye(40, dtype=bool))
    assert counts.take() == (0, 1)
    decompose(problem, 2, backend="reference", **QUICK)
    select_rank(problem, [2, 3], n_repeats=2, **QUICK)
    assert counts.take() == (0, 2)


def test_packings_of_hidden_pairs_die_one_by_one(monkeypatch):
    alive = weakref.WeakSet()

    def recorded(M, **settings):
        alive.add(M)
        assert len(alive) == 1
        return decompose(M, **settings)

    monkeypatch.setattr(selection, "decompose", recorded)
    select_rank(SPARSE, [2, 3], n_repeats=3, **QUICK)
    assert not alive


# ---------------------------------------------------------------------------------- the same numbers


FORMS = {"dense": np.asarray, "sparse": sparse.csr_array}


@st.composite
def data(draw, scales=None):
    """Draw a matrix in some form, a mask in some form or None, and what becomes of the diagonal."""
    drawn = draw(problems(max_n=14, scales=scales))
    mask = draw(st.sampled_from([None, np.asarray, sparse.csr_array]))
    diagonal = draw(st.sampled_from(["fit", "ignore"]))
    unknown = np.zeros_like(drawn.unknown) if mask is None else drawn.unknown
    observed = np.where(unknown | (np.eye(drawn.n, dtype=bool) & (diagonal == "ignore")), 0, drawn.M)
    assume(np.count_nonzero(np.triu(observed, 1)) >= 2)
    M = draw(st.sampled_from([np.asarray, sparse.csr_array]))(drawn.M)
    return M, None if mask is None else mask(unknown), diagonal


def same_fit(one, other):
    assert_array_equal(one.U, other.U)
    assert one.relative_error == other.relative_error
    assert one.objective == other.objective
    assert one.n_evaluations == other.n_evaluations
    assert (one.diagonal, one.zero_weight, one.alpha) == (other.diagonal, other.zero_weight, other.alpha)


USES = {
    "decompose": lambda M, **known: decompose(M, 2, n_negative=1, **known, **QUICK).U,
    "select_rank": lambda M, **known: select_rank(M, [1, 2], n_repeats=2, **known, **QUICK).table,
    "relative_error": lambda M, **known: metrics.relative_error(M, np.ones((len_of(M), 1)), **known),
    "half_squared_error": lambda M, **known: metrics.half_squared_error(M, np.ones((len_of(M), 1)), **known),
    "parameters_per_pair": lambda M, **known: metrics.parameters_per_pair(M, 2, **known),
}


def len_of(M):
    return M.n if isinstance(M, Problem) else M.shape[0]


@pytest.mark.parametrize("use", USES)
@settings(max_examples=15)
@given(given_data=data(scales=st.sampled_from([1.0, 1e-30, 1e30])))
def test_a_problem_gives_what_its_matrix_gives(use, given_data):
    M, mask, diagonal = given_data
    expected = USES[use](M, mask=mask, diagonal=diagonal)
    problem = Problem.of(M, mask, diagonal)
    for _ in range(2):  # the second time from the packing of the first
        assert_array_equal(USES[use](problem), expected)
    assert_array_equal(USES[use](problem, diagonal=diagonal), expected)
    assert_array_equal(USES[use](pickle.loads(pickle.dumps(problem))), expected)


def test_a_pickled_problem_hides_pairs():
    """Its arrays may be views of bytes, whose flags scipy wants to write."""
    problem = Problem.of(np.kron(DENSE, np.ones((3, 3))))
    copied = pickle.loads(pickle.dumps(Problem.of(sparse.csr_array(problem.M)), protocol=4))
    assert_array_equal(copied.hide([0], [1]).M.toarray(), problem.hide([0], [1]).M)


@pytest.mark.parametrize("function", ["truncated_eigen", "symmetric_nmf", "three_block_nmd"])
def test_baselines_take_a_problem_that_is_known_everywhere(function):
    extra = {"symmetric_nmf": (baselines.SymHALS(),)}.get(function, ())
    fit = getattr(baselines, function)
    for M in (DENSE, SPARSE, 1e-30 * SPARSE):
        assert_array_equal(fit(Problem.of(M), 2, *extra, random_state=0).U, fit(M, 2, *extra, random_state=0).U)
    for problem in (Problem.of(DENSE, diagonal="ignore"), Problem.of(DENSE, np.eye(40, dtype=bool))):
        with pytest.raises(ValueError, match=r"M must be fully observed for this model.*Pass M\.M to"):
            fit(problem, 2, *extra)


@settings(max_examples=25)
@given(data(), st.integers(0, 99))
def test_hiding_is_masking_from_the_start(given_data, seed):
    M, mask, diagonal = given_data
    n = M.shape[0]
    rng = np.random.default_rng(seed)
    further = np.triu(rng.random((n, n)) < 0.2)
    further |= further.T
    already = np.zeros((n, n), bool) if mask is None else sparse.csr_array(mask).toarray()
    whole = Problem.of(M, mask, diagonal)
    try:
        expected = Problem.of(M, already | further, diagonal)
    except NothingObserved as error:
        with pytest.raises(NothingObserved, match=str(error)):
            whole.hide(further)
        return
    i, j = np.nonzero(np.triu(further))
    for hidden in (
        whole.hide(further),
        whole.hide(sparse.csr_array(further)),
        whole.hide(i, j),
        whole.hide(j, i),
    ):
        assert hidden.fingerprint() == expected.fingerprint()
        assert_array_equal(hidden.unknown.toarray(), expected.unknown.toarray())
        same_fit(decompose(hidden, 2, **QUICK), decompose(expected, 2, **QUICK))
        assert hidden.diagonal == diagonal
    assert whole.fingerprint() == Problem.of(M, mask, diagonal).fingerprint()


@settings(max_examples=25)
@given(data())
def test_nothing_that_was_passed_is_changed(given_data):
    M, mask, diagonal = given_data
    before = pickle.dumps((M, mask))
    problem = Problem.of(M, mask, diagonal)
    problem.hide([0], [1])
    problem.divided(np.full(problem.n, 3.0))
    for backend in ("dense", "sparse", "reference"):
        decompose(problem, 2, backend=backend, **QUICK)
    metrics.held_out_error(problem, np.ones((problem.n, 1)), mask=~np.eye(problem.n, dtype=bool))
    assert pickle.dumps((M, mask)) == before


@settings(max_examples=25)
@given(data())
def test_what_a_problem_knows(given_data):
    M, mask, diagonal = given_data
    problem = Problem.of(M, mask, diagonal)
    n = problem.n
    unknown = np.eye(n, dtype=bool) & (diagonal == "ignore")
    unknown |= False if mask is None else sparse.csr_array(mask).toarray()
    dense = np.where(unknown, 0, sparse.csr_array(M).toarray())
    off = ~np.eye(n, dtype=bool)
    assert problem.is_sparse == sparse.issparse(M)
    assert problem.largest == dense.max()
    assert problem.observed_zeros == np.sum(off & ~unknown & (dense == 0))
    assert problem.parameters_per_pair(3) == 3 * n / np.sum(np.triu(dense) > 0)
    i, j, values = problem.positive_pairs()
    assert set(zip(i.tolist(), j.tolist(), strict=True)) == set(
        zip(*np.nonzero(np.triu(dense, 1)), strict=True)
    )
    assert_array_equal(values, dense[i, j])
    assert set(zip(*problem.unknown_pairs(), strict=True)) == set(
        zip(*np.nonzero(np.triu(unknown, 1)), strict=True)
    )
    if problem.unknown is None:
        assert not unknown.any()
    else:
        assert_array_equal(problem.unknown.toarray(), unknown)
    items = np.random.default_rng(0).permutation(n)[:5]
    block, known = problem.block(items)
    assert_array_equal(block, dense[np.ix_(items, items)])
    assert_array_equal(known, ~unknown[np.ix_(items, items)])
    other = Problem.of(sparse.csr_array(M) if not problem.is_sparse else M.toarray(), mask, diagonal)
    assert problem.fingerprint() == other.fingerprint()


@pytest.mark.parametrize("scale", [4.0**-20, 1.0, 4.0**20])
@pytest.mark.parametrize("form", FORMS)
def test_a_divided_problem_needs_no_check(form, scale, counts):
    d = np.random.default_rng(0).random(40) + 0.5
    problem = Problem.of(FORMS[form](DENSE * scale), diagonal="ignore")
    divided = problem.divided(d)
    assert counts.take() == (1, 0)
    N = sparse.csr_array(divided.M).toarray()
    expected = DENSE * scale / 4.0**problem.exponent / np.multiply.outer(d, d)
    np.fill_diagonal(expected, 0)
    assert_array_equal(N, expected)
    assert divided.fingerprint() == Problem.of(N, diagonal="ignore").fingerprint()


def test_a_divided_problem_that_leaves_the_range():
    M = sparse.csr_array(np.array([[0, 1, 1], [1, 0, 0], [1, 0, 0]], np.float32))
    divided = Problem.of(M).divided(np.array([1.0, 1.0, 1e50]))
    assert divided.M.nnz == 2
    with pytest.raises(ValueError, match="must have a positive entry, but all are zero"):
        Problem.of(M).divided(np.full(3, 1e30))


# ---------------------------------------------------------------------------------- what is not a part of it


def test_caches_are_not_pickled():
    problem = Problem.of(SPARSE, np.eye(40, dtype=bool))
    bare = len(pickle.dumps(problem))
    decompose(problem, 2, **QUICK)
    problem.fingerprint()
    assert len(pickle.dumps(problem)) == bare
    with pytest.raises(AttributeError):
        problem.M = DENSE
    copy = pickle.loads(pickle.dumps(problem))
    assert copy.fingerprint() == problem.fingerprint()
    assert (copy.exponent, copy.diagonal) == (problem.exponent, problem.diagonal)


def test_evaluations_are_counted_for_each_operator():
    problem = Problem.of(SPARSE)
    first, second = problem.operator(np.ones(2)), problem.operator([1.0, -1.0], alpha=0.1, zero_weight=0.5)
    first.loss(np.ones((40, 2)))
    assert (first.evaluations, second.evaluations) == (1, 0)
    assert (first.alpha, second.alpha, second.zero_weight) == (0.0, 0.1, 0.5)


def test_the_support_of_an_operator():
    problem = Problem.of(SPARSE)
    assert [problem.operator(np.ones(2), support=name).at_least for name in ("equal", "at_least")] == [0, 1]
    with pytest.raises(ValueError, match="support must be one of 'equal', 'at_least', got 'most'"):
        problem.operator(np.ones(2), support="most")


def test_an_alpha_in_other_units():
    assert Problem.of(DENSE).scaled_alpha(0.3) == 0.3
    problem = Problem.of(DENSE * 4.0**20)
    assert problem.exponent
    assert problem.scaled_alpha(0.3 * 4.0**problem.exponent) == 0.3


def test_reprs():
    assert repr(Problem.of(DENSE)) == "Problem(40 items, dense, float64, diagonal='fit')"
    masked = Problem.of(SPARSE.astype(np.float32), np.eye(40, dtype=bool), "ignore")
    assert repr(masked) == "Problem(40 items, sparse, float32, with a mask, diagonal='ignore')"


# ---------------------------------------------------------------------------------- what is refused


MASK = np.eye(40, dtype=bool)
REFUSED = {
    "a mask beside a problem": (
        lambda: decompose(Problem.of(DENSE), 2, mask=MASK),
        TypeError,
        r"mask must be None if M is a Problem, which has its own mask. Pass M.hide\(mask\)",
    ),
    "a mask beside a problem, metrics": (
        lambda: metrics.relative_error(Problem.of(DENSE), np.ones((40, 1)), mask=MASK),
        TypeError,
        "mask must be None if M is a Problem",
    ),
    "another diagonal": (
        lambda: select_rank(Problem.of(DENSE), diagonal="ignore"),
        TypeError,
        r"M is a Problem with diagonal='fit'.*create the Problem by Problem.of\(matrix, diagonal='ignore'\)",
    ),
    "no diagonal": (
        lambda: Problem.of(DENSE, diagonal="none"),
        ValueError,
        "diagonal must be one of 'fit', 'ig",
    ),
    "no backend": (
        lambda: Problem.of(DENSE).operator([1.0], backend="gpu"),
        ValueError,
        "backend must be one of",
    ),
    "nothing": (
        lambda: Problem.of(DENSE).hide(None),
        TypeError,
        "hide requires a boolean matrix, or the items",
    ),
    "all": (lambda: Problem.of(DENSE).hide(np.ones((40, 40), bool)), NothingObserved, "hide them all"),
    "one-sided": (lambda: Problem.of(DENSE).hide(np.tri(40, dtype=bool)), ValueError, "mask must be symmetric"),
    "no item": (lambda: Problem.of(DENSE).hide([0], [40]), IndexError, "j must be from 0 to 39"),
    "no number": (lambda: Problem.of(DENSE).hide([0.5], [1]), TypeError, "i must be integers"),
    "half pairs": (
        lambda: Problem.of(DENSE).hide([0, 1], [1]),
        ValueError,
        "i and j must have the same length",
    ),
    "held out of the unknown": (
        lambda: metrics.held_out_error(Problem.of(DENSE, MASK), np.ones((40, 1)), mask=MASK),
        ValueError,
        "mask must hide at least one observed entry, got none",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case):
    call, error, message = REFUSED[case]
    with pytest.raises(error, match=message):
        call()


def test_a_problem_keeps_its_diagonal():
    problem = Problem.of(DENSE, diagonal="ignore")
    assert Problem.of(problem) is problem
    assert decompose(problem, 2, **QUICK).diagonal == "ignore"
    assert select_rank(problem, [2, 3], n_repeats=2, **QUICK).chosen["diagonal"] == "ignore"


RING = np.roll(np.eye(6), 1, axis=0) + np.roll(np.eye(6), -1, axis=0)
STORED_ZEROS = sparse.csr_array(RING + np.eye(6))
STORED_ZEROS.setdiag(0.0)
ONE_LOOP = RING + np.diag([0, 0, 2.0, 0, 0, 0])
ONE_LOOP_HIDDEN = np.diag([False, False, True, False, False, False])
AUTOMATIC = {
    "a graph": (RING, None, "ignore"),
    "a sparse graph": (sparse.csr_array(RING), None, "ignore"),
    "stored zeros": (STORED_ZEROS, None, "ignore"),
    "negative zeros": (RING * np.where(np.eye(6), -1.0, 1.0), None, "ignore"),
    "booleans": (RING.astype(bool), None, "ignore"),
    "a networkx graph": (networkx.cycle_graph(6), None, "ignore"),
    "a graph with one loop": (ONE_LOOP, None, "fit"),
    "one loop, sparse": (sparse.csr_array(ONE_LOOP), None, "fit"),
    "the loop is hidden": (ONE_LOOP, ONE_LOOP_HIDDEN, "ignore"),
    "the loop is hidden and NaN": (np.where(ONE_LOOP_HIDDEN, np.nan, ONE_LOOP), ONE_LOOP_HIDDEN, "ignore"),
    "another entry is hidden": (ONE_LOOP, np.roll(ONE_LOOP_HIDDEN, 1, axis=(0, 1)), "fit"),
    "the diagonal is hidden": (RING + np.eye(6), np.eye(6, dtype=bool), "ignore"),
    "a diagonal matrix": (np.eye(6), None, "fit"),
    "no zeros": (np.ones((6, 6)), None, "fit"),
    "one item": (np.ones((1, 1)), None, "fit"),
}


@pytest.mark.parametrize("case", AUTOMATIC)
def test_the_observed_diagonal_decides_whether_it_is_fitted(case):
    M, mask, expected = AUTOMATIC[case]
    problem = Problem.of(M, mask, "auto")
    assert problem.diagonal == expected
    chosen = Problem.of(M, mask, expected)
    assert problem.fingerprint() == chosen.fingerprint()
    U = np.random.default_rng(0).standard_normal((problem.n, 2))
    for measure in (metrics.relative_error, metrics.half_squared_error):
        assert measure(M, U, diagonal="auto", mask=mask) == measure(chosen, U)
    per_pair = metrics.parameters_per_pair(M, 2, diagonal="auto", mask=mask)
    assert per_pair == metrics.parameters_per_pair(chosen, 2)
    if problem.n > 1:
        solution = decompose(M, 2, diagonal="auto", mask=mask, **QUICK)
        assert solution.diagonal == expected
        same_fit(solution, decompose(M, 2, diagonal=expected, mask=mask, **QUICK))


def test_an_automatic_diagonal_elsewhere():
    assert Problem.of(RING).diagonal == "fit"
    ring = networkx.to_numpy_array(networkx.cycle_graph(40))
    assert select_rank(ring, [2, 3], diagonal="auto", n_repeats=2, **QUICK).chosen["diagonal"] == "ignore"
    for diagonal in ("fit", "ignore"):  # a Problem keeps its own
        problem = Problem.of(RING, diagonal=diagonal)
        assert Problem.of(problem, diagonal="auto") is problem
        assert decompose(problem, 2, diagonal="auto", **QUICK).diagonal == diagonal
    assert Problem.of(ONE_LOOP, diagonal="auto").hide(ONE_LOOP_HIDDEN).diagonal == "fit"
    clustering = SymReLUClustering(2, diagonal="auto", random_state=0)
    assert clustering.fit(RING).solution_.diagonal == "ignore"
    with pytest.raises(ValueError, match="all are zero: there is nothing to fit"):
        Problem.of(np.zeros((3, 3)), diagonal="auto")


@given(given_data=data(), shrinkage=st.sampled_from([0.0, 0.1, 1.0, 3.0]))
@settings(max_examples=30)
def test_a_shrinkage_is_a_share_of_the_largest_eigenvalue(given_data, shrinkage):
    M, mask, diagonal = given_data
    problem = Problem.of(M, mask, diagonal)
    observed = problem.M.toarray() if problem.is_sparse else problem.M
    expected = 2 * shrinkage * np.linalg.eigvalsh(observed.astype(np.float64))[-1]
    assert problem.alpha_of(shrinkage) == pytest.approx(expected, rel=1e-6)
    for scale in (1e-6, 1e6, 1e-200, 1e200):
        other = Problem.of(problem.M.astype(np.float64) * scale, diagonal=diagonal)
        assert other.alpha_of(shrinkage) == pytest.approx(scale * expected, rel=1e-6)


def test_an_alpha_beyond_the_floats():
    for size, shrinkage in ((1e300, 1e10), (1.0, 1e308), (1e-300, 1e308), (1e300, 1.7e308)):
        with pytest.raises(ValueError, match=r"shrinkage=1(\.7)?e\+\d+ is too large for M. Use a smaller one"):
            Problem.of(np.full((4, 4), size)).alpha_of(shrinkage)
    assert Problem.of(np.full((4, 4), 1e300)).alpha_of(0.0) == 0


def test_what_a_problem_does_not_know_is_not_held_out():
    U = np.random.default_rng(0).standard_normal((40, 2))
    mask = metrics.random_mask(40, 0.3, random_state=0)
    problem = Problem.of(SPARSE, mask, "ignore")
    further = metrics.random_mask(40, 0.4, random_state=1)
    both = further.toarray() & ~mask.toarray()
    for form in (SPARSE, DENSE):
        assert metrics.held_out_error(problem, U, mask=further) == metrics.held_out_error(form, U, mask=both)
    assert metrics.held_out_error(Problem.of(DENSE), U, mask=further) == metrics.held_out_error(
        DENSE, U, mask=further
    )


def test_memory_is_asked_for_before_a_sparse_matrix_becomes_dense(monkeypatch):
    monkeypatch.setattr(validation.formats, "available_memory", lambda: 1000)
    problem = Problem.of(SPARSE)
    problem.operator([1.0])
    for backend in ("dense", "reference"):
        with pytest.raises(MemoryError, match="leave backend at 'auto'"):
            problem.operator([1.0], backend=backend)


@pytest.mark.parametrize("arguments", [(DENSE,), (SPARSE, None, "ignore"), ([[1.0]],)])
def test_a_problem_is_made_by_of_alone(arguments):
    with pytest.raises(
        TypeError, match=r"A Problem is created by Problem.of\(M, mask, diagonal\), which checks M"
    ):
        Problem(*arguments)


@pytest.mark.parametrize("estimator", [SymReLU(2), SymReLUClustering(2), LinkPredictor(2)])
def test_estimators_say_what_to_pass_for_a_problem(estimator):
    with pytest.raises(
        TypeError, match=r"X must be a matrix or a graph, got a Problem. Pass fit\(problem.M, mask"
    ):
        estimator.fit(Problem.of(DENSE))


def test_further_masks_are_aligned_by_names():
    names = list("abcdef")
    frame = pandas.DataFrame(np.ones((6, 6)), index=names, columns=names)
    mask = pandas.DataFrame(np.zeros((6, 6), bool), index=names, columns=names)
    mask.loc["a", "b"] = mask.loc["b", "a"] = True
    turned = mask.loc[names[::-1], names[::-1]]
    hidden = Problem.of(frame).hide(turned)
    assert_array_equal(hidden.mask.toarray(), mask.to_numpy())
    U = np.arange(6.0)[:, None]
    expected = metrics.held_out_error(frame, U, mask=turned)
    assert metrics.held_out_error(Problem.of(frame), U, mask=turned) == expected


def test_new_rows_are_checked_once(monkeypatch):
    model = SymReLU(2, random_state=0, gtol=0.1).fit(DENSE)
    checks = []

    def counted(*rows, real=models.check_rows, **names):
        checks.append(rows)
        return real(*rows, **names)

    for module in (new_items, models):
        monkeypatch.setattr(module, "check_rows", counted)
    model.transform(DENSE[:3])
    model.score(DENSE[:3])
    assert len(checks) == 2


@pytest.mark.parametrize("estimator", [SymReLU, SymReLUClustering, LinkPredictor])
@pytest.mark.parametrize("bad", [{"max_iter": 0}, {"solver": "none"}, {"alpha": -1}, {"random_state": "dice"}])
def test_estimators_look_at_their_settings_before_their_data(estimator, bad):
    with pytest.raises((TypeError, ValueError), match=next(iter(bad))):
        estimator(**bad).fit("no data")
