"""The checker: true results pass, and no changed claim does."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from sparcipal import Result, Status, sparse_pca, verify
from sparcipal.problem.result import Bound


@pytest.fixture(scope="module")
def data() -> np.ndarray:
    rng = np.random.default_rng(5)
    X = rng.standard_normal((60, 9))
    X[:, 3] += 1.5 * X[:, 1]
    X[:, 7] -= X[:, 2]
    return X


@pytest.fixture(scope="module")
def result(data) -> Result:
    return sparse_pca(data, n_components=2, n_nonzero_coefs=3)


def refused(result: Result, X: np.ndarray, word: str, **kwargs) -> None:
    verdict = verify(result, X, **kwargs)
    assert verdict.verdict == "refused"
    assert word in verdict.reason


@pytest.mark.parametrize("certify", ["fast", False])
@pytest.mark.parametrize("supports", ["disjoint", "free"])
@pytest.mark.parametrize("nonnegative", [False, True])
@pytest.mark.parametrize(("center", "scale"), [(True, False), (True, True), (False, False)])
def test_verify_accepts_true_results(data, certify, supports, nonnegative, center, scale):
    for k, s in ((1, 4), (2, 2)):
        result = sparse_pca(
            data,
            n_components=k,
            n_nonzero_coefs=s,
            certify=certify,
            supports=supports,
            nonnegative=nonnegative,
            center=center,
            scale=scale,
            method_options={"effort": 0},  # of the search; what is judged is the checker
        )
        verdict = verify(Result.from_json(result.to_json()), data)
        assert verdict, verdict.reason
        assert verdict.value == pytest.approx(result.value, rel=1e-12)


def test_weights_are_part_of_the_data(data):
    weights = np.linspace(0.5, 2, data.shape[0])
    result = sparse_pca(data, n_nonzero_coefs=3, sample_weight=weights)
    assert verify(result, data, sample_weight=weights)
    refused(result, data, "sample weights")
    refused(result, data, "mean", sample_weight=weights[::-1])


def test_verify_refuses_results_of_other_data(data, result):
    refused(result, data * 1.001, "mean")
    refused(result, data[:-1], "samples")
    refused(result, data[:, :-1], "features")
    refused(result, data[:, ::-1], "mean")
    moved = data.copy()
    moved[:, 3] *= -1
    moved[:, 3] += 2 * data[:, 3].mean()
    refused(result, moved, "explain")


@pytest.mark.parametrize("factor", [0.99, 1.01, 1 - 1e-9, 1 + 1e-9])
def test_verify_refuses_a_changed_value(data, result, factor):
    certificate = replace(result.certificate, value=result.value * factor)
    refused(replace(result, certificate=certificate), data, "explain")


@pytest.mark.parametrize("factor", [0.5, 0.999, 1.001, 2.0])
def test_verify_refuses_a_changed_bound(data, result, factor):
    first = result.certificate.bounds[0]
    moved = Bound(first.name, first.value * factor, first.data)
    bounds = tuple(sorted((moved, *result.certificate.bounds[1:]), key=lambda b: b.value))
    certificate = replace(result.certificate, bounds=bounds, bound=bounds[0].value)
    certificate = replace(
        certificate, status=Status.OPTIMAL if certificate.gap <= certificate.tol else Status.GAP
    )
    assert verify(replace(result, certificate=certificate), data).verdict == "refused"


def test_bound_without_its_entry_is_refused(data, result):
    certificate = replace(result.certificate, bound=result.bound * (1 - 1e-4))
    refused(replace(result, certificate=certificate), data, "smallest")


def test_verify_refuses_a_changed_status(data, result):
    other = Status.GAP if result.status is Status.OPTIMAL else Status.OPTIMAL
    certificate = replace(result.certificate, status=other)
    refused(replace(result, certificate=certificate), data, other.value)


def test_verify_refuses_changed_loadings(data, result):
    first = result.weights[0]
    for weights, word in (
        (first * 1.01, "norm"),
        (np.roll(first, 1), "explain"),
        (np.full_like(first, np.nan), "finite"),
    ):
        refused(replace(result, weights=(weights, result.weights[1])), data, word)


def test_verify_refuses_changed_supports(data, result):
    first, second = result.supports
    unused = np.setdiff1d(np.arange(9), np.concatenate([first, second]))[0]
    swapped = np.sort(np.append(first[:-1], unused))
    for supports, word in (
        ((swapped, second), "explain"),
        ((first[::-1], second), "out of order"),
        ((first, np.append(second[:-1], 9)), "feature"),
        ((first, first), "disjoint"),
    ):
        refused(replace(result, supports=supports), data, word)


def test_verify_refuses_more_nonzeros_than_asked_for(data, result):
    settings = {**result.settings, "n_nonzero_coefs": [2, 3]}
    refused(replace(result, settings=settings), data, "more nonzeros")


def test_a_claim_for_fewer_nonzeros_needs_its_own_bound(data):
    """Raising the allowed cardinality makes the optimum larger than the bound that was proved."""
    result = sparse_pca(data, n_nonzero_coefs=2)
    settings = {**result.settings, "n_nonzero_coefs": [5]}
    assert verify(replace(result, settings=settings), data).verdict == "refused"


def test_verify_refuses_changed_names(data):
    names = [f"gene {i}" for i in range(9)]
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(data, columns=names)
    result = sparse_pca(frame, n_nonzero_coefs=3)
    assert result.feature_names == tuple(names)
    assert verify(result, frame)
    refused(result, frame.rename(columns={"gene 0": "gene zero"}), "names")


def test_without_its_proof_a_claim_is_not_proved(data, tmp_path):
    result = sparse_pca(data, n_nonzero_coefs=4)
    path = tmp_path / "model.json"
    result.save(path)
    assert verify(Result.load(path), data)
    result.save(path, proof=False)
    verdict = verify(Result.load(path), data)
    assert verdict.verdict == "not proved"
    assert "not saved" in verdict.reason


def test_save_keeps_claim_and_proof_together(data, tmp_path):
    path = tmp_path / "model.json"
    sparse_pca(data, n_nonzero_coefs=4).save(path)
    claim = path.read_text()
    sparse_pca(data, n_nonzero_coefs=2).save(path)
    path.write_text(claim)
    with pytest.raises(ValueError, match="belongs to another result"):
        Result.load(path)


@pytest.mark.parametrize(
    "text",
    ["", "{}", "[]", "null", '{"sparcipal": 99}', '{"sparcipal": 2}', "[" * 100_000, "{'a': 1}"],
)
def test_documents_that_are_no_results_are_refused(text):
    with pytest.raises(ValueError, match="not a sparcipal result"):
        Result.from_json(text)


def test_json_round_trip_is_exact(data, result):
    again = Result.from_json(result.to_json())
    assert again.to_json() == result.to_json()
    assert np.array_equal(again.components, result.components)
    assert again.certificate.bounds[0].name == result.certificate.bounds[0].name


def test_random_mutations_of_the_document_are_refused(data, result):
    """Change one number anywhere in the claim: the checker says no, or the document does not
    load."""
    rng = np.random.default_rng(0)
    document = json.loads(result.to_json())
    sites = list(_numbers(document["certificate"], ["certificate"]))
    # Not claims: notes on how much work it was, and what would count as optimal elsewhere.
    quiet = {"nodes", "eliminated"}
    checked = 0
    for _ in range(300):
        path = sites[rng.integers(len(sites))]
        if quiet & set(path):
            continue
        copy = json.loads(json.dumps(document))
        parent = copy
        for key in path[:-1]:
            parent = parent[key]
        old = parent[path[-1]]
        parent[path[-1]] = old * float(rng.choice([0.5, 0.9, 1.1, 2.0, -1.0]))
        try:
            changed = Result.from_json(json.dumps(copy))
        except ValueError:
            continue
        verdict = verify(changed, data)
        still_true = verdict and changed.bound == result.bound and changed.value == result.value
        assert verdict.verdict == "refused" or still_true, path
        checked += 1
    assert checked > 100


def _numbers(node, path):
    if isinstance(node, dict):
        for key, item in node.items():
            yield from _numbers(item, [*path, key])
    elif isinstance(node, list):
        for i, item in enumerate(node):
            yield from _numbers(item, [*path, i])
    elif isinstance(node, float):
        yield path


def test_verify_needs_the_right_kind_of_data(data, result):
    with pytest.raises(ValueError, match="exactly one"):
        verify(result)
    refused(result, None, "not from a covariance", covariance=np.eye(9))


@pytest.mark.parametrize("k", [2, 3])
def test_bounds_for_disjoint_supports_do_not_hold_for_overlapping_ones(data, k):
    """However large they are: what is proved must speak of the question that was asked."""
    asked = {"n_components": k, "n_nonzero_coefs": 3, "method_options": {"effort": 0}}
    free = sparse_pca(data, supports="free", **asked)
    apart = sparse_pca(data, certify="full", **asked)
    assert verify(free, data)
    names = {"gershgorin": {}, "enumeration": {}, "clip": {"rho": 0.1}}
    names["frobenius"] = {"c": 0.1}
    bounds = [Bound(name, 0.0, proof) for name, proof in names.items()]
    bounds += [
        b for b in apart.certificate.bounds if b.name not in (*names, "trace", "eigenvalues")
    ]
    for bound in bounds:
        # the value that the proof gives for disjoint supports
        claim = replace(bound, value=free.value * 1.5)
        certificate = replace(
            free.certificate, bounds=(claim,), bound=claim.value, status=Status.GAP
        )
        verdict = verify(replace(free, certificate=certificate), data)
        assert verdict.verdict == "refused"
        assert "overlap" in verdict.reason or "disjoint" in verdict.reason, bound.name
