"""Between op.asarray and op.to_numpy, nothing of NumPy touches a factor: a spy tells."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from helpers import OPERATORS, PROBLEMS, SOLVERS, Problem, on_host, start
from numpy.testing import assert_allclose, assert_array_equal

from symrelu import PALM, decompose, operators
from symrelu.datasets import make_relu_gram
from symrelu.fit import loop
from symrelu.fit.settings import Limits
from symrelu.fit.starts import STARTS, count_negative
from symrelu.fit.starts import start as starting_factor
from symrelu.operators import ReferenceOperator
from symrelu.solvers.base import State, confirmed

array_api_strict = pytest.importorskip("array_api_strict")

from strict_operator import StrictOperator  # noqa: E402


class TouchedByNumPy(TypeError):
    """A factor was taken for an array of NumPy."""


def refuse(how):
    def method(self, *_, **__):
        raise TouchedByNumPy(f"NumPy touched a factor by {how}. Use op.xp, or op.to_numpy at the border.")

    return method


def unwrapped(value: Any) -> Any:
    if isinstance(value, SpyArray):
        return value._values
    if isinstance(value, (np.ndarray, np.generic)):
        raise TouchedByNumPy("A factor met an array of NumPy. Use op.asarray at the border.")
    if isinstance(value, (list, tuple)):
        return type(value)(map(unwrapped, value))
    return value


def wrapped(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(map(wrapped, value))
    return SpyArray(value) if isinstance(value, (np.ndarray, np.generic)) else value


def spied(function: Any) -> Any:
    """Return a function of NumPy arrays as one of spies."""

    def call(*args: Any, **kwargs: Any) -> Any:
        kwargs.pop("device", None)
        named = {name: unwrapped(value) for name, value in kwargs.items()}
        return wrapped(function(*map(unwrapped, args), **named))

    return call


class SpyArray:
    """An array with what the array API standard has, written to by nobody."""

    device = "where NumPy is not"

    def __init__(self, values: Any) -> None:
        self._values = np.asarray(values)
        self._values.flags.writeable = False

    dtype = property(lambda self: self._values.dtype)
    shape = property(lambda self: self._values.shape)
    ndim = property(lambda self: self._values.ndim)
    size = property(lambda self: self._values.size)
    T = property(lambda self: SpyArray(self._values.T))
    mT = property(lambda self: SpyArray(self._values.mT))

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"Arrays of the standard have no {name!r}, which is NumPy's. Use op.xp.")

    def __getitem__(self, key: Any) -> SpyArray:
        return SpyArray(self._values[unwrapped(key)])

    def _number(self) -> Any:
        if self.size != 1:
            raise TouchedByNumPy("A factor was taken for a number of NumPy or of Python. Use op.xp.")
        return self._values.item()

    def __float__(self) -> float:
        return float(self._number())

    def __int__(self) -> int:
        return int(self._number())

    def __bool__(self) -> bool:
        return bool(self._number())

    __setitem__ = refuse("assignment to a part of it")
    __iter__ = refuse("iteration")
    __array__ = refuse("np.asarray")
    __array_ufunc__ = refuse("a universal function")
    __array_function__ = refuse("one of its functions")
    __array_interface__ = property(refuse("its interface"))


for name in ("add", "sub", "mul", "truediv", "floordiv", "pow", "matmul", "mod", "and_", "or_", "xor"):
    forward = getattr(operator, name)
    setattr(SpyArray, f"__{name.strip('_')}__", spied(forward))
    setattr(SpyArray, f"__r{name.strip('_')}__", spied(lambda a, b, forward=forward: forward(b, a)))
for name in ("lt", "le", "gt", "ge", "eq", "ne", "neg", "pos", "abs", "invert"):
    setattr(SpyArray, f"__{name}__", spied(getattr(operator, name)))


class Namespace:
    """The functions of NumPy that the standard has, as functions of spies."""

    def __init__(self, numpy: Any, standard: Any) -> None:
        self._numpy, self._standard = numpy, standard

    def __getattr__(self, name: str) -> Any:
        if not hasattr(self._standard, name):
            raise AttributeError(f"The array API standard has no {name!r}.")
        found = getattr(self._numpy, name)
        return spied(found) if callable(found) and not isinstance(found, type) else found


spy = Namespace(np, array_api_strict)
spy.linalg = Namespace(np.linalg, array_api_strict.linalg)


class SpyOperator(ReferenceOperator):
    """The formulas on spies."""

    xp = spy

    def asarray(self, A: np.ndarray) -> Any:
        return SpyArray(np.array(A, self.dtype))

    def to_numpy(self, A: Any) -> np.ndarray:
        return np.array(A._values)


def spying(problem: Problem) -> SpyOperator:
    return SpyOperator(problem.M, ~problem.unknown, **problem.settings())


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("label", ["plain", "dense data", "everything"])
def test_solvers_touch_no_factor(solver, label):
    problem, method = PROBLEMS[label], SOLVERS[solver]
    op, plain = spying(problem), OPERATORS["reference"](problem)
    state, expected = method.init(op, op.asarray(start(problem))), method.init(plain, start(problem))
    for _ in range(5):
        state, expected = method.step(op, state), method.step(plain, expected)
    assert isinstance(state.U, SpyArray)
    assert_allclose(on_host(op, state).U, expected.U, rtol=1e-9, atol=1e-9)
    assert confirmed(op, state).gradient_norm == pytest.approx(confirmed(plain, expected).gradient_norm)


@pytest.mark.parametrize("init", STARTS)
@pytest.mark.parametrize("label", ["plain", "everything"])
def test_starts_touch_no_factor(init, label):
    op, plain = spying(PROBLEMS[label]), OPERATORS["reference"](PROBLEMS[label])
    U0 = starting_factor(op, init, 0)
    assert isinstance(U0, SpyArray)
    assert_array_equal(op.to_numpy(U0), starting_factor(plain, init, 0))
    assert count_negative(op, 0) == count_negative(plain, 0)


@pytest.mark.parametrize("solver", SOLVERS)
def test_the_loop_touches_no_factor(solver):
    problem = PROBLEMS["plain"]
    op, limits = spying(problem), Limits(tol=0, gtol=1e-1, ftol=0.5, max_iter=25)
    ours = loop.run(op, SOLVERS[solver], op.asarray(start(problem)), limits)
    expected = loop.run(OPERATORS["reference"](problem), SOLVERS[solver], start(problem), limits)
    assert type(ours.U) is np.ndarray
    assert (ours.status, ours.n_iter) == (expected.status, expected.n_iter)
    assert_allclose(ours.U, expected.U, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("solver", ["aapb", "eigen", "lbfgs", "palm"])
@pytest.mark.parametrize("kind", [SpyOperator, StrictOperator])
def test_a_checkpoint_crosses_the_border(kind, solver, tmp_path, monkeypatch):
    """All of decompose: start, loop, checkpoint and callback."""
    monkeypatch.setattr(operators, "operator_class", lambda _: kind)
    M, _ = make_relu_gram(30, 3, shift=0.1, random_state=0)
    settings = {"solver": solver, "n_negative": "auto", "tol": 0, "gtol": 0, "ftol": 0, "random_state": 0}
    seen = []
    whole = decompose(M, 4, backend="reference", max_iter=9, **settings, callback=seen.append)
    for max_iter in (4, 9):
        path = tmp_path / "fit.ckpt"
        parts = decompose(M, 4, backend="reference", max_iter=max_iter, checkpoint=path, **settings)
    assert_array_equal(parts.U, whole.U)
    assert parts.n_evaluations == whole.n_evaluations
    assert type(whole.U) is type(seen[-1].U) is np.ndarray
    assert type(whole.signature) is type(seen[-1].signature) is np.ndarray


def assign(U):
    U[U > 0] = 0


MISTAKES = {
    "np.sum": np.sum,
    "np.linalg.norm": np.linalg.norm,
    "np.asarray": np.asarray,
    "np.sqrt": np.sqrt,
    "np.isfinite": np.isfinite,
    "sum": lambda U: U.sum(),
    "copy": lambda U: U.copy(),
    "astype": lambda U: U.astype(float),
    "mask": assign,
    "iteration": list,
    "float": float,
    "array on the right": lambda U: U + np.ones(U.shape),
    "array on the left": lambda U: np.ones(U.shape) * U,
    "number on the left": lambda U: np.float64(2) * U,
    "columns": lambda U: U[:, np.array([0, 1])],
    "xp.hstack": lambda U: spy.hstack([U, U]),
    "xp.where": lambda U: spy.where(np.ones(U.shape, bool), U, U),
}


@dataclass(frozen=True)
class Clumsy:
    """A solver that makes a mistake."""

    mistake: str

    def init(self, op: Any, U0: Any) -> State:
        return PALM().init(op, U0)

    def step(self, op: Any, state: Any) -> State:
        MISTAKES[self.mistake](state.U)
        return PALM().step(op, state)


@pytest.mark.parametrize("mistake", MISTAKES)
def test_the_spy_catches(mistake):
    problem = PROBLEMS["plain"]
    op, solver = spying(problem), Clumsy(mistake)
    state = solver.init(op, op.asarray(start(problem)))
    with pytest.raises((TouchedByNumPy, AttributeError), match=r"NumPy|standard"):
        solver.step(op, state)


def test_numbers_of_one_element_are_numbers():
    one = SpyArray(np.array([[2.5]]))
    assert (float(one), int(one), bool(one)) == (2.5, 2, True)
