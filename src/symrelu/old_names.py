"""Public names of 0.1.0 that live elsewhere now. They work until 0.3.0, with a warning that names the new home.

The modules they were in are gone. A stand-in for each is put into ``sys.modules``, so that ``import``,
``from ... import`` and attributes of ``symrelu`` all work as they did. This file can be deleted as a whole.
"""

import sys
import warnings
from importlib import import_module
from types import ModuleType
from typing import Any

# Old module -> name -> where it is now.
MOVED = {
    "checkpoint": {"Checkpoint": "symrelu"},
    "linkage": {
        "Tree": "symrelu.fitted",
        "average_linkage": "symrelu.fitted",
        "average_linkage_of_factor": "symrelu.fitted",
    },
    "loop": {"Limits": "symrelu.fit.settings", "Progress": "symrelu.fit.loop"},
    "selection": {"RankSelection": "symrelu", "select_rank": "symrelu"},
    "solution": {"History": "symrelu", "Solution": "symrelu", "Status": "symrelu"},
    "start": {"start": "symrelu.fit.starts"},
}


class _MovedModule(ModuleType):
    """A module that holds nothing any more but knows where its names went."""

    def __init__(self, name: str, homes: dict[str, str]) -> None:
        super().__init__(name, f"Moved: {', '.join(f'{home}.{of}' for of, home in homes.items())}.")
        self.__homes = homes

    def __getattr__(self, name: str) -> Any:
        if name not in self.__homes:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        home = self.__homes[name]
        warnings.warn(
            f"{self.__name__}.{name} has moved and will be gone from here in symrelu 0.3.0. "
            f"Use {home}.{name} instead.",
            DeprecationWarning,
            stacklevel=2,  # the line that asked
        )
        return getattr(import_module(home), name)

    def __dir__(self) -> list[str]:
        return sorted(self.__homes)


def install() -> None:
    """Put a stand-in for each old module where Python looks for it."""
    package = sys.modules["symrelu"]
    for old, homes in MOVED.items():
        module = _MovedModule(f"symrelu.{old}", homes)
        sys.modules[module.__name__] = module
        setattr(package, old, module)
