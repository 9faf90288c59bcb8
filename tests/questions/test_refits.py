"""Fits beside an answer: how often their proofs are made."""

from __future__ import annotations

import numpy as np

from sparcipal import alternatives, sparse_pca
from sparcipal.questions import refits


def test_where_a_split_alone_does_not_prove_the_answer_supports_are_searched_before_a_proof(
    monkeypatch,
):
    X = np.random.default_rng(5).standard_normal((60, 60))
    result = sparse_pca(X, n_components=2, n_nonzero_coefs=3)
    split = next(b for b in result.certificate.bounds if b.name == "kyfan")
    assert split.value > 1.001 * result.value
    asked, solve = [], refits.solve

    def counted(whole, method, method_options, options, certify, start=None):
        asked.append((len(whole.cardinalities), certify))
        return solve(whole, method, method_options, options, certify, start)

    monkeypatch.setattr(refits, "solve", counted)
    found = alternatives(result, X, force=0)
    joint = [certify for k, certify in asked if k == 2]
    assert len(found.drops) == 6
    assert joint == [False, False, "fast"] * 6
