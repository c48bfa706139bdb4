"""The examples of a page run in a folder of their own, with the file that the pages use."""

import os
import shutil
from pathlib import Path

import pytest

os.environ.setdefault("MPLBACKEND", "Agg")  # no windows
DATA = Path(__file__).parents[1] / "examples/les_miserables.csv"


@pytest.fixture(autouse=True)
def folder_of_the_reader(tmp_path, monkeypatch):
    """Go to an empty folder that holds les_miserables.csv, as a reader does."""
    monkeypatch.chdir(tmp_path)
    shutil.copy(DATA, tmp_path)
