"""The replay of a proof accepts what the solver proved and nothing else."""

from __future__ import annotations

import copy

import numpy as np
import pytest

from sparcipal.bounds.tree.core import prove_large
from sparcipal.bounds.tree.question import TreeQuestion
from sparcipal.bounds.tree.search import prove
from sparcipal.checker.budget import Refused
from sparcipal.checker.covariance import Question, covariance_of
from sparcipal.checker.covariance import covariance_of_data as checked_covariance_of_data
from sparcipal.problem.covariance import covariance_of_data
from tests.support.replay import recheck, replay

P, S = 40, 8


def matrix(seed=0):
    X = np.random.default_rng(seed).standard_normal((2 * P, P))
    return X.T @ X / (2 * P)


@pytest.fixture(scope="module")
def proof():
    found = prove(matrix(), S)
    assert found.nodes > 1
    return found


def nodes(log):
    return [step for step in log if step["step"] == "node"]


def test_tree_replay_accepts_the_proof(proof):
    assert replay(proof.log, matrix()) <= proof.bound
    question = Question((S,), False, True, proof.value)
    cov = covariance_of(matrix(), 1.0)
    assert recheck("tree", proof.data(), cov, question) <= proof.bound * (1 + 1e-12)


def test_tree_replay_refuses_another_question(proof):
    cov = covariance_of(matrix(), 1.0)
    assert recheck("tree", proof.data(), cov, Question((S + 1,), False, True, 0.0)) == np.inf
    assert recheck("tree", proof.data(), cov, Question((S, S), False, True, 0.0)) == np.inf
    signs = prove(matrix(), S, TreeQuestion(nonnegative=True))
    assert recheck("tree", signs.data(), cov, Question((S,), False, True, 0.0)) == np.inf
    assert recheck("tree", {"log": []}, cov, Question((S,), False, True, 0.0)) == np.inf


def test_tree_replay_refuses_another_matrix(proof):
    with pytest.raises(Refused):
        replay(proof.log, matrix(seed=1))
    with pytest.raises(Refused):
        replay(proof.log, 1.001 * matrix())


def tampered(proof, change):
    log = copy.deepcopy(proof.log)
    change(log)
    return log


def lower_bound(log):
    log[0]["bound"] *= 1 - 1e-5


def drop_last_node(log):
    log.remove(nodes(log)[-1])


def close_root_without_reason(log):
    split = next(i for i, step in enumerate(log) if step["step"] == "split")
    nodes(log)[0].update(end="closed", split=split)
    for node in nodes(log)[1:]:
        log.remove(node)


def declare_empty(log):
    nodes(log)[-1].update(end="empty", passes=[])


def fix_one_more(log):
    fixed = next(one for node in nodes(log) for one in node["passes"])
    gone = set(fixed["out"].tolist()) | set(fixed["in"].tolist())
    fixed["out"] = np.append(fixed["out"], min(set(range(P)) - gone)).astype(np.int32)


def exclude_a_stranger(log):
    child = next(node for node in nodes(log) if node["side"] == "out")
    other = np.setdiff1d(np.arange(P), child["moved"])
    child["moved"] = np.append(child["moved"], other).astype(np.int32)


def poison(log):
    split = next(step for step in log if "u" in step)
    split["u"][:] = np.nan


def invent_twins(log):
    log[0]["twins"] = {
        "features": np.array([1]),
        "leaders": np.array([0]),
        "factors": np.array([1.0]),
    }


@pytest.mark.parametrize(
    "change",
    [
        lower_bound,
        drop_last_node,
        close_root_without_reason,
        declare_empty,
        fix_one_more,
        exclude_a_stranger,
        poison,
        invent_twins,
    ],
)
def test_tree_replay_refuses_a_changed_log(proof, change):
    with pytest.raises(Refused):
        replay(tampered(proof, change), matrix())


def test_logs_are_single_precision_and_share_certificates(proof):
    splits = [step for step in proof.log if step["step"] == "split"]
    assert all(step["u"].dtype == step["r"].dtype == np.float32 for step in splits if "u" in step)
    used = [one["split"] for node in nodes(proof.log) for one in node["passes"]]
    used += [node["split"] for node in nodes(proof.log) if node["end"] == "closed"]
    assert len(splits) < len(used)


def test_no_log_when_it_is_not_wanted():
    assert prove(matrix(), S, TreeQuestion(keep_log=False)).log == []


def test_the_certificate_beyond_the_core_is_checked():
    rng = np.random.default_rng(2)
    X = rng.standard_normal((30, 60)) * np.geomspace(3.0, 0.05, 60)
    cov = covariance_of_data(X)[0]
    proof = prove_large(cov, 4, first_core=15)
    assert proof.status == "optimal"
    assert proof.touch is not None
    checked = checked_covariance_of_data(X, True, False, None, cov.unit)[0]
    question = Question((4,), False, True, proof.value)
    assert recheck("tree", proof.data(), checked, question) <= proof.bound * (1 + 1e-9)
    for change in ({"bound": 0.9 * proof.value}, {"groups": proof.touch["groups"][1:]}):
        data = {"log": proof.log, "touch": {**proof.touch, **change}}
        assert not recheck("tree", data, checked, question) <= proof.bound * (1 + 1e-9)
    assert not recheck("tree", {"log": proof.log}, checked, question) <= proof.bound * (1 + 1e-9)


def test_only_free_features_are_fixed():
    A = np.eye(3)
    header = {"step": "problem", "s": 1, "nonnegative": False, "bound": 1.5, "unit": 1.0}
    header["twins"] = {}
    split = {"step": "split", "clip": 0.0}
    none, one = np.array([], dtype=np.intp), np.array([1])
    root = {"step": "node", "parent": -1, "side": "root", "moved": none, "end": "branch"}
    root["passes"] = []
    log = [header, split, root]
    for out, into in ((one, none), (none, one)):
        for side in ("in", "out"):
            passes = [{"split": 1, "out": out, "in": into}]
            child = {**root, "parent": 2, "side": side, "moved": one, "passes": passes}
            other = {**root, "parent": 2, "side": {"in": "out", "out": "in"}[side], "moved": one}
            ends = [{**node, "end": "closed", "split": 1} for node in (child, other)]
            with pytest.raises(Refused, match="not free"):
                replay([*log, *ends], A)
