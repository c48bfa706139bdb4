"""Products in float32 whatever the process allows: in operators, in the steps of a fit and in queries."""

import threading

import numpy as np
import pytest
from helpers import PROBLEMS, factor, torch_
from scipy import sparse

from symrelu import decompose

torch = pytest.importorskip("torch")

from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402

from symrelu.fitted import SymmetricReLU, on_device  # noqa: E402
from symrelu.operators import torch_precision  # noqa: E402
from symrelu.operators.torch_precision import full_float32, undisturbed  # noqa: E402

PRODUCTS = ("mm", "bmm", "addmm", "baddbmm", "linalg_solve", "_linalg_solve_ex", "linalg_cholesky_ex")


@pytest.fixture
def _own_precision():
    """Leave the settings of the process as they are."""
    found = torch_precision._Precision.of_process()
    yield
    found.restore()


@pytest.mark.usefixtures("_own_precision")
@pytest.mark.parametrize("precision", ["highest", "high", "medium"])
def test_the_precision_is_full_inside_and_restored_after_it(precision):
    torch.set_float32_matmul_precision(precision)
    with full_float32():
        assert torch.get_float32_matmul_precision() == "highest"
        assert not torch.backends.cuda.matmul.allow_tf32
    assert torch.get_float32_matmul_precision() == precision
    assert torch.backends.cuda.matmul.allow_tf32 == (precision != "highest")


@pytest.mark.usefixtures("_own_precision")
def test_an_error_restores_it_too():
    torch.set_float32_matmul_precision("high")
    with pytest.raises(ZeroDivisionError), full_float32():
        raise ZeroDivisionError
    assert torch.get_float32_matmul_precision() == "high"


@pytest.mark.usefixtures("_own_precision")
@pytest.mark.parametrize("precision", ["tf32", "ieee", "none"])
def test_the_precision_of_one_library_is_restored_too(precision):
    matmul = torch.backends.cuda.matmul
    if not hasattr(matmul, "fp32_precision"):
        pytest.skip("this torch has one setting for all")
    matmul.fp32_precision = precision
    with full_float32():
        assert matmul.fp32_precision == "ieee"
    assert matmul.fp32_precision == precision


@pytest.mark.usefixtures("_own_precision")
def test_the_last_of_several_threads_restores_it():
    torch.set_float32_matmul_precision("high")
    inside, done = threading.Event(), threading.Event()

    def work():
        with full_float32():
            inside.set()
            done.wait()

    other = threading.Thread(target=work)
    with full_float32():
        other.start()
        inside.wait()
    assert torch.get_float32_matmul_precision() == "highest"
    done.set()
    other.join()
    assert torch.get_float32_matmul_precision() == "high"


def test_no_gradients_are_recorded():
    assert not undisturbed(torch.square)(torch.ones(2, requires_grad=True)).requires_grad


class Precisions(TorchDispatchMode):
    """Note the precision of the process during each product of matrices."""

    def __init__(self):
        super().__init__()
        self.found = []

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        name = function.overloadpacket.__name__
        if name in PRODUCTS:
            self.found.append((name, torch.get_float32_matmul_precision()))
        return function(*args, **(kwargs or {}))


def of_operator():
    problem = PROBLEMS["signed"].astype(np.float32)
    op = torch_(problem)
    U = op.asarray(factor(problem, 1))
    op.residual_product(U, U)
    op.solve_rows(U, op.gram(U) + op.xp.eye(problem.rank), U)
    op.imputed_matmul(U, -1.0)


def of_fit(solver):
    M = sparse.csr_array(PROBLEMS["signed"].M.astype(np.float32))
    decompose(M, 3, n_negative=1, solver=solver, backend="torch", max_iter=3, random_state=0)


def of_queries():
    U = np.random.default_rng(0).random((20, 3), np.float32)
    model = SymmetricReLU(U, np.ones(3, np.float32))
    on_device.top_k(model, [0, 1], 3, device="cpu")
    on_device.transform(model, U[:2] @ U.T, device="cpu")


@pytest.mark.usefixtures("_own_precision")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    "work",
    [of_operator, *(lambda name=name: of_fit(name) for name in ("lbfgs", "aapb", "palm", "eigen")), of_queries],
)
def test_all_products_have_full_precision(work):
    torch.set_float32_matmul_precision("high")
    with Precisions() as precisions:
        work()
    assert {precision for _, precision in precisions.found} == {"highest"}
    assert torch.get_float32_matmul_precision() == "high"
