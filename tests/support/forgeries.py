"""Does the checker accept anything false? Saved results with every kind of proof, changed anywhere.

    python -m tests.support.forgeries [MUTATIONS [FIRST_SEED]]

One entry of the document is changed at random: a number, a word, a list, an entry of an array, a
type. The document must then be refused, by the loader or by `verify`, unless what it still claims
is true: then the claim is that of the original, or the exact judge confirms it. Nothing may crash,
warn or take long.
"""

from __future__ import annotations

import base64
import json
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from inspect import signature
from itertools import combinations
from typing import Any

import numpy as np

from sparcipal import Alternatives, Result, alternatives, sparse_pca, verify
from sparcipal.problem.result import Bound

from .cases import Case, on_road
from .judge import screening
from .label_cases import with_labels
from .neighbours import with_neighbour
from .oracle import Oracle, exact_covariance, exact_matrix
from .streams import handed, streamed, topic

# Tables read in passes whose dropped features are bounded by prices (streams.py).
PRICED = (101, 106, 118, 129, 159, 160)
SLOW = 20.0  # seconds that no check of so small a problem may take
# Entries that are no claim: how much work it was, words, and what was asked for in vain.
NOTES = (
    ("certificate", "nodes"),
    ("certificate", "eliminated"),
    ("certificate", "message"),
    ("n_iter",),
    ("note",),
    ("info",),
    *(
        ("settings", name)
        for name in ("method", "method_options", "rank", "certify", "random_state", "max_nodes")
    ),
    ("settings", "time_limit"),
)
WORDS = ("optimal", "gap", "node_limit", "trace", "clip", "enumeration", "lowrank", "free", "")
WORDS += ("disjoint", "eigenvalues", "tree", "kyfan", "parts", "closed", "\x00")


@dataclass(frozen=True)
class Subject:
    """A true result and the data it came from."""

    name: str
    given: dict[str, Any]
    document: str
    table: Any = None  # what a Screened came from
    judge: Callable[[Subject, Any], str] | None = None  # says why a claim is not true, if it is not


def few_samples() -> np.ndarray:
    """A table whose best bound is an ellipsoid, as long as there is no branching."""
    return np.random.default_rng(0).standard_normal((8, 10)) * np.linspace(2, 0.2, 10)


def beyond_a_core() -> np.ndarray:
    """A table whose proof works on a core, and clears the features outside one by one."""
    rng = np.random.default_rng(3)
    X = rng.standard_normal((20, 10)) * np.geomspace(3, 0.3, 10)
    X[:, :3] += 2 * rng.standard_normal((20, 1))
    return X


QUICK = {"method_options": {"effort": 0}}  # of the search: proofs are on trial


def subjects() -> list[Subject]:
    """Results that between them carry every kind of proof."""
    return held_subjects() + screened_subjects()


