"""AAPB against a literal transcription of the paper's Algorithm 1."""

import functools
import itertools

import numpy as np
import pytest
from helpers import OPERATORS, PAPER_EXAMPLE, PROBLEMS, Problem, iterates, random_problem, start
from numpy.linalg import norm
from numpy.testing import assert_allclose

from symrelu.datasets import make_relu_gram
from symrelu.solvers.aapb import AAPB, bregman_distance

STEPS = 50


def algorithm_1(problem, U, step, momentum, safeguard, steps):
    """Return U^0, U^1, ... of Algorithm 1 with W, psi and the cubic written out on n x n arrays."""
    s, alpha = problem.signature, problem.alpha
    previous, path, psi_before = U, [U], None
    for k in range(steps):
        W = problem.latent(U)
        psi = Kernel(norm(W))
        b = momentum * (k - 1) / (k + 2) if k > 0 else 0.0
        while (
            safeguard
            and b > 0
            and psi.distance(U, U + b * (U - previous)) > (0.99 / (1 + step) * psi_before.distance(previous, U))
        ):
            b *= 0.9
        Y = U + b * (U - previous)
        gradient = 2 * ((Y * s) @ (Y.T @ Y) - W @ Y) * s
        G = psi.gradient(Y) - step * gradient
        roots = np.roots([1, -(alpha * step + 2 * norm(W)), 0, -6 * norm(G) ** 2])
        t = max(roots[np.abs(roots.imag) < 1e-8 * np.abs(roots)].real)
        previous, U, psi_before = U, G / t, psi
        path.append(U)
    return path


class Kernel:
    """psi(U) = 3/2 ||U||^4 + ||W|| ||U||^2 and its Bregman distance, by the definition."""

    def __init__(self, latent_norm):
        self.w = latent_norm

    def __call__(self, U):
        return 1.5 * norm(U) ** 4 + self.w * norm(U) ** 2

    def gradient(self, U):
        return (6 * norm(U) ** 2 + 2 * self.w) * U

    def distance(self, A, B):
        return self(A) - self(B) - np.sum(self.gradient(B) * (A - B))


# That all operators give the path of the reference is in test_solvers.py: two of them are enough for formulas.
TWO = ["reference", "sparse in small tiles"]


@functools.cache
def path_of_algorithm_1(label, step, momentum, safeguard):
    return algorithm_1(PROBLEMS[label], start(PROBLEMS[label]), step, momentum, safeguard, STEPS)


@pytest.mark.parametrize("name", TWO)
@pytest.mark.parametrize("label", PROBLEMS)
@pytest.mark.parametrize("step", [1.0, 10.0])
@pytest.mark.parametrize("momentum", [0.0, 1.0])
@pytest.mark.parametrize("safeguard", [False, True])
@pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning", "ignore:invalid value:RuntimeWarning")
def test_iterates_equal_algorithm_1(name, label, step, momentum, safeguard):
    problem = PROBLEMS[label]
    solver = AAPB(step_size=step, momentum=momentum, safeguard=safeguard)
    U0 = start(problem)
    expected = path_of_algorithm_1(label, step, momentum, safeguard)
    actual = iterates(solver, OPERATORS[name](problem), U0, STEPS)
    compared = 0
    for state, U in zip(actual, expected, strict=True):
        if norm(U) > 10 * norm(U0):  # step 10 is outside the theory: it may run away, and errors with it
            break
        assert norm(state.U - U) <= 1e-10 * norm(U), compared
        compared += 1
    runs_away = step == 10 and momentum == 1 and label in {"dense data", "everything"}
    assert compared > STEPS or (runs_away and compared >= 5)


@pytest.mark.parametrize("name", OPERATORS)
def test_a_step_is_one_evaluation(name):
    problem = PROBLEMS["everything"]
    op = OPERATORS[name](problem)
    iterates(AAPB(), op, start(problem), 20)
    assert op.evaluations == 21


def test_a_safeguarded_step_counts_its_wide_pass_as_two():
    problem = PROBLEMS["plain"]
    op = OPERATORS["sparse"](problem)
    iterates(AAPB(safeguard=True), op, start(problem), 10)
    assert op.evaluations == 2 + 2 * 9  # no extrapolation before the third pass


