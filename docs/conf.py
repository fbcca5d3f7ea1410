"""Sphinx configuration."""

from importlib.metadata import version as installed_version

project = "raters"
author = "The raters developers"
version = release = installed_version("raters")
extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.autosummary", "sphinx.ext.napoleon", "sphinx.ext.mathjax"]
html_theme = "furo"
nb_execution_mode = "off"
myst_enable_extensions = ["dollarmath"]
autosummary_generate = True
autodoc_typehints = "none"
napoleon_google_docstring = False
exclude_patterns = ["_build"]
