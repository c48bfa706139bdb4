"""Trouble is reported once in a process, and never ends a fit."""

import logging
import warnings
from concurrent.futures import ThreadPoolExecutor

import pytest

from symrelu.kernels import one_time_warnings
from symrelu.kernels.one_time_warnings import warn_once, warn_or_log


@pytest.fixture(autouse=True)
def _nothing_told(monkeypatch):
    monkeypatch.setattr(one_time_warnings, "_already_warned", {})


def shown(report):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        report()
    return [(warning.category, str(warning.message)) for warning in caught]


def test_one_warning_of_each_kind():
    def report():
        for message in ("first", "second"):
            warn_once("threads", message)
            warn_once("cache", message.upper())

    assert shown(report) == [(RuntimeWarning, "first"), (RuntimeWarning, "FIRST")]


def test_the_warning_points_at_whoever_called_the_reporting_function():
    def reporting():
        warn_once("threads", "text")

    with pytest.warns(RuntimeWarning, match="text") as caught:
        reporting()
    assert caught[0].filename == __file__


def test_another_category_and_another_caller():
    def helper():
        warn_once("new", "text", FutureWarning, stacklevel=1)  # points to this line

    with pytest.warns(FutureWarning, match="text") as caught:
        helper()
    assert caught[0].filename == __file__
    assert caught[0].lineno == helper.__code__.co_firstlineno + 1
    assert shown(helper) == []


def test_of_many_threads_one_reports():
    with ThreadPoolExecutor(8) as pool:
        told = shown(lambda: list(pool.map(lambda _: warn_once("threads", "text"), range(200))))
    assert len(told) == 1


def test_where_warnings_are_errors_the_logger_gets_the_message(caplog):
    with warnings.catch_warnings(), caplog.at_level(logging.WARNING, logger="symrelu"):
        warnings.simplefilter("error")
        warn_once("threads", "no threads")
        warn_once("threads", "no threads")
    assert [(record.name, record.getMessage()) for record in caplog.records] == [("symrelu", "no threads")]


@pytest.mark.parametrize("level", [logging.WARNING, logging.ERROR])
@pytest.mark.parametrize("category", [RuntimeWarning, UserWarning])
def test_a_warning_that_is_an_error_is_logged_at_the_level_asked_for(category, level, caplog):
    with pytest.warns(category, match="text") as caught:
        warn_or_log("text", category, level=level, stacklevel=1)
    assert caught[0].filename == __file__
    assert not caplog.records
    with warnings.catch_warnings(), caplog.at_level(level, logger="symrelu"):
        warnings.simplefilter("error")
        warn_or_log("text", category, level=level, stacklevel=1)
    assert [(record.levelno, record.getMessage()) for record in caplog.records] == [(level, "text")]