def held_subjects() -> list[Subject]:
    """Those of tables in memory and of matrices."""
    rng = np.random.default_rng(11)
    X = rng.standard_normal((40, 8))
    X[:, 3] += 1.5 * X[:, 1]
    X[:, 6] -= X[:, 2]
    X[:, 5] = X[:, 4]
    A = np.cov(X.T) + 0.2
    weights = rng.random(40) + 0.1
    questions: dict[str, tuple[str, dict[str, Any]]] = {
        "one": ("usual", {"X": X, "n_nonzero_coefs": 3}),
        "cheap": ("usual", {"X": X, "n_nonzero_coefs": 3, "certify": False}),
        "exact": ("usual", {"covariance": A, "n_nonzero_coefs": 4, "certify": "full"}),
        "positive": ("usual", {"X": -X, "n_nonzero_coefs": 4, "nonnegative": True}),
        "core": ("core", {"X": beyond_a_core(), "n_nonzero_coefs": 3, "certify": "full"}),
        "packed": ("usual", {"X": X, "n_components": 2, "n_nonzero_coefs": [3, 2]}),
        "joint": ("no enumeration", {"X": X, "n_components": 2, "n_nonzero_coefs": 3}),
        "priced": (
            "no enumeration",
            {"covariance": A, "n_components": 2, "n_nonzero_coefs": 3, "certify": "full"},
        ),
        "few samples": ("usual", {"X": few_samples(), "n_nonzero_coefs": 3, "max_nodes": 0}),
        "low rank": ("low rank", {"X": X, "n_nonzero_coefs": 3, "method": "spannogram", "rank": 2}),
        "dspca": ("usual", {"X": X, "n_nonzero_coefs": 3, "method": "dspca", "certify": False}),
        "greedy": ("usual", {"covariance": A, "n_nonzero_coefs": 3, "method": "greedy"}),
        "free": (
            "usual",
            {"X": X, "n_components": 2, "n_nonzero_coefs": 3, "supports": "free", **QUICK},
        ),
        "total": ("usual", {"X": X, "n_components": 2, "n_nonzero_coefs": {"total": 5}}),
        "scaled": (
            "usual",
            {"X": X * 1e40, "n_nonzero_coefs": 3, "scale": True, "sample_weight": weights},
        ),
        "constant": ("usual", {"X": np.c_[X, np.ones((40, 2))], "n_nonzero_coefs": 3}),
        "branched": (
            "usual",
            {
                "X": np.random.default_rng(3).standard_normal((30, 12)),
                "n_nonzero_coefs": 5,
                "certify": "full",
            },
        ),
        "shrunk": (
            "usual",
            {"X": shrinking(), "n_nonzero_coefs": 6, "certify": "full", "nonnegative": True},
        ),
        "packings": (
            "no enumeration",
            {
                "X": np.random.default_rng(8).standard_normal((30, 9)),
                "n_components": 2,
                "n_nonzero_coefs": 3,
                "certify": "full",
            },
        ),
        "stopped": ("no enumeration", {"X": X, "n_nonzero_coefs": 4, "max_nodes": 0, "tol": 0.0}),
    }
    found = []
    for name, (road, asked) in questions.items():
        with on_road(road):
            result = sparse_pca(**asked)
        given = {key: asked[key] for key in ("X", "covariance", "sample_weight") if key in asked}
        found.append(Subject(name, given, result.to_json()))
    return [*found, every_end(), *other_subjects()]


def other_subjects() -> list[Subject]:
    """Kinds of components, constraints, missing entries, neighbours, labels and alternatives."""
    rng = np.random.default_rng(12)
    X = rng.standard_normal((30, 7))
    X[:, 3] += 1.5 * X[:, 1]
    X[:, 5] = X[:, 4]
    gaps = X.copy()
    gaps[rng.random(X.shape) < 0.08] = np.nan
    two = {"n_components": 2, "n_nonzero_coefs": 3}
    questions: dict[str, tuple[np.ndarray, dict[str, Any]]] = {
        "adjusted": (X, {**two, "objective": "adjusted", **QUICK}),
        "orthogonal": (X, {**two, "supports": "orthogonal", **QUICK}),
        "orthogonal sizes": (
            X,
            {**two, "supports": "orthogonal", "n_nonzero_coefs": [3, 2], **QUICK},
        ),
        "common": (few_samples(), {**two, "supports": "common"}),
        "common matrix": (
            np.random.default_rng(0).standard_normal((30, 24)),
            {**two, "n_nonzero_coefs": 6, "supports": "common"},
        ),
        "uncorrelated": (X, {**two, "supports": "free", "uncorrelated": True, **QUICK}),
        "anchored": (X, {"n_nonzero_coefs": 3, "include": [6], "certify": "full"}),
        "two anchored": (X, {**two, "include": [[6], []], "exclude": [0]}),
        "excluded": (X, {"n_nonzero_coefs": 3, "exclude": [1], "certify": "full"}),
        "left out": (gaps, {"n_nonzero_coefs": 3, "missing": "rows"}),
        "filled": (gaps, {"n_nonzero_coefs": 3, "missing": "median"}),
        "in pairs": (gaps, {"n_nonzero_coefs": 3, "missing": "pairwise", "scale": True}),
    }
    found = []
    for name, (table, asked) in questions.items():
        result = sparse_pca(table, **asked)
        found.append(Subject(name, {"X": table}, result.to_json(), judge=solved_again))
    few, more = (sparse_pca(X, n_nonzero_coefs=s) for s in (3, 4))
    own = with_neighbour(more, few)
    found.append(Subject("neighbour", {"X": X}, own.to_json(), judge=solved_again))
    labelled = with_labels(sparse_pca(X, n_components=2, n_nonzero_coefs=2), X)
    found.append(Subject("labels", {"X": X}, labelled.to_json(), judge=solved_again))
    for name, asked in (("near", {}), ("near anchored", {"include": [6]})):
        near = alternatives(sparse_pca(X, n_nonzero_coefs=3, **asked), X, within=0.2, force=1)
        found.append(Subject(name, {"X": X}, near.to_json(), judge=looked_through))
    return found


