"""Parameters of docstrings: read as numpydoc reads them, and put back unchanged."""

import inspect
import warnings

import pytest
import scipy.linalg
import sklearn.cluster
from hypothesis import given
from hypothesis import strategies as st

import symrelu
from symrelu.fit.docstrings import Entry, read_parameters, with_parameters

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    NumpyDocString = pytest.importorskip("numpydoc.docscrape").NumpyDocString

DOCUMENTED = {
    "decompose": symrelu.decompose,
    "SymReLU": symrelu.SymReLU,
    "LinkPredictor": symrelu.LinkPredictor,
    "Checkpoint": symrelu.Checkpoint,
    "select_rank": symrelu.select_rank,
    "scipy.linalg.solve": scipy.linalg.solve,
    "scipy.linalg.qr": scipy.linalg.qr,
    "DBSCAN": sklearn.cluster.DBSCAN,
}


def parameters_by_numpydoc(doc):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return NumpyDocString(doc)["Parameters"]


@pytest.mark.parametrize("name", DOCUMENTED)
def test_entries_are_those_of_numpydoc(name):
    doc = inspect.getdoc(DOCUMENTED[name])
    expected = {
        parameter: (entry.type, [line.strip() for line in entry.desc])
        for entry in parameters_by_numpydoc(doc)
        for parameter in entry.name.split(", ")
    }
    found = {
        parameter: (entry.kind, [line.strip() for line in "\n".join(entry.lines).strip().splitlines()])
        for parameter, entry in read_parameters(doc).items()
    }
    assert found == expected


@pytest.mark.parametrize("name", DOCUMENTED)
def test_what_was_read_goes_back_to_the_same_place(name):
    doc = inspect.getdoc(DOCUMENTED[name])
    again = with_parameters(doc, read_parameters(doc).values())
    assert read_parameters(again) == read_parameters(doc)
    assert [line for line in again.splitlines() if line] == [
        line.rstrip() for line in doc.splitlines() if line.strip()
    ]


WORDS = st.text("abcdefgh", min_size=1, max_size=8)
ENTRIES = st.lists(
    st.builds(Entry.of, WORDS, st.sampled_from(["", "int", "float, default=1"]), st.just("What it is.")),
    min_size=1,
    max_size=4,
    unique_by=lambda entry: entry.names,
)


@given(
    entries=ENTRIES,
    before=st.sampled_from(["Fit.", "Fit.\n\nAt length."]),
    after=st.booleans(),
    has=st.booleans(),
)
def test_entries_that_are_put_in_are_read_out(entries, before, after, has):
    doc = before
    doc += "\n\nParameters\n----------\nold : int\n    Text.\n" if has else "\n"
    doc += "\nReturns\n-------\nnothing\n" if after else ""
    written = with_parameters(doc, entries)
    assert list(read_parameters(written).values()) == entries
    assert written.startswith(before)
    assert written.endswith("nothing") == after
    assert "old" not in written


@given(words=st.lists(WORDS, min_size=1, max_size=60))
def test_a_description_is_wrapped_and_keeps_its_words(words):
    text = " ".join(words)
    entry = Entry.of("name", "int", text)
    assert " ".join(entry.lines) == text
    assert all(len(line) <= 108 for line in entry.lines)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("One. Two.", "One"),
        ("Up to 0.5 of them. More.", "Up to 0.5 of them"),
        ("With ``code``. More.", "With code"),
        ("No full stop", "No full stop"),
        ("At the end.", "At the end"),
    ],
)
def test_the_first_sentence(text, sentence):
    assert Entry.of("name", "", text).first_sentence == sentence


def test_several_parameters_of_one_entry():
    doc = "Fit.\n\nParameters\n----------\nU, V : array\n    Factors.\ntol : float\n"
    entries = read_parameters(doc)
    assert entries["U"] is entries["V"]
    assert list(entries) == ["U", "V", "tol"]
    assert with_parameters(doc, entries.values()) == doc.rstrip()


def test_without_parameters_nothing_is_read():
    assert read_parameters("Fit.") == {}
    assert read_parameters("Fit.\n\nReturns\n-------\nnothing") == {}
