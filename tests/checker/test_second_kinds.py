"""Two checkers on the same answers: kinds of components, constraints, gaps and alternatives."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

from sparcipal import Result, alternatives, sparse_pca, verify
from sparcipal.bounds.labels.proof import Label, Proof
from sparcipal.bounds.labels.rows import Rows
from sparcipal.problem.covariance import covariance_of
from sparcipal.problem.saving import text_of
from tests.support.constrained import constrained
from tests.support.label_cases import Values, grown
from tests.support.mode_cases import KINDS, best_competitor, mode_case
from tests.support.neighbours import with_neighbour
from tests.support.proof_cases import matrix
from tests.support.second_checker import (
    Refused,
    check,
    check_alternatives,
    decode,
    exact,
    prove,
    question,
)
from tests.support.second_checker.question import Ask

# Some tables have constant columns, or fewer directions than components, and a fit says so.
pytestmark = [
    pytest.mark.filterwarnings("ignore:set aside"),
    pytest.mark.filterwarnings("ignore:.* a common set of"),
]


def agree(result: Result, best: float, X=None, **data) -> None:
    """Both say yes, and the second one to no level below what some components explain."""
    assert verify(result, X, **data).verdict == "proved"
    assert check(result.to_json(), X, **data) == "proved"
    document = decode(json.loads(result.to_json()))
    ask = question(document, X, data.get("covariance"), data.get("sample_weight"))
    for bound in document["certificate"]["bounds"]:
        with pytest.raises(Refused):
            prove(bound["name"], bound["data"], ask, exact(best * (1 - 1e-6)) / ask.unit)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("kind", KINDS)
def test_both_checkers_agree_on_every_kind_of_components(kind, seed):
    case = mode_case(100 + seed, kind)
    result = case.run()
    best = max(result.value, best_competitor(case)[0] if kind == "common" else 0.0)
    agree(result, best, covariance=case.A)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("k", [1, 2])
def test_both_checkers_agree_on_anchors_and_excluded_features(seed, k):
    case = constrained(seed, k)
    result = sparse_pca(case.X, **case.keywords)
    agree(result, max(case.optimum(), result.value), case.X)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("rule", ["rows", "mean", "median", "pairwise"])
def test_both_checkers_agree_on_tables_with_gaps(rule, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal([0, 100, 0, 3, 0, 0], 1.0, (15, 6)) * 10.0 ** rng.integers(-3, 4)
    X[:, 2] += X[:, 1]
    X[rng.random(X.shape) < 0.1] = np.nan
    weights = rng.random(15) + 0.1 if seed else None
    asked = {"n_nonzero_coefs": 2, "missing": rule, "scale": seed == 1, "center": seed != 2}
    result = sparse_pca(X, **asked, sample_weight=weights)
    agree(result, result.value, X, sample_weight=weights)
    document = json.loads(result.to_json())
    if rule == "pairwise":
        document["certificate"]["repair"]["moved"] += 1.1 * result.value
    else:
        document["settings"]["missing"] = "mean" if rule == "median" else "median"
    assert check(json.dumps(document), X, sample_weight=weights).startswith("refused")


def test_both_checkers_agree_on_bounds_from_fewer_nonzeros():
    X = np.random.default_rng(0).standard_normal((30, 8)) * 2.0 ** -np.arange(8)
    X[:, :3] += 2 * np.random.default_rng(1).standard_normal((30, 1))
    few, more = (sparse_pca(X, n_nonzero_coefs=s) for s in (3, 4))
    agree(with_neighbour(more, few), more.value, X)


@pytest.mark.parametrize("seed", range(12))
def test_both_checkers_agree_on_random_trees_of_labels(seed):
    """Random trees of cases, with certificates of any kind at random prices."""
    rng = np.random.default_rng([seed, 29])
    A = matrix(rng)
    while not A.any():
        A = matrix(rng)
    cov, nonnegative = covariance_of(A), bool(rng.integers(2))
    k, s = (int(rng.integers(1, min(len(A), 3) + 1)) for _ in range(2))
    inside = cov.dense()
    field = np.flatnonzero(inside.diagonal() > 0)
    proof = Proof(Rows(cov, field, s, nonnegative), k)
    for _ in grown(rng, proof, float(inside.diagonal().max())):
        pass
    data = decode(json.loads(text_of(proof.data())))
    ask = Ask([[exact(x) for x in row] for row in inside.tolist()], (s,) * k, None, nonnegative)
    prove("labels", data, ask, exact(proof.bound))
    best = Values(inside, s, nonnegative).best_of((Label(k),))
    with pytest.raises(Refused):
        prove("labels", data, ask, exact(best * (1 - 1e-9)))


QUESTIONS = {
    "copies": {"n_nonzero_coefs": 2},
    "signs": {"n_nonzero_coefs": 3, "nonnegative": True},
    "anchor": {"n_nonzero_coefs": 3, "include": [1], "scale": True},
    "excluded": {"n_nonzero_coefs": 3, "exclude": [0]},
    "two": {"n_components": 2, "n_nonzero_coefs": 2},
}


@pytest.mark.parametrize("name", QUESTIONS)
def test_both_checkers_agree_on_alternatives_and_refuse_forged_entries(name):
    X = np.random.default_rng(4).standard_normal((12, 7))
    X[:, 3], X[:, 5] = X[:, 0], 2 * X[:, 0]
    found = alternatives(sparse_pca(X, **QUESTIONS[name]), X, within=0.15, force=1)
    text = found.to_json()
    assert verify(found, X).verdict == "proved"
    assert check_alternatives(text, X) == "proved"
    for entry, factor in (("level", 0.2), ("bound", 0.8), ("value", 1.01), ("with_bound", None)):
        document = json.loads(text)
        near = document["components"][0]
        if entry == "level":
            near["level"] *= factor
        elif entry == "with_bound":
            near["with_bound"] = near["with_value"]
        else:
            near["supports"][0][entry] *= factor
        said = check_alternatives(json.dumps(document), X)
        assert re.match("refused: (?!malformed)", said), (entry, said)


READ_IN_PASSES = {
    "plain": {},
    "scaled": {"scale": True},
    "two": {"n_components": 2},
    "free": {"supports": "free", "n_components": 2},
    "orthogonal": {"supports": "orthogonal", "n_components": 2},
    "common": {"supports": "common", "n_components": 2},
    "signs": {"nonnegative": True},
}


@pytest.mark.parametrize("name", READ_IN_PASSES)
def test_both_checkers_agree_on_tables_read_in_passes(name):
    """Most features are dropped; rows of the covariance of all features bound what they add."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((40, 12)) * rng.uniform(0.5, 2, 12)
    X[:, :4] += rng.standard_normal((40, 1))
    X = X.round(1)
    result = sparse_pca(X, n_nonzero_coefs=2, memory_limit=1, **READ_IN_PASSES[name])
    screening = result.certificate.screening
    assert screening["rule"] == ("variances" if name in ("free", "common") else "rows")
    assert verify(result, X).verdict == "proved"
    assert check(result.to_json(), X) == "proved"
    document = json.loads(result.to_json())
    low = screening["touching"] * (1 - 1e-4)
    document["certificate"]["screening"]["touching"] = low
    for bound in document["certificate"]["bounds"]:
        bound["data"]["screened"]["touching"] = low / result.certificate.unit
    assert verify(Result.from_json(json.dumps(document)), X).verdict == "refused"
    assert re.match("refused: (?!malformed)", check(json.dumps(document), X))


def test_components_beyond_the_number_of_samples_explain_nothing():
    """A ridge just above rounding shows an eigenvalue that is not quite zero."""
    X = np.random.default_rng(2).standard_normal((2, 6))
    asked = {"n_components": 3, "n_nonzero_coefs": [3, 2, 2], "supports": "free"}
    plain = {"center": False, "scale": True, "max_nodes": 0, "method_options": {"effort": 0}}
    result = sparse_pca(X, **asked, **plain)
    assert result.certificate.bounds[0].data["matrix"]["ridge"] < 1e-8
    assert check(result.to_json(), X) == "proved"
