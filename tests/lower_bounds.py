"""Print the lowest versions that pyproject.toml allows, as constraints for pip.

Usage: python tests/lower_bounds.py EXTRA... > constraints.txt
"""

import re
import sys
import tomllib
from pathlib import Path

PYPROJECT = Path(__file__).parents[1] / "pyproject.toml"
REQUIREMENT = re.compile(r"(?P<name>[\w.-]+)(\[(?P<extras>[\w,-]+)\])?((>=|==)(?P<version>[\w.]+))?")


def requirements(project, extra=None):
    """Yield the name and the lowest version of the dependencies, or of those of an extra."""
    lines = project["dependencies"] if extra is None else project["optional-dependencies"][extra]
    for line in lines:
        parts = REQUIREMENT.fullmatch(line)
        if parts is None:
            raise ValueError(f"a requirement must have the form name>=version, got {line!r}")
        if parts["name"] == project["name"]:
            for inner in parts["extras"].split(","):
                yield from requirements(project, inner)
        elif parts["version"] is None:
            raise ValueError(f"every requirement must have a lower bound, got {line!r}")
        else:
            yield parts["name"], parts["version"]


def lower_bounds(extras, path=PYPROJECT):
    """Return the lowest version of each package, for the dependencies and some extras."""
    project = tomllib.loads(path.read_text(encoding="utf-8"))["project"]
    bounds = {}
    for extra in (None, *extras):
        for name, version in requirements(project, extra):
            if bounds.setdefault(name, version) != version:
                raise ValueError(f"{name} has two lower bounds, {bounds[name]} and {version}")
    return bounds


if __name__ == "__main__":
    for package, lowest in lower_bounds(sys.argv[1:]).items():
        sys.stdout.write(f"{package}=={lowest}\n")
