"""Public names of 0.1.0 that have moved. They work until 0.3.0, with a warning that gives the new path.

The old modules no longer exist. A stand-in for each is put into ``sys.modules``, so that ``import``,
``from ... import`` and attributes of ``symrelu`` all work as before. In 0.3.0 this file can simply be deleted.
"""

import sys
import warnings
from importlib import import_module
from types import ModuleType
from typing import Any

# Old module -> name -> new path.
MOVED = {
    "checkpoint": {"Checkpoint": "symrelu.Checkpoint"},
    "linkage": {
        "Tree": "symrelu.fitted.Tree",
        "average_linkage": "symrelu.fitted.average_linkage",
        "average_linkage_of_factor": "symrelu.fitted.average_linkage_of_factor",
    },
    "loop": {"Limits": "symrelu.fit.settings.Limits", "Progress": "symrelu.fit.loop.FitProgress"},
    "selection": {"RankSelection": "symrelu.RankSelection", "select_rank": "symrelu.select_rank"},
    "solution": {"History": "symrelu.History", "Solution": "symrelu.Solution", "Status": "symrelu.Status"},
    "start": {"start": "symrelu.fit.starts.start"},
}


class _MovedModule(ModuleType):
    """A stand-in for an old module that forwards its names to their new paths."""

    def __init__(self, name: str, paths: dict[str, str]) -> None:
        super().__init__(name, f"Moved: {', '.join(paths.values())}.")
        self.__paths = paths

    def __getattr__(self, name: str) -> Any:
        if name not in self.__paths:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        path = self.__paths[name]
        warnings.warn(
            f"{self.__name__}.{name} is deprecated and will be removed in symrelu 0.3.0. Use {path} instead.",
            DeprecationWarning,
            stacklevel=2,  # the line that uses the old name
        )
        home, _, new_name = path.rpartition(".")
        return getattr(import_module(home), new_name)

    def __dir__(self) -> list[str]:
        return sorted(self.__paths)


def install() -> None:
    """Register a stand-in for each old module in ``sys.modules`` and in the package."""
    package = sys.modules["symrelu"]
    for old, paths in MOVED.items():
        module = _MovedModule(f"symrelu.{old}", paths)
        sys.modules[module.__name__] = module
        setattr(package, old, module)  # import does not, if it finds the module in sys.modules
