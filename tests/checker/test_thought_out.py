"""Proofs that were thought out to prove too little: what a forger would try, family by family.

Components that are not the best ones come with a bound between their value and the optimum, which
is false, and with a proof that was bent to give it. The same proof as it was, with the bound as it
was, is accepted beside the same components: so each refusal is of the forgery.
"""

from __future__ import annotations

import copy
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from sparcipal import Result, sparse_pca, verify
from sparcipal.checker.covariance import covariance_of_data
from sparcipal.problem.result import Bound, Status
from tests.support import forgeries

TINY, HUGE = 5e-324, 1e308
Data = dict[str, Any]


@pytest.fixture(scope="module")
def subjects(subjects: list[forgeries.Subject]) -> dict[str, forgeries.Subject]:
    return {subject.name: subject for subject in subjects}


def poor(subject: forgeries.Subject) -> Result:
    """The result with the worst of all its full components."""
    result = Result.from_json(subject.document)
    settings, given = result.settings, subject.given
    if "covariance" in given:
        A = given["covariance"]
    else:
        A = np.cov(given["X"], rowvar=False, bias=True)
    positive, used, chosen = settings["nonnegative"], set(), []
    for support in result.supports:
        ranked = []
        for S in combinations([j for j in range(len(A)) if j not in used], support.size):
            w, Q = np.linalg.eigh(A[np.ix_(S, S)])
            x = Q[:, -1] * np.sign(Q[np.abs(Q[:, -1]).argmax(), -1])
            if w[-1] > 0 and (not positive or (x >= 0).all()):
                ranked.append((w[-1], S, x))
        value, S, x = min(ranked, key=lambda entry: entry[0])
        used |= set(S)
        chosen.append((value, np.array(S), x))
    chosen.sort(key=lambda entry: -entry[0])
    values, supports, weights = zip(*chosen)
    certificate = replace(result.certificate, value=float(sum(values)), status=Status.GAP)
    return replace(
        result,
        supports=supports,
        weights=weights,
        variances=np.array(values),
        certificate=certificate,
    )


def claim(result: Result, name: str, value: float, data: Data | None = None) -> Result:
    """The result with one bound, without promises and correlations, which were for others."""
    bound = next(b for b in result.certificate.bounds if b.name == name)
    bound = replace(bound, value=value, data=bound.data if data is None else data)
    made = replace(result.certificate, bounds=(bound,), bound=value, guarantees={})
    info = {key: told for key, told in result.info.items() if key != "redundancy"}
    return replace(result, certificate=made, info=info)


# --- what a forger writes ---


def put(*path: Any, to: Any) -> Any:
    """An entry, replaced; `to` may be a function of the data or of what was there."""

    def edit(data: Data, level: float) -> None:
        at: Any = data
        for key in path[:-1]:
            at = at[key]
        old = at.get(path[-1]) if isinstance(at, dict) else at[path[-1]]
        at[path[-1]] = to(old) if callable(to) else to

    return edit


def gone(*path: Any) -> Any:
    def edit(data: Data, level: float) -> None:
        at: Any = data
        for key in path[:-1]:
            at = at[key]
        del at[path[-1]]

    return edit


def lowered(*path: Any) -> Any:
    """A level that is as low as the claim."""

    def edit(data: Data, level: float) -> None:
        at: Any = data
        for key in path[:-1]:
            at = at[key]
        at[path[-1]] = level

    return edit


def log(*steps: Any, **problem: Any) -> Any:
    """The log of a tree with the claimed bound, other entries of the problem and other steps."""

    def edit(data: Data, level: float) -> None:
        first = {**data["log"][0], "bound": level, **problem}
        data["log"] = [first, *(steps or data["log"][1:])]

    return edit


def node(parent: int = -1, side: str = "root", moved: Any = (), end: str = "closed", **more: Any):
    """A node; a pass is (split, out, in)."""
    passes = [
        {"split": split, "out": np.array(out, dtype=int), "in": np.array(into, dtype=int)}
        for split, out, into in more.pop("passes", ())
    ]
    made = {"step": "node", "parent": parent, "side": side, "moved": np.array(moved, dtype=int)}
    return {**made, "passes": passes, "end": end, **more}


def split(**entries: Any) -> Data:
    return {"step": "split", **entries}


