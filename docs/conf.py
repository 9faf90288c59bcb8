"""Sphinx configuration: `make docs` builds without warnings."""

import sparcipal

project = "sparcipal"
author = "The sparcipal developers"
copyright = author
release = version = sparcipal.__version__
extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx.ext.viewcode",
    "numpydoc",
]
templates_path = []
exclude_patterns = ["_build"]
html_theme = "pydata_sphinx_theme"
html_theme_options = {
    "navigation_with_keys": False,
    "show_toc_level": 2,
    "secondary_sidebar_items": ["page-toc"],
}
html_title = "sparcipal"
html_show_sourcelink = False
# One level of pages: the bar on top is enough.
html_sidebars = {"**": []}
autodoc_typehints = "none"
autosummary_generate = True
numpydoc_show_class_members = False
nitpicky = False