@pytest.mark.parametrize("label", PROBLEMS)
@pytest.mark.parametrize("seed", range(3))
def test_apb_never_raises_the_objective(label, seed):
    problem = PROBLEMS[label]
    states = iterates(AAPB(momentum=0.0), OPERATORS["sparse"](problem), start(problem, seed), 100)
    objectives = np.array([state.objective for state in states])
    assert (np.diff(objectives) <= 1e-12 * objectives[0]).all()
    assert objectives[-1] < objectives[0]


@pytest.mark.parametrize("step", [0.5, 1.0])
@pytest.mark.parametrize("label", PROBLEMS)
def test_bound_of_the_convergence_theorem(label, step):
    """min over k <= K of D_psi(U^{k-1}, U^k) <= step objective(U^0) / (0.01 K), at every K."""
    problem = PROBLEMS[label]
    solver = AAPB(step_size=step, safeguard=True)
    states = iterates(solver, OPERATORS["sparse"](problem), start(problem), 200)
    distances = [
        Kernel(before.latent_norm).distance(before.U, after.U) for before, after in itertools.pairwise(states)
    ]
    bounds = step * states[0].objective / (0.01 * np.arange(1, 201))
    assert (np.minimum.accumulate(distances) <= bounds).all()
    assert any(0 < state.momentum < (k - 1) / (k + 2) for k, state in enumerate(states) if k > 1)


def test_safeguard_condition_holds_where_it_is_promised():
    problem = PROBLEMS["plain"]
    states = iterates(AAPB(safeguard=True), OPERATORS["dense"](problem), start(problem), 60)
    for before, state in itertools.pairwise(states):
        left = Kernel(state.latent_norm).distance(state.U, state.extrapolated)
        right = Kernel(before.latent_norm).distance(before.U, state.U)
        assert left <= 0.99 / 2 * right * (1 + 1e-9)
        assert_allclose(state.bregman_distance, right, rtol=1e-6)


def test_bregman_distance_by_scalars_equals_its_definition():
    rng = np.random.default_rng(0)
    for _ in range(50):
        A, B = rng.standard_normal((2, 6, 3))
        w = rng.random()
        p, q = np.sum(B * (A - B)), np.sum((A - B) ** 2)
        assert_allclose(bregman_distance(w, norm(B) ** 2, p, q), Kernel(w).distance(A, B), rtol=1e-10)


@pytest.mark.parametrize("label", PROBLEMS)
def test_reported_gradient_is_that_of_the_objective_without_momentum(label):
    problem = PROBLEMS[label]
    op = OPERATORS["reference"](problem)
    state = iterates(AAPB(momentum=0.0), op, start(problem), 3)[-1]
    residual_product = op.residual_product(state.U, state.U).product
    gradient = -2 * residual_product * problem.signature + problem.alpha * state.U
    assert_allclose(state.gradient_norm, norm(gradient))


def test_step_size_is_what_separates_the_theory_from_the_paper():
    """The step minimises the model: U^{k+1} solves alpha eta U + grad psi(U) = G."""
    problem = random_problem(0, alpha=0.2)
    op = OPERATORS["dense"](problem)
    solver = AAPB(step_size=3.0)
    before = solver.init(op, start(problem))
    after = solver.step(op, before)
    psi = Kernel(before.latent_norm)
    left = problem.alpha * 3.0 * after.U + psi.gradient(after.U)
    right = psi.gradient(before.extrapolated) - 3.0 * before.partial_gradient
    assert_allclose(left, right, rtol=1e-12, atol=1e-12 * norm(right))