def screened_subjects() -> list[Subject]:
    """Results of tables of which only some features were kept, by every rule."""
    counts = np.rint(3 * topic(np.random.default_rng(5), 24, 8)).astype(np.int16)
    numbers = topic(np.random.default_rng(6), 20, 8)
    weights = np.random.default_rng(7).random(20) + 0.1
    plain = {"n_nonzero_coefs": 3, "center": True, "scale": False}
    two = {**plain, "n_components": 2, "n_nonzero_coefs": 2}
    questions: dict[str, tuple[str, np.ndarray, dict[str, Any]]] = {
        "passes": ("array", counts, plain),
        "cheap passes": ("csr", counts, {**plain, "certify": False}),
        "two in passes": ("blocks", counts, two),
        "free in passes": ("mixed blocks", numbers, {**two, "supports": "free", **QUICK}),
        "total in passes": ("map", numbers, {**two, "n_nonzero_coefs": {"total": 5}}),
        "scaled passes": ("array", numbers, {**plain, "scale": True, "sample_weight": weights}),
        "positive passes": ("array", numbers, {**plain, "nonnegative": True}),
        "handed over": ("screened", counts, two),
        "given over": ("plain", counts[:8], plain),
    }
    found = []
    cases = [
        Case(0, name, "usual", "sparse_pca", X, False, options, None, source, (6, 4, 7))
        for name, (source, X, options) in questions.items()
    ]
    for case in cases + [streamed(seed) for seed in PRICED]:
        own = case.source in ("screened", "plain")
        asked = _without(case.options) if own else case.options
        with handed(case) as (given, again):
            result = sparse_pca(**{**asked, **given, "memory_limit": 1})
        # blocks and files were there for the fit; the numbers are enough for the checker
        again = given if own else {**again, "X": case.data}
        found.append(Subject(f"{case.family} {case.seed}", again, result.to_json(), case.data))
    return found


def _without(options: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in options.items() if key not in ("center", "scale")}


def every_end() -> Subject:
    """A result whose tree, written by hand, ends in every way: three features, two nonzeros."""
    A = np.array([[1.0, -0.5, 0.0], [-0.5, 1.2, 0.0], [0.0, 0.0, 0.3]])
    result = sparse_pca(covariance=A, n_nonzero_coefs=2, nonnegative=True)
    steps: list[tuple[int, str, list[int], str, dict[str, int]]] = [
        (-1, "root", [], "branch", {}),
        (2, "in", [2], "leaf", {}),
        (2, "out", [2], "branch", {}),  # 0 and 1 are left
        (4, "in", [0], "branch", {}),
        (4, "out", [0], "branch", {}),
        (5, "out", [1], "leaf", {}),  # 0 alone
        (5, "in", [1], "shrink", {}),  # both: no vector is positive on both of them
        (6, "in", [1], "closed", {"split": 1}),
        (6, "out", [1], "empty", {}),
        (8, "shrink", [0], "leaf", {}),
        (8, "shrink", [1], "same", {"node": 7}),
    ]
    nodes = [
        {
            "step": "node", "parent": parent, "side": side, "moved": np.array(moved, np.intp),
            "passes": [], "end": end, **more,
        }
        for parent, side, moved, end, more in steps
    ]  # fmt: skip
    level = 1.2 * (1 + 1e-9)
    unit = result.certificate.unit
    problem = {
        "step": "problem", "s": 2, "nonnegative": True, "bound": level / unit, "unit": 1.0,
        "twins": {},
    }  # fmt: skip
    log = [problem, {"step": "split", "clip": 0.0}, *nodes]
    bound = Bound("tree", level * (1 + 1e-9), {"log": log}, 0.0)
    bounds = sorted((*result.certificate.bounds, bound), key=lambda one: one.value)
    certificate = replace(result.certificate, bounds=tuple(bounds))
    text = replace(result, certificate=certificate).to_json()
    return Subject("every end", {"covariance": A}, text)


