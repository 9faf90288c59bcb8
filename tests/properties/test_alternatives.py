"""Alternatives against enumeration, their proofs rechecked, and forged ones refused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import sparcipal.bounds.joint as joint
import sparcipal.questions.beside as beside
import sparcipal.questions.nearby as nearby
from sparcipal import Alternatives, SparsePCA, alternatives, sparse_pca, verify
from sparcipal.bounds.tree.core import prove_large
from tests.support.nearly import PASSES, falling, in_blocks, nearly, wrong
from tests.support.second_checker import check_alternatives

WITHIN = (0.01, 0.1, 0.3, 0.0)


def table(n=40, p=9, seed=0):
    return np.random.default_rng(seed).standard_normal((n, p)) * np.linspace(1, 2, p)


@pytest.mark.parametrize("seed", range(30))
def test_nothing_is_missing_and_no_cost_lies_outside_its_bounds(seed):
    case = nearly(seed)
    data = {"covariance": case.covariance} if seed % 3 == 0 else {"X": case.X}
    asked = {"within": WITHIN[seed % 4], "most": 3 if seed % 7 == 0 else 1000}
    found = alternatives(**data, **case.keywords, **asked, force=2)
    assert wrong(case, found) == []
    verdict = verify(found, **data)
    assert verdict, verdict.reason
    if seed % 10 == 0:
        assert verify(found, **data, arithmetic="exact")


@pytest.mark.parametrize("seed", range(3))
def test_nothing_is_missing_beside_another_component(seed):
    case = nearly(seed, k=2)
    found = alternatives(case.X, **case.keywords, within=0.1, force=1)
    assert len(found.components) == 2
    assert wrong(case, found) == []
    assert verify(found, case.X)


@pytest.mark.parametrize("seed", [1, 2, 5])
def test_joint_drops_share_the_proof_of_the_answer(seed, monkeypatch):
    monkeypatch.setattr(joint, "EXHAUSTIBLE", {"fast": 0, "full": 0})
    case = nearly(seed, k=2)
    found = alternatives(case.X, **case.keywords, within=0.1, force=0)
    assert wrong(case, found) == []
    assert verify(found, case.X, arithmetic="exact" if seed == 1 else "float")
    assert any(bound.name == "kyfan" for bound in found.result.certificate.bounds)


@pytest.mark.parametrize("seed", range(10))
def test_nothing_is_missing_when_supports_leave_a_core(seed, monkeypatch):
    monkeypatch.setattr(beside, "WHOLE", 5)
    small = lambda cov, s, question: prove_large(cov, s, question, first_core=4)  # noqa: E731
    monkeypatch.setattr(beside, "prove_large", small)
    case = nearly(2 * seed + 1)
    rows = np.random.default_rng(seed).standard_normal((25, case.X.shape[1]))
    case = replace(case, X=rows * np.linspace(1, 4, rows.shape[1]))
    found = alternatives(case.X, **case.keywords, within=0.05, force=0)
    assert wrong(case, found) == []
    assert verify(found, case.X)


@pytest.mark.parametrize(
    "asked",
    [
        {"X": np.array([[1.0, 0], [0, 1], [1, 0], [0, 1]]), "nonnegative": True},
        {"covariance": np.eye(2)},
        {"covariance": np.kron(np.eye(2), np.ones((2, 2)))},
    ],
)
def test_a_component_of_every_feature_is_not_called_unique_where_parts_do_as_well(asked):
    s = next(iter(asked.values())).shape[1]
    near = alternatives(**asked, n_nonzero_coefs=s).components[0]
    assert near.everything
    assert near.unique is None


def test_required_features_that_fill_every_place_leave_nothing_to_choose():
    A = np.diag([3.0, 3.0, 3.0, 1.0])
    found = alternatives(covariance=A, n_nonzero_coefs=2, include=[0, 1])
    assert found.components[0].unique is None
    assert "nothing to choose  the required features fill every place" in str(found)


def test_supports_are_tied_by_what_rounding_explains_and_no_more():
    def told(apart):
        A = np.diag([1.0 + apart, 1.0, 0.5])
        found = alternatives(covariance=A, n_nonzero_coefs=1, drop=False, force=0)
        return found.components[0].unique, str(found)

    assert told(0.0)[0] is False
    assert told(1e-9)[0] is True
    unique, text = told(4.9e-13)
    assert unique is None
    assert "not known, as others are too close to tell" in text
    assert "0 to 4.91e-11 % less" in text


def test_a_constant_feature_at_weight_zero_makes_no_other_answer():
    X = np.random.default_rng(0).standard_normal((30, 5)) * [1, 1, 1, 0, 0]
    found = alternatives(X, n_nonzero_coefs=4, force=0)
    assert found.components[0].unique is True
    assert "unique        without any of its features at least 1.16 % is lost" in str(found)


def test_a_component_that_needs_every_feature_is_unique():
    found = alternatives(covariance=np.array([[2.0, 1.0], [1.0, 2.0]]), n_nonzero_coefs=2)
    assert found.components[0].unique
    assert "without any of its features at least 33.3 % is lost" in str(found)


def test_what_is_near_an_answer_that_is_not_the_best_is_told_beside_it():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(25, 7))
    X[:, :3] += 0.4 * rng.normal(size=(25, 1))
    answer = sparse_pca(X, n_nonzero_coefs=3, method="threshold", certify=False)
    told = str(alternatives(answer, X, within=0.1, force=0))
    assert "8 supports within 10 % of this answer or above" in told
    assert "3.63 % more: x2 in place of x0" in told
    assert "unique" not in told


def test_ties_are_told_as_changes_to_the_component_that_was_found():
    X = np.random.default_rng(50).integers(0, 3, size=(8, 5))
    found = alternatives(X, n_nonzero_coefs=2, force=0)
    (own,) = (set(support.tolist()) for support in found.result.supports)
    first, second = (set(entry.support.tolist()) for entry in found.components[0].supports)
    (other,) = (first | second) - own
    (gone,) = own - (first & second)
    assert f"as much: x{other} in place of x{gone}" in str(found)


def test_a_covariance_in_place_of_rows_is_named_in_the_refusal():
    X = table()
    answer = sparse_pca(X, n_nonzero_coefs=3)
    with pytest.raises(ValueError, match="a covariance here, 40 samples there"):
        alternatives(answer, covariance=np.cov(X.T))


def test_no_feature_is_in_every_answer_while_nothing_is_known():
    near = alternatives(table(), n_nonzero_coefs=3, force=0).components[0]
    assert near.always()
    unknown = replace(near, level=near.value)
    assert unknown.always() == unknown.sometimes() == []


def test_equal_features_are_groups_and_not_thousands_of_supports():
    X = table()
    copies = np.hstack([X, np.repeat(X[:, 8:], 30, axis=1), -X[:, 8:]])
    found = alternatives(copies, n_nonzero_coefs=4, within=1e-6, force=0)
    near = found.components[0]
    assert [group.size for group in near.groups] == [32]
    assert near.count == 32 * 31 * 30 * 29 // 24
    assert len(near.supports) == 1
    assert near.unique is False
    assert near.always() == []
    assert verify(found, copies)


def test_costs_of_nonnegative_components_are_as_close_as_promised():
    """With loadings of any sign a listed support would explain 18 % more."""
    X = np.random.default_rng(21).standard_normal((9, 8))
    found = alternatives(X, n_nonzero_coefs=4, nonnegative=True, within=0.1, force=0)
    (near,) = found.components
    free = [np.linalg.eigvalsh(np.cov(X.T, ddof=0)[np.ix_(e.support, e.support)])[-1]
            for e in near.supports]  # fmt: skip
    assert max(free) > 1.1 * near.value
    assert all(entry.bound - entry.value <= 1e-8 * near.value for entry in near.supports)
    assert all(cost.bound - cost.value <= 1e-3 * near.value for cost in near.drops)
    assert verify(found, X, arithmetic="exact")
    check_alternatives(found.to_json(), X)
    loosest = max(near.supports, key=lambda entry: entry.bound)
    lower = replace(loosest, bound=loosest.value - 1e-6 * near.value)
    lower = replace(lower, value=lower.bound)
    forged = tuple(lower if entry is loosest else entry for entry in near.supports)
    assert not verify(replace(found, components=(replace(near, supports=forged),)), X)


def test_supports_that_differ_at_zero_weight_hold_one_component():
    A = np.full((5, 5), -0.25) + np.diag([3.0, 3.0, 2.0, 1.5, 1.4])
    A[0, 1] = A[1, 0] = 1.0
    found = alternatives(covariance=A, n_nonzero_coefs=3, nonnegative=True, force=1)
    (near,) = found.components
    assert [entry.weights[2] for entry in near.supports] == [0.0] * 3
    assert near.unique is None
    assert near.spare == [2, 3, 4]
    assert "in 3 of them  x2, x3, x4 can be exchanged or left out" in str(found)
    assert "the same component: also x3" in str(found)
    assert "not unique" not in str(found)
    other = alternatives(covariance=np.diag([3.0, 3.0, 2.0]), n_nonzero_coefs=2, within=0.1)
    assert other.components[0].unique is False
    assert other.components[0].spare == []


def test_a_list_of_alternatives_states_level_and_weights_and_is_saved(tmp_path):
    X = table()
    model = SparsePCA(n_nonzero_coefs=3).fit(X)
    found = alternatives(model, X, within=0.2)
    near = found.components[0]
    assert found.complete
    assert near.unique
    assert near.supports[0].support.tolist() == model.result_.supports[0].tolist()
    assert near.level <= 0.8 * model.result_.value
    assert "proved, none is missing" in str(found)
    assert "<h3>" in found._repr_html_()
    assert len(found.records()) == len(near.supports)
    found.save(tmp_path / "near.json")
    back = Alternatives.load(tmp_path / "near.json")
    assert str(back) == str(found)
    assert verify(back, X)
    with pytest.raises(ValueError, match="no alternatives"):
        Alternatives.from_json(model.result_.to_json())


def test_a_full_list_and_a_stopped_one_say_so():
    X = table(p=14)
    full = alternatives(X, n_nonzero_coefs=4, within=0.4, most=5, drop=False, force=0)
    assert full.status == "more"
    assert not full.components[0].complete
    assert "at least" in str(full)
    assert "in every one" not in str(full)
    assert verify(full, X)
    stopped = alternatives(X, n_nonzero_coefs=4, within=0.4, callback=lambda progress: True)
    assert stopped.status == "interrupted"
    assert verify(stopped, X)


def test_a_full_list_begins_with_the_answer(monkeypatch):
    X = np.random.default_rng(4).standard_normal((30, 12))
    asked = {"n_nonzero_coefs": 4, "within": 0.5, "most": 1, "drop": False, "force": 0}
    found = alternatives(X, **asked)
    first, *others = found.components[0].supports
    assert first.support.tolist() == found.result.supports[0].tolist()
    assert all(entry.value <= first.value for entry in others)
    assert verify(found, X)
    monkeypatch.setattr(beside, "NODES", 1)  # so that any list is complete above its level
    found = alternatives(X, **asked)
    (near,) = found.components
    other = np.sort(np.append(near.supports[0].support[1:], near.outsiders[0]))
    values, vectors = np.linalg.eigh(np.cov(X[:, other].T, bias=True))
    value = values[-1]
    listed = replace(near.supports[0], support=other, weights=vectors[:, -1], value=value)
    log = [{**near.proof["log"][0], "listed": [other.astype(np.int32)]}, *near.proof["log"][1:]]
    near = replace(near, supports=(listed,), proof={**near.proof, "log": log})
    assert "have the component" in verify(replace(found, components=(near,)), X).reason


def test_an_unfinished_list_says_no_more_than_it_knows():
    A = np.diag(np.linspace(2.0, 1.0, 12))
    A[0, 1] = A[1, 0] = 1.5
    asked = {"covariance": A, "n_nonzero_coefs": 4, "most": 1, "force": 0}
    found = alternatives(**asked, drop=False)
    (near,) = found.components
    assert near.level > near.value
    text = str(found)
    assert "what else there is, is not known" in text
    assert "found so far" in text
    assert "in every one" not in text
    assert "none is missing" not in text
    known = alternatives(**asked)
    assert not known.components[0].complete
    assert known.components[0].indispensable() == [0, 1]
    assert "x0, x1, which is proved of all within 1 % of the best" in str(known)


def test_what_cannot_be_answered_is_refused():
    X = table()
    result = sparse_pca(X, n_nonzero_coefs=3)
    with pytest.raises(TypeError, match="leave out n_nonzero_coefs"):
        alternatives(result, X, n_nonzero_coefs=3)
    with pytest.raises(ValueError, match="within"):
        alternatives(result, X, within=2.0)
    with pytest.raises(ValueError, match="pass the data that it came from"):
        alternatives(result, X + table(seed=1))
    with pytest.raises(ValueError, match="among 9 features, and the covariance of 6 fits"):
        alternatives(result, X, memory_limit=800)


@pytest.mark.filterwarnings("ignore:set aside")
@pytest.mark.parametrize("seed", range(8))
def test_lists_of_tables_read_in_passes_count_features_that_were_not_kept(seed):
    case = falling(seed)
    rows, limit = in_blocks(case.X), PASSES
    result = sparse_pca(rows, **case.keywords, memory_limit=limit)
    assert result.certificate.screening["dropped"]
    within = (0.02, 0.3)[seed % 2]
    found = alternatives(result, rows, within=within, force=2, memory_limit=limit)
    assert wrong(case, found) == []
    assert verify(found, rows)
    assert check_alternatives(found.to_json(), case.X.tolist()) == "proved"
    assert str(alternatives(result, case.X, within=within, force=2)) == str(found)


def test_a_list_has_the_errors_of_a_table_in_memory_where_its_answer_has_them():
    X = table(n=4000)
    result = sparse_pca(X, n_nonzero_coefs=2)  # sums over blocks of the same rows lose less
    rows = lambda: iter(np.array_split(X, 40))  # noqa: E731
    found = alternatives(result, rows, within=0.02, force=1, memory_limit=100_000)
    verdict = verify(found, X)
    assert verdict, verdict.reason


def test_a_list_has_the_unit_of_its_answer_where_rounding_moved_variances(monkeypatch):
    monkeypatch.setattr(nearby, "recheck", lambda *of: "")  # the proof has the unit of the fit
    one = 1.0 + 4 * np.finfo(float).eps  # a variance of 1, or next to it
    X = np.vstack([np.eye(3), -np.eye(3)]) * np.sqrt(3.0) * np.array([1.0, one, 1 / one])
    result = sparse_pca(in_blocks(X), n_nonzero_coefs=2, memory_limit=1)
    for unit in (0.5, 1.0, 2.0, 4.0):
        other = replace(result, certificate=replace(result.certificate, unit=unit))
        found = alternatives(other, in_blocks(X), within=0.1, force=0, memory_limit=1)
        near = found.components[0]
        assert near.level <= near.proof["screened"]["inside"] * unit <= near.value * (1 + 1e-9)


@pytest.fixture(scope="module")
def screened():
    X = table(p=12) * np.linspace(0.3, 1.5, 12) ** 2
    return X, alternatives(X, n_nonzero_coefs=2, within=0.05, force=0, memory_limit=2000)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"touching": 0.0, "rule": "nothing dropped"}, "a dropped feature may explain more"),
        ({"inside": 0.5}, "the kept features' bound is too small"),
        ({"kept": np.arange(7, dtype=np.int32)}, "other kept features"),
    ],
)
def test_forged_lists_of_screened_tables_are_refused(screened, changes, said):
    X, found = screened
    near = found.components[0]
    assert found.result.certificate.screening["dropped"]
    assert verify(found, X)
    proof = {**near.proof, "screened": {**near.proof["screened"], **changes}}
    level = near.level if "touching" not in changes else near.level * 0.999
    forged = replace(near, proof=proof, level=level)
    verdict = verify(replace(found, components=(forged,)), X)
    assert not verdict
    bare = {name: part for name, part in near.proof.items() if name != "screened"}
    assert not verify(replace(found, components=(replace(near, proof=bare),)), X)


KINDS = [{"supports": "common"}, {"n_nonzero_coefs": {"total": 3}}]  # the others take seconds


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_components_that_overlap_have_joint_costs(kind):
    X = np.array([[3.0, 1, 0, 1, 1], [-3, 0, 1, 0, 0], [1, -2, 0, 0, 1], [0, 2, -1, 1, 0]])
    asked = {"n_components": 2, "n_nonzero_coefs": 2, **kind, "certify": False}
    found = alternatives(X, **asked)
    used = np.unique(np.concatenate(found.result.supports))
    assert found.components == ()
    assert [cost.feature for cost in found.drops] == used.tolist()
    for cost in found.drops:
        without = sparse_pca(X, **asked, exclude=[cost.feature])
        assert cost.value <= without.bound * (1 + 1e-9)
        assert cost.value == pytest.approx(without.value, rel=1e-9)  # a shorter search suffices
        assert cost.bound >= without.value * (1 - 1e-9)
    assert "not listed" in str(found)
    assert verify(found, X)
    assert check_alternatives(found.to_json(), X.tolist()) == "proved"
    plain = alternatives(X, n_components=2, n_nonzero_coefs=1, force=0, certify=False)
    assert not verify(replace(found, drops=plain.drops), X)
    assert not verify(replace(found, components=plain.components), X)


def test_forged_alternatives_are_refused():
    X = table()
    found = alternatives(X, n_nonzero_coefs=3, within=0.2, force=2)
    near = found.components[0]
    assert len(near.supports) > 1

    def said(**changes):
        forged = replace(found, components=(replace(near, **changes),))
        verdict = verify(forged, X)
        assert not verdict
        return verdict.reason

    assert "another list" in said(supports=near.supports[1:])
    log = [dict(step) for step in near.proof["log"]]
    log[0]["listed"] = log[0]["listed"][1:]
    shorter = {**near.proof, "log": log}
    assert "a larger value" in said(proof=shorter, supports=near.supports[1:])
    assert "is proved of what is not listed" in said(level=near.level * 0.999)
    assert "another level" in said(asked=near.asked * 0.9)
    for rest in (slice(1, None), slice(None, -1), slice(0)):
        names = ("outsiders", "leaving", "with_value", "with_bound")
        fewer = {name: getattr(near, name)[rest] for name in names}
        assert "one is missing" in said(**fewer, forces=())
        forged = replace(found, components=(replace(near, **fewer, forces=()),))
        assert check_alternatives(forged.to_json(), X.tolist()) != "proved"
    first = replace(near.supports[0], value=near.supports[0].value * 1.01)
    assert "value is another one" in said(supports=(first, *near.supports[1:]))
    low = replace(near.supports[0], bound=near.supports[0].value * 0.99)
    assert "above its bound" in said(supports=(low, *near.supports[1:]))
    many = replace(near.supports[0], count=2)
    assert "another number" in said(supports=(many, *near.supports[1:]))
    cheap = tuple(replace(cost, bound=cost.bound * 0.9) for cost in near.drops)
    assert "may explain more" in said(drops=cheap)
    dear = tuple(replace(cost, value=cost.value * 1.1) for cost in near.drops)
    assert "explains as much" in said(drops=dear)
    assert "may add more" in said(with_bound=near.with_bound * 0.5)
    assert "adds less" in said(with_value=near.with_value * 1.5)
    swapped = tuple(replace(cost, fit=near.forces[0].fit) for cost in near.forces[::-1])
    assert "another question" in said(forces=swapped)
    assert (
        "may not be complete"
        in verify(
            replace(found, within=0.2, components=(replace(near, level=near.asked * 1.1),)), X
        ).reason
    )


def test_small_features_that_differ_are_not_exchanged_beside_a_large_one():
    A = np.diag([1.0, 1e-14, 3e-15])
    found = alternatives(covariance=A, n_nonzero_coefs=1, within=1.0, force=0, drop=False)
    near = found.components[0]
    assert near.groups == ()
    log = [dict(step) for step in near.proof["log"]]
    one = np.array([1], dtype=np.int32)
    log[0]["twins"] = {"features": 2 * one, "leaders": one, "factors": np.ones(1)}
    log[0]["listed"] = [support for support in log[0]["listed"] if support.tolist() != [2]]
    listed = [replace(entry, bound=entry.bound + 1e-12) for entry in near.supports[:2]]
    forged = replace(
        near,
        proof={**near.proof, "log": log},
        supports=(listed[0], replace(listed[1], count=2)),
        groups=(np.array([1, 2]),),
        with_bound=near.with_bound + 1e-11,
    )
    forged = replace(found, components=(forged,))
    assert "cannot be exchanged" in verify(forged, covariance=A).reason
    assert "are exchanged" in check_alternatives(forged.to_json(), covariance=A.tolist())
    twins = np.array([[1.0, 0, 0], [0, 1e-14, -1e-14], [0, -1e-14, 1e-14 * (1 + 1e-15)]])
    found = alternatives(covariance=twins, n_nonzero_coefs=1, within=1.0, force=0, drop=False)
    assert [group.tolist() for group in found.components[0].groups] == [[1, 2]]
    assert verify(found, covariance=twins)
    assert check_alternatives(found.to_json(), covariance=twins.tolist()) == "proved"


def test_a_component_that_uses_every_feature_has_costs():
    X = table(p=6)
    found = alternatives(X, n_components=2, n_nonzero_coefs=3, within=0.1, force=0)
    for near in found.components:
        assert near.everything
        assert len(near.drops) == 3
        for cost in near.drops:
            rest = np.setdiff1d(near.supports[0].support, cost.feature)
            best = np.linalg.eigvalsh(np.cov(X[:, rest].T, bias=True))[-1]
            assert cost.value * (1 - 1e-9) <= best <= cost.bound
        lost = {cost.feature for cost in near.drops if cost.value < near.level}
        assert set(near.always()) == lost
        assert set(near.sometimes()) == set(near.supports[0].support.tolist()) - lost
    assert verify(found, X)


def test_anchors_without_variance_have_alternatives():
    found = alternatives(
        covariance=np.diag([2.0, 0.0, 0.0, 0.0]), n_nonzero_coefs=3, include=[1, 2]
    )
    assert found.components[0].drops[0].bound < 1e-280
    assert verify(found, covariance=np.diag([2.0, 0.0, 0.0, 0.0]))


def test_a_nonnegative_component_of_constant_features_alone_has_alternatives():
    A = np.diag([0.0, 2.0, 1.0])
    asked = {"n_components": 2, "n_nonzero_coefs": 1, "include": [[0]], "nonnegative": True}
    found = alternatives(covariance=A, **asked)
    assert [near.value for near in found.components] == [0.0, 2.0]
    assert verify(found, covariance=A)


@pytest.mark.parametrize("rule", ["rows", "mean", "median"])
def test_tables_with_gaps_are_asked_as_they_were_filled(rule):
    X = table(n=80)
    X[np.random.default_rng(1).random(X.shape) < 0.03] = np.nan
    result = sparse_pca(X, n_nonzero_coefs=3, missing=rule)
    found = alternatives(result, X, within=0.1, force=1)
    verdict = verify(found, X)
    assert verdict, verdict.reason
    other = {"rows": "mean", "mean": "rows", "median": "rows"}[rule]
    forged = replace(found, result=sparse_pca(X, n_nonzero_coefs=3, missing=other))
    assert not verify(forged, X)


def test_covariances_of_pairs_have_a_way_out():
    X = table(n=80)
    X[3, 2] = np.nan
    result = sparse_pca(X, n_nonzero_coefs=3, missing="pairwise")
    with pytest.raises(ValueError, match=r"certificate\.repair"):
        alternatives(result, X)
    assert alternatives(
        covariance=result.certificate.repair["matrix"], n_nonzero_coefs=3, force=0, drop=False
    ).complete


def test_costs_of_a_named_answer_are_confirmed_with_rows_that_have_no_names():
    X = np.random.default_rng(0).standard_normal((34, 12))
    names = [f"c{j}" for j in range(12)]
    answer = sparse_pca(X, n_nonzero_coefs=1, method="greedy", feature_names=names)
    near = alternatives(answer, X, within=0.001)
    costs = [cost.fit for cost in near.components[0].drops if cost.fit is not None]
    assert [list(fit.feature_names) for fit in costs] == [names] * len(costs) != []
    assert verify(near, X).verdict == "proved"


def test_a_component_that_explains_nothing_is_one_of_these_data():
    X = np.random.default_rng(1).standard_normal((3, 6))
    answer = sparse_pca(X, n_components=4, n_nonzero_coefs=4, supports="common")
    assert verify(alternatives(answer, X), X).verdict == "proved"
