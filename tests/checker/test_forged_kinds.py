"""Forged proofs for kinds of components, constraints and alternatives, each by thought."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from sparcipal import Alternatives, Result, alternatives, sparse_pca, verify
from sparcipal.checker import Budget
from sparcipal.problem.result import Bound
from tests.support.neighbours import with_neighbour


def table() -> np.ndarray:
    rng = np.random.default_rng(11)
    X = rng.standard_normal((40, 7))
    X[:, 3] += 1.5 * X[:, 1]
    X[:, 5] = X[:, 4]
    return X


X = table()
QUICK: dict[str, Any] = {"method_options": {"effort": 0}}
KINDS: dict[str, dict[str, Any]] = {
    "adjusted": {"supports": "free"},
    "orthogonal": {"supports": "orthogonal"},
    "common": {"supports": "common"},
}


@pytest.fixture(scope="module")
def results() -> dict[str, Result]:
    return {
        name: sparse_pca(X, n_components=2, n_nonzero_coefs=3, **QUICK, **asked)
        for name, asked in KINDS.items()
    }


def bound_of(result: Result, name: str) -> Bound:
    return next(bound for bound in result.certificate.bounds if bound.name == name)


def claiming(result: Result, bound: Bound) -> Result:
    """The result with this bound alone."""
    certificate = replace(
        result.certificate,
        bounds=(bound,),
        bound=bound.value,
        status=type(result.status)("gap"),
    )
    return replace(result, certificate=certificate)


def refused(result: Any, data: np.ndarray = X, **keywords: Any) -> str:
    said = verify(result, data, **keywords)
    assert said.verdict == "refused", said
    return said.reason


# --- bounds inside bounds ---


def test_a_neighbour_is_no_part(results):
    result = results["adjusted"]
    few, one = (sparse_pca(X, n_nonzero_coefs=s) for s in (2, 3))
    own = bound_of(with_neighbour(one, few), "neighbour")
    unit = result.certificate.unit
    part = {"s": 3, "name": "neighbour", "value": own.value / unit, "data": own.data}
    forged = Bound("parts", 2 * own.value, {"parts": [part, part]}, 2 * own.margin)
    assert "made of parts" in refused(claiming(result, forged))


def test_bounds_that_take_turns_are_refused_at_once():
    """adjusted, neighbour, adjusted, ...: no depth of it is replayed."""
    result = sparse_pca(X, n_nonzero_coefs=3)
    unit = result.certificate.unit
    value = 10 * result.value / unit
    part = {"s": 3, "name": "trace", "value": value, "data": {}}
    for _ in range(4):
        ridge = {"parts": [part], "matrix": {"ridge": 1.0, "of": "features"}}
        part = {"s": 3, "name": "adjusted", "value": value, "data": ridge}
        part = {"s": 3, "name": "neighbour", "value": value, "data": {"part": part}}
    forged = Bound("neighbour", value * unit, part["data"], result.certificate.bounds[0].margin)
    assert "made of parts" in refused(claiming(result, forged))


# --- trees of other questions ---


@pytest.mark.parametrize(
    "change",
    [
        {"forced": np.array([6])},
        {"listed": [np.array([0, 1, 3])]},
        {"pads": np.ones(7)},
        {"nonnegative": True},
        {"s": 2},
        {"prices": np.full(7, 0.1)},
        {"prices": np.zeros(7)},
    ],
)
def test_tree_of_an_orthogonal_bound_speaks_of_all_supports(results, change):
    result = results["orthogonal"]
    own = bound_of(result, "orthogonal")
    part = own.data["parts"][0]
    problem = {**part["log"][0], **change}
    parts = [{**part, "log": [problem, *part["log"][1:]]}]
    forged = replace(own, data={**own.data, "parts": parts})
    refused(claiming(result, forged))


@pytest.mark.parametrize(
    "change",
    [
        {"beta": np.zeros(7)},
        {"beta": -np.ones(7)},
        {"shift": 0.0},
        {"shift": 1e300},
        {"L": np.zeros((7, 0))},
        {"L": np.full((7, 1), 1e200)},
        {"L": np.full((7, 1), np.nan)},
        {"parts": []},
    ],
)
def test_changed_numbers_of_an_orthogonal_bound_are_refused(results, change):
    result = results["orthogonal"]
    own = bound_of(result, "orthogonal")
    # a cheaper claim, so that what is left of the proof cannot be true by chance
    forged = replace(own, data={**own.data, **change}, value=result.value)
    refused(claiming(result, forged))


@pytest.mark.parametrize("factor", [0.0, 0.5, 2.0, 1e100, 1e-200])
@pytest.mark.parametrize("name", ["orthogonal", "common"])
def test_no_matrix_proves_less_than_the_value(results, name, factor):
    result = results[name]
    margin = bound_of(result, "parts").margin
    own = Bound("common", result.bound, {"L": np.eye(7)}, margin)
    if name == "orthogonal":
        own = bound_of(result, name)
    below = result.value * (1 - 1e-9)
    L = own.data["L"].astype(float) * factor
    forged = replace(own, data={**own.data, "L": L}, value=below)
    certificate = replace(
        result.certificate, bounds=(forged,), bound=below, value=below, rounding=0.0
    )
    refused(replace(result, certificate=certificate))
    refused(claiming(result, replace(forged, value=result.value)))


def lowering(result: Result, **changes: Any) -> Result:
    """The result with another matrix in its best bound, and what would follow from it."""
    own = result.certificate.bounds[0]
    assert own.name == "adjusted"
    matrix = {**own.data["matrix"], **changes}
    forged = replace(own, value=1.001 * result.value, data={**own.data, "matrix": matrix})
    return claiming(result, forged)


@pytest.mark.parametrize("size", [1e-320, 1e-160, 1e-20, 0.5, 1.01, 10.0, 1e8, 1e160, 1e300])
def test_a_matrix_in_place_of_the_covariance_is_refused_at_other_scales(results, size):
    """Little is taken off, then all that there is, then more than that."""
    y = results["adjusted"].certificate.bounds[0].data["matrix"]["y"] * size
    refused(lowering(results["adjusted"], y=y))
    refused(lowering(results["adjusted"], y=y), arithmetic="exact")


def test_matrix_in_place_of_the_covariance_takes_off_less_than_all(results):
    """With Y'AY at one or above, a component could explain nothing there and much in the data."""
    matrix = results["adjusted"].certificate.bounds[0].data["matrix"]
    said = refused(lowering(results["adjusted"], y=3.0 * matrix["y"]))
    assert "not below one" in said


