"""Bound "labels"; statement and proof: docs/methods/labels.rst.

Further anchors inside a leaf. Its bound is nearer to the target than the one that the first anchors
were proved with, so that more features can be shown to be in one component and in no other: a
feature of a component without an anchor becomes its anchor, one of a component that has one joins
what it must contain. Each case that is ruled out is a leaf with one certificate of its own, the
others being those of the leaf at hand.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ...problem.monitor import Monitor
from .groups import Group, evaluated
from .leaf import Leaf, leaf_of, optimised
from .optimise import LeafOptimiser
from .proof import Proof, State, including, without
from .start import Start, extended

TRIES = 3  # features of a support that are tried
STEPS = ((1e-3, 25), (3e-4, 40))
MOST_SIDES = 2  # places of a feature that may need prices of their own to be ruled out
SIDE = ((1e-3, 40), (3e-4, 60), (1e-4, 60))
HOPELESS = 0.7  # of the distance to the target that is left after some steps
NONE = np.zeros(0, dtype=np.intp)


@dataclass(frozen=True)
class Branch:
    """A case that is still open, and what is known of it."""

    place: int
    state: State
    members: list[list[int]]  # the supports that belong to each group
    leaf: Leaf


def another_anchor(start: Start, proof: Proof, branch: Branch, monitor: Monitor) -> Branch | None:
    """Find an anchor for a component that has none; None if no feature can be proved to be one."""
    g = len(branch.state) - 1
    if branch.state[g].forced or monitor.stopped:
        return None
    for member in branch.members[g]:
        for b in _candidates(start, member, branch):
            found = _ruled_out(start, branch, g, b, monitor)
            if found is not None:
                return _divided(start, proof, branch, g, member, b, found)
    return None


def _candidates(start: Start, member: int, branch: Branch) -> list[int]:
    """Return the features that a support loses most without, and that have a price."""
    support = start.supports[member]
    allowed = [int(b) for b in support if int(b) not in branch.state[-1].banned]
    a = start.rows.a

    def lost(b: int) -> float:
        rest = support[support != b]
        return -float(np.linalg.eigvalsh(a[np.ix_(rest, rest)])[-1]) if rest.size else 0.0

    return sorted(allowed, key=lost, reverse=True)[:TRIES]


def _ruled_out(
    start: Start, branch: Branch, g: int, b: int, monitor: Monitor
) -> dict[int, Group | Leaf] | None:
    """Return what rules out every other place of a feature; None if one is not ruled out.

    Place g stands for solutions whose group g does without the feature.
    """
    leaf = branch.leaf
    found: dict[int, Group | Leaf] = {}
    sides = 0
    saved = float(leaf.price[b])  # nothing is paid for a feature that no component uses
    order = [g, *(j for j in range(len(leaf.groups)) if j != g)]
    for j in order:
        if j != g and len(branch.state[j].forced) >= start.s:
            continue  # its support is full
        group = leaf.groups[j]
        if j == g:
            group = group.without(b)
        else:
            if b not in group.core:
                group = extended(start, group, np.array([b]), leaf.price)
            group = group.forcing(b)
        target = start.target - (leaf.total - leaf.found[j].total) + saved
        below = _below(start, group, leaf.price, target, monitor)
        if below is None:
            sides += 1
            if j == g or sides > MOST_SIDES or monitor.stopped:
                return None
            side = optimised(start, _side(start, leaf, j, b), SIDE, monitor)
            if side.total > start.target - 1e-10 * start.value:
                return None
            found[j] = side
            continue
        found[j] = below
        if j == g:  # where another component has the feature, group g does without
            saved = leaf.found[g].total - evaluated(below, start.rows, leaf.price).total
    return found


def _side(start: Start, leaf: Leaf, j: int, b: int) -> Leaf:
    """Return the leaf in which a component of group j, which has one, contains the feature."""
    price = leaf.price.copy()
    price[b] = 0.0  # no other component can use it
    groups = []
    for i, group in enumerate(leaf.groups):
        if i != j:
            groups.append(group.without(b))
            continue
        if b not in group.core:
            group = extended(start, group, np.array([b]), leaf.price)
        groups.append(group.forcing(b))
    return leaf_of(start, groups, price)


def _below(
    start: Start, group: Group, price: np.ndarray, target: float, monitor: Monitor
) -> Group | None:
    """Return a certificate that a group is worth at most `target`, after some steps if needed."""
    margin = 1e-10 * start.value
    previous = np.inf
    for mu, steps in ((0.0, 0), *STEPS):
        if steps:
            optimiser = LeafOptimiser(start.rows, [group], price, NONE, start.value, start.k)
            optimiser.run(mu, steps, float(price.sum()) + target - 10 * margin, monitor)
            group = optimiser.certificates()[0]
        found = evaluated(group, start.rows, price)
        if found.total <= target - margin:
            return group
        inside = found.violators[found.violators < price.size]
        if inside.size:
            group = extended(start, group, inside, price)
        elif steps and found.total - target > HOPELESS * (previous - target):
            return None
        previous = found.total
    return None


def _divided(
    start: Start,
    proof: Proof,
    branch: Branch,
    g: int,
    member: int,
    b: int,
    found: dict[int, Group | Leaf],
) -> Branch:
    """Add the cases of an anchor to the proof and return the one that is left."""
    leaf, place, state = branch.leaf, branch.place, branch.state
    prices = proof.add_prices(leaf.price)
    own = [proof.add_group(group, prices) for group in leaf.groups]
    without_it = found[g]
    assert isinstance(without_it, Group)  # no leaf of its own rules this case out
    lacking = proof.add_group(without_it, prices)
    for j in (j for j in range(len(state)) if j != g):
        out, into = proof.case(place, b, j)
        groups, other = list(own), found.get(j)
        groups[g] = lacking
        if isinstance(other, Leaf):
            at = proof.add_prices(other.price)
            groups = [proof.add_group(group, at) for group in other.groups]
        elif other is not None:
            groups[j] = proof.add_group(other, prices)
        proof.leaf(into, including(state, j, b), groups)
        place, state = out, without(state, j, b)
    out, into = proof.case(place, b, g)
    groups = list(own)
    groups[g] = lacking
    proof.leaf(out, without(state, g, b), groups)
    state = including(state, g, b)
    kept = []
    for j, group in enumerate(leaf.groups):
        if j != g:
            kept.append(group.without(b) if b in group.core or not group.banned[b] else group)
            continue
        whole = group if b in group.core else extended(start, group, np.array([b]), leaf.price)
        kept.append(replace(whole, count=1).forcing(b))
        if group.count > 1:
            kept.append(replace(group, count=group.count - 1).without(b))
    rest = [j for j in branch.members[g] if j != member]
    members = [*branch.members[:g], [member], *([rest] if rest else [])]
    return Branch(into, state, members, leaf_of(start, kept, leaf.price))
