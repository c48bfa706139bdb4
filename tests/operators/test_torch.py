"""The operator on torch: end to end, what it holds, and what becomes of what rounding spoils."""

import subprocess
import sys

import numpy as np
import pytest
from helpers import PROBLEMS, Problem, evaluate, factor, iterates, solved, start, torch_
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from symrelu import LBFGS, LinkPredictor, SymReLU, decompose
from symrelu.datasets import make_relu_gram
from symrelu.solvers import SOLVERS as NAMES

torch = pytest.importorskip("torch")
torch_operator = pytest.importorskip("symrelu.operators.torch")
torch_rows = pytest.importorskip("symrelu.operators.torch_rows")
TorchOperator = torch_operator.TorchOperator
transfers = pytest.importorskip("transfers")
Largest = pytest.importorskip("small_blocks").Largest

KINDS = {
    "ndarray": np.asarray,
    "csr_array": sparse.csr_array,
    "tensor": torch.tensor,
    "COO": lambda M: torch.tensor(M).to_sparse(),
    "CSR": lambda M: torch.tensor(M).to_sparse_csr(),
}


@pytest.fixture
def M():
    return make_relu_gram(60, 3, shift=0.1, random_state=0)[0]


@pytest.mark.filterwarnings("ignore:Sparse CSR tensor support:UserWarning")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_decompose(M, kind, dtype):
    settings = {"n_negative": 1, "random_state": 0, "tol": 1e-3}
    solution = decompose(KINDS[kind](M.astype(dtype)), 4, backend="torch", **settings)
    expected = decompose(M, 4, **settings)
    assert type(solution.U) is np.ndarray
    assert solution.U.dtype == dtype
    assert solution.status is expected.status
    assert solution.relative_error <= 1e-3
    assert solution.n_iter == expected.n_iter


@pytest.mark.parametrize("solver", [name for name in NAMES if name != "newton"])
def test_a_resumed_fit_is_the_same(M, solver, tmp_path):
    settings = {"solver": solver, "backend": "torch", "random_state": 0, "tol": 0, "gtol": 0, "ftol": 0}
    whole = decompose(M, 3, max_iter=9, **settings)
    for max_iter in (4, 9):
        parts = decompose(M, 3, max_iter=max_iter, checkpoint=tmp_path / "fit.ckpt", **settings)
    assert_array_equal(parts.U, whole.U)
    assert_array_equal(parts.history.objective, whole.history.objective)


def test_a_checkpoint_of_another_backend_is_refused(M, tmp_path):
    decompose(M, 3, max_iter=3, backend="torch", checkpoint=tmp_path / "fit.ckpt")
    with pytest.raises(ValueError, match="written with backend='torch'"):
        decompose(M, 3, max_iter=3, checkpoint=tmp_path / "fit.ckpt")


def test_the_data_choose_the_signature(M):
    solution = decompose(M, 4, n_negative="auto", backend="torch", random_state=0)
    assert solution.signature.tolist() == [1, 1, 1, -1]
    assert solution.relative_error <= 1e-4


def test_the_estimator(M):
    settings = {"n_components": 4, "n_negative": 1, "random_state": 0}
    model, expected = SymReLU(backend="torch", **settings).fit(M), SymReLU(**settings).fit(M)
    assert type(model.embedding_) is np.ndarray
    assert_allclose(model.embedding_, expected.embedding_, atol=1e-6)


def test_the_same_seed_gives_the_same_bits(M):
    first, second = (decompose(M, 3, backend="torch", random_state=1, max_iter=30) for _ in range(2))
    assert_array_equal(first.U, second.U)


