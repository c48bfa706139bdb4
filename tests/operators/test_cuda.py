"""The operator for GPUs, its choices and its errors; without a GPU, kernels run in Triton's interpreter."""

import warnings

import numpy as np
import pytest
from helpers import OPERATORS, PROBLEMS, evaluate, factor, start
from helpers import cuda as operator
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from symrelu import Checkpoint, Status, decompose, estimate_cost, metrics
from symrelu.datasets import make_relu_gram
from symrelu.fit import levels
from symrelu.graphs import self_tuning_graph
from symrelu.kernels import one_time_warnings
from symrelu.operators import EvaluationFailed
from symrelu.solvers import LBFGS

torch = pytest.importorskip("torch")
pytest.importorskip("triton")
cuda = pytest.importorskip("symrelu.operators.cuda")
transfers = pytest.importorskip("transfers")

HAS_GPU = torch.cuda.is_available()
DEVICE = "cuda" if HAS_GPU else "cpu"
SUMS = ("latent_loss", "loss", "latent_norm_squared", "active_zeros", "alignment")
WAYS = {
    "all pairs": (np.float32, {}, 1e-5),
    "fast": (np.float32, {"precision": "fast"}, 2e-3),
    "listed": (np.float32, {"always_lists": True}, 1e-5),
    "listed in float64": (np.float64, {"always_lists": True}, 1e-12),
    "blocks of rows": (np.float64, {}, 1e-12),
}


@pytest.fixture
def pretended(monkeypatch):
    """Let the backend "cuda" run on the CPU, if there is no GPU."""
    kind = cuda.CudaOperator
    monkeypatch.setattr(kind, "check_available", lambda: None)
    monkeypatch.setattr(kind, "free_memory", lambda: 2**40)
    monkeypatch.setattr(kind, "of", classmethod(lambda cls, *data, **model: cls(*data, device=DEVICE, **model)))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("label", ["signed", "everything", "everything, at least"])
def test_equals_reference(label, way):
    dtype, settings, tolerance = WAYS[way]
    problem = PROBLEMS[label].astype(dtype)
    U, V = factor(problem, 1), factor(problem, 2, 5)
    op = operator(problem, device=DEVICE, **settings)
    if "listed" in way:
        tensor = op.asarray(U)
        assert op._listed(tensor, *op._sampled(tensor)) is not None
    found = evaluate(op, U, V)
    expected = evaluate(OPERATORS["reference"](problem), U, V)
    assert_allclose(found.product, expected.product, rtol=0, atol=tolerance * np.abs(expected.product).max())
    for name in SUMS:
        assert getattr(found, name) == pytest.approx(getattr(expected, name), rel=tolerance), name


@pytest.mark.parametrize("way", ["all pairs", "listed in float64"])
def test_rows_of_hubs_are_divided(way, monkeypatch):
    from symrelu.kernels import device_rows

    monkeypatch.setattr(device_rows, "LONGEST", 4)
    test_equals_reference("everything", way)


def test_the_sums_of_a_fast_pass_come_from_its_product():
    """With V = U, as in most solvers, the kernel does not sum squares up, and the sample gives the count."""
    problem = PROBLEMS["signed"].astype(np.float32)
    op, U = operator(problem, device=DEVICE, precision="fast"), factor(problem, 1)
    tensor = op.asarray(U)
    found = op.residual_product(tensor, tensor)
    expected = evaluate(OPERATORS["reference"](problem), U, U)
    assert_allclose(
        op.to_numpy(found.product), expected.product, rtol=0, atol=2e-3 * np.abs(expected.product).max()
    )
    for passed in (found, op.residual_product(tensor, tensor.clone()), op.loss(tensor)):
        for name in SUMS:
            assert getattr(passed, name) == pytest.approx(getattr(expected, name), rel=2e-3), name


@pytest.mark.parametrize("settings", [{}, {"always_lists": True}])
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_numbers_that_are_not_finite_show(bad, settings):
    problem = PROBLEMS["signed"].astype(np.float32)
    U = factor(problem, 1)
    U[3, 0] = bad
    found = evaluate(operator(problem, device=DEVICE, **settings), U, U)
    assert not np.isfinite(found.loss)
    assert not np.isfinite(found.latent_loss)


