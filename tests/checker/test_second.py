"""Two checkers that share no code, and what each of them says of the same results."""

from __future__ import annotations

import base64
import copy
import json
from fractions import Fraction

import numpy as np
import pytest

from sparcipal import SparsePCA, sparse_pca, verify
from tests.support.brute import best_value, covariance
from tests.support.forgeries import beyond_a_core, on_road
from tests.support.second_checker import Refused, check, decode, exact, prove, question
from tests.support.second_checker.tree import Tree

QUICK = {"effort": 0}
KINDS = ("gauss", "spike", "ties", "repeat", "rank", "const")


def table(kind: str, rng, n: int, p: int) -> np.ndarray:
    X = rng.standard_normal((n, p))
    if kind == "spike":
        X[:, :4] += 1.5 * rng.standard_normal((n, 1))
    elif kind == "ties":
        X = rng.integers(-1, 2, (n, p)).astype(float)
    elif kind == "repeat":
        X[:, p // 2 :] = X[:, : p - p // 2] * rng.choice([1, -1, 0.5], p - p // 2)
    elif kind == "rank":
        X = rng.standard_normal((n, 2)) @ rng.standard_normal((2, p))
    elif kind == "const":
        X[:, 1], X[:, 4] = 3, 0
    return X


def questions(seed: int):
    """Data and settings: a dozen questions about one table."""
    rng = np.random.default_rng(seed)
    X = table(KINDS[seed % 6], rng, int(rng.integers(4, 16)), int(rng.integers(6, 11)))
    proof = {"certify": (False, "fast", "full")[seed // 2 % 3], "nonnegative": seed % 4 > 1}
    sign = {"nonnegative": proof["nonnegative"]}
    s = int(rng.integers(1, 5))
    two = {"n_components": 2, "method_options": QUICK, **proof}
    yield X, None, {"n_nonzero_coefs": s, **proof}
    yield X, None, {"n_nonzero_coefs": s, "scale": True, **proof}
    yield X, None, {"n_nonzero_coefs": 3, "center": False, "supports": "free", **proof}
    yield None, np.cov(X.T, bias=True), {"n_nonzero_coefs": s, **proof}
    yield X, None, {"n_nonzero_coefs": min(s, 3), **two}
    yield X, None, {"n_nonzero_coefs": [3, 2], **two}
    yield X, None, {"n_nonzero_coefs": {"total": 5}, **two}
    yield X, None, {"n_nonzero_coefs": min(s, 3), "supports": "free", **two}
    yield X, None, {"n_nonzero_coefs": s, "method": "dspca", **sign}
    yield X, None, {"n_nonzero_coefs": 2, "n_components": 2, "method": "dspca", **sign}
    free = {"supports": "free", "n_components": 2, "n_nonzero_coefs": 2}
    yield X, None, {"method": "dspca", **free, **sign}
    spans = {"method": "spannogram", "rank": 2, **sign}
    yield X, None, {"n_nonzero_coefs": s, **spans}
    if seed % 3 == 0:
        yield X, None, {**free, **spans}
    if not proof["nonnegative"]:
        yield X, None, {"n_nonzero_coefs": s, "method": "greedy"}


def optimum(X, A, asked: dict, value: float) -> float:
    """The most that components explain; with shared features the best that is known."""
    if asked.get("supports") == "free" and asked.get("n_components", 1) > 1:
        return value
    if A is None:
        A = covariance(X, asked.get("center", True))
    if asked.get("scale"):
        size = np.sqrt(np.diag(A))
        size[size < 1e-12] = 1
        A = A / np.outer(size, size)
    s, nonnegative = asked["n_nonzero_coefs"], asked.get("nonnegative", False)
    if isinstance(s, dict):
        total = s["total"]
        ways = [(i, total - i) for i in range(1, total // 2 + 1)]
    else:
        ways = [tuple(s) if isinstance(s, list) else (s,) * asked.get("n_components", 1)]
    return max(best_value(A, sizes, nonnegative) for sizes in ways)


def numbers(entry, path=()):
    """The places of all numbers and arrays of numbers."""
    if isinstance(entry, dict) and "$array" not in entry:
        for name, inner in entry.items():
            yield from numbers(inner, (*path, name))
    elif isinstance(entry, list):
        for place, inner in enumerate(entry):
            yield from numbers(inner, (*path, place))
    elif isinstance(entry, dict) or (isinstance(entry, (int, float)) and entry is not True):
        yield path


def forged(document: dict, rng) -> dict:
    """The document with one number of its bounds changed."""
    document = copy.deepcopy(document)
    bounds = document["certificate"]["bounds"]
    paths = list(numbers(bounds))
    path = paths[rng.integers(len(paths))]
    holder = bounds
    for name in path[:-1]:
        holder = holder[name]
    old = holder[path[-1]]
    if isinstance(old, dict):
        array = np.frombuffer(base64.b64decode(old["$array"]), old["dtype"]).copy()
        if not array.size:
            return document
        place = rng.integers(array.size)
        array[place] = array[place] * rng.choice([0.5, 2, -1]) + rng.choice([0, 1, -1])
        holder[path[-1]] = {**old, "$array": base64.b64encode(array.tobytes()).decode()}
    elif isinstance(old, float):
        holder[path[-1]] = old * float(rng.choice([0.5, 0.9, 0.99, 2.0]))
    else:
        holder[path[-1]] = int(old) + int(rng.choice([1, -1]))
    certificate = document["certificate"]
    bounds.sort(key=lambda bound: bound["value"])
    certificate["bound"] = bounds[0]["value"]
    certificate["status"] = "gap"
    return document


@pytest.mark.parametrize("seed", range(4))
def test_two_checkers_agree_on_honest_results_and_refuse_false_bounds(seed):
    rng = np.random.default_rng(1000 + seed)
    for X, A, asked in questions(seed):
        result = sparse_pca(X, covariance=A, **asked)
        text = result.to_json()
        assert verify(result, X, covariance=A).verdict == "proved", asked
        assert check(text, X, covariance=A) == "proved", asked

        best = optimum(X, A, asked, result.value)
        assert best <= result.certificate.bound
        document = json.loads(text)
        ask = question(decode(document), X, A, None)
        for bound in decode(document)["certificate"]["bounds"]:
            with pytest.raises(Refused):  # a level that the best answer exceeds
                prove(bound["name"], bound["data"], ask, exact(best * (1 - 1e-9)) / ask.unit)
        for _ in range(3):
            forgery = forged(document, rng)
            if check(json.dumps(forgery), X, covariance=A) == "proved":
                assert best <= forgery["certificate"]["bound"] * (1 + 1e-12)


def test_a_bound_below_the_optimum_is_refused_for_every_component_count():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((20, 8))
    for k in (1, 2):
        result = sparse_pca(X, n_components=k, n_nonzero_coefs=2, method_options=QUICK)
        for place in range(len(result.certificate.bounds)):
            document = json.loads(result.to_json())
            certificate = document["certificate"]
            wrong = certificate["bounds"].pop(place)
            wrong["value"] = certificate["bound"] = certificate["value"] * (1 - 1e-15)
            certificate["bounds"].insert(0, wrong)
            assert check(json.dumps(document), X).startswith("refused"), wrong["name"]


@pytest.mark.parametrize("entry", ["value", "weights", "supports", "mean", "total_variance"])
def test_a_changed_claim_is_refused(entry):
    X = np.random.default_rng(3).standard_normal((12, 6))
    model = SparsePCA(n_nonzero_coefs=3).fit(X)
    document = json.loads(model.result_.to_json())
    assert check(json.dumps(document), X) == "proved"
    if entry == "value":
        document["certificate"]["value"] *= 1 + 1e-9
    elif entry == "total_variance":
        document[entry] *= 1 + 1e-9
    else:
        holder = document if entry == "mean" else document[entry]
        key = entry if entry == "mean" else 0
        old = np.frombuffer(base64.b64decode(holder[key]["$array"]), holder[key]["dtype"])
        new = (old + (1 if entry == "supports" else 1e-3)).astype(old.dtype)
        holder[key] = {**holder[key], "$array": base64.b64encode(new.tobytes()).decode()}
    assert check(json.dumps(document), X).startswith("refused")


@pytest.mark.parametrize(
    ("sizes", "p", "nonnegative"), [(10, 26, False), (9, 30, True), ([10, 9], 26, False)]
)
def test_two_checkers_agree_on_prices(sizes, p, nonnegative):
    rng = np.random.default_rng({26: 6, 30: 13}[p] if isinstance(sizes, int) else 3)
    X = rng.standard_normal((60, p))
    X[:, :12] += rng.standard_normal((60, 1)) * np.linspace(1.5, 0.5, 12)
    X[:, 8:20] += 1.3 * rng.standard_normal((60, 1)) * np.linspace(0.5, 1.5, 12)
    result = sparse_pca(
        X,
        n_components=2,
        n_nonzero_coefs=sizes,
        nonnegative=nonnegative,
        certify="full",
        method_options=QUICK,
        max_nodes=100,
    )
    assert "configuration" in [bound.name for bound in result.certificate.bounds]
    assert verify(result, X).verdict == "proved"
    assert check(result.to_json(), X) == "proved"
    document = decode(json.loads(result.to_json()))
    ask = question(document, X, None, None)
    for bound in document["certificate"]["bounds"]:
        with pytest.raises(Refused):
            prove(bound["name"], bound["data"], ask, exact(result.value * (1 - 1e-9)) / ask.unit)


def test_two_checkers_agree_on_supports_that_leave_a_core():
    X = beyond_a_core()
    with on_road("core"):
        result = sparse_pca(X, n_nonzero_coefs=3)
    assert verify(result, X).verdict == "proved"
    document = json.loads(result.to_json())
    certificate = document["certificate"]
    certificate["bounds"] = [b for b in certificate["bounds"] if b["name"] == "tree"]
    assert "touch" in certificate["bounds"][0]["data"]
    assert check(json.dumps(document), X) == "proved"
    certificate["bounds"][0]["data"]["touch"]["groups"].pop()
    assert "left out" in check(json.dumps(document), X)


def test_a_log_without_nodes_proves_a_bound_of_zeros_only():
    zeros, ones = [[Fraction(0)] * 3] * 3, [[Fraction(1)] * 3] * 3
    problem = {"step": "problem", "s": 2, "nonnegative": False, "bound": 0.0, "unit": 1.0}
    log = [{**problem, "twins": {}}]
    Tree(log, zeros, 2, False, Fraction(0)).check()
    dear = [{**log[0], "prices": [2.0, 1.0, 3.0]}]
    Tree(dear, zeros, 2, False, Fraction(-1)).check()
    rewarded = [{**log[0], "prices": [0.0, -1.0, 0.0]}]
    padded = [{**log[0], "pads": [0.0, 0.0, 0.0]}]
    for wrong, A, level in (
        (log, ones, Fraction(9)),
        (log, zeros, Fraction(-1, 9)),
        (dear, zeros, Fraction(-2)),
        (rewarded, zeros, Fraction(9)),
        (padded, zeros, Fraction(9)),
    ):
        with pytest.raises(Refused, match="without nodes"):
            Tree(wrong, A, 2, False, level).check()