WITHOUT = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.startswith({missing!r}):
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Missing())
import symrelu
symrelu.decompose({matrix}, 2, backend="torch")
"""
COPY = "sklearn.externals.array_api_compat"


@pytest.mark.parametrize(
    ("missing", "needed"),
    [
        (("torch",), "torch"),
        (("array_api_compat", f"{COPY}.torch"), "array-api-compat, or scikit-learn 1.7 or newer"),
    ],
)
def test_without_its_libraries_it_names_the_extra(missing, needed):
    """Before any work: the matrix, which is none, is not looked at."""
    program = [sys.executable, "-c", WITHOUT.format(missing=missing, matrix=None)]
    result = subprocess.run(program, capture_output=True, text=True, check=False)
    message = (
        f"ImportError: backend='torch' and backend='cuda' need {needed}: "
        "pip install 'symrelu[torch]', or 'symrelu[cuda]' where there is an NVIDIA GPU."
    )
    assert result.stderr.strip().splitlines()[-1] == message


def test_the_copy_in_scikit_learn_suffices():
    pytest.importorskip(COPY)
    program = WITHOUT.format(missing=("array_api_compat",), matrix=[[1, 0], [0, 1]])
    subprocess.run([sys.executable, "-c", program], check=True)


def hub(n):
    """Return a sparse matrix whose first item is like every other one."""
    M = sparse.lil_array((n, n))
    M[0, :] = M[:, 0] = 1.0
    return sparse.csr_array(M + sparse.eye_array(n))


def test_a_sparse_matrix_never_becomes_square(monkeypatch):
    n, rank = 600, 3
    monkeypatch.setattr(torch_rows, "BLOCK", 6000)
    unknown = sparse.csr_array(sparse.eye_array(n, dtype=bool))
    with Largest() as largest:
        op = TorchOperator(hub(n), unknown, signature=np.ones(rank))
        U = op.asarray(np.random.default_rng(0).standard_normal((n, rank)))
        op.residual_product(U, U)
        op.imputed_matmul(U, -1.0)
        LBFGS().step(op, LBFGS().init(op, U))
    assert largest.numel <= 6000


def test_a_dense_matrix_is_held_once(monkeypatch):
    n, rank = 300, 3
    monkeypatch.setattr(torch_rows, "BLOCK", 3000)
    op = TorchOperator(hub(n).toarray(), None, signature=np.ones(rank))
    U = op.asarray(np.random.default_rng(0).standard_normal((n, rank)))
    with Largest() as largest:
        op.residual_product(U, U)
        op.imputed_matmul(U, -1.0)
        LBFGS().step(op, LBFGS().init(op, U))
    assert op._rows._coded.shape == (n, n)
    assert largest.numel <= n * n  # its own rows are looked at as views
    assert op._rows.support[1].numel() == op.n_positive


def test_transfers_are_seen_however_they_are_made():
    x = torch.arange(6.0)
    reads = {
        "a number": (lambda: float(x[1]), lambda: bool(x[1] > 0), lambda: x[1].item(), lambda: int(x[1])),
        "a count": (lambda: x[x > 1], lambda: torch.nonzero(x)),
        "tolist": (lambda: x.sum().tolist(),),
    }
    for name, works in reads.items():
        for work in works:
            assert transfers.transfers(work) == [(name, 1)]
    assert transfers.transfers(lambda: x.tolist()) == [("tolist", 6)]
    assert transfers.transfers(lambda: np.asarray(x)) == [("numpy", 6)]
    assert transfers.transfers(lambda: x.cpu()) == [("cpu", 6)]
    assert transfers.transfers(lambda: torch.where(x > 1, x, 0.0) @ x) == []


def test_a_step_reads_few_numbers_and_no_factor(monkeypatch):
    """On a GPU it would wait for each of them; their number does not depend on that of blocks."""
    problem = PROBLEMS["signed"]
    for op in (torch_(problem), torch_(problem, tile=7)):
        reads = transfers.of_a_step(op, start(problem), monkeypatch)
        assert max(size for _, size in reads) <= 16 < problem.n * problem.rank
        assert len(reads) <= 10, reads


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("block", [1, 100, 10_000])
def test_rows_are_solved_however_many_at_a_time(kind, block, monkeypatch):
    M = hub(40).toarray()
    M[5] = M[:, 5] = 0  # no entry at all
    problem = Problem(M, np.zeros(M.shape, bool), np.ones(4))
    V, right = factor(problem), np.random.default_rng(0).standard_normal((40, 4, 2))
    ridge = 0.1 * np.eye(4)
    monkeypatch.setattr(torch_rows, "BLOCK", block)
    op = torch_(problem, kind)
    solution = solved(op, V, ridge, right)
    systems = [V[row > 0].T @ V[row > 0] + ridge for row in M]
    assert_allclose(solution, np.linalg.solve(systems, right), rtol=1e-9, atol=1e-9)


def test_pivots_that_rounding_took_away_leave_their_unknowns_at_zero():
    spoilt = torch.tensor([[4.0, 2, 0], [2, 1 - 1e-9, 0], [0, 0, 9]], dtype=torch.float64)
    systems = torch.stack([spoilt, torch.eye(3, dtype=torch.float64), torch.zeros_like(spoilt)])
    right = torch.tensor([8.0, 5, 18], dtype=torch.float64).expand(3, 3)[:, :, None]
    solutions = torch.cholesky_solve(right, torch_operator.factorised(systems))[:, :, 0]
    assert solutions.tolist() == [[2, 0, 2], [8, 5, 18], [0, 0, 0]]


def test_a_spoilt_system_changes_no_other_row():
    """Of the rows of one batch, only that without a definite system is solved in the other way."""
    n, rank = 30, 3
    problem = Problem(np.eye(n), np.zeros((n, n), bool), np.ones(rank))
    V, right = factor(problem), np.random.default_rng(0).standard_normal((n, rank, 1))
    ridge = np.diag([1.0, 1.0, -1e-3])
    V[:, 2] += 9.0  # every system is definite
    op = torch_(problem)
    (expected,) = op.solve_rows(op.asarray(V), op.asarray(ridge), op.asarray(right[..., 0]))
    V[7] = 0.0  # and now one is not
    (found,) = op.solve_rows(op.asarray(V), op.asarray(ridge), op.asarray(right[..., 0]))
    others = np.arange(n) != 7
    assert_array_equal(found[others], expected[others])
    assert_allclose(found[7], [*right[7, :2, 0], 0.0])


def test_nothing_is_recorded_for_gradients():
    problem = PROBLEMS["plain"]
    op = torch_(problem)
    U = op.asarray(factor(problem)).requires_grad_()
    assert not op.residual_product(U, U).product.requires_grad
    assert not op.matmul(U).requires_grad
    assert not op.imputed_matmul(U, -1.0).requires_grad
    assert not op.solve_rows(U, U.T @ U, U)[0].requires_grad
    assert not op.to_numpy(U).flags.owndata


def test_read_only_arrays_cross_the_border():
    problem = PROBLEMS["mask"]
    for array in (problem.M, U := factor(problem)):
        array.flags.writeable = False
    try:
        op = torch_(problem, np.asarray)
        assert evaluate(op, U).loss == pytest.approx(evaluate(torch_(problem), U).loss)
        op.asarray(U)[:] = 0
        assert U.any()
    finally:
        problem.M.flags.writeable = True


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_blocks_change_nothing_but_rounding(dtype):
    problem = PROBLEMS["everything"].astype(dtype)
    paths = [iterates(LBFGS(), torch_(problem, tile=tile), start(problem), 5)[-1] for tile in (1, 7, 100)]
    for state in paths:
        assert_allclose(state.U, paths[0].U, rtol=0, atol=(1e-10 if dtype == np.float64 else 1e-3))


def test_links_are_averaged_on_torch_too():
    gram, _ = make_relu_gram(40, 3, random_state=0)
    B = (gram > 1).astype(float)
    model = LinkPredictor(3, random_state=0, backend="torch").fit(B)
    assert_allclose(model.embedding_, LinkPredictor(3, random_state=0).fit(B).embedding_, atol=1e-6)
