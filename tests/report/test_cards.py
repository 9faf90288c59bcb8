"""What notebooks show of the answers to questions."""

from __future__ import annotations

import numpy as np
import pytest

from sparcipal import alternatives, choose, compare, sparse_path, sparse_pca, stability, update
from sparcipal.data.table import as_table
from tests.report.test_page import NAMES, Structure

ROWS = np.random.default_rng(3).standard_normal((40, 6)) @ np.diag([3.0, 2.0, 1.5, 1.0, 1.0, 1.0])
TABLE = as_table(ROWS, NAMES)
ASKED = {"n_components": 2, "n_nonzero_coefs": 2}

ANSWERS = {
    "choice": (
        lambda: choose(TABLE, n_components=[1, 2], n_nonzero_coefs=[1, 2], folds=2, permutations=0),
        'class="spc-best"',
    ),
    "stability": (lambda: stability(TABLE, **ASKED, n_resamples=4), '<i style="width:'),
    "alternatives": (lambda: alternatives(TABLE, **ASKED, force=1), "lost without"),
    "path": (lambda: sparse_path(TABLE, n_nonzero_coefs=[1, 2, 3]), '<svg class="path"'),
    "comparison": (lambda: compare(TABLE, ["threshold"], n_nonzero_coefs=2), "can exceed"),
    "update": (
        lambda: update(sparse_pca(TABLE, **ASKED), as_table(ROWS[:9], NAMES), X=TABLE),
        'class="spc-track"',
    ),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_answers_have_cards_in_notebooks_with_their_pictures(name):
    ask, drawn = ANSWERS[name]
    shown = ask()._repr_html_()
    structure = Structure()
    structure.feed(shown)
    assert structure.open == []
    assert "script" not in structure.seen
    assert "img" not in structure.seen
    assert drawn in shown
    assert 'class="sparcipal"' in shown