@pytest.mark.parametrize("seed", range(5))
def test_paper_matrix_without_shift_is_fitted(seed):
    """m=500, r=10, p=0: 1e-4 within 600 iterations at the theory's step, within 100 at the paper's."""
    from symrelu import decompose

    M, _ = make_relu_gram(500, 10, random_state=seed)
    slow = decompose(M, 10, solver=AAPB(), random_state=seed, max_iter=600)
    assert slow.relative_error <= 1e-4
    fast = decompose(M, 10, solver=AAPB(step_size=10), random_state=seed, max_iter=100)
    assert fast.relative_error <= 1e-4


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"momentum": 1.2}, ValueError, r"AAPB\(momentum=...\) must be in \[0, 1\], got 1.2"),
        ({"momentum": -0.1}, ValueError, r"momentum=...\) must be in \[0, 1\]"),
        ({"momentum": float("nan")}, ValueError, r"momentum=...\) must be in \[0, 1\], got nan"),
        ({"momentum": "1"}, TypeError, r"momentum=...\) must be a number in \[0, 1\], got '1'"),
        ({"step_size": 0}, ValueError, r"AAPB\(step_size=...\) must be in \(0, inf\), got 0"),
        ({"step_size": -1}, ValueError, r"step_size=...\) must be in \(0, inf\)"),
        ({"step_size": float("inf")}, ValueError, r"step_size=...\) must be in \(0, inf\), got inf"),
        ({"step_size": True}, TypeError, r"step_size=...\) must be a number"),
        ({"safeguard": 1}, TypeError, r"AAPB\(safeguard=...\) must be True or False, got 1"),
    ],
)
def test_hyperparameters_are_checked(settings, error, message):
    with pytest.raises(error, match=message):
        AAPB(**settings)


def test_numpy_numbers_are_numbers():
    assert AAPB(step_size=np.float32(2.0), momentum=np.int64(1)) == AAPB(step_size=2.0, momentum=1.0)


def test_numpy_doubles_do_not_promote_float32():
    problem = PROBLEMS["plain"].astype(np.float32)
    op, U0 = OPERATORS["sparse"](problem), start(problem).astype(np.float32)
    solver = AAPB(step_size=np.float64(2), momentum=np.float64(1))
    assert solver.step(op, solver.init(op, U0)).U.dtype == np.float32


def test_zero_factor_stays_zero_without_warnings():
    problem = Problem(np.eye(3), np.zeros((3, 3), bool), np.ones(1))
    op = OPERATORS["sparse"](problem)
    state = AAPB().init(op, np.zeros((3, 1)))
    assert not AAPB().step(op, state).U.any()


ADAPTIVE = AAPB(step_size="adaptive")


@pytest.mark.parametrize("label", PROBLEMS)
@pytest.mark.parametrize("name", TWO)
def test_adaptive_steps_satisfy_the_inequality_of_the_proof(label, name):
    """Every step with eta > 1 that is taken, checked on full matrices; steps do become longer than 1."""
    problem = PROBLEMS[label]
    op, s = OPERATORS[name](problem), problem.signature
    states = iterates(ADAPTIVE, op, start(problem), 60)
    longest = 0.0
    for state, new in itertools.pairwise(states):
        W, Y, U = problem.latent(state.U), state.extrapolated, state.U
        eta = new.step_size / 1.1
        longest = max(longest, eta)

        def F(A, W=W):
            return 0.5 * norm(W - (A * s) @ A.T) ** 2

        assert_allclose(state.rise, F(Y) - F(U), atol=1e-9 * (F(U) + F(Y) + norm(W) ** 2))
        gradient = 2 * ((Y * s) @ (Y.T @ Y) - W @ Y) * s
        model = F(Y) - F(U) + np.sum(gradient * (new.U - Y)) + Kernel(norm(W)).distance(new.U, Y) / eta
        assert new.latent_loss - state.latent_loss <= model + 1e-9 * norm(W) ** 2
    assert longest > 1.5


@pytest.mark.parametrize("seed", range(5))
def test_adaptive_steps_do_not_run_away_where_step_10_does(seed):
    for problem in (PROBLEMS["dense data"], Problem(PAPER_EXAMPLE, np.zeros((5, 5), bool), np.ones(2))):
        op = OPERATORS["dense"](problem)
        state = first = ADAPTIVE.init(op, start(problem, seed))
        for _ in range(300):
            state = ADAPTIVE.step(op, state)
        assert state.objective <= first.objective


def test_an_adaptive_step_is_mostly_one_evaluation():
    problem = PROBLEMS["plain"]
    op = OPERATORS["sparse"](problem)
    state = ADAPTIVE.init(op, start(problem))
    for _ in range(200):
        state = ADAPTIVE.step(op, state)
    assert 201 < op.evaluations < 1.25 * 200


def test_only_one_word_is_a_step_size():
    with pytest.raises(ValueError, match="must be a positive number or 'adaptive', got 'auto'"):
        AAPB(step_size="auto")
