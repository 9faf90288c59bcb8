"""Bound "labels"; statement and proof: docs/methods/labels.rst.

Several components over all features, told apart by features that they must contain.

Prices that treat all components alike make all of them tie, and the pair split of the priced
problem is loose. So it is first proved which component is which: an anchor is a feature that every
solution above the target uses, and no two anchors can be in one component. Then each component has
a certificate of its own on a small core, and only features that two of them compete for keep a
price. Components without an anchor stay together in one group.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ...numerics.margins import SAFETY
from ...numerics.threads import one_blas_thread
from ...problem.monitor import Monitor
from ...problem.result import Bound
from ..kyfan.certificate import KyFanSplit
from ..kyfan.question import JointQuestion
from .anchors import Anchors, find_anchors
from .later import Branch, another_anchor
from .leaf import Leaf, leaf_of, optimised
from .pricing import PricedLeaf, priced_leaf
from .proof import Label, Proof, State, including, without
from .start import Start, started

NAME = "labels"
TIGHTER = 0.9  # part of the tolerance that a proof aims at
LEFT = 0.04  # part of the gap of the Ky Fan bound that may stay open
NEAR = 0.9  # features above this fraction of the level join the first core of a group
PRICING_WORK = 6e10  # of all branch and bound together, in units of about a nanosecond
LEAF = ((1e-3, 60), (3e-4, 100), (3e-4, 100), (1e-4, 100), (3e-5, 60))
LATER = ((3e-4, 60), (1e-4, 80), (3e-5, 60))  # after another anchor was found


def labels_bound(
    question: JointQuestion, start: Bound, *, monitor: Monitor | None = None
) -> Bound | None:
    """Return a bound by labels, started from a Ky Fan split; None where there is no better one."""
    monitor = monitor or Monitor()
    data, k = start.data, len(question.cardinalities)
    split = KyFanSplit(
        np.asarray(data["features"]), data["u"], data["r"], data["price"], data["pad"]
    )
    known = np.isin(np.concatenate(question.supports), split.features).all()
    if k < 2 or question.total is not None or question.value <= 0.0 or not known:
        return None
    with one_blas_thread:
        # a target that leaves a small part of the gap open makes anchors easier to prove
        gap = max(TIGHTER * question.tol, LEFT * (start.value / question.value - 1.0))
        begun = started(question, question.value * (1 + gap), split)
        anchors = find_anchors(begun, monitor)
        if not anchors.features or monitor.stopped:
            return None
        proof = Proof(begun.rows, k)
        place, state, members = told_apart(begun, anchors, proof)
        leaf = optimised(begun, first_leaf(begun, state, members), LEAF, monitor)
        branch = Branch(place, state, members, leaf)
        while branch.leaf.total > begun.target:
            found = another_anchor(begun, proof, branch, monitor)
            if found is None:
                break
            branch = replace(found, leaf=optimised(begun, found.leaf, LATER, monitor))
        exact = priced(begun, branch.leaf, branch.members, monitor)
        close(proof, branch.place, branch.state, branch.leaf, exact)
    margin = SAFETY * question.cov.rounding(sum(question.cardinalities))
    total = proof.bound + margin
    return Bound(NAME, total, proof.data(), margin) if total < start.value else None


def told_apart(start: Start, anchors: Anchors, proof: Proof) -> tuple[int, State, list[list[int]]]:
    """Add the cases of all anchors to a proof.

    Returns the place of the case in which every anchor has a component of its own, its groups, and
    the numbers of the supports that belong to each group.
    """
    prices = proof.add_prices(start.price)
    whole = proof.add_group(start.whole, prices)
    place = proof.room()
    state: State = (Label(start.k),)
    names = sorted(anchors.features)
    for q, j in enumerate(names):
        feature = anchors.features[j]
        for g, i in enumerate(names[:q]):  # together with another anchor
            out, into = proof.case(place, feature, g)
            groups = [whole] * len(state)
            if (i, j) in anchors.pairs:
                groups[g] = proof.add_group(anchors.pairs[i, j], prices)
            proof.leaf(into, including(state, g, feature), groups)
            place, state = out, without(state, g, feature)
        out, into = proof.case(place, feature, q)
        unused = whole
        if feature in anchors.unused:
            other = anchors.unused[feature]
            unused = proof.add_group(other.groups[0], proof.add_prices(other.price))
        proof.leaf(out, without(state, q, feature), [unused] * len(state))
        place, state = into, including(state, q, feature)
    rest = [j for j in range(start.k) if j not in anchors.features]
    return place, state, [[j] for j in names] + ([rest] if rest else [])


def first_leaf(start: Start, state: State, members: list[list[int]]) -> Leaf:
    """Return the certificate of the field, restricted to a core for each group."""
    groups = []
    for label, supports in zip(state, members):
        banned = np.zeros(start.price.size, dtype=bool)
        banned[list(label.banned)] = True
        forced = sorted(label.forced)
        core = start.first_core(supports, forced, banned)
        group = start.group(label.count, forced, banned, core)
        groups.append(start.completed(group, start.price, NEAR))
    return leaf_of(start, groups, start.price)


def priced(
    start: Start, leaf: Leaf, members: list[list[int]], monitor: Monitor
) -> PricedLeaf | None:
    """Return exact proofs for the groups of a leaf that is not closed yet."""
    if leaf.total <= start.target or monitor.stopped:
        return None
    return priced_leaf(start, leaf, members, PRICING_WORK, monitor)


def close(
    proof: Proof, place: int, state: State, leaf: Leaf, exact: PricedLeaf | None = None
) -> float:
    """End a case with the certificates of a leaf, or with exact proofs if these are better."""
    if exact is None or exact.total >= leaf.total:
        prices = proof.add_prices(leaf.price)
        return proof.leaf(place, state, [proof.add_group(group, prices) for group in leaf.groups])
    prices = proof.add_prices(exact.price)
    return proof.leaf(place, state, [proof.add_tree(group, prices) for group in exact.groups])
