"""Settings of the documentation. Build it with ``make docs``."""

from pathlib import Path

from sphinx.util import logging

import symrelu
from symrelu.old_names import MOVED

project = "symrelu"
author = "The symrelu developers"
copyright = f"2026, {author}"
version = release = symrelu.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx-mathjax-offline",  # formulas also without a network
    "numpydoc",
    "sphinx_gallery.gen_gallery",
]
templates_path = ["_templates"]
exclude_patterns = ["_build", "_templates"]
autosummary_generate = True
autodoc_typehints = "none"  # numpydoc sections name the types
numpydoc_show_class_members = False
python_use_unqualified_type_names = True

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "auto_examples",
    "backreferences_dir": "generated/backreferences",
    "doc_module": ("symrelu",),
    "reference_url": {"symrelu": None},
    "abort_on_example_error": True,
    "download_all_examples": False,
    "within_subsection_order": "FileNameSortKey",
}

html_theme = "pydata_sphinx_theme"
html_title = f"symrelu {release}"
html_show_sourcelink = False
# Pages without subpages: their left sidebar would be empty.
PAGES = (
    "guide",
    "using",
    "neighbors",
    "signed",
    "choosing",
    "reproduction",
    "architecture",
    "extending",
    "references",
)
html_sidebars = {page: [] for page in PAGES}
html_theme_options = {
    "navbar_end": ["theme-switcher"],
    "header_links_before_dropdown": 4,
    "show_prev_next": False,
    "footer_start": ["copyright"],
    "footer_end": [],
}


def unnamed_modules(text):
    """Return the modules that the architecture page does not name."""
    package = Path(symrelu.__file__).parent
    modules = (path.relative_to(package).as_posix() for path in package.rglob("*.py"))
    return [name for name in modules if not name.endswith("/__init__.py") and f"``{name}``" not in text]


def unnamed_old_names(text):
    """Return the deprecated names that the API page does not list."""
    names = (f"symrelu.{module}.{name}" for module, names in MOVED.items() for name in names)
    return [name for name in names if f"``{name}``" not in text]


CHECKS = {"architecture": unnamed_modules, "api": unnamed_old_names}


def check_complete(app, page, content):
    """Warn about what a page that claims to be complete leaves out; ``make docs`` makes it an error."""
    missing = CHECKS[page](content[0]) if page in CHECKS else []
    if missing:
        logging.getLogger(__name__).warning("docs/%s.rst does not name %s", page, ", ".join(missing))


def setup(app):
    app.connect("source-read", check_complete)