def test_the_smaller_matrices_of_a_multilevel_start_are_fitted_fast():
    op = operator(PROBLEMS["signed"].astype(np.float32), device=DEVICE)
    assert op.approximate().precision == "fast"
    assert op.precision == "high"
    exact = operator(PROBLEMS["signed"], device=DEVICE)
    assert exact.approximate() is exact  # there is no faster kernel for float64
    assert OPERATORS["sparse"](PROBLEMS["signed"]).approximate().evaluations == 0


def test_a_list_is_used_where_few_zeros_are_positive(monkeypatch):
    """The sample counts zeros only, and every row here."""
    problem = PROBLEMS["signed"].astype(np.float32)
    op, U = operator(problem, device=DEVICE), factor(problem, 1)
    X = (U.astype(float) * problem.signature) @ U.T
    zeros = (problem.M == 0) & ~problem.unknown
    expected, _ = op._sampled(op.asarray(U))
    assert expected == pytest.approx(np.count_nonzero((X > 0) & zeros) / problem.n)
    assert op._listed(op.asarray(U), expected) is None
    monkeypatch.setattr(cuda, "_LARGEST_SHARE", 1.0)
    listed = op._listed(op.asarray(U), expected)
    assert len(listed.indices) >= expected * problem.n


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_of_zeros_are_noticed_with_the_sample(dtype):
    """Only then are they looked for, and the list is the same."""
    problem = PROBLEMS["signed"].astype(dtype)
    op, U = operator(problem, device=DEVICE, always_lists=True), factor(problem, 1)
    for size, without_zeros in ((1.0, True), (1e-30, True), (np.finfo(dtype).tiny / 4, False), (0.0, False)):
        U[3] *= size / np.abs(U[3]).max()
        tensor = op.asarray(U)
        expected, all_scanned = op._sampled(tensor)
        assert all_scanned == without_zeros
        found, same = op._listed(tensor, expected, all_scanned), op._listed(tensor, expected)
        assert found.indptr.tolist() == same.indptr.tolist()
        assert found.indices.tolist() == same.indices.tolist()
    U[0] = np.nan
    assert np.isnan(op._sampled(op.asarray(U))[0])


def test_a_list_without_room_is_no_list(monkeypatch):
    problem = PROBLEMS["signed"].astype(np.float32)
    op = operator(problem, device=DEVICE, always_lists=True)
    U = op.asarray(factor(problem, 1))
    expected = op._listed(U, 1.0)
    monkeypatch.setattr(cuda, "_LEAST_ROOM", 1)
    monkeypatch.setattr(cuda, "_ROOM", 0.0)
    found = op._listed(U, 1.0)  # a second scan has the room that the first one lacked
    assert found.indices.tolist() == expected.indices.tolist()
    monkeypatch.setattr(cuda, "_MOST_CANDIDATES", 4)
    assert op._listed(U, 1.0) is None


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_factor_of_zeros_has_no_positive_pairs(dtype):
    problem = PROBLEMS["signed"].astype(dtype)
    U = np.zeros((problem.n, problem.rank), dtype)
    found = evaluate(operator(problem, device=DEVICE), U, factor(problem, 1))
    expected = evaluate(OPERATORS["reference"](problem), U, factor(problem, 1))
    assert_allclose(found.product, expected.product, atol=1e-5)
    assert found.loss == pytest.approx(expected.loss)
    assert found.active_zeros == 0


@pytest.mark.parametrize("label", ["signed", "everything"])  # the second has as many negative columns as others
def test_compiling_takes_both_ways_of_a_pass(label, monkeypatch):
    op, ways = operator(PROBLEMS[label].astype(np.float32), device=DEVICE), []
    kind = type(op)
    for name in ("_scanned", "_add_all_pairs"):
        method = getattr(kind, name)
        monkeypatch.setattr(
            kind, name, lambda *args, name=name, method=method: ways.append(name) or method(*args)
        )
    op.warm_up()
    assert bool(ways) == HAS_GPU
    op._pass_over_almost_nothing()
    assert set(ways) == {"_scanned", "_add_all_pairs"}
    assert op.evaluations == 0