def pairs(p: int, u: float, r: float) -> Data:
    m = p * (p - 1) // 2
    return split(features=np.arange(p), u=np.full(m, u), r=np.full(m, r))


def only(*features: int) -> Any:
    """Some features, all others being declared constant."""
    return put("kept", to=np.array(features))


def each(*edits: Any) -> Any:
    def edit(data: Data, level: float) -> None:
        for one in edits:
            one(data, level)

    return edit


def times(factor: float) -> Any:
    return lambda old: old * factor


def twins(features: Any, leaders: Any, factors: Any) -> Data:
    return {
        "features": np.array(features),
        "leaders": np.array(leaders),
        "factors": np.array(factors, dtype=float),
    }


ROOT = node(split=1)
CLIPPED = split(clip=1e300)
IN, OUT = node(2, "in", [3], split=1), node(2, "out", [3], split=1)
EVERY = list(range(8))

TREES = {
    "a lower bound": log(),
    "no node": log(CLIPPED),
    "no step": lambda data, level: data.update(log=[]),
    "everything clipped": log(CLIPPED, ROOT),
    "nothing clipped": log(split(clip=0.0), ROOT),
    "minus zero": log(split(clip=-0.0), ROOT),
    "charges that overflow": log(pairs(8, 1e200, 100.0), ROOT),
    "charges that underflow": log(pairs(8, TINY, -100.0), ROOT),
    "charges in one direction": log(pairs(8, 1.0, 100.0), ROOT),
    "rank one of nothing": log(
        split(features=np.arange(8), rank_one=np.zeros(8), floor=TINY), ROOT
    ),
    "rank one that overflows": log(
        split(features=np.arange(8), rank_one=np.full(8, 1e200), floor=1e-300), ROOT
    ),
    "a certificate that lacks features": log(
        split(features=np.array([0]), rank_one=np.ones(1), floor=1.0), ROOT
    ),
    "a root that is empty": log(CLIPPED, node(end="empty")),
    "a root that is a leaf": log(CLIPPED, node(end="leaf")),
    "a root like itself": log(CLIPPED, node(end="same", node=2)),
    "a branch without children": log(CLIPPED, node(end="branch")),
    "one child": log(CLIPPED, node(end="branch"), IN),
    "the same child twice": log(CLIPPED, node(end="branch"), IN, IN),
    "children of different features": log(
        CLIPPED, node(end="branch"), IN, node(2, "out", [4], split=1)
    ),
    "all features out": log(CLIPPED, node(end="branch"), IN, node(2, "out", EVERY, end="empty")),
    "all features in": log(CLIPPED, node(end="branch"), node(2, "in", EVERY), OUT),
    "a child like its parent": log(
        CLIPPED, node(end="branch"), node(2, "in", [3], end="same", node=2), OUT
    ),
    "children like each other": log(
        CLIPPED, node(end="branch"), node(2, "in", [3], end="same", node=4),
        node(2, "out", [3], end="same", node=3),
    ),
    "a parent that comes later": log(CLIPPED, node(3, "in", [3]), node(end="branch"), OUT),
    "two roots": log(CLIPPED, node(end="branch"), node(end="closed", split=1), IN, OUT),
    "a node for a certificate": log(CLIPPED, node(split=2)),
    "the problem for a certificate": log(CLIPPED, node(split=0)),
    "fixed out": log(CLIPPED, node(passes=[(1, EVERY, [])], end="empty")),
    "fixed in": log(CLIPPED, node(passes=[(1, [], EVERY)], end="empty")),
    "fixed both ways": log(CLIPPED, node(passes=[(1, [3], [3])], end="empty")),
    "fixed twice": log(CLIPPED, node(passes=[(1, [3], []), (1, [3], [])], end="empty")),
    "fixed little by little": log(
        CLIPPED, node(passes=[(1, [j], []) for j in EVERY], end="empty")
    ),
    "a shrunk support of signed loadings": log(CLIPPED, node(end="shrink")),
    "prices": log(prices=np.full(8, 10.0)),
    "prices of nothing": log(prices=np.full(8, TINY)),
    "pads for nobody": log(CLIPPED, ROOT, pads=np.full(8, HUGE)),
    "fewer nonzeros": log(s=1),
    "one sign": log(nonnegative=True),
    "a larger unit": log(unit=2.0**60),
    "a smaller unit": log(unit=2.0**-1074),
    "a bound that overflows": log(bound=-HUGE),
    "twins of the weakest": log(
        CLIPPED, ROOT, twins=twins(EVERY[1:], np.zeros(7, int), np.full(7, 1e-3))
    ),
    "twins of nothing": log(CLIPPED, ROOT, twins=twins(EVERY[1:], np.zeros(7, int), np.zeros(7))),
    "twins of twins": log(CLIPPED, ROOT, twins=twins([1, 2], [2, 1], [1.0, 1.0])),
    "a twin of itself": log(CLIPPED, ROOT, twins=twins([1], [1], [0.5])),
    "constant features": each(log(), only(0, 4, 7)),
    "all but the best features constant": each(
        log(CLIPPED, ROOT, s=3), only(0, 2, 4, 5, 7)
    ),
}  # fmt: skip

