"""Fixtures of the experiments."""

import pytest

from symrelu.experiments import Cell


@pytest.fixture
def fits(monkeypatch):
    """Count the fits that are made."""
    made = []
    original = Cell.fit

    def counted(cell, callback=None):
        made.append(cell)
        return original(cell, callback)

    monkeypatch.setattr(Cell, "fit", counted)
    return made
