from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import report_pages
from numpy.testing import assert_allclose, assert_array_equal

from symrelu.fitted.history import History, Record
from symrelu.report.columns import Column
from symrelu.report.contents import Contents, course_of, fit_to_size, size_limit
from symrelu.report.neighbors import Links
from symrelu.report.summary import Summary


def contents(n=300, length=5):
    """Nodes on a ring with links to the 20 next ones, the nearest the strongest."""
    i = np.repeat(np.arange(n), 20)
    j = (i + np.tile(np.arange(1, 21), n)) % n
    weights = np.tile(np.arange(20, 0, -1.0), n)
    low, high = np.minimum(i, j), np.maximum(i, j)
    order = np.lexsort((high, low))
    return Contents(
        title="ring",
        version="1",
        summary=Summary((), (), ()),
        names=[f"{k:0{length}d}" for k in range(n)],
        has_names=True,
        positions=np.random.default_rng(0).random((n, 2)),
        links=Links(n, low[order], high[order], weights[order]),
        columns=[Column.of("degree", [40] * n)],
        colour="degree",
        curve=None,
        spectrum=np.array([2.0, -1.0]),
        matrices=(np.eye(3), np.full((3, 3), 0.1)),
        matrix_titles=("M", "model"),
    )


def test_data_are_read_back():
    given = contents()
    data = given.data()
    assert data["names"] == given.names
    assert data["spectrum"] == [2.0, -1.0]
    pairs = list(zip(given.links.i.tolist(), given.links.j.tolist(), strict=True))
    assert report_pages.links(data) == pairs
    assert report_pages.column(data, "degree") == ["40"] * 300
    first, second = (report_pages.numbers(cells, np.uint8) for cells in data["matrices"]["cells"])
    assert_array_equal(first, np.where(np.eye(3).ravel(), 255, 0))
    assert_array_equal(second, 1 + round(254 * 2 / 3))  # one decade of three below the largest
    places = report_pages.numbers(data["positions"], "<u2").reshape(-1, 2) / 65535
    assert_allclose(np.ptp(places, axis=0).max(), 1)


def bytes_of(page, around=0):
    return around + len(page.json()) + sum(map(len, page.notes))


def test_a_small_page_keeps_all_links():
    given = contents()
    assert fit_to_size(given, bytes_of) is given


@pytest.mark.parametrize(("spare", "most"), [(60_000, 10), (27_000, 5), (20_000, 3), (12_500, 0)])
def test_links_are_left_out_until_the_page_is_small_enough(spare, most):
    given = contents(3000)
    around = size_limit(3000) - spare - bytes_of(replace(given, links=given.links.strongest(0)))
    found = fit_to_size(given, partial(bytes_of, around=around))
    assert found.most_neighbors == most
    assert bytes_of(found, around) <= size_limit(3000)
    kept = len(report_pages.links(found.data()))
    assert kept == given.links.strongest(most).i.size
    words = "the links are left out" if most == 0 else f"the {most} strongest"
    (note,) = found.notes
    assert words in note


def test_a_page_of_long_names_says_that_it_is_large():
    given = contents(300, length=4000)
    found = fit_to_size(given, bytes_of)
    assert found.names == given.names
    assert found.most_neighbors == 0
    assert "This page has 1.2 MB, more than the usual 1.0 MB" in found.notes[-1]


def test_notes_count():
    given = contents(3000)
    limited = given.limited(10)
    room = size_limit(3000) - len(limited.json())
    assert fit_to_size(given, partial(bytes_of, around=room - len(limited.notes[0]))).most_neighbors == 10
    assert fit_to_size(given, partial(bytes_of, around=room)).most_neighbors == 5


def test_limits():
    assert size_limit(1) == size_limit(20_000) == 1_000_000
    assert size_limit(100_000) == 5_000_000


def test_the_curve_is_that_of_the_history(models):
    history = models["Solution"].history
    curve = course_of(models["Solution"], history)
    assert curve["x"] == history.evaluations.tolist()
    assert_allclose(curve["y"], history.relative_error, rtol=1e-4)


def test_a_long_history_is_thinned():
    rows = [Record(k, k, 0.0, 1 / (k + 1), 0.0, 0.0, 0.0) for k in range(5000)]
    curve = course_of(None, History.from_records(rows))
    assert len(curve["x"]) == 200
    assert (curve["x"][0], curve["x"][-1]) == (0, 4999)


def test_errors_that_no_logarithm_has_are_left_out():
    rows = [Record(k, k, 0.0, error, 0.0, 0.0, 0.0) for k, error in enumerate([1.0, np.nan, 0.0, 0.5])]
    assert course_of(None, History.from_records(rows))["x"] == [0, 3]
    assert course_of(None, History.from_records(rows[1:3])) is None
    assert course_of(None, None) is None


def test_the_course_of_a_search(models):
    model = models["NeighborEmbedding"]
    curve = course_of(model, None)
    attempts = sorted((attempt.rank, attempt.wrong_pairs) for attempt in model.attempts_)
    assert list(zip(curve["x"], curve["y"], strict=True)) == attempts