@pytest.mark.parametrize("label", ["signed", "everything, at least"])
def test_compiling_takes_the_kernels_for_long_rows(label, monkeypatch):
    """A pass launches no kernel with other choices than those of the small passes before it."""
    from symrelu.kernels import device_rows

    monkeypatch.setattr(device_rows, "LONGEST", 4)
    launch, add, seen = device_rows._launch, device_rows._add_pieces, []

    def launching(count, owners, pieces, ranges, given, factors, product, sums):
        U, _, _, V, at_least = factors
        columns = None if V is None else V.shape[1]
        seen.append((owners is None, pieces, *sorted(ranges), U.shape[1], columns, U.dtype, at_least))
        launch(count, owners, pieces, ranges, given, factors, product, sums)

    monkeypatch.setattr(device_rows, "_launch", launching)
    monkeypatch.setattr(device_rows, "_add_pieces", lambda *args: seen.append("added") or add(*args))
    problem = PROBLEMS[label].astype(np.float32)
    for settings in ({}, {"always_lists": True}):
        op = operator(problem, device=DEVICE, **settings)
        op._pass_over_almost_nothing()
        compiled = set(seen)
        seen.clear()
        U = op.asarray(factor(problem, 1))
        op.residual_product(U, U)
        assert "added" in seen
        assert set(seen) <= compiled
        seen.clear()


@pytest.mark.parametrize("precision", ["high", "fast"])
def test_compiling_takes_the_kernels_for_any_product(precision, monkeypatch):
    """Fast passes with V = U have kernels of their own, and so have passes without V."""
    from symrelu.kernels import device_products

    subtract, seen = device_products.subtract_positive, []

    def subtracting(product, *args, split, counts, **settings):
        seen.append((product is None, split, counts))
        return subtract(product, *args, split=split, counts=counts, **settings)

    monkeypatch.setattr(device_products, "subtract_positive", subtracting)
    problem = PROBLEMS["signed"].astype(np.float32)
    op = operator(problem, device=DEVICE, precision=precision)
    op._pass_over_almost_nothing()
    compiled = set(seen)
    seen.clear()
    U = op.asarray(factor(problem, 1))
    for V in (U, U.clone()):
        op.residual_product(U, V)
    op.loss(U)
    assert len(seen) == 3
    assert set(seen) <= compiled


def test_an_unknown_precision_is_refused():
    with pytest.raises(ValueError, match=r"precision must be .*'high'.*'fast'.* got 'hihg'"):
        operator(PROBLEMS["signed"], device=DEVICE, precision="hihg")


def test_a_fit_has_the_steps_of_the_cpu(pretended):
    M = sparse.csr_array(make_relu_gram(16, 2, shift=0.3, random_state=0)[0].astype(np.float32))
    settings = {"n_negative": 1, "diagonal": "ignore", "random_state": 0, "max_iter": 2, "tol": 0}
    found = decompose(M, 3, backend="cuda", precision="high", **settings)
    expected = decompose(M, 3, backend="sparse", **settings)
    assert type(found.U) is np.ndarray
    assert_allclose(found.history.objective, expected.history.objective, rtol=1e-4)
    assert found.n_evaluations == expected.n_evaluations


@pytest.fixture
def stages(monkeypatch):
    """The precision and the number of items of each stage of a fit, in their order."""
    noted, run = [], levels.run

    def noting(op, *arguments, **named):
        noted.append((getattr(op, "precision", None), op.n))
        return run(op, *arguments, **named)

    monkeypatch.setattr(levels, "run", noting)
    return noted


M32 = sparse.csr_array(make_relu_gram(16, 2, shift=0.3, random_state=0)[0].astype(np.float32))
FIT = {"n_negative": 1, "diagonal": "ignore", "random_state": 0, "backend": "cuda"}


@pytest.mark.parametrize(
    ("precision", "dtype", "expected"),
    [
        ("auto", np.float32, ["fast", "high"]),
        ("high", np.float32, ["high"]),
        ("fast", np.float32, ["fast", "high"]),
        ("auto", np.float64, ["high"]),
        ("fast", np.float64, ["high"]),
    ],
)
def test_far_from_the_end_a_fit_is_fast(precision, dtype, expected, pretended, stages):
    found = decompose(M32.astype(dtype), 3, precision=precision, max_iter=1, **FIT)
    assert stages == [(name, 16) for name in expected]
    assert found.relative_error == pytest.approx(
        metrics.relative_error(M32.astype(np.float64), found.U, found.signature, diagonal="ignore"), rel=1e-4
    )


def test_a_fast_fit_stops_at_its_noise_floor(pretended, stages, caplog):
    """And evaluates its factor exactly."""
    near = decompose(M32, 3, **{**FIT, "backend": "dense"}, tol=5e-3).U  # steps take long in an interpreter
    stages.clear()
    found = decompose(M32, 3, precision="fast", init=near, tol=1e-7, verbose=1, **FIT)
    assert stages == [("fast", 16), ("high", 16)]
    assert found.status is Status.ROUNDING
    assert found.n_iter == 0
    assert 1e-5 < found.relative_error < 2e-3
    assert "Relative errors below 0.001 are noise with precision='fast'" in caplog.text
    assert "level 1 (M, less exactly)" in caplog.text


