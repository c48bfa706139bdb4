"""Which versions and which machine gave a number."""

import os
import platform
import sys

import numba
import numpy
import pytest
import scipy
import sklearn

import symrelu
from symrelu.experiments import environment
from symrelu.experiments.environment import describe_environment

pytestmark = pytest.mark.blas_threads


@pytest.fixture
def described():
    describe_environment.cache_clear()
    yield describe_environment
    describe_environment.cache_clear()


def test_versions_are_those_that_are_loaded(described):
    modules = {"symrelu": symrelu, "numpy": numpy, "scipy": scipy, "scikit-learn": sklearn, "numba": numba}
    for name, module in modules.items():
        assert described()[name] == module.__version__
    assert described()["Python"] == ".".join(map(str, sys.version_info[:3]))


def test_everything_is_a_text_of_one_line(described):
    for name, value in described().items():
        assert name
        assert value
        assert len(value.splitlines()) == 1


def test_blas_libraries_are_named_once_loaded(described, monkeypatch):
    pools = [
        {"user_api": "openmp", "internal_api": "openmp", "version": None},
        {"user_api": "blas", "internal_api": "openblas", "version": "0.3.30"},
        {"user_api": "blas", "internal_api": "mkl", "version": "2025.1"},
    ]
    monkeypatch.setattr(environment, "threadpool_info", lambda: pools)
    assert described()["BLAS"] == "mkl 2025.1, openblas 0.3.30"
    described.cache_clear()
    monkeypatch.setattr(environment, "threadpool_info", list)
    assert described()["BLAS"] == "unknown"


def test_cores_are_those_that_may_be_used(described, monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 5, 7}, raising=False)
    assert described()["processor"].endswith(", 3 cores")


def test_a_system_without_a_list_of_processors(described, monkeypatch):
    def missing(*args, **kwargs):
        raise FileNotFoundError

    monkeypatch.setattr(environment, "open", missing, raising=False)
    monkeypatch.setattr(platform, "processor", lambda: "arm")
    assert described()["processor"].startswith("arm, ")
    described.cache_clear()
    monkeypatch.setattr(platform, "processor", lambda: "")
    assert described()["processor"].startswith("unknown processor, ")