TOUCHES = {
    "a smaller core": each(log(), put("touch", "core", to=lambda core: core[:-1])),
    "a lower bound": each(log(), lowered("touch", "bound")),
    "nobody outside": each(log(), put("touch", "near", to=np.zeros(0, int))),
    "tiny pads": each(
        lowered("touch", "bound"), put("touch", "groups", 0, "pads", 0, "scale", to=TINY)
    ),
    "huge pads": each(
        lowered("touch", "bound"), put("touch", "groups", 0, "pads", 0, "scale", to=HUGE)
    ),
    "no pads": each(lowered("touch", "bound"), put("touch", "groups", to=[])),
    "no touch": each(log(), gone("touch")),
}

OTHERS: dict[tuple[str, str], dict[str, Any]] = {
    ("cheap", "clip"): {
        "nothing": put("rho", to=0.0),
        "minus zero": put("rho", to=-0.0),
        "everything": put("rho", to=HUGE),
        "next to nothing": put("rho", to=TINY),
        "constant features": only(0, 4, 7),
    },
    ("one", "frobenius"): {
        "a shift that overflows": put("c", to=HUGE),
        "a shift that cancels": put("c", to=1e16),
        "no shift": put("c", to=0.0),
    },
    ("one", "gershgorin"): {"constant features": only(0, 4, 7)},
    ("one", "trace"): {"constant features": only(0, 4, 7)},
    ("packed", "enumeration"): {"constant features": only(0, 2, 4, 5, 7)},
    ("joint", "kyfan"): {
        "no pad": put("pad", to=0.0),
        "a tiny pad and core": each(
            put("pad", to=TINY), put("features", to=np.array([0, 4])),
            put("u", to=np.zeros(1)), put("r", to=np.zeros(1)), put("price", to=np.zeros(2)),
        ),
        "a huge pad and a small core": each(
            put("pad", to=HUGE), put("features", to=np.array([0, 4])),
            put("u", to=np.zeros(1)), put("r", to=np.zeros(1)), put("price", to=np.zeros(2)),
        ),
        "all is moved": put("u", to=times(1e3)),
        "charges of nothing": put("r", to=lambda r: np.full(r.size, -100.0)),
        "charges of one side": put("r", to=lambda r: np.full(r.size, 100.0)),
        "prices that cancel": put("price", to=lambda price: np.full(price.size, 1e16)),
        "prices of one": put("price", to=lambda price: np.append(1e3, price[1:])),
    },
    ("priced", "configuration"): {
        "a lower bound": lowered("parts", 0, "log", 0, "bound"),
        "other prices": put("price", to=times(0.5)),
        "no prices": put("price", to=times(0.0)),
        "minus zero": put("price", to=times(-0.0)),
        "prices of the proof alone": put("parts", 0, "log", 0, "prices", to=times(2.0)),
        "fewer nonzeros": put("parts", 0, "log", 0, "s", to=1),
        "one sign": put("parts", 0, "log", 0, "nonnegative", to=True),
        "part of the features": put("features", to=np.arange(4)),
        "no proof": put("parts", to=[]),
        "packed above nothing": put(
            "packing", to={"target": -1e300, "u": np.zeros(28), "r": np.zeros(28)}
        ),
        "packed above much": put(
            "packing", to={"target": 1e-300, "u": np.zeros(28), "r": np.zeros(28)}
        ),
    },
    ("packings", "configuration"): {
        "a low target": lowered("packing", "target"),
        "a low bound": lowered("parts", 0, "log", 0, "bound"),
        "supports that are cut": each(
            lowered("packing", "target"), put("packing", "u", to=times(1e6))
        ),
    },
    ("few samples", "ellipsoid"): {
        "a small ellipsoid": put("T", to=times(1e-6)),
        "a tiny ellipsoid": put("T", to=times(1e-300)),
        "no ellipsoid": put("T", to=times(0.0)),
        "inside out": put("T", to=times(-1.0)),
        "a flat one": put("T", to=lambda T: np.diag([1.0, *[1e-300] * (len(T) - 1)])),
        "nobody outside": each(
            put("features", to=np.zeros(0, int)), put("W", to=np.zeros((0, 8)))
        ),
        "short ways out": put("W", to=times(1e-3)),
    },
    ("low rank", "lowrank"): {
        "a low level": lowered("level"),
        "a low level and one cone": each(
            lowered("level"), put("tree", to=np.full(2, -1, dtype=np.int8))
        ),
        "no sketch": put("V", to=times(0.0)),
        "no sketch and no shift": each(
            put("V", to=times(0.0)), put("shift", to=0.0), put("level", to=0.0)
        ),
        "a negative shift": put("shift", to=-1.0),
        "a shift that overflows": put("shift", to=-HUGE),
        "a level that overflows": put("level", to=-HUGE),
        "fewer nonzeros": put("s", to=1),
        "one sign": put("nonnegative", to=True),
        "prices": put("prices", to=lambda none: np.full(8, 1e-3)),
        "prices that overflow": put("prices", to=lambda none: np.full(8, 1e307)),
        "everything clipped": put("clip", to=HUGE),
        "samples": each(lowered("level"), put("proof", to="samples")),
        "traces": each(put("shift", to=0.0), put("proof", to="trace"), lowered("level")),
        "no cone": put("tree", to=np.zeros(0, dtype=np.int8)),
        "an edge that is a point": put("tree", to=np.zeros(6, dtype=np.int8)),
        "cones without end": put("tree", to=np.full(100, 1, dtype=np.int8)),
    },
    ("dspca", "dspca-dual"): {
        "no penalty": put("penalty", to=0.0),
        "a tiny penalty": put("penalty", to=TINY),
        "all moved": put("moved", to=times(-1e3)),
        "a small core": each(
            put("core", to=np.array([0])), put("moved", to=np.zeros(0)), put("penalty", to=1e-3)
        ),
    },
    ("greedy", "greedy-dual"): {
        "a tiny level": put("rho", to=TINY),
        "a core of one": put("core", to=np.array([0])),
        "a tiny vector": put("weights", to=times(1e-200)),
        "no vector": put("weights", to=times(0.0)),
        "no shift": put("shift", to=0.0),
    },
}  # fmt: skip