def test_directions_that_hardly_vary_are_no_way_around():
    """Y is long where A is nearly zero: errors of the covariance count as much as Y is long."""
    Z = np.random.default_rng(0).standard_normal((30, 7))
    Z[:, 6] = Z[:, 0] - Z[:, 1]
    result = sparse_pca(Z, n_components=2, n_nonzero_coefs=3, supports="free", **QUICK)
    y = np.zeros((7, 1))
    y[[0, 1, 6], 0] = np.array([1.0, -1.0, -1.0]) * 1e14
    own = bound_of(result, "adjusted")
    data = {**own.data, "matrix": {"features": np.arange(7), "y": y, "shift": 0.0}}
    forged = claiming(result, Bound("adjusted", 1.001 * result.value, data, own.margin))
    assert "mostly rounding" in refused(forged, Z)


def test_ridge_that_makes_quotients_vanish_is_refused():
    """nu / (nu + ridge) would be zero where variances are small in units that means have made."""
    Z = 1e8 + np.random.default_rng(0).standard_normal((50, 6)) * [5, 4, 3, 1, 0.2, 0.1]
    result = sparse_pca(Z, n_components=2, n_nonzero_coefs=2, supports="free", **QUICK)
    assert verify(result, Z)
    margin = bound_of(result, "adjusted").margin
    for ridge in (1.7e308, 5e-324):
        part = {"s": 2, "name": "trace", "value": 1e300, "data": {}}
        data = {"parts": [part], "matrix": {"ridge": ridge, "of": "features"}}
        forged = claiming(result, Bound("adjusted", 1.001 * result.value, data, margin))
        assert "ridge" in refused(forged, Z)


@pytest.mark.parametrize("kind", [{"supports": "free"}, {"objective": "adjusted"}])
def test_fewer_samples_than_components_are_proved(kind):
    for rows in (2, 3):
        Z = np.random.default_rng(rows).standard_normal((rows, 8))
        result = sparse_pca(Z, n_components=rows + 1, n_nonzero_coefs=2, **kind, **QUICK)
        assert verify(result, Z)
        assert result.bound >= result.value * (1 - 1e-12)


