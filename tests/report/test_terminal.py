"""Results on a terminal."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np

from sparcipal import sparse_pca

rng = np.random.default_rng(0)


X = rng.standard_normal((30, 5))


def test_result_view_shows_the_note_of_a_method():
    from rich.console import Console

    from sparcipal.report.terminal import result_view

    result = sparse_pca(
        X, n_nonzero_coefs=2, method="em", method_options={"max_iter": 1}, certify=False
    )
    assert "max_iter=1" in result.note
    console = Console(width=100, record=True, file=SimpleNamespace(write=len, flush=lambda: None))
    console.print(result_view(result))
    assert "max_iter=1" in console.export_text()