FORGERIES = [
    *((("one", "tree"), name, edit) for name, edit in TREES.items()),
    *((("core", "tree"), name, edit) for name, edit in TOUCHES.items()),
    *((place, name, edit) for place, edits in OTHERS.items() for name, edit in edits.items()),
]


@pytest.mark.parametrize("place", list(dict.fromkeys(place for place, *_ in FORGERIES)), ids=str)
def test_proofs_that_were_bent_to_a_false_bound_are_refused(place, subjects):
    name, family = place
    subject = subjects[name]
    honest, result = Result.from_json(subject.document), poor(subject)
    bound = next(b for b in honest.certificate.bounds if b.name == family)
    assert verify(claim(result, family, bound.value), **subject.given)
    false = (result.value + honest.value) / 2
    assert result.value < 0.99 * false
    for at, what, edit in FORGERIES:
        if at != place:
            continue
        data = copy.deepcopy(bound.data)
        edit(data, false / honest.certificate.unit)
        verdict = verify(claim(result, family, false, data), **subject.given)
        assert verdict.verdict == "refused", what
        assert "below the value" not in verdict.reason
        exact = verify(claim(result, family, false, data), **subject.given, arithmetic="exact")
        assert exact.verdict == "refused", what


def test_there_are_as_many_as_were_thought_of():
    assert len(FORGERIES) >= 100


