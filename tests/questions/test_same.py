"""Data of another answer are refused; the same data in any form are not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from sparcipal import Result, Status, alternatives, explain, sparse_pca, update

RNG = np.random.default_rng(3)
X = RNG.poisson(3.0, (80, 7)) + 4.0 * RNG.poisson(2.0, (80, 1)) * (np.arange(7) < 3)
X = X + np.arange(7) / 3
NAMES = list("abcdefg")
WEIGHTS = RNG.random(80) + 0.5


def answer(data=X, **asked):
    return sparse_pca(data, n_nonzero_coefs=3, feature_names=NAMES, **asked)


@pytest.mark.parametrize("scale", [False, True])
@pytest.mark.parametrize("ask", [explain, alternatives])
def test_a_change_of_unused_features_is_refused_with_their_names(ask, scale):
    result = answer(scale=scale)
    other = X.copy()
    other[:, [4, 6]] += 0.01
    with pytest.raises(ValueError, match=r"mean differs for 'e' \(.* here, .* there\), 'g'.* fit"):
        ask(result, other)
    spread = X.copy()
    spread[:, 5] += 1e-4 * (spread[:, 5] - spread[:, 5].mean())
    kind = "scale differs for 'f'" if scale else "total variance"
    with pytest.raises(ValueError, match=kind):
        ask(result, spread)
    with pytest.raises(ValueError, match="without sample_weight"):
        ask(result, X, sample_weight=WEIGHTS)


def test_more_than_a_bound_allows_is_refused_where_moments_agree():
    A = np.diag([4.0, 1.0, 1.0, 1.0, 1.0])
    result = sparse_pca(covariance=A, n_nonzero_coefs=2)
    B = A.copy()
    B[0, 4] = B[4, 0] = 1.5
    with pytest.raises(ValueError, match="does not hold for these data"):
        alternatives(result, covariance=B, within=0.01)


def changed(result, **entries):
    return replace(result, certificate=replace(result.certificate, **entries))


FORGED = {
    "together, but the result says": lambda r: changed(r, value=2 * r.bound),
    "claims what does not hold for these data": lambda r: changed(
        r, bounds=(replace(r.certificate.bounds[0], value=r.bound * (1 - 1e-9)),), bound=r.value
    ),
    "settings.n_nonzero_coefs: 3 where a list": lambda r: replace(
        r, settings={**r.settings, "n_nonzero_coefs": 3}
    ),
    "more nonzeros in a component, 3, than n_nonzero_coefs=2": lambda r: replace(
        r, settings={**r.settings, "n_nonzero_coefs": [3, 2]}
    ),
}


@pytest.mark.parametrize("kind", FORGED)
@pytest.mark.parametrize("ask", [explain, alternatives])
def test_a_result_of_two_components_that_claims_too_much_is_refused(ask, kind):
    forged = FORGED[kind](answer(n_components=2))
    with pytest.raises(ValueError, match=kind):
        ask(forged, X)


def test_a_bound_whose_proof_is_not_there_is_told_as_the_word_of_the_result():
    claim = Result.from_json(answer().to_json(proof=False))
    assert "what the result says, not rechecked" in str(explain(claim, X, force=0))
    assert "not rechecked" not in str(explain(answer(), X, force=0))


def test_a_bound_that_answers_without_a_feature_exceed_is_refused_where_its_proof_is_not_there():
    # overlapping components: no component is listed beside the others
    true = answer(n_components=2, supports="orthogonal", certify=False)
    weak = sparse_pca(X, n_components=2, n_nonzero_coefs=1, supports="orthogonal", exclude=[0, 1])
    assert weak.value < 0.5 * true.value
    bound = replace(true.certificate.bounds[0], name="orthogonal", value=weak.value, data={})
    certificate = replace(
        true.certificate,
        value=weak.value,
        bound=weak.value,
        bounds=(bound,),
        status=Status.OPTIMAL,
    )
    forged = replace(
        true,
        supports=weak.supports,
        weights=weak.weights,
        variances=weak.variances,
        certificate=certificate,
        info={},
    )
    claim = Result.from_json(forged.to_json(proof=False))
    for ask in (alternatives, explain):
        with pytest.raises(ValueError, match=r"without \w components explain .*than its bound"):
            ask(claim, X)


def test_gaps_by_pairs_are_compared_too():
    holes = X.copy()
    holes[3, 2] = np.nan
    result = answer(holes, missing="pairwise")
    assert "pairwise" in explain(result, holes).unanswered
    holes[:, 6] += 1.0
    with pytest.raises(ValueError, match="mean differs for 'g'"):
        explain(result, holes)


@pytest.mark.parametrize("scale", [False, True])
@pytest.mark.parametrize("weights", [None, WEIGHTS])
def test_the_same_data_in_another_form_pass(scale, weights):
    result = answer(scale=scale, sample_weight=weights)
    blocks = [X[:30], X[30:31], X[31:]]
    for form in (np.asfortranarray(X), sp.csr_array(X), lambda: iter(blocks)):
        near = alternatives(result, form, sample_weight=weights, drop=False, force=0)
        assert near.complete
    order = RNG.permutation(80)
    own = None if weights is None else weights[order]
    assert alternatives(result, X[order], sample_weight=own, drop=False, force=0).complete


def test_update_refuses_rows_of_the_same_total():
    result, other = answer(), X.copy()
    other[:, 5] += 1.0
    assert update(result, other, X=X).result.n_samples == 160
    with pytest.raises(ValueError, match="mean differs for 'f'"):
        update(result, X, X=other)


def test_columns_in_another_order_are_found_by_their_names():
    result, back = answer(), NAMES[::-1]
    page = explain(result, X[:, ::-1], feature_names=back)
    assert str(page) == str(explain(result, X))
    with pytest.raises(ValueError, match="the mean differs for 'a'"):
        alternatives(result, X, feature_names=back)  # other columns under the same names
