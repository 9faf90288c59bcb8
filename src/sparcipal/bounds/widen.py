"""What was proved of the kept features, said of all features: three claims, and the bound."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..data.screening import Survivors
from ..numerics import margins
from ..problem.problem import Component, Options, Problem
from ..problem.result import Bound, Certificate
from .dropped import Beyond, beyond

# The bound for all features may exceed that for the kept ones by this share of the gap, before it
# is worth reading the rows once more for twice as many features.
SHARE = 1.0


@dataclass(frozen=True)
class Widened:
    """A certificate for all features, and whether more of them should be kept."""

    certificate: Certificate
    settled: bool
    enough: float  # dropped features below this variance would not matter; inside units


def widened(
    problem: Problem,
    certificate: Certificate,
    components: Sequence[Component],
    survivors: Survivors,
    options: Options,
    certify: Any,
) -> Widened:
    """Extend the certificate of the kept features to all of them."""
    value = certificate.value
    inside = _inside(problem, certificate)
    target = inside.value + max(SHARE * (inside.value - value), options.tol * value)
    if problem.disjoint or problem.k == 1:
        found = beyond(
            problem, inside.value, certificate.bounds, components, survivors.dropped, target,
            options, certify,
        )  # fmt: skip
        touching, total = found.bound, max(found.bound, inside.value)
        data = {**found.data, "inside": inside.value, "touching": touching}
    else:
        touching, total, data = _by_parts(problem, inside, components, survivors, options, certify)
    data["kept"] = survivors.kept.astype(np.int32)
    bound = Bound(inside.name, max(total, value), {**inside.data, "screened": data})
    screening = {
        "kept": int(survivors.kept.size),
        "dropped": int(survivors.n_dropped),
        "largest_dropped": float(survivors.dropped.max(initial=0.0)),
        "rule": data["rule"],
        "inside": inside.value,
        "touching": float(touching),
        "support_unchanged": bool(touching < value - certificate.rounding),
        "bound_holds": bool(touching <= inside.value),
    }
    proved_away = survivors.n_dropped if screening["support_unchanged"] else 0
    new = replace(
        certificate,
        bound=bound.value,
        bounds=(bound,),
        eliminated=certificate.eliminated + proved_away,
        screening=screening,
    )
    pads = [float(b.data["pad"]) for b in certificate.bounds if b.name == "kyfan"]
    return Widened(new, total <= target, max(pads, default=0.0))


def _inside(problem: Problem, certificate: Certificate) -> Bound:
    """The bound on the kept features that is extended."""
    if problem.disjoint or problem.k == 1:
        return certificate.bounds[0]
    return next(b for b in certificate.bounds if b.name == "parts")


def _by_parts(
    problem: Problem,
    inside: Bound,
    components: Sequence[Component],
    survivors: Survivors,
    options: Options,
    certify: Any,
) -> tuple[float, float, dict[str, Any]]:
    """Overlapping supports: every component's own bound is extended, then they are added."""
    found: dict[int, Beyond] = {}
    own = {part["s"]: float(part["value"]) for part in inside.data["parts"]}
    for s, value in own.items():
        alone = Problem(problem.covariance, (s,), problem.nonnegative)
        known = [Bound(p["name"], p["value"], p["data"]) for p in inside.data["parts"]]
        found[s] = beyond(
            alone, value, [b for b in known if b.name == "kyfan"], components[:1],
            survivors.dropped, value, options, certify,
        )  # fmt: skip
    highest = {s: max(found[s].bound, own[s]) for s in own}
    total = sum(highest[s] for s in problem.cardinalities)
    # at least one component uses a dropped feature
    touching = max(total - highest[s] + found[s].bound for s in own)
    rise = 1 + margins.packing(problem.k)
    parts = [{"s": s, "inside": own[s], **found[s].data} for s in own]
    rule = max(found.values(), key=lambda b: b.bound).rule
    data = {"rule": rule, "parts": parts, "inside": inside.value, "touching": touching * rise}
    return touching * rise, max(total * rise, inside.value), data
