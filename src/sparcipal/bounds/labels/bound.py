"""Bound "labels"; statement and proof: docs/methods/labels.rst.

Several components over all features, told apart by features that they must contain.

Prices that treat all components alike make all of them tie, and the pair split of the priced
problem is loose. So it is first proved which component is which: an anchor is a feature that every
solution above the target uses, and no two anchors can be in one component. Then each component has
a certificate of its own on a small core, and only features that two of them compete for keep a
price. Components without an anchor stay together in one group.
"""

from __future__ import annotations

import heapq
import itertools
from dataclasses import replace

import numpy as np

from ...numerics.margins import SAFETY
from ...numerics.threads import one_blas_thread
from ...problem.monitor import Monitor
from ...problem.result import Bound
from ..kyfan.certificate import KyFanSplit
from ..kyfan.question import JointQuestion
from .anchors import Anchors, find_anchors
from .cases import Branch, divided, free_group
from .leaf import Leaf, leaf_of, optimised
from .pricing import priced_leaf
from .proof import Label, Proof, State, including, without
from .start import Start, leading, started

NAME = "labels"
NOTHING = 1e-200  # of the largest variance: prices overflow in the units of so small features
TIGHTER = 0.9  # part of the tolerance that a proof aims at
LEFT = 0.2  # part of the gap that an attempt may leave open
NEAR = 0.9  # features above this fraction of the level join the first core of a group
PRICING_WORK = 4e10  # of all branch and bound of a leaf, in units of about a nanosecond
LEAF = ((1e-3, 60), (3e-4, 100), (3e-4, 100), (1e-4, 100), (3e-5, 60))
LATER = ((3e-4, 60), (1e-4, 80), (3e-5, 60))  # after another anchor was found


def labels_bound(
    question: JointQuestion, start: Bound, *, monitor: Monitor | None = None
) -> Bound | None:
    """Return a bound by labels, started from a Ky Fan split; None where there is no better one.

    Goes on until the gap is closed, the monitor stops it, or no case can be divided any more.
    """
    monitor = monitor or Monitor()
    split = KyFanSplit.of(start.data)
    known = np.isin(np.concatenate(question.supports), split.features).all()
    several = len(question.cardinalities) > 1 and question.total is None
    variance = question.cov.diagonal
    tiny = (variance > 0.0) & (variance < NOTHING * variance.max())
    if not several or question.value <= 0.0 or not known or tiny.any():
        return None
    best, lowest = None, start.value
    while lowest > question.value * (1 + question.tol) and not monitor.stopped:
        # a target that leaves a small part of the gap open makes anchors easier to prove
        gap = max(TIGHTER * question.tol, LEFT * (lowest / question.value - 1.0))
        with one_blas_thread:
            found = _attempt(question, question.value * (1 + gap), split, monitor)
        if found is None or found.value >= lowest:
            break
        best, lowest = found, found.value
        monitor.update("labels", bound=lowest)
        if found.value > question.value * (1 + 1.5 * gap):
            break  # the target was not reached: a lower one will not be
    return best


def _attempt(
    question: JointQuestion, target: float, split: KyFanSplit, monitor: Monitor
) -> Bound | None:
    """Return a bound that aims at a target."""
    begun = started(question, target, split)
    anchors = find_anchors(begun, monitor)
    if monitor.stopped:
        return None
    proof = Proof(begun.rows, begun.k)
    place, state, members = told_apart(begun, anchors, proof)
    if anchors.features:
        leaf = optimised(begun, first_leaf(begun, state, members), LEAF, monitor)
    else:  # the certificate of the split itself, whose first division may give anchors
        leaf = leaf_of(begun, [begun.whole], begun.price)
    supports = tuple(tuple(begun.supports[j] for j in numbers) for numbers in members)
    for branch in worked(begun, proof, Branch(place, state, supports, leaf, steps=1), monitor):
        close(proof, branch)
    margin = SAFETY * question.cov.rounding(sum(question.cardinalities))
    return Bound(NAME, proof.bound + margin, proof.data(), margin)


def worked(start: Start, proof: Proof, branch: Branch, monitor: Monitor) -> list[Branch]:
    """Work on the case with the largest bound until all are below the target.

    Returns the cases that are left, each with the best certificates found.
    """
    order = itertools.count()
    cases = [(-branch.total, next(order), branch)]
    while True:
        total, _, worst = heapq.heappop(cases)
        if -total <= start.target or monitor.stopped:
            break
        found = improved(start, proof, worst, monitor)
        if found is None:
            break
        for case in found:
            heapq.heappush(cases, (-case.total, next(order), case))
        if not cases:
            return []
    return [worst, *(case for _, _, case in cases)]


def improved(start: Start, proof: Proof, branch: Branch, monitor: Monitor) -> list[Branch] | None:
    """Take one step with a case; None if there is none to take."""
    if branch.steps == 0:
        return [replace(branch, leaf=optimised(start, branch.leaf, LATER, monitor), steps=1)]
    free = free_group(branch)
    if free is not None:
        found = divided(start, proof, branch, free, monitor)
        if found is not None:
            return found
    large = all(group.core.size >= start.s for group in branch.leaf.groups)
    if branch.steps == 1 and large:
        exact = priced_leaf(start, branch.leaf, branch.supports, PRICING_WORK, monitor)
        return [replace(branch, exact=exact, steps=2)]
    return divided(start, proof, branch, loosest(start, branch), monitor)


def loosest(start: Start, branch: Branch) -> int:
    """Return the group whose bound is furthest above its best support known."""
    price, bounds = branch.leaf.price, [found.total for found in branch.leaf.found]
    if branch.exact is not None and branch.exact.total < branch.leaf.total:
        price = branch.exact.price
        bounds = [priced.group.count * priced.bound for priced in branch.exact.groups]
    above = []
    for bound, label, supports in zip(bounds, branch.state, branch.supports):
        known = sum(leading(start.rows, one)[1] - float(price[one].sum()) for one in supports)
        decided = len(label.forced) >= start.s
        above.append(-np.inf if decided else bound - known)
    return int(np.argmax(above))


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


def close(proof: Proof, branch: Branch) -> float:
    """End a case with the certificates of its leaf, or with exact proofs if these are better."""
    place, state, leaf, exact = branch.place, branch.state, branch.leaf, branch.exact
    if exact is None or exact.total >= leaf.total:
        prices = proof.add_prices(leaf.price)
        return proof.leaf(place, state, [proof.add_group(group, prices) for group in leaf.groups])
    prices = proof.add_prices(exact.price)
    return proof.leaf(place, state, [proof.add_tree(group, prices) for group in exact.groups])