def shrinking() -> np.ndarray:
    """A table whose nonnegative proof meets full supports that no positive vector solves."""
    rng = np.random.default_rng(119)
    p = int(rng.integers(5, 11))
    return rng.standard_normal((p + 4, p))


# --- changing a document ---


def sites(node: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every entry of a document; arrays count once, they are opened when they are changed."""
    if path:
        yield path
    if isinstance(node, dict) and "$array" not in node:
        for key, item in node.items():
            yield from sites(item, (*path, key))
    elif isinstance(node, list):
        for i, item in enumerate(node[:40]):
            yield from sites(item, (*path, i))


def forged(document: str, rng: np.random.Generator) -> tuple[str, tuple[Any, ...]]:
    """The document with one entry changed, and where."""
    copy = json.loads(document)
    places = list(sites(copy))
    # claims and proofs alike: first one of the branches, then an entry of it
    branch = places[int(rng.integers(len(places)))][0]
    places = [p for p in places if p[0] == branch]
    path = places[int(rng.integers(len(places)))]
    parent = copy
    for key in path[:-1]:
        parent = parent[key]
    if rng.random() < 0.04:
        del parent[path[-1]]
    else:
        parent[path[-1]] = _changed(parent[path[-1]], rng)
    return json.dumps(copy), path


def _changed(value: Any, rng: np.random.Generator) -> Any:
    if rng.random() < 0.1:
        others = (None, True, False, 0, -1, 1.5, "x", [], {}, [[]], 10**400, float("nan"))
        return others[int(rng.integers(len(others)))]
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + int(rng.choice([-2, -1, 1, 2, 10, 10**9, -(10**9)]))
    if isinstance(value, float):
        return _number(value, rng)
    if isinstance(value, str):
        return WORDS[int(rng.integers(len(WORDS)))]
    if isinstance(value, dict) and "$array" in value:
        return _array(value, rng)
    if isinstance(value, dict):
        keys = list(value)
        return {key: value[key] for key in keys[: int(rng.integers(len(keys) + 1))]}
    if isinstance(value, list) and value:
        i = int(rng.integers(len(value)))
        return ([*value, value[i]], value[:i] + value[i + 1 :], value[::-1])[int(rng.integers(3))]
    return 7 if value is None else [value]


def _number(x: float, rng: np.random.Generator) -> float:
    factor = float(rng.choice([0.5, 0.9, 1 - 1e-6, 1 + 1e-6, 1.1, 2.0, -1.0, 1e30, 1e-30]))
    choices = (x * factor, x + factor, 0.0, float("inf"), float("nan"), 2.0**-1074, 1e308)
    return choices[int(rng.choice(7, p=[0.6, 0.2, 0.04, 0.04, 0.04, 0.04, 0.04]))]


def _array(entry: dict[str, Any], rng: np.random.Generator) -> dict[str, Any]:
    """An entry, the shape, the type or the bytes of an encoded array."""
    kind = rng.random()
    if kind < 0.04:
        return {**entry, "dtype": str(rng.choice(["<f4", "<i8", "|b1", "<f8", "|O", "<c16", "?"]))}
    if kind < 0.08:
        shape = [*entry["shape"]]
        shapes = ([*shape, 1], [-1], [10**12], [0], shape[::-1], "x", [1.5])
        return {**entry, "shape": shapes[int(rng.integers(len(shapes)))]}
    if kind < 0.12:
        return {**entry, "$array": entry["$array"][: int(rng.integers(len(entry["$array"]) + 1))]}
    array = np.frombuffer(base64.b64decode(entry["$array"]), dtype=entry["dtype"]).copy()
    if array.size == 0:
        return {**entry, "shape": [1]}
    if kind < 0.2:
        array = array[::-1].copy() if kind < 0.16 else np.roll(array, 1)
    else:
        i = int(rng.integers(array.size))
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if array.dtype.kind == "f":
                array[i] = _number(float(array[i]), rng)
            elif array.dtype.kind == "b":
                array[i] = not array[i]
            else:
                array[i] += array.dtype.type(rng.choice([-1, 1, 3]))
    return {**entry, "$array": base64.b64encode(array.tobytes()).decode()}


# --- judging what the checker said ---


def outcome(subject: Subject, text: str, path: tuple[Any, ...]) -> str:
    """What became of a forgery; words that start with WRONG are violations."""
    start = time.process_time()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            try:
                result = loaded(subject, text)
            except ValueError:
                return "not loaded"
            verdict = verify(result, **subject.given)
    except Exception as error:
        return f"WRONG: raised {error!r}"
    if time.process_time() - start > SLOW:
        return "WRONG: took too long"
    if verdict.verdict != "proved":
        return verdict.verdict
    if any(path[: len(note)] == note for note in NOTES):
        return "a note"
    if subject.judge is None and claim(result) == claim(loaded(subject, subject.document)):
        return "the same claim"
    untrue = (subject.judge or falsehood)(subject, result)
    return f"WRONG: accepted, but {untrue}" if untrue else "another claim, and true"


def loaded(subject: Subject, text: str) -> Any:
    """The result or the alternatives of a document."""
    return (Alternatives if subject.judge is looked_through else Result).from_json(text)


def claim(result: Result) -> tuple[Any, ...]:
    """What is asserted about the data."""
    certificate, settings = result.certificate, result.settings
    return (
        certificate.value,
        certificate.bound,
        certificate.rounding,
        certificate.status,
        certificate.tol,
        tuple(s.tolist() for s in result.supports),
        tuple(w.tolist() for w in result.weights),
        result.variances.tolist(),
        result.n_features,
        result.n_samples,
        tuple(
            (key, settings.get(key))
            for key in (
                "n_nonzero_coefs",
                "nonnegative",
                "supports",
                "objective",
                "center",
                "scale",
            )
        ),
        settings.get("n_nonzero_total"),
        result.total_variance,
        None if result.mean is None else result.mean.tolist(),
        None if result.scale is None else result.scale.tolist(),
        result.feature_names,
        tuple(certificate.screening.items()),
        tuple(certificate.guarantees.values()),
    )


def falsehood(subject: Subject, result: Result) -> str:
    """Why a claim is not true of the data ("" if it is), by exact arithmetic."""
    settings, certificate = result.settings, result.certificate
    oracle = _oracle(subject, settings)
    vectors = list(result.components)
    several = len(vectors) > 1
    free, adjusted = (
        several and settings[name] == kind
        for name, kind in (("supports", "free"), ("objective", "adjusted"))
    )
    worth = oracle.adjusted(vectors) if free or adjusted else oracle.worth(vectors)
    if free:
        best = oracle.deflated(settings["n_nonzero_coefs"])
    elif adjusted:
        best = worth  # of components that share nothing
    else:
        best = oracle.optimum(settings["n_nonzero_coefs"], settings.get("n_nonzero_total"))
    if Fraction(certificate.bound) < best:
        return f"the bound {certificate.bound!r} is below the optimum {float(best)!r}"
    if Fraction(certificate.value) - Fraction(certificate.rounding) > worth:
        return f"the value {certificate.value!r} is not {float(worth)!r}"
    if any(Fraction(part) * best > worth for part in certificate.guarantees.values()):
        return f"{certificate.guarantees!r} of the optimum is promised and not reached"
    if certificate.screening and not free:
        return next(screening(result, oracle), "")
    return solved_again(subject, result) if adjusted and not free else ""


def solved_again(subject: Subject, result: Result) -> str:
    """Why a claim is not true: components of the kind it speaks of explain more than its bound.

    They are those of a new fit for the settings of the claim, with exact products.
    """
    known = signature(sparse_pca).parameters
    asked = {key: value for key, value in result.settings.items() if key in known}
    # an optimum does not depend on how it was sought
    ways = ("method", "method_options", "rank", "random_state")
    for name in ("sample_weight", "max_nodes", "time_limit", *ways):
        asked.pop(name, None)
    asked["n_nonzero_coefs"] = list(asked["n_nonzero_coefs"])
    if asked.get("include") is not None and len(asked["n_nonzero_coefs"]) == 1:
        asked["include"] = asked["include"][0]
    try:
        best = sparse_pca(subject.given["X"], **{**asked, "certify": False, "n_jobs": None})
    except ValueError as error:
        return f"its question has no answer: {error}"
    certificate = result.certificate
    if certificate.bound < best.value - best.certificate.rounding:
        return f"the bound {certificate.bound!r} is below {best.value!r}"
    if certificate.value - certificate.rounding > certificate.bound:
        return "the value is above the bound"
    return ""


def looked_through(subject: Subject, found: Alternatives) -> str:
    """Why alternatives of one component are not what there is, by all supports one by one."""
    A = np.cov(subject.given["X"].T, bias=True)
    answer, near = found.result, found.components[0]
    s, anchors = answer.settings["n_nonzero_coefs"][0], answer.settings.get("include") or [[]]
    worth = {
        frozenset(S): float(np.linalg.eigvalsh(A[np.ix_(S, S)])[-1])
        for S in combinations(range(len(A)), s)
        if set(anchors[0]) <= set(S)
    }
    listed = {_without_copies(entry.support.tolist()): entry for entry in near.supports}
    for S, value in worth.items():
        if value > near.level * (1 + 1e-9) and _without_copies(S) not in listed:
            return f"{sorted(S)} explains {value!r} and is not listed"
    for S, entry in listed.items():
        true = max(v for T, v in worth.items() if _without_copies(T) == S)
        if not entry.value * (1 - 1e-9) <= true <= entry.bound * (1 + 1e-9):
            return f"{sorted(S)} explains {true!r}"
    without = {j: max(v for S, v in worth.items() if j not in S) for j in range(len(A) - 1)}
    holding = {j: max(v for S, v in worth.items() if j in S) for j in range(len(A))}
    costs = [(cost.value, without[cost.feature], cost.bound) for cost in near.drops]
    costs += [(cost.value, holding[cost.feature], cost.bound) for cost in near.forces]
    costs += [
        (value, holding[int(j)], most)
        for j, value, most in zip(near.outsiders, near.with_value, near.with_bound)
    ]
    for low, true, high in costs:
        if not low * (1 - 1e-9) <= true <= high * (1 + 1e-9):
            return f"a cost between {low!r} and {high!r}, which is {true!r}"
    complete = found.status != "complete" or near.level <= (1 - found.within) * near.value * 1.0001
    return solved_again(subject, answer) if complete else "a list that is not complete"


def _without_copies(support: Iterable[int]) -> frozenset[int]:
    """A support in which feature 4 stands for its copy 5, where only one of them is used."""
    own = set(support)
    return frozenset(own if 4 in own or 5 not in own else own - {5} | {4})


_ORACLES: dict[tuple[Any, ...], Oracle] = {}


def _oracle(subject: Subject, settings: dict[str, Any]) -> Oracle:
    key = subject.name, settings["center"], settings["scale"], settings["nonnegative"]
    if key not in _ORACLES:
        given = subject.given
        if "covariance" in given and subject.table is None:
            exact = exact_matrix(given["covariance"])
        else:
            exact = exact_covariance(
                given["X"] if subject.table is None else subject.table,
                center=settings["center"],
                scale=settings["scale"],
                weights=given.get("sample_weight"),
            )
        _ORACLES[key] = Oracle(exact, settings["nonnegative"])
    return _ORACLES[key]


def campaign(mutations: int, first: int) -> Counter[str]:
    """Outcomes and how often each; every violation is printed with its seed."""
    everyone, seen = subjects(), Counter[str]()
    for subject in everyone:
        verdict = verify(loaded(subject, subject.document), **subject.given)
        if not verdict:
            seen["WRONG: an honest result was refused"] += 1
            print(f"{subject.name}: {verdict.reason}")
    for seed in range(first, first + mutations):
        rng = np.random.default_rng(seed)
        subject = everyone[seed % len(everyone)]
        text, path = forged(subject.document, rng)
        said = outcome(subject, text, path)
        seen[said.split(":")[0]] += 1
        if said.startswith("WRONG"):
            print(f"seed {seed}, {subject.name}, {'/'.join(map(str, path))}: {said}", flush=True)
    return seen


def main(mutations: int = 3000, first: int = 0) -> int:
    seen = campaign(mutations, first)
    print(", ".join(f"{count} {name}" for name, count in seen.most_common()))
    return 1 if any(name.startswith("WRONG") for name in seen) else 0


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:3])))
