"""Which files can be read in parts."""

import pytest

from symrelu.graphs.parts import open_parts


@pytest.mark.parametrize(("name", "is_list"), [("a.csv", True), ("a.txt.gz", True), ("a.mtx", False)])
def test_lists_and_matrices(tmp_path, name, is_list):
    (tmp_path / name).write_text("")
    found = open_parts(tmp_path / name, {"weight": None})
    assert found.is_list == is_list
    assert not found.weighted


def test_other_files_are_refused(tmp_path):
    (tmp_path / "a.graphml").write_text("")
    with pytest.raises(ValueError, match=r"to be read in parts, got \.graphml"):
        open_parts(tmp_path / "a.graphml", {})
    with pytest.raises(FileNotFoundError, match="does not exist"):
        open_parts(tmp_path / "a.csv", {})
    (tmp_path / "a.mtx").write_text("")
    with pytest.raises(ValueError, match="source= has no meaning"):
        open_parts(tmp_path / "a.mtx", {"source": 1})
