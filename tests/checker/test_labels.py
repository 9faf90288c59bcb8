"""Labels, redone: every case has its two sides, every certificate covers its group."""

from __future__ import annotations

import copy
from dataclasses import replace

import numpy as np
import pytest

from sparcipal.bounds.labels.groups import Group
from sparcipal.bounds.labels.pricing import Priced
from sparcipal.bounds.labels.proof import Label, Proof, including, without
from sparcipal.bounds.labels.rows import Rows
from sparcipal.bounds.pairsplit import Split
from sparcipal.bounds.tree.question import TreeQuestion
from sparcipal.bounds.tree.search import prove
from sparcipal.checker.budget import Budget, Refused
from sparcipal.checker.covariance import Question
from sparcipal.checker.covariance import covariance_of as checked_covariance
from sparcipal.checker.family import Case, redone
from sparcipal.problem.covariance import covariance_of
from tests.support.brute import best_value
from tests.support.label_cases import grown, one_label_case
from tests.support.replay import FLOAT

S, K = 2, 2


def proof_of(seed: int, trees: float = 0.0) -> tuple[np.ndarray, dict, float]:
    """A matrix, a proof with several cases, `trees` of its groups with trees, and its bound."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((12, 7)) * np.geomspace(2, 0.5, 7)
    A = X.T @ X / 12
    cov = covariance_of(A)
    while True:
        proof = Proof(Rows(cov, np.arange(6), S, False), K)
        for _ in grown(rng, proof, 1.0, trees):
            pass
        if len(proof.data()["nodes"]) >= 5:
            return A / cov.unit, proof.data(), proof.bound


def redo(A: np.ndarray, data: dict, arithmetic=FLOAT) -> float:
    cov = checked_covariance(A, 1.0)
    return redone(
        "labels", data, Case(cov, Question((S,) * K, False, True, 0.0), arithmetic, Budget())
    )


def case_of(data: dict) -> dict:
    return next(node for node in data["nodes"] if "feature" in node)


def leaf_of(data: dict) -> dict:
    return next(node for node in data["nodes"] if "groups" in node)


def loop(data):
    case_of(data)["out"] = case_of(data)["in"]


def missing(data):
    case_of(data)["out"] = 10_000


def other_feature(data):
    case_of(data)["feature"] = 10**30


def other_group(data):
    case_of(data)["group"] = 7


def no_certificate(data):
    leaf_of(data)["groups"][0] = 10_000


def short_leaf(data):
    leaf_of(data)["groups"].append(0)


def narrow_certificate(data):
    data["groups"][0]["banned"] = data["groups"][0]["core"][:0]
    for group in data["groups"]:
        group["forced"] = group["core"][:1]


def banned_too_much(data):
    for group in data["groups"]:
        rest = np.setdiff1d(np.arange(7), group["core"])
        group["banned"] = rest if rest.size else group["core"][:1]


def no_pads(data):
    for group in data["groups"]:
        group["pads"] = 0 * group["pads"]


def forced_outside(data):
    for group in data["groups"]:
        group["core"] = group["core"][1:]
        n = group["core"].size
        group["u"] = group["u"][: n * (n - 1) // 2]
        group["r"] = group["r"][: n * (n - 1) // 2]
        group["pads"] = group["pads"][1:]
        group["forced"] = np.array([0])


def other_prices(data):
    for group in data["groups"]:
        group["prices"] = 99


def one_component(data):
    for group in data["groups"]:
        group["count"] = 1
    for node in data["nodes"]:
        if "groups" in node:
            node["groups"] = [0] * len(node["groups"])


FORGERIES = (
    loop, missing, other_feature, other_group, no_certificate, short_leaf, narrow_certificate,
    banned_too_much, no_pads, forced_outside, other_prices, one_component,
)  # fmt: skip


@pytest.mark.parametrize("forge", FORGERIES, ids=lambda forge: forge.__name__)
def test_forged_labels_are_refused(forge) -> None:
    A, data, _ = proof_of(3)
    forged = copy.deepcopy(data)
    forge(forged)
    with pytest.raises(Refused):
        redo(A, forged)


def test_labels_hold_for_disjoint_components_without_a_total_only() -> None:
    A, data, bound = proof_of(1)
    own = redo(A, data)
    assert best_value(A, (S,) * K) <= own <= bound * (1 + 1e-12)
    cov = checked_covariance(A, 1.0)
    for question in (
        Question((S,) * K, False, False, 0.0),
        Question((S,) * K, False, True, 0.0, total=3),
    ):
        with pytest.raises(Refused):
            redone("labels", data, Case(cov, question, FLOAT, Budget()))


@pytest.mark.parametrize("trees", [0.0, 1.0])
def test_exact_arithmetic_confirms_labels(trees: float) -> None:
    exact = pytest.importorskip("sparcipal.checker.exact")
    from sparcipal.checker.exact_covariance import GivenCovariance

    for seed in range(4):
        A, data, bound = proof_of(seed, trees)
        ball = exact.Ball()
        with ball.running():
            cov = GivenCovariance.of(A, 1.0)
            question = Question((S,) * K, False, True, 0.0)
            own = redone("labels", data, Case(cov, question, ball, Budget()))
            assert best_value(A, (S,) * K) * (1 - 1e-13) <= ball.upper(own) <= bound


def test_rows_beyond_the_field_are_the_same_with_and_without_their_variances() -> None:
    """Of data most rows are dismissed by variances, of a given matrix none."""
    from sparcipal.checker.covariance import covariance_of_data

    rng = np.random.default_rng(8)
    X = rng.standard_normal((15, 30)) * np.geomspace(2, 0.1, 30)
    own = covariance_of_data(X, True, False, None, 1.0)[0]
    cov = covariance_of(own.dense())
    proof = Proof(Rows(cov, np.arange(8), S, False), K)
    for _ in grown(rng, proof, 1.0):
        pass
    data, question = proof.data(), Question((S,) * K, False, True, 0.0)
    scaled = covariance_of_data(X, True, False, None, cov.unit)[0]
    by_variance = redone("labels", data, Case(scaled, question, FLOAT, Budget()))
    one_by_one = redo(own.dense() / cov.unit, data)
    assert by_variance == pytest.approx(one_by_one, rel=1e-9)


def test_the_budget_is_charged_before_work_is_done() -> None:
    A, data, _ = proof_of(2)
    question = Question((S,) * K, False, True, 0.0)
    with pytest.raises(Refused, match="budget"):
        redone("labels", data, Case(checked_covariance(A, 1.0), question, FLOAT, Budget(work=10.0)))


def priced_proof() -> tuple[np.ndarray, dict, float]:
    """A matrix and a proof with one leaf and a branch and bound for each of its groups."""
    A, _, _ = proof_of(5)
    rows = Rows(covariance_of(A * 1.0), np.arange(7), S, False)
    unit = covariance_of(A).unit
    inside, proof = A / unit, Proof(rows, K)
    at = proof.add_prices(np.full(7, 0.125))
    place, state = proof.room(), (Label(K),)
    out, into = proof.case(place, 0, 0)
    tree = proof.add_tree(_tree(rows, inside, [], []), at)
    proof.leaf(out, without(state, 0, 0), [tree])
    state = including(state, 0, 0)
    groups = [_tree(rows, inside, [0], []), _tree(rows, inside, [], [0])]
    proof.leaf(into, state, [proof.add_tree(group, at) for group in groups])
    return inside, proof.data(), proof.bound


def _tree(rows: Rows, inside: np.ndarray, forced: list[int], banned: list[int]) -> Priced:
    mask = np.zeros(7, dtype=bool)
    mask[banned] = True
    core = np.flatnonzero(~mask)[:5]
    upper = np.triu_indices(core.size, 1)
    split = Split.rounded(core, upper, np.zeros(upper[0].size), np.zeros(upper[0].size))
    group = Group(1, np.array(forced, dtype=np.intp), mask, split, np.full(core.size, 0.25))
    question = TreeQuestion(
        prices=np.full(core.size, 0.125),
        pads=group.pad,
        forced=np.searchsorted(core, forced) if forced else None,
    )
    proof = prove(inside[np.ix_(core, core)], S, question)
    heights = rows.heights(core, group.pad, np.full(7, 0.125), mask, proof.bound)[1]
    bound = max(proof.bound, float(heights.max(initial=-np.inf)))
    return Priced(group, replace(proof, bound=bound))


def test_trees_of_groups_are_replayed_and_forged_ones_refused() -> None:
    A, data, bound = priced_proof()
    assert best_value(A, (S,) * K) <= redo(A, data) <= bound * (1 + 1e-12)

    def header(data: dict) -> dict:
        return data["groups"][1]["log"][0]

    def prices(data):
        header(data)["prices"] = header(data)["prices"] * 2

    def pads(data):
        del header(data)["pads"]

    def forced(data):
        header(data)["forced"] = np.array([1])

    def unforced(data):
        data["groups"][1]["forced"] = data["groups"][1]["forced"][:0]

    def bound_of(data):
        header(data)["bound"] *= 0.5

    def fewer(data):
        header(data)["s"] = 1

    for forge in (prices, pads, forced, unforced, bound_of, fewer):
        forged = copy.deepcopy(data)
        forge(forged)
        with pytest.raises(Refused):
            redo(A, forged)


def test_trees_with_pads_do_not_shrink_nonnegative_supports() -> None:
    """Below a support that loses a feature there would be room for one outside the core."""
    assert one_label_case(81000117) == []


def test_the_groups_of_cases_that_wait_are_charged():
    """A long chain of cases with many groups takes memory that is not in the file."""
    p, k, cases = 300, 60, 400
    nodes: list[dict] = []
    for i in range(cases):
        feature, group = (i, i) if i < k - 1 else (p - 1, 0)
        nodes += [{"feature": feature, "group": group, "out": 2 * i + 1, "in": 2 * i + 2}]
        nodes += [{"groups": []}]
    none, nobody = np.zeros(0), np.zeros(0, int)
    sets = {"forced": nobody, "banned": nobody, "core": np.arange(1)}
    group = {"prices": 0, "count": 1, **sets, "u": none, "r": none, "pads": np.ones(1)}
    prices = [{"features": nobody, "price": none}]
    data = {"prices": prices, "groups": [group], "nodes": [*nodes, {"groups": []}]}
    question = Question((1,) * k, False, True, 0.0)
    for budget, reason in (
        (Budget(memory=4e6), "the groups of the cases that wait"),
        (Budget(work=1e7), "the groups of a case"),
        (Budget(), "a leaf does not name a certificate"),
    ):
        with pytest.raises(Refused, match=reason):
            redone(
                "labels", data, Case(checked_covariance(np.eye(p), 1.0), question, FLOAT, budget)
            )
