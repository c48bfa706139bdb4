"""Pages to use in a browser. They run with `make test-browser` only."""

import os

import pytest
from browser_page import write_page
from chromium import browser_paths, complaints, emulate, resize, started


def pytest_collection_modifyitems(items):
    if not os.environ.get("SYMRELU_BROWSER"):
        reason = pytest.mark.skip(reason="uses Chromium: run `make test-browser`")
        for item in items:
            if "browser" in item.path.parts:
                item.add_marker(reason)


@pytest.fixture(scope="session")
def page_file(tmp_path_factory):
    return write_page(tmp_path_factory.mktemp("page") / "page.html")


@pytest.fixture(scope="session")
def browser():
    assert all(browser_paths()), "Chromium and chromedriver must be in PATH"
    with started() as driver:
        yield driver


@pytest.fixture
def page(browser, page_file):
    """The page, opened anew at desktop width; whatever it complains of fails the test."""
    resize(browser, 1300, 900)
    emulate(browser, "prefers-color-scheme", "light")
    complaints(browser)  # those of the page before
    browser.get(page_file.as_uri())
    assert browser.execute_script("return document.documentElement.dataset.ready") is not None
    yield browser
    assert complaints(browser) == []
