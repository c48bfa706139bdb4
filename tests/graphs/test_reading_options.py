"""Options of reading, and formats that have them."""

import zipfile
from pathlib import Path

import pytest

from symrelu.graphs.reading_options import extension_of, options_of


def test_what_was_chosen():
    assert options_of().chosen() == []
    assert options_of(weight=None).chosen() == []
    assert not options_of(weight=None).weighted
    given = {
        "source": 1,
        "target": 2,
        "weight": 3,
        "delimiter": ";",
        "header": True,
        "decimal": ",",
        "key": "A",
    }
    assert sorted(options_of(**given).chosen()) == sorted(given)


@pytest.mark.parametrize(
    ("name", "extension"), [("a.csv", ".csv"), ("a.b.CSV", ".csv"), ("a.csv.gz", ".csv"), ("a.npz", ".npz")]
)
def test_extensions(tmp_path, name, extension):
    Path(tmp_path, name).write_bytes(b"")
    assert extension_of(tmp_path / name, options_of()) == extension


def test_an_option_without_a_meaning(tmp_path):
    Path(tmp_path, "a.parquet").write_bytes(b"")
    with pytest.raises(ValueError, match=r"decimal= has no meaning for a \.parquet file, only for \.csv"):
        extension_of(tmp_path / "a.parquet", options_of(decimal=","))


def test_a_workbook_is_named_for_what_it_is(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.xlsx", "w") as archive:
        archive.writestr("xl/workbook.xml", "")
    with pytest.raises(ValueError, match=r"but it is an Excel workbook\. .* save the list of edges as CSV"):
        extension_of(tmp_path / "a.xlsx", options_of())
    (tmp_path / "b.xlsx").write_text("a,b\n")
    with pytest.raises(ValueError, match=r"must be one of \.csv.* Got the extension '\.xlsx'"):
        extension_of(tmp_path / "b.xlsx", options_of())