@pytest.mark.parametrize(("precision", "coarse"), [("auto", "fast"), ("high", "high"), ("fast", "fast")])
def test_smaller_matrices_need_no_draft(precision, coarse, pretended, stages, monkeypatch):
    monkeypatch.setattr(levels, "FEWEST_ITEMS", 8)
    monkeypatch.setattr(levels, "_ITEMS_PER_COLUMN", 1)
    monkeypatch.setattr(levels, "_LOOSE", levels.Limits(max_iter=1))
    graph = sparse.csr_array(np.kron(np.eye(8), np.ones((3, 3), np.float32)).astype(np.float32))
    decompose(graph, 3, precision=precision, init="multilevel", max_iter=1, **FIT)
    draft = [("fast", 24)] if precision == "fast" else []
    of_M = [*draft, ("high", 24)]
    assert stages[-len(of_M) :] == of_M
    assert len(stages) > len(of_M)
    assert {name for name, _ in stages[: -len(of_M)]} == {coarse}


def test_a_draft_resumes(pretended, stages, tmp_path):
    whole = decompose(M32, 3, max_iter=1, **FIT)
    settings = {"checkpoint": Checkpoint(tmp_path / "fit.ckpt", every=0), **FIT}
    decompose(M32, 3, max_iter=1, callback=lambda progress: progress.level == 1, **settings)
    stages.clear()
    resumed = decompose(M32, 3, max_iter=1, **settings)
    assert stages[0] == ("fast", 16)
    assert_array_equal(resumed.U, whole.U)
    with pytest.raises(ValueError, match="precision"):
        decompose(M32, 3, precision="high", **settings)


def test_precision_is_for_gpus():
    with pytest.raises(ValueError, match=r"precision='fast' is for backend='cuda', .* backend='sparse'. Leave"):
        decompose(M32, 3, precision="fast")
    with pytest.raises(ValueError, match=r"precision must be one of 'auto', 'high', 'fast', got 'hihg'"):
        decompose(M32, 3, precision="hihg")


def test_a_matrix_on_another_gpu_is_refused(monkeypatch):
    monkeypatch.setattr(cuda, "check_cuda", lambda: None)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
    cuda.CudaOperator.check_device(0)
    with pytest.raises(ValueError, match=r"M is on GPU 1, .* is 0. Call torch.cuda.set_device\(1\) before"):
        cuda.CudaOperator.check_device(1)


@pytest.mark.skipif(not HAS_GPU, reason="there is no GPU")
def test_a_tensor_on_a_gpu_is_fitted_there(stages):
    tensor = torch.from_numpy(M32.toarray()).to_sparse().cuda()
    settings = {key: value for key, value in FIT.items() if key != "backend"}
    U0 = torch.rand((16, 3), device="cuda")
    found = decompose(tensor, 3, init=U0, precision="high", max_iter=2, **settings)
    assert stages == [("high", 16)]
    expected = decompose(M32, 3, init=U0.cpu().numpy(), backend="sparse", max_iter=2, **settings)
    assert_allclose(found.U, expected.U, rtol=1e-3, atol=1e-3)


def test_factors_that_are_too_large_are_refused_before_a_fit(pretended, monkeypatch):
    from symrelu.kernels import device_products

    monkeypatch.setattr(device_products, "_MOST_NUMBERS", 3000)
    M = sparse.csr_array(make_relu_gram(40, 2, shift=0.3, random_state=0)[0])
    for function in (decompose, estimate_cost):
        with pytest.raises(ValueError, match=r"got 40 x 17, padded to 32 columns. Use a rank of at most 16"):
            function(M, 17, backend="cuda")
        function(M, 3, backend="cuda")


@pytest.mark.parametrize("settings", [{}, {"always_lists": True}])
def test_tiles_that_do_not_fit_are_replaced_and_reported(settings, monkeypatch):
    from symrelu.kernels import device_lists, device_products

    def fail(*_, **__):
        raise cuda.OutOfResources(300_000, 200_000, "shared memory")

    problem = PROBLEMS["signed"].astype(np.float32)
    op, U = operator(problem, device=DEVICE, **settings), factor(problem, 1)
    expected = evaluate(op, U, U)
    monkeypatch.setattr(device_products, "subtract_positive", fail)
    monkeypatch.setattr(device_lists, "scan", fail)
    monkeypatch.setattr(one_time_warnings, "_already_warned", {})
    with pytest.warns(RuntimeWarning, match=rf"for rank {problem.rank} are too large for this GPU"):
        found = evaluate(op, U, U)
    assert_allclose(found.product, expected.product, rtol=0, atol=1e-5 * np.abs(expected.product).max())
    assert found.loss == pytest.approx(expected.loss, rel=1e-5)


