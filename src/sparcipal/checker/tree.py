"""Bound "tree"; statement and proof: docs/methods/tree.rst.

The replay has two parts. `claims_of` follows the steps: which supports a node speaks of, and
whether its children account for all of them; sets of features are bits of an integer. What then
has to be true of matrices is a list of claims, each of which is checked on its own: one Cholesky
factorisation with its margin.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from .alike import left_over
from .arithmetic import Arithmetic, Numbers
from .budget import Budget, Refused, choices, require
from .family import Case, Family
from .listed import Listing
from .margins import term
from .pairsplit import Charged, Supports, charged, largest
from .records import SPLITS, Node, Pass, Problem, Tree, Twins
from .signs import no_positive_eigenvector
from .touch import check_touch

MOST_SUPPORTS = 200_000  # of one leaf
RANK = 48  # of the majorant of a fixing test, at least where there are as many features
Log = tuple[Any, ...]  # a Problem, then Nodes and Splits


def proved_by(record: Tree, case: Case, *, listing: bool = False) -> Numbers:
    """Return the bound of a log for one component, with the touch certificate beyond its core; with
    `listing`, for all supports but those that the log lists."""
    cov, question, ar, budget = case
    problem = record.log[0]
    assert isinstance(problem, Problem)
    require(question.k == 1, "a tree speaks of one component")
    require(question.cardinalities[0] <= problem.s, "a tree speaks of fewer nonzeros")
    signs = question.nonnegative or not problem.nonnegative
    require(signs, "a tree speaks of nonnegative components only")
    priced = problem.prices is not None and problem.prices.any()
    require(not priced, "a tree with prices bounds less than the value")
    core, bound = np.arange(cov.p), problem.bound
    if record.touch is not None:
        core, bound = record.touch.core, max(bound, record.touch.bound)
    forced = core[:0] if problem.forced is None else core[problem.forced]
    require(bool(np.isin(forced, question.forced).all()), "a tree forces a feature that is free")
    if record.touch is not None:
        check_touch(record.touch, problem, case)
    replay(record.log, case.entries(core), ar, budget, anchored=True, listing=listing)
    return ar.number(bound) + cov.rounding(problem.s)


def replay(
    log: Log,
    a: np.ndarray,
    ar: Arithmetic,
    budget: Budget,
    *,
    anchored: bool = False,
    listing: bool = False,
) -> Numbers:
    """The bound of the log for the matrix `a`; Refused unless every support is accounted for.

    `anchored` says that supports without the features that the log forces need not be, `listing`
    that those on the list of the log need not be.
    """
    problem = log[0]
    free = problem.forced is None or problem.forced.size == 0
    require(anchored or free, "a tree forces a feature that is free")
    require(listing or not problem.listed, "a tree leaves out the supports of a list")
    lowest = 0.0 if problem.prices is None else float(problem.prices.min())
    if (
        problem.pads is None
        and lowest >= 0.0
        and problem.bound >= -lowest
        and ar.at_most(abs(a), 0.0)
    ):
        return ar.number(problem.bound)  # of a matrix of zeros
    prover = Prover(problem, 0.5 * (a + a.T), ar)
    claims = claims_of(log, prover, budget)
    if prover.listed is not None:
        looked = sum(prover.count(claim.state) for claim in claims if claim.what == "leaf")
        prover.listed.charge(looked, budget)
    for claim in claims:
        prover.check(claim, budget)
    return ar.number(problem.bound)


# --- how nodes follow one another ---


@dataclass(frozen=True)
class State:
    """The supports S with forced <= S <= alive; bit j is feature j. `part` says that they stand for
    a larger one, whose best vector lies on them: being part of a listed one does not settle it."""

    alive: int
    forced: int
    part: bool = False


@dataclass(frozen=True)
class Claim:
    """What has to be true of a node, or of one of its passes."""

    what: str  # "closed", "leaf", "alike", "shrink" or "pass"
    state: State
    split: Any = None  # the certificate: one of those of its prover; alike: the group
    fixed: Pass | None = None


def claims_of(log: Log, prover: Any, budget: Budget) -> list[Claim]:
    """Follow all nodes; Refused if some support is in none of them. Work is charged beforehand."""
    states = sum(1 + len(step.passes) for step in log if isinstance(step, Node))
    budget.memory(states * (0.25 * prover.p + 400.0), "the nodes of a tree")
    walk = _Walk(log, prover)
    for position, step in enumerate(log):
        if isinstance(step, Node):
            walk.visit(position, step)
    require(bool(walk.entered), "a log without a node")
    require(not walk.pending, "supports are missing: a node lacks a child")
    for claim in walk.claims:
        budget.work(prover.cost(claim), "a tree")
    return walk.claims


class _Walk:
    def __init__(self, log: Log, prover: Any) -> None:
        self.log, self.prover = log, prover
        self.claims: list[Claim] = []
        self.entered: dict[int, State] = {}
        self.left: dict[int, State] = {}  # after the passes
        # what a branch has got so far, and the features that a full support has yet to lose
        self.pending: dict[int, dict[str, np.ndarray] | set[int]] = {}

    def visit(self, position: int, node: Node) -> None:
        state = self._enter(position, node)
        self.entered[position] = state
        for fixed in node.passes:
            self._claim("pass", state, fixed.split, fixed)
            out, into = bits(fixed.out), bits(fixed.into)
            free = state.alive & ~state.forced
            require((out | into) & ~free == 0, "a fixed feature is not free")
            # what can neither be in nor out leaves no support at all
            state = State(state.alive & ~out, state.forced | into, state.part)
            state = State(0, 0) if out & into else state
            if state.alive == 0:
                break
        self.left[position] = state
        if state.alive and state.forced.bit_count() <= self.prover.s:
            self._settle(position, node, state)

    def _enter(self, position: int, node: Node) -> State:
        if not self.entered:
            root = node.parent == -1 and node.side == "root" and node.moved.size == 0
            require(root, "the first node is not the root")
            return State((1 << self.prover.p) - 1, self.prover.forced)
        require(node.parent in self.left, f"step {position}: the parent is no earlier node")
        parent, moved = self.left[node.parent], bits(node.moved)
        missing = self.pending.get(node.parent)
        belongs = missing is not None and moved & ~parent.alive == 0
        require(belongs, "a child that does not belong to its parent")
        if isinstance(missing, set):
            single = node.side == "shrink" and node.moved.size == 1 and node.moved[0] in missing
            require(single, "a child that does not belong to its parent")
            missing.remove(int(node.moved[0]))
            if not missing:
                del self.pending[node.parent]
            listing = self.prover.listed is not None
            return State(parent.alive & ~moved, parent.forced & ~moved, listing)
        assert missing is not None
        fresh = node.side in ("in", "out") and node.side not in missing
        require(fresh, "a child that does not belong to its parent")
        require(moved & parent.forced == 0, "branching on a forced feature")
        missing[node.side] = node.moved
        if len(missing) == 2:
            self.prover.check_branch(missing["in"], missing["out"])
            del self.pending[node.parent]
        if node.side == "in":
            return State(parent.alive, parent.forced | moved, parent.part)
        return State(parent.alive & ~moved, parent.forced, parent.part)

    def _settle(self, position: int, node: Node, state: State) -> None:
        prover, end = self.prover, node.end
        require(end in prover.ends, "a node is left open")
        if end == "closed":
            self._claim("closed", state, node.split)
        elif end == "leaf":
            full = state.forced.bit_count() == prover.s
            require(full or not prover.padded, "a leaf that features outside may join")
            count = prover.count(state)
            most = f"a leaf of {count:.6g} supports, at most {MOST_SUPPORTS}"
            require(count <= MOST_SUPPORTS, most)
            self.claims.append(Claim("leaf", state))
        elif end == "alike":
            self.claims.append(Claim("alike", state, node.alike))
        elif end == "branch":
            self.pending[position] = {}
        elif end == "shrink":
            full = state.alive == state.forced and prover.nonnegative
            require(full and not (prover.priced or prover.padded), "a support is not full")
            self.claims.append(Claim("shrink", state))
            self.pending[position] = set(members(state.alive, prover.p).tolist())
        else:  # "same"
            known = node.node is not None and self.entered.get(node.node) == state
            require(known and node.node != position, "another node is not the same")

    def _claim(self, what: str, state: State, place: int | None, fixed: Pass | None = None) -> None:
        found = place is not None and place < len(self.log)
        split = self.log[place] if found else None  # type: ignore[index]
        known = isinstance(split, self.prover.certificates)
        require(known, "a step refers to a certificate that is none")
        self.claims.append(Claim(what, state, split, fixed))


def bits(features: np.ndarray) -> int:
    return sum(1 << int(j) for j in features)


def members(mask: int, p: int) -> np.ndarray:
    packed = np.frombuffer(mask.to_bytes((p + 7) // 8, "little"), dtype=np.uint8)
    return np.flatnonzero(np.unpackbits(packed, bitorder="little")[:p])


# --- what is claimed about one node ---


class Prover:
    """The matrix of a log in the log's own unit, and the checks of its claims."""

    certificates: tuple[type, ...] = SPLITS
    ends = ("closed", "leaf", "alike", "branch", "shrink", "same")

    def __init__(self, problem: Problem, a: np.ndarray, ar: Arithmetic) -> None:
        self.ar, self.p = ar, a.shape[0]
        # The unit is a power of two: nothing is rounded. The certificates are in these units.
        self.s, self.nonnegative, unit = problem.s, problem.nonnegative, problem.unit
        self.each = 4e4 + float(self.s) ** 3  # nanoseconds that a support takes
        self.forced = 0 if problem.forced is None else bits(problem.forced)
        size = float(np.abs(ar.floats(a)).max(initial=0.0)) / unit
        fits = 2.0**-40 <= size <= 2.0**40 or (size == 0.0 and unit == 1.0)
        require(fits, "a unit that does not fit the matrix")
        a = a / unit
        prices = np.zeros(self.p) if problem.prices is None else problem.prices
        pads = np.zeros(self.p) if problem.pads is None else problem.pads
        self.price, self.pad = ar.array(prices) / unit, ar.array(pads) / unit
        self.priced, self.costly = bool(prices.any()), bool((prices > 0.0).any())
        self.padded = bool(pads.any())
        self.leader_of, self.factor = np.arange(self.p), np.ones(self.p)
        self.a, self.t = a, ar.number(problem.bound) / unit
        if isinstance(problem.twins, Twins):
            require(not self.padded, "twins beside features outside")
            self._make_exact(problem.twins)
        require(ar.finite(self.a) and ar.finite(self.t), "numbers that are not finite")
        told, leaders = problem.listed, self.leader_of
        self.listed = Listing(told, leaders, self.factor, self.s) if told else None

    def _make_exact(self, twins: Twins) -> None:
        """Make multiples exact ones; s times the largest change is taken from t."""
        ar, a = self.ar, self.a
        self.leader_of[twins.features] = twins.leaders
        self.factor[twins.features] = twins.factors
        led = (self.leader_of[self.leader_of] == self.leader_of).all()
        led &= (self.factor[self.leader_of] == 1.0).all()
        require(bool(led), "twins that are not multiples of a leader")
        require(not self.nonnegative or bool((self.factor > 0.0).all()), "negative twins")
        factor = ar.array(self.factor)
        leaders = np.ix_(self.leader_of, self.leader_of)
        self.a = a[leaders] * (factor[:, None] * factor[None, :])
        change = largest(abs(self.a - a), ar) + 4 * ar.eps * largest(abs(a), ar)
        self.t = self.t - self.s * change
        # A leader stands for its shorter twin only where supports are worth zero or more.
        variances = np.diagonal(a)[twins.leaders]
        require(ar.at_most(0.0, variances), "twins of a feature of negative variance")

    def check_branch(self, into: np.ndarray, out: np.ndarray) -> None:
        """Check that one feature moves in or out, and out with it what it can replace."""
        require(into.size == 1 and bool((out == into[0]).any()), "the two sides differ")
        j = int(into[0])
        for i in (int(i) for i in out if i != j):
            replaced = (
                self.leader_of[i] == self.leader_of[j]
                and abs(self.factor[i]) <= abs(self.factor[j])
                and self.ar.at_most(self.price[j], self.price[i])
            )
            require(replaced, "a feature is excluded without reason")

    def choices(self, state: State) -> list[tuple[int, int]]:
        """Return (n, q) for every q free features out of n that are looked at in a leaf."""
        free = (state.alive & ~state.forced).bit_count()
        room = min(self.s - state.forced.bit_count(), free)
        # where no feature costs anything, the largest supports are enough
        return [(free, q) for q in (range(room + 1) if self.costly else [room])]

    def count(self, state: State) -> float:
        """Return the supports that are looked at in a leaf."""
        return sum(choices(*pair) for pair in self.choices(state))

    def cost(self, claim: Claim) -> float:
        """Return about how many nanoseconds a claim takes."""
        n = claim.state.alive.bit_count()
        if claim.what == "leaf":
            return self.count(claim.state) * self.each
        if claim.fixed is None:  # what features that are alike cost is charged on the way
            return 2.0 * float(n) ** 3 + 100.0 * n * n + 2e5
        rank, tests = min(n, RANK + 8), claim.fixed.out.size + claim.fixed.into.size
        return 4.0 * float(n) ** 3 + 200.0 * n * n + 4e5 + tests * (n * rank**2 + rank**3 + 5e4)

    def check(self, claim: Claim, budget: Budget) -> None:
        state = claim.state
        if claim.what == "leaf":
            self._check_each(self._supports(state), state)
        elif claim.what == "alike":
            self._check_each(left_over(self, state, claim.split, budget), state)
        elif claim.what == "shrink":
            index = members(state.alive, self.p)
            block = self.a[np.ix_(index, index)]
            require(no_positive_eigenvector(block, self.t, self.ar), "a support may be full")
        elif claim.fixed is None:
            matrix = self.charged(claim)[1].matrix
            require(self.ar.below(matrix, self.t), "the bound of a node is too large")
        elif claim.fixed.out.size + claim.fixed.into.size:
            self._check_fixing(claim, claim.fixed)

    def charged(self, claim: Claim) -> tuple[np.ndarray, Charged]:
        """Return the alive features, and the certificate of the claim on them."""
        index = members(claim.state.alive, self.p)
        forced = np.isin(index, members(claim.state.forced, self.p))
        of = Supports(index, forced, self.s, self.nonnegative, self.price[index], self.pad[index])
        assert claim.split is not None
        return index, charged(claim.split, self.a[np.ix_(index, index)], of, self.ar)

    def _check_each(self, supports: Iterator[list[int]], state: State) -> None:
        """Check every support that is on no list, one by one."""
        for support in supports:
            if self.listed is not None and not state.part and self.listed.holds(support):
                continue
            block = self.a[np.ix_(support, support)]
            price = self.price[support].sum()
            limit = self.t + price - self.s * self.ar.eps * abs(self.price[support]).sum()
            require(self.ar.below(block, limit), "a support has a larger value")

    def _supports(self, state: State) -> Iterator[list[int]]:
        base = members(state.forced, self.p).tolist()
        free = members(state.alive & ~state.forced, self.p).tolist()
        for _, q in self.choices(state):
            for chosen in combinations(free, q):
                if base or chosen:
                    yield [*base, *chosen]

    def _check_fixing(self, claim: Claim, fixed: Pass) -> None:
        """Check that a feature put out (in) can be in no (is in every) support above t."""
        ar = self.ar
        index, on = self.charged(claim)
        factor, low = majorant(on.matrix, self.t, ar)
        room = self.t - low

        def drop(most: np.ndarray, least: np.ndarray) -> np.ndarray:
            return np.where(on.rows, most - least - 8 * ar.eps * (abs(most) + abs(least)), 0.0)

        for j in np.searchsorted(index, fixed.out):
            lost = drop(on.level, on.gain[:, j])
            lost[j] = 0.0
            require(small_test(factor, room, lost, ar), "a feature was put out wrongly")
        for j in np.searchsorted(index, fixed.into):
            lost, rest = drop(on.gain[:, j], on.next_level), np.arange(index.size) != j
            require(small_test(factor[rest], room, lost[rest], ar), "a feature was wrongly put in")


