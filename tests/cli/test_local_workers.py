"""``--workers`` is checked before workers are started."""

import pytest

from symrelu.cli.local_workers import running_workers


def test_nothing_is_started_without_a_number():
    settings = {"client": None, "backend": "auto"}
    with running_workers(None, settings):
        assert settings == {"client": None, "backend": "auto"}


@pytest.mark.parametrize(
    ("count", "settings", "reason"),
    [
        (0, {"client": None, "backend": "auto"}, "--workers must be"),
        (2, {"client": "tcp://x", "backend": "auto"}, "pass one of them"),
        (2, {"client": None, "backend": "sparse"}, "--workers is for --backend dask"),
    ],
)
def test_contradictions_are_refused(count, settings, reason):
    with pytest.raises(ValueError, match=reason), running_workers(count, settings):
        raise AssertionError("started")
