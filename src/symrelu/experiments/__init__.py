"""The paper's experiments: stored fits, and the tables, figures and page made from them.

A :class:`Cell` is one fit: a case (the matrix), a method, a rank, a seed and limits. :func:`reproduce` runs the
cells of an :class:`Experiment` that are not stored yet, then writes its tables, figures and page. Each
experiment is a module of this package that registers a function; ``EXPERIMENTS`` maps the names to these
functions (see ``registry``).
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

# Importing a module registers the experiment that it defines, so that a new experiment needs no entry here.
for _module in iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")

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
