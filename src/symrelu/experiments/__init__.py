"""The paper's experiments: cells that are stored as they end, tables, figures and a page.

A :class:`Cell` is one fit: a case (the matrix), a method, a rank, a seed and limits. :func:`reproduce` runs the
cells of an :class:`Experiment` that are not stored yet and writes what is made of them. An experiment is a file
of this package that registers a function; ``EXPERIMENTS`` has them all by name (see ``registry``).
"""

from collections.abc import Mapping
from importlib import import_module
from pkgutil import iter_modules

from symrelu.experiments.ablation import Ablation
from symrelu.experiments.cells import Cell, CellResult, CellStore, Monitor, run_cells
from symrelu.experiments.experiment import Experiment, reproduce
from symrelu.experiments.real import Real, find_data_sets
from symrelu.experiments.registry import REGISTERED, MakeExperiment
from symrelu.experiments.signed import Signed, find_signed_data
from symrelu.experiments.synthetic import Synthetic

for _module in iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")  # where there is an experiment in it, it registers

EXPERIMENTS: Mapping[str, MakeExperiment] = dict(sorted(REGISTERED.items()))

__all__ = [
    "EXPERIMENTS",
    "Ablation",
    "Cell",
    "CellResult",
    "CellStore",
    "Experiment",
    "Monitor",
    "Real",
    "Signed",
    "Synthetic",
    "find_data_sets",
    "find_signed_data",
    "reproduce",
    "run_cells",
]
