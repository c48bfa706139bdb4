"""Settings of the documentation. Build it with ``make docs``."""

import inspect
import sys
from importlib import import_module
from pathlib import Path

from sphinx.util import logging

import symrelu

sys.path.insert(0, str(Path(__file__).parent))
from completeness import CHECKS

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
nitpicky = True  # a reference that leads nowhere is an error
# Modules as a whole, and what only the architecture page describes.
nitpick_ignore_regex = [
    ("py:(mod|obj)", r"symrelu\.(plots|metrics|fit\.cluster_number)"),
    ("py:class", r"symrelu\..*State"),
    ("py:func", r"symrelu\.validation\..*"),
]
python_use_unqualified_type_names = True

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "auto_examples",
    "backreferences_dir": "generated/backreferences",
    "doc_module": ("symrelu",),
    "reference_url": {"symrelu": None},
    "abort_on_example_error": True,
    "download_all_examples": False,
    "subsection_order": ["../examples/tasks", "../examples/model"],
    "within_subsection_order": "FileNameSortKey",
}

html_theme = "pydata_sphinx_theme"
html_title = f"symrelu {release}"
html_show_sourcelink = False
html_static_path = ["_static"]
html_css_files = ["symrelu.css"]
html_sidebars = {"**": ["all-pages"]}
html_theme_options = {
    "navbar_center": [],  # the pages are in the sidebar
    "navbar_end": ["theme-switcher"],
    "show_prev_next": True,
    "footer_start": ["copyright"],
    "footer_end": [],
}


def check_complete(app, page, content):
    """Warn about what a page that claims to be complete leaves out; ``make docs`` makes it an error."""
    missing = CHECKS[page](content[0]) if page in CHECKS else []
    if missing:
        logging.getLogger(__name__).warning("docs/%s.rst does not name %s", page, ", ".join(missing))


def methods_of(kind):
    """Yield the names of the public methods and properties that a class has from classes of symrelu."""
    for base in kind.__mro__:
        if base.__module__.startswith("symrelu"):
            for name, member in vars(base).items():
                ours = not name.startswith("_") and not name.endswith("_request")  # added by scikit-learn
                if ours and (inspect.isroutine(member) or isinstance(member, property)):
                    yield name


def check_methods(app, env):
    """Warn about public methods of documented classes that have no entry of their own."""
    entries = env.domains.python_domain.objects
    for path, entry in list(entries.items()):
        if entry.objtype in ("class", "exception") and not entry.aliased:
            module, name = path.rsplit(".", 1)
            missing = {f"{path}.{method}" for method in methods_of(getattr(import_module(module), name))}
            if missing := sorted(missing - entries.keys()):
                logging.getLogger(__name__).warning("the API pages lack %s", ", ".join(missing))


def setup(app):
    app.connect("source-read", check_complete)
    app.connect("env-check-consistency", check_methods)