def test_given_matrix_is_shifted_until_it_is_positive_semidefinite():
    A = np.cov(X.T, bias=True)
    asked = {"n_components": 2, "n_nonzero_coefs": 3, "supports": "free", **QUICK}
    result = sparse_pca(covariance=A, **asked)
    assert verify(result, covariance=A)
    said = verify(lowering(result, shift=0.0), covariance=A)
    assert said.verdict == "refused"
    assert "shift" in said.reason


def test_parts_in_another_matrix_are_trees(results):
    own = results["adjusted"].certificate.bounds[0]
    part = {**own.data["parts"][0], "name": "trace", "data": {}}
    forged = replace(own, data={**own.data, "parts": [part]})
    assert "branch and bound" in refused(claiming(results["adjusted"], forged))


# --- constraints and missing entries ---


def test_verify_refuses_a_bound_whose_anchors_are_taken_away():
    free = sparse_pca(X, n_nonzero_coefs=2)
    anchored = sparse_pca(X, n_nonzero_coefs=2, include=[6])
    assert anchored.bound < free.value
    for include in (None, ((0,),), ((6, 6, 6),), ((2,),)):
        settings = {**anchored.settings, "include": include}
        told = replace(anchored, settings=settings)
        if include is None:
            del settings["include"]
        refused(told)
    barred = sparse_pca(X, n_nonzero_coefs=2, exclude=free.supports[0].tolist())
    settings = {**barred.settings, "exclude": []}
    refused(replace(barred, settings=settings))
    for exclude in ([10**30], [0, 0], [-1], [7], [True], "0"):
        refused(replace(barred, settings={**barred.settings, "exclude": exclude}))


@pytest.mark.parametrize("rule", ["rows", "mean", "pairwise"])
def test_weights_that_are_none_are_no_way_around_missing_entries(rule):
    gaps = X.copy()
    gaps[::9, 2] = np.nan
    weights = np.ones(40)
    result = sparse_pca(gaps, n_nonzero_coefs=2, missing=rule, sample_weight=weights)
    assert verify(result, gaps, sample_weight=weights)
    for bad in (-weights, np.where(np.arange(40) < 3, -0.5, 1.0), weights * np.nan, weights[:-1]):
        try:
            said = verify(result, gaps, sample_weight=bad).verdict
        except ValueError as error:
            said = "refused" if "sample_weight" in str(error) else str(error)
        assert said == "refused"


# --- alternatives ---


@pytest.fixture(scope="module")
def found() -> Alternatives:
    return alternatives(sparse_pca(X, n_nonzero_coefs=3), X, within=0.1, force=2)


class Lying(Result):
    """A result that says one thing to `verify` and another thing later."""

    @property
    def bound(self) -> float:
        return 0.0

    @property
    def value(self) -> float:
        return 1e9


def with_near(found: Alternatives, **changes: Any) -> Alternatives:
    return replace(found, components=(replace(found.components[0], **changes),))


def test_answers_behind_costs_are_read_once(found):
    near = found.components[0]
    cost = near.forces[0]
    told = {f: getattr(cost.fit, f) for f in cost.fit.__dataclass_fields__}
    lying = replace(cost, fit=Lying(**told), value=1e8)
    refused(with_near(found, forces=(lying, *near.forces[1:])))
    lying = replace(cost, fit=Lying(**told), bound=cost.fit.value / 2)
    refused(with_near(found, forces=(lying, *near.forces[1:])))


def test_answers_behind_costs_answer_that_question(found):
    near = found.components[0]
    dropped = near.drops[0]
    others = [cost.fit for cost in (*near.drops, *near.forces) if cost.fit is not None]
    others += [found.result, sparse_pca(X, n_nonzero_coefs=2, exclude=[dropped.feature])]
    own = sparse_pca(X, n_nonzero_coefs=3, exclude=[dropped.feature])
    for fit in others:
        if fit.settings.get("exclude") == [dropped.feature] and fit.settings["n_nonzero_coefs"] == (
            3,
        ):
            continue
        told = replace(dropped, fit=fit, bound=min(fit.bound, own.value * (1 - 1e-6)))
        refused(with_near(found, drops=(told, *near.drops[1:])))