def test_without_memory_a_fit_ends_with_the_factor_so_far(pretended, monkeypatch):
    M = sparse.csr_array(make_relu_gram(16, 2, shift=0.3, random_state=0)[0])
    settings = {"n_negative": 1, "random_state": 0, "backend": "cuda"}
    before = decompose(M, 3, max_iter=1, **settings)

    def fail(*_):
        raise torch.cuda.OutOfMemoryError("CUDA out of memory.")

    def exhaust(_):
        monkeypatch.setattr(torch.linalg, "cholesky_ex", fail)

    with pytest.raises(EvaluationFailed, match=r"The GPU has run out of memory.* Use a lower rank") as failure:
        decompose(M, 3, callback=exhaust, **settings)
    assert_allclose(failure.value.solution.U, before.U)


# Ways of a pass, and how many reads of a few numbers a step of LBFGS makes with it.
READS = {"all pairs": 11, "listed": 14, "blocks of rows": 11}


@pytest.mark.parametrize("way", READS)
def test_a_step_reads_few_numbers_and_no_factor(way, monkeypatch):
    dtype, settings, _ = WAYS[way]
    problem = PROBLEMS["signed"].astype(dtype)
    reads = transfers.of_a_step(operator(problem, device=DEVICE, **settings), start(problem), monkeypatch)
    assert max(size for _, size in reads) <= 16 < problem.n * problem.rank
    assert len(reads) <= READS[way], reads


@pytest.fixture
def count_waits():
    """A function that returns how often a piece of work waits for the GPU, by what torch says."""
    before = torch.cuda.get_sync_debug_mode()

    def count(work):
        torch.cuda.synchronize()
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            torch.cuda.set_sync_debug_mode("warn")
            work()
            torch.cuda.set_sync_debug_mode(before)
        return sum("synchronizing" in str(warning.message) for warning in said)

    yield count
    with warnings.catch_warnings(action="ignore"):  # torch says each time that this mode is new
        torch.cuda.set_sync_debug_mode(before)  # also if the work failed


@pytest.mark.skipif(not HAS_GPU, reason="no GPU")
@pytest.mark.parametrize("settings", [{}, {"always_lists": True}])
def test_a_step_rarely_waits_for_the_gpu(settings, count_waits):
    n, rank = 2000, 8
    rng = np.random.default_rng(0)
    M = self_tuning_graph(rng.random((n, 2)), 10).astype(np.float32)
    diagonal = sparse.eye_array(n, dtype=bool, format="csr")
    signature = np.where(np.arange(rank) < rank - 1, 1.0, -1.0)
    op, solver = cuda.CudaOperator(M, diagonal, signature=signature, **settings), LBFGS()
    U0 = rng.standard_normal((n, rank))
    U0 *= np.sqrt(op.norm / np.linalg.norm(U0.T @ U0))
    state = solver.step(op, solver.init(op, op.asarray(U0)))  # compiles
    assert count_waits(lambda: float(state.U[0, 0])), "torch does not report that it waits"
    waits = count_waits(lambda: solver.step(op, state))
    assert waits <= 40, f"a step waited {waits} times"


@pytest.mark.skipif(HAS_GPU, reason="there is a GPU")
def test_without_a_gpu_it_says_so_before_any_work():
    found = "finds no GPU" if torch.version.cuda else "is no build for CUDA"
    message = rf"needs an NVIDIA GPU, and torch .* {found}. Use backend='auto', or .*symrelu\[cuda\]"
    with pytest.raises(ValueError, match=message):
        decompose(None, 2, backend="cuda")


@pytest.mark.skipif(not HAS_GPU, reason="no GPU")
def test_a_dense_matrix_needs_no_lists():
    M = make_relu_gram(30, 2, shift=0.3, random_state=0)[0]
    settings = {"n_negative": 1, "random_state": 0}
    found = decompose(M, 3, backend="cuda", **settings)
    assert found.relative_error == pytest.approx(decompose(M, 3, **settings).relative_error, abs=1e-4)