def majorant(matrix: np.ndarray, t: Numbers, ar: Arithmetic) -> tuple[np.ndarray, float]:
    """Return B and l < t with matrix <= l I + BB', proved."""
    guess, n = ar.floats(matrix), matrix.shape[0]
    require(bool(np.isfinite(guess).all()), "a matrix that is not finite")
    w, q = np.linalg.eigh(guess)
    rank = min(n - 1, max(RANK, int(np.count_nonzero(w > float(ar.floats(t)))) + 8))
    next_value = float(w[n - rank - 1]) if rank > 0 else float(w[0])
    factor = ar.array(q[:, n - rank :] * np.sqrt(np.maximum(w[n - rank :] - next_value, 0.0)))
    slack = term("majorant", rank) * ar.eps * (factor**2).sum()
    rest = matrix - ar.matmul(factor, factor.T)
    # what l loses is multiplied by 1 / (t - l): no more than is needed where M has a far lower end
    for scale in (float(w[-1]), float(np.abs(w).max())):
        low = next_value + 1e-10 * abs(scale)
        if ar.at_most(low, t) and ar.below(rest, low - slack):
            return factor, low
    raise Refused("no majorant below t")


def small_test(factor: np.ndarray, room: Numbers, drop: np.ndarray, ar: Arithmetic) -> bool:
    """Return whether I - B' Diag(1 / (room + D)) B is proved positive semidefinite."""
    n, rank = factor.shape
    below_t = ar.maximum(drop, 0.0) + room
    if not ar.at_most(1e-300, below_t):
        return False
    scaled = factor / ar.sqrt(below_t)[:, None]
    gram = ar.matmul(scaled.T, scaled)
    trace = np.trace(gram)
    margin = (2 * n + 32) * ar.eps * trace + term("majorant", rank) * ar.eps * (rank + trace)
    return ar.psd(ar.eye(rank) - gram, margin)


FAMILIES = (Family("tree", Tree, proved_by),)