# --- what underflow hides ---


def beside_a_huge_column(case: str, big: float, p: int = 6) -> tuple[Result, np.ndarray, float]:
    """A component that explains nothing, in a unit that fits a column of size `big` only; the
    table; what is counted as rounding."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, p))
    X[:, 1:3] = 3 * rng.standard_normal((40, 1)) + 0.1 * X[:, 1:3]
    X[:, 3] *= 0.1
    X[:, -1] = 0.0
    exclude = [0] if case == "excluded" else None
    result = sparse_pca(X, n_nonzero_coefs=2, certify=False, exclude=exclude)
    X[:, 0] = big if case == "constant" else big * X[:, 0]
    unit = 4.0 ** int(np.log2(big))
    own = covariance_of_data(X, True, False, None, unit)
    inner = own.covariance if exclude is None else own.covariance.part(np.arange(1, p))
    margin = 1.01 * inner.rounding(2) * unit
    certificate = replace(
        result.certificate, value=0.0, rounding=margin, status=Status.GAP, unit=unit
    )
    result = replace(
        result,
        supports=(np.array([p - 1]),),
        weights=(np.array([1.0]),),
        variances=np.zeros(1),
        mean=own.mean,
        total_variance=float(own.covariance.diagonal.sum()) * unit,
        certificate=certificate,
    )
    return result, X, margin


def lost(kind: str, kept: np.ndarray, a: float) -> tuple[str, Data]:
    """A proof in which squares of the numbers `a` vanish, on the kept features."""
    none, nobody = np.zeros(0), np.zeros(0, int)
    if kind == "frobenius":
        return "frobenius", {"c": 0.0, "kept": kept}
    if kind == "kyfan":
        core = {"features": np.array([0]), "price": np.zeros(1), "pad": 1e-6 * a}
        return "kyfan", {**core, "u": none, "r": none, "kept": kept}
    if kind == "labels":
        sets = {"forced": nobody, "banned": nobody, "core": np.array([0])}
        group = {
            "prices": 0,
            "count": 1,
            **sets,
            "u": none,
            "r": none,
            "pads": np.array([1e-6 * a]),
        }
        prices = [{"features": nobody, "price": none}]
        return "labels", {
            "prices": prices, "groups": [group], "nodes": [{"groups": [0]}], "kept": kept
        }  # fmt: skip
    bound = 1.01 * a
    pads = [{"shape": np.ones(2), "scale": 1e-4 * a}]
    touch = {
        "core": np.array([0, 2]),
        "split": {"clip": 0.0},
        "near": np.array([1]),
        "groups": [{"first": 1, "last": 1, "pads": pads}],
        "bound": bound,
    }
    problem = {"step": "problem", "s": 2, "nonnegative": False, "bound": bound, "twins": {}}
    problem["unit"] = 2.0 ** np.floor(np.log2(a))
    steps = [problem, {"step": "split", "clip": 0.0}, node(split=1)]
    return "tree", {"kept": kept, "touch": touch, "log": steps}


@pytest.mark.parametrize("arithmetic", ["float", "exact"])
@pytest.mark.parametrize(
    ("kind", "case", "big"),
    [
        ("frobenius", "constant", 1e85),
        ("frobenius", "excluded", 1e120),
        ("kyfan", "constant", 1e100),
        ("labels", "constant", 1e100),
        ("touch", "constant", 1e100),
    ],
)
def test_squares_that_underflow_prove_nothing(kind, case, big, arithmetic):
    result, X, margin = beside_a_huge_column(case, big, 6 if kind == "frobenius" else 5)
    unit, variances = result.certificate.unit, X.var(axis=0)
    kept = np.arange(1, X.shape[1] - 1)
    name, data = lost(kind, kept, float(variances[1:3].max()) / unit)
    value = margin if kind == "frobenius" else 1.02 * float(variances[1:3].max())
    value = max(value, 1.02 * margin)
    bounds = (Bound(name, value, data, margin),)
    made = replace(result, certificate=replace(result.certificate, bounds=bounds, bound=value))
    verdict = verify(made, X, arithmetic=arithmetic)
    assert verdict.verdict == "refused"
    assert "prove" in verdict.reason or "pads" in verdict.reason
