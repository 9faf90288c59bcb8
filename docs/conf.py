"""Sphinx configuration: `make docs` builds without warnings."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx

import sparcipal

project = "sparcipal"
author = "The sparcipal developers"
copyright = author
release = version = sparcipal.__version__
extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.viewcode",
    "numpydoc",
    "sphinx_gallery.gen_gallery",
]
templates_path = []
sys.path.insert(0, str(Path(__file__).parent))  # for interest.py
# Where tests and benchmarks look for data, too; pages do with less when there is none.
os.environ.setdefault("SPARCIPAL_DATA", str(Path(__file__).parents[2] / "shared" / "data"))
# The gallery writes its own pages from the programs in examples/.
exclude_patterns = [
    "_build",
    "examples",
    "gallery/*.ipynb",
    "gallery/*.py",
    "sg_execution_times.rst",
]
sphinx_gallery_conf = {
    "examples_dirs": ["examples"],
    "gallery_dirs": ["gallery"],
    "filename_pattern": "plot_",
    "abort_on_example_error": True,
    "show_memory": False,
    "show_signature": False,
    "write_computation_times": False,
    "min_reported_time": 10**9,
    "download_all_examples": False,
    # Pictures are sharp on fine screens.
    "image_srcset": ["2x"],
    "thumbnail_size": (640, 448),
    # What a Display shows of itself as text is not for readers.
    "capture_repr": (),
    "remove_config_comments": True,
    # What most people come for is shown first.
    "within_subsection_order": "interest.place",
}
html_theme = "pydata_sphinx_theme"
html_theme_options = {
    "navigation_with_keys": False,
    "show_toc_level": 2,
    "secondary_sidebar_items": ["page-toc"],
}
html_static_path = ["_static"]
html_css_files = ["pages.css"]
html_title = "sparcipal"
html_show_sourcelink = False
# One level of pages: the bar on top is enough.
html_sidebars = {"**": []}
autodoc_typehints = "none"
autosummary_generate = True
numpydoc_show_class_members = False
nitpicky = False
# Formulas are part of the page: browsers know MathML, and nothing is fetched from elsewhere.
html_math_renderer = "mathml"


def inline_math(page: Any, node: nodes.math) -> None:
    page.body.append(tex2mathml(node.astext()))
    raise nodes.SkipNode


def block_math(page: Any, node: nodes.math_block) -> None:
    formula = tex2mathml(node.astext(), as_block=True)
    style = "text-align: center; margin: 1rem 0; overflow-x: auto"
    page.body.append(f'<div style="{style}">{formula}</div>')
    raise nodes.SkipNode


def write_example(app: Sphinx, error: Exception | None) -> None:
    """Write the report that the first page leads to."""
    if error is not None or app.builder.format != "html":
        return
    from dataclasses import replace

    from sklearn.datasets import load_wine

    from sparcipal import Table, sparse_path, sparse_pca
    from sparcipal.report.page import write_report

    wine = load_wine()
    cultivars = tuple(f"cultivar {i + 1}" for i in wine.target)
    table = Table(wine.data, tuple(wine.feature_names), labels=cultivars, label_name="cultivar")
    question = {"n_components": 3, "scale": True}
    result = sparse_pca(table, n_nonzero_coefs=4, **question)
    path = sparse_path(table, n_nonzero_coefs=range(1, 5), **question)
    named = replace(
        result,
        info={**result.info, "source": "wine.csv"},
        settings={**result.settings, "read": {"label": "cultivar"}},
    )
    write_report(named, Path(app.outdir) / "wine_report.html", table=table, along=path)


def setup(app: Sphinx) -> None:
    app.connect("build-finished", write_example)
    app.add_html_math_renderer("mathml", (inline_math, None), (block_math, None))
