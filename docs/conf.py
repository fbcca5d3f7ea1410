"""Sphinx configuration."""

import shutil
import sys
from importlib.metadata import version as installed_version
from pathlib import Path

_HERE = Path(__file__).parent
sys.path.insert(0, str(_HERE / "_ext"))

from reference import write_pages  # noqa: E402

project = "raters"
author = "The raters developers"
version = release = installed_version("raters")
extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx.ext.mathjax",
    "sidebar",
    "zoo",
]
html_theme = "furo"
html_static_path = ["_static"]
html_css_files = ["raters.css"]
nb_execution_mode = "off"
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3
autosummary_generate = True
autodoc_typehints = "none"
napoleon_google_docstring = False
exclude_patterns = ["_build", "_ext"]

write_pages(_HERE / "reference" / "generated")
# The notebooks live beside docs/, with their outputs; the pages are copies, of those that are there
# now.
shutil.rmtree(_HERE / "notebooks", ignore_errors=True)
shutil.copytree(
    _HERE.parent / "notebooks",
    _HERE / "notebooks",
    ignore=lambda _, names: {n for n in names if n[-6:] != ".ipynb"},
)
