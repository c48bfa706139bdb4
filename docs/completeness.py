"""What a page that claims to be complete leaves out, for ``make docs`` and for the tests."""

from pathlib import Path

import symrelu
from symrelu import baselines, datasets, graphs, metrics, plots, report
from symrelu.old_names import MOVED


def unnamed_modules(text):
    """Return the modules that the architecture page does not name."""
    package = Path(symrelu.__file__).parent
    modules = (path.relative_to(package).as_posix() for path in package.rglob("*.py"))
    return [name for name in modules if not name.endswith("/__init__.py") and f"``{name}``" not in text]


def unnamed_old_names(text):
    """Return the deprecated names that the API page does not list."""
    names = (f"symrelu.{module}.{name}" for module, names in MOVED.items() for name in names)
    return [name for name in names if f"``{name}``" not in text]


def unlisted_names(text):
    """Return the public names of the modules for users that the API page does not list."""
    for module in (symrelu, baselines, datasets, graphs, metrics, plots, report):
        prefix = module.__name__.removeprefix("symrelu").removeprefix(".") + "."
        for name in getattr(module, "__all__", vars(module)):
            thing = getattr(module, name)
            ours = getattr(thing, "__module__", "").startswith(module.__name__) and not name.startswith("_")
            if ours and f"   {prefix.lstrip('.')}{name}\n" not in text:
                yield f"{module.__name__}.{name}"


CHECKS = {
    "architecture": unnamed_modules,
    "api": lambda text: [*unnamed_old_names(text), *unlisted_names(text)],
}