@pytest.mark.parametrize(
    "change",
    [
        lambda near: {"level": near.level * 0.5},
        lambda near: {"asked": near.asked * 1.01},
        lambda near: {"value": near.value * 1.01},
        lambda near: {"component": 1},
        lambda near: {"supports": near.supports[1:]},
        lambda near: {"supports": near.supports + near.supports[:1]},
        lambda near: {"supports": near.supports[::-1]},
        lambda near: {"groups": ()},
        lambda near: {"groups": near.groups * 2},
        lambda near: {"groups": (np.array([0, 1]),)},
        lambda near: {"drops": near.drops * 2},
        lambda near: {"drops": tuple(replace(cost, bound=0.0) for cost in near.drops)},
        lambda near: {"drops": tuple(replace(cost, feature=6) for cost in near.drops[:1])},
        lambda near: {"forces": tuple(replace(cost, fit=None) for cost in near.forces)},
        lambda near: {"with_bound": near.with_bound * 0.5},
        lambda near: {"with_value": near.with_value * 1.5},
        lambda near: {"leaving": near.outsiders},
        lambda near: {"outsiders": near.outsiders[:-1]},
        lambda near: {"proof": {**near.proof, "kept": near.proof["kept"][:-1]}},
        lambda near: {"supports": tuple(replace(e, count=10**40) for e in near.supports)},
        lambda near: {"supports": tuple(replace(e, bound=0.5 * e.bound) for e in near.supports)},
    ],
)
def test_changed_alternatives_are_refused(found, change):
    assert verify(found, X)
    refused(with_near(found, **change(found.components[0])))


def test_long_lists_cost_what_they_take(found):
    near = found.components[0]
    many = replace(found, components=(replace(near, drops=near.drops * 20_000),))
    assert "budget" in refused(many, budget=2e8)


@pytest.mark.parametrize("status", [["complete"], b"complete", "done", None])
def test_verify_refuses_another_word_for_a_status(found, status):
    refused(replace(found, status=status))


def test_memory_of_label_certificates_is_charged_before_it_is_used():
    rng = np.random.default_rng(0)
    wide = rng.standard_normal((30, 300))
    n = 300
    result = sparse_pca(wide, n_components=2, n_nonzero_coefs=2, certify=False)
    pairs = np.zeros(n * (n - 1) // 2)
    group = {
        "prices": 0, "count": 2, "forced": np.zeros(0, int), "banned": np.zeros(0, int),
        "core": np.arange(n), "u": pairs, "r": pairs, "pads": np.ones(n),
    }  # fmt: skip
    data = {
        "prices": [{"features": np.zeros(0, int), "price": np.zeros(0)}],
        "groups": [group],
        "nodes": [{"groups": [0]}],
    }
    worth = 100 * result.value
    forged = Bound("labels", worth, data, bound_of(result, "trace").margin)
    assert verify(claiming(result, forged), wide)
    assert "GiB" in refused(claiming(result, forged), wide, budget=Budget(memory=5e6))


@pytest.mark.parametrize("arithmetic", ["float", "exact"])
@pytest.mark.parametrize("end", ["alike", "shrink", "same", "empty"])
def test_sets_that_leave_a_core_end_in_no_way_of_supports(end, arithmetic):
    scale = np.sqrt([10.0, 5.0, 4.0, 1.0, 1.0, 0.5, 0.5, 0.3])
    rows = np.random.default_rng(0).standard_normal((60, 8))
    rows[:, 2] = 0.2 * rows[:, 2] + rows[:, 1]
    rows *= scale
    asked = {"n_components": 2, "n_nonzero_coefs": 3, "supports": "common"}
    honest, core = sparse_pca(rows, **asked), np.array([0, 1, 3, 4])
    poor = sparse_pca(rows[:, core], **asked)
    value = poor.value * (1 + 1e-5)
    assert value < honest.value
    node = {"step": "node", "parent": -1, "side": "root", "moved": np.arange(0), "passes": []}
    more = {"alike": {"alike": np.arange(2)}, "same": {"node": 1}}.get(end, {})
    unit = honest.certificate.unit
    problem = {"step": "problem", "bound": poor.value * (1 + 5e-6) / unit}
    data = {"core": core, "log": [problem, {**node, "end": end, **more}]}
    own = bound_of(honest, "common")
    proof = replace(own, value=value, margin=1.5 * own.margin, data=data)
    supports = tuple(core[one] for one in poor.supports)
    lower = replace(honest.certificate, value=poor.value, rounding=poor.certificate.rounding)
    wrong = replace(honest, supports=supports, weights=poor.weights, info={})
    wrong = replace(wrong, variances=poor.variances)
    forged = claiming(replace(wrong, certificate=lower), proof)
    assert refused(forged, rows, arithmetic=arithmetic).endswith("a node is left open")
