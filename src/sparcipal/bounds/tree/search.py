"""Bound "tree"; statement and proof: docs/methods/tree.rst.

Branch and bound for one component proves that a support is optimal.

A node is a set of admissible supports, forced <= S <= features, |S| <= s. It is settled when its
pair-split bound is at most t = value + tol, when the fixing tests leave nothing, or when so few
supports remain that all are looked at. Otherwise the certificate (U, R) it inherited is optimised a
little, the tests run again, and the node is split on the most fractional feature.

Everything is proved at `threshold`, slightly below the t that is finally claimed, so that a replay
of the log with other roundings comes out below the claim. The log is the proof as data; log.py
describes its steps.
"""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from ...numerics import margins
from ...numerics.margins import power_of_two
from ...numerics.threads import ordered_map
from ...problem.monitor import Quiet
from ..pairsplit import Optimiser, Part, Split, best_start, prove_below, proven_bound, split_matrix
from ..pairsplit.certificate import top_eigenvalue
from .alike import alike_features, all_below, few_alike
from .branching import best_feature, most_fractional
from .fixing import fix
from .frontier import Frontier, Node
from .incumbent import Rounder
from .leaf import few_supports
from .log import Proof, ProofLog
from .positive import no_interior_solution
from .question import TreeQuestion
from .subtrees import Grown, Leaf, Task, grow_round
from .twins import Twins, find_twins, no_twins

ALONE = 4e9  # units of work after which the tree is searched in rounds of subtrees
LOG_LIMIT = 1_000_000_000  # bytes of proof
CLOSE = 0.04  # gap up to which a given certificate is not compared with others
# smoothing of the rounds at the root, relative to the value
ROOT_SMOOTHING = (1e-2, 3e-3, 1e-3, 3e-4, 1e-4, 3e-5)
# Steps of a round. A child begins where its parent ended, so that steps saved there are taken in
# both children; only at prices, where supports tie, branching lowers the bound by more than steps.
STEPS, NODE_STEPS = 30, 60
ATTEMPTS = 3  # nodes in vain, after which features that are alike are branched on like others


def prove(A: np.ndarray, s: int, question: TreeQuestion | None = None) -> Proof:
    """Maximise lambda_max(A_S) - prices(S) over nonempty |S| <= s, and prove it.

    A (p, p) is symmetric and, for prices all zero, positive semidefinite up to rounding; s lies
    between 1 and p.
    """
    return Search(A, s, question or TreeQuestion()).prove()


class Search:
    """The state of one branch and bound: incumbent, open nodes, log and what has been spent."""

    def __init__(self, A: np.ndarray, s: int, question: TreeQuestion) -> None:
        nonnegative, prices, pads = question.nonnegative, question.prices, question.pads
        p = A.shape[0]
        if not 1 <= s <= p:
            raise ValueError(f"s must lie between 1 and the number of features {p}, got {s}")
        self.p, self.s, self.nonnegative = p, s, nonnegative
        self.forced = question.anchors
        if self.forced.size > s:
            raise ValueError(f"at most {s} features can be forced, got {self.forced.size}")
        A = np.ascontiguousarray(A, dtype=np.float64)
        # scaled so that the largest entry is about 1; a power of two changes no digit
        self.unit = power_of_two(float(np.abs(A).max()))
        self.price = np.zeros(p) if prices is None else np.asarray(prices, dtype=np.float64)
        self.price = self.price / self.unit
        if self.price.shape != (p,) or not np.isfinite(self.price).all():
            raise ValueError(f"prices must be {p} finite numbers")
        self.priced, self.costly = bool(self.price.any()), bool((self.price > 0.0).any())
        self.pad = np.zeros(p) if pads is None else np.asarray(pads, dtype=np.float64) / self.unit
        self.padded = bool(self.pad.any())
        # rows that are multiples in A need not be multiples on the features outside A
        find = self.find_twins if not self.padded else no_twins
        self.twins: Twins = find(A / self.unit)
        self.a = self.twins.matrix
        # the largest variance, or the largest entry of a matrix that is no covariance
        self.scale = float(np.abs(self.a).max())
        self.tol = max(float(question.tol), 1e-9)
        self.log = ProofLog(question.keep_log)
        self.rounder = Rounder(self.a, s, self.price, nonnegative, self.forced)
        self.value, self.support = -np.inf, np.empty(0, dtype=np.intp)
        self.open: Frontier[Node] = Frontier()
        self.again: Split | None = None
        self.stuck: list[Node] = []
        self.shrunk: dict[bytes, int] = {}
        self.nodes = self.n_eigen = self.eliminated = 0
        self.work = 0.0
        self.attempts = ATTEMPTS
        self.question, self.monitor = question, question.monitor
        self.enough = question.enough / self.unit
        self.max_work, self.max_nodes = question.work, question.most_nodes

    def find_twins(self, a: np.ndarray) -> Twins:
        return find_twins(a, self.s, self.nonnegative)

    def lists(self) -> tuple[np.ndarray, ...]:
        """Return the supports that the log leaves out because they are listed."""
        return ()

    def prove(self) -> Proof:
        if not (self.a.any() or self.padded or (self.price < 0.0).any()):
            return self.nothing()
        self.start(self.question.incumbent)
        return self.finish(self.run(self.question.start))

    # --- incumbents ---

    @property
    def claim(self) -> float:
        """Return the t claimed once every node is settled; the rest of tol is for rounding."""
        return self.value + margins.CLAIMED * self.tol * max(abs(self.value), self.scale)

    @property
    def threshold(self) -> float:
        """Return the t at which nodes are settled."""
        return self.value + margins.SETTLED * self.tol * max(abs(self.value), self.scale)

    def offer(self, support: np.ndarray, value: float) -> None:
        if value > self.value:
            self.value, self.support = value, np.sort(support)

    def start(self, incumbent: tuple[np.ndarray, float] | None) -> None:
        if incumbent is None:
            first = self.rounder.first()
            self.offer(first.support, first.value)
            self.work += 60.0 * float(self.p) ** 2 + 1e6
        else:
            support = np.union1d(np.asarray(incumbent[0], dtype=np.intp), self.forced)
            if not 0 < support.size <= self.s:
                raise ValueError(f"the incumbent must have between 1 and {self.s} features")
            self.offer(support, self.rounder.evaluate(support)[0])

    def round(self, optimiser: Optimiser) -> bool:
        """Try the relaxed indicator and the leading eigenvector; True if one is better."""
        part, known = optimiser.part, self.value
        scores, vector = np.full(self.p, -np.inf), np.zeros(self.p)
        scores[part.features] = optimiser.z + np.where(part.forced, 2.0, 0.0)
        vector[part.features] = optimiser.leading
        for found in (self.rounder.from_scores(scores), self.rounder.from_vector(vector)):
            self.offer(found.support, found.value)
        self.work += self.rounder.spent()
        return self.value > known

    # --- the tree ---

    def run(self, start: Split | None) -> str:
        """Search until nothing is open or a budget ends; returns the status."""
        root = self._root(start)
        if not (self._settle(root) or self._alike(root) or self._improve_root(root)):
            self.open.push(root, root.guess)
        reason = self.search(ALONE)
        if self.open and reason is None:
            with ordered_map(self.question.n_jobs, self.bare()) as submit:
                while self.open and (reason := self._out_of_budget()) is None:
                    grow_round(self, submit)
        return reason or ("nodes" if self.stuck else "optimal")

    def search(self, work: float = np.inf) -> str | None:
        """Expand the best node until none is open, `work` is done or a budget ends.

        Returns the name of the budget that ended, or None.
        """
        while self.open and self.work < work:
            reason = self._out_of_budget()
            if reason is not None:
                return reason
            node = self.open.pop()
            if node.guess <= self.threshold and self._settle(node):
                continue
            self.nodes += 1
            self._expand(node)
            self.monitor.update("branch", value=self.value * self.unit, nodes=self.nodes)
        return None

    def bare(self) -> Search:
        """Return a copy with an empty tree and log, which all subtrees share."""
        bare = copy.copy(self)
        bare.monitor = Quiet(self.monitor)
        # an array from a message may be unaligned, and every product would copy it
        bare.a = np.require(self.a, requirements=("C", "ALIGNED"))
        bare.open, bare.stuck, bare.shrunk = Frontier(), [], {}
        bare.again, bare.log = None, ProofLog(self.log.keep)
        bare.rounder = Rounder(bare.a, self.s, self.price, self.nonnegative, self.forced)
        return bare

    def below(self, task: Task) -> Search:
        """Return a search of the subtree below one node, with a log of its own."""
        tree = self.bare()
        tree.value, tree.support = task.value, task.support
        tree.nodes, tree.max_nodes = task.nodes, task.nodes + task.more
        tree.n_eigen, tree.work, tree.max_work = 0, 0.0, task.work
        seed = task.seed
        position, record = tree.log.node(-1, "root", [])
        tree.log.inherit(seed.split)
        tree.open.push(Node(seed.part(self), seed.split, record, position, seed.guess), seed.guess)
        return tree

    def take_over(self, node: Node, grown: Grown) -> None:
        """Add the results, log and open nodes of the subtree below a node to this search."""
        self.offer(grown.support, grown.value)
        self.nodes += grown.nodes
        self.n_eigen += grown.n_eigen
        self.work += grown.work
        place = self.log.graft(node.position, node.split, grown.log)
        keys = {position: key for key, position in grown.shrunk.items()}
        for leaf in grown.open:
            found = self._node(node, leaf, place)
            key = keys.pop(leaf.position, None)
            if key is not None and key in self.shrunk:
                found.record["end"], found.record["node"] = "same", self.shrunk[key]
                continue
            if key is not None:
                self.shrunk[key] = found.position
            self.open.push(found, found.guess)
        self.stuck += [self._node(node, leaf, place) for leaf in grown.stuck]
        for position, key in keys.items():
            self.shrunk.setdefault(key, place[position] if place else -1)
        self.monitor.update("branch", value=self.value * self.unit, nodes=self.nodes)

    def _node(self, root: Node, leaf: Leaf, place: list[int]) -> Node:
        """Return the node of a leaf, with its record in the log of the whole search."""
        seed, split = leaf.seed, leaf.seed.split
        if leaf.certificate == 0:  # the certificate of the root itself
            split = Split(split.features, split.u, split.r, root.split.origin)
        elif leaf.certificate is not None and place:
            self.log.adopt(split, place[leaf.certificate])
        if place:
            position = place[leaf.position]
            record = self.log.record(position)
        elif leaf.position == 1:  # the leaf is the root itself
            position, record = root.position, root.record
        else:
            position, record = self.log.node(root.position, "", [])
        return Node(seed.part(self), split, record, position, seed.guess)

    def _root(self, start: Split | None) -> Node:
        features = np.arange(self.p)
        part = Part(
            features,
            self.a,
            np.isin(features, self.forced),
            self.price,
            self.s,
            self.nonnegative,
            self.pad,
        )
        split = self.again = self._first_split(part, start)
        position, record = self.log.node(-1, "root", [])
        self.nodes = 1
        return Node(part, split, record, position)

    def _first_split(self, part: Part, start: Split | None) -> Split:
        """Return the given start if it is close, otherwise the best of it and the usual ones."""
        guess = np.inf
        if start is not None and start.features.size == self.p:
            guess = top_eigenvalue(split_matrix(part, start).matrix)
            if guess <= self.value + CLOSE * self.scale_of_value:
                return start
        usual, count = best_start(part)
        self.n_eigen += count
        self.work += count * (0.4 * float(self.p) ** 3 + 1e5)
        if start is None or top_eigenvalue(split_matrix(part, usual).matrix) < guess:
            return usual
        return start

    def _improve_root(self, root: Node) -> bool:
        """Optimise and fix at the root in rounds; return True when that settles everything."""
        previous = root.guess
        # a start that is close needs no smoothing wider than what is left
        left = (root.guess - self.value) / self.scale_of_value
        for mu in [mu for mu in ROOT_SMOOTHING if mu <= left] or ROOT_SMOOTHING[-1:]:
            for _ in range(3):
                if self._out_of_budget() is not None:
                    return False
                size = root.part.n
                if self._optimise(root, mu * self.scale_of_value, STEPS, incumbents=True):
                    return True
                message = self._eliminated_text(root)
                self.monitor.update("root", value=self.value * self.unit, message=message)
                if root.part.n > 0.8 * size:
                    break
            gap, old = root.guess - self.value, previous - self.value
            if mu <= 1e-3 and gap > 0.7 * old:
                break
            previous = root.guess
        return False

    @property
    def scale_of_value(self) -> float:
        return max(abs(self.value), self.scale)

    def _eliminated_text(self, root: Node) -> str:
        return f"eliminated {self.p - root.part.n} of {self.p} features, {root.part.n_forced} fixed"

    def _expand(self, node: Node) -> None:
        if self._alike(node):
            return
        gap = max((node.guess - self.value) / self.scale_of_value, 1e-5)
        steps = STEPS if self.priced else NODE_STEPS
        for mu in (min(1e-2, gap / 4), min(3e-3, gap / 16)):
            look = self.nodes < 20 or self.nodes % 10 == 0
            if self._optimise(node, mu * self.scale_of_value, steps, incumbents=look):
                return
            if self._out_of_budget() in ("time", "user"):
                break
        if node.part.forced.all():
            self._shrink(node)
        else:
            self._branch(node)

    def _optimise(self, node: Node, mu: float, steps: int, *, incumbents: bool) -> bool:
        """Improve the node's certificate and apply it; True when the node is settled."""
        optimiser = Optimiser(node.part, node.split)
        optimiser.run(mu, steps, self.threshold, self.monitor)
        self.n_eigen += optimiser.n_eigen
        self.work += optimiser.work
        node.z = np.zeros(self.p)
        node.z[node.part.features] = optimiser.z
        old, old_guess = node.split, node.guess
        node.split = optimiser.split()
        if node.record["parent"] < 0 and self.again is not None:
            self.again = self.again.merged(node.split)
        # a node that is settled as it is needs no better incumbent
        if self._settle(node) or (incumbents and self.round(optimiser) and self._settle(node)):
            return True
        if node.guess > old_guess:
            node.split, node.guess = old.on(node.part.features), old_guess
        return False

    def _settle(self, node: Node) -> bool:
        """Bound and fix with the current certificate while the node changes; True if settled."""
        while True:
            if self._leaf(node):
                return True
            part = node.part
            result = fix(part, split_matrix(part, node.split), self.threshold)
            self.n_eigen += 1
            self.work += float(part.n) ** 3 + 100.0 * part.n**2 + 2e5
            node.guess = min(node.guess, result.top)
            if result.closed:
                self.log.close(node.record, node.split)
                return True
            if not result.any:
                node.guess = result.top
                return False
            self.log.fixed(node.record, node.split, part.features, result.out, result.into)
            forced, keep = part.forced | result.into, ~result.out
            contradiction = bool((result.out & result.into).any()) or not keep.any()
            if contradiction or np.count_nonzero(forced) > self.s:
                node.record["end"] = "empty"
                return True
            node.part = part.restrict(keep, forced)
            node.split = node.split.on(node.part.features)
            if node.record["parent"] < 0:
                self.eliminated = self.p - node.part.n

    def _leaf(self, node: Node) -> bool:
        """Look at every support of the node when they are few; True when that settles it."""
        part = node.part
        if self.padded and part.n_forced < self.s:
            return False  # features outside may join
        supports = few_supports(part, self.costly)
        if supports is None:
            return False
        for local in supports:
            value, _ = self.rounder.evaluate(part.features[local])
            self.offer(part.features[local], value)
        self.work += 1e5 * len(supports)
        # for x >= 0 the eigenvalue of a support can exceed what x >= 0 reaches
        for local in supports:
            limit = self.threshold + float(part.price[local].sum())
            if not prove_below(part.a[np.ix_(local, local)], limit):
                return False
        node.record["end"] = "leaf"
        return True

    def _alike(self, node: Node) -> bool:
        """Look at what features that are alike leave of a node; True when that settles it."""
        part = node.part
        group = alike_features(part) if self.attempts and not self.padded else None
        if group is None:
            return False
        found = few_alike(part, group, self.threshold, self.costly)
        self.work += found.work
        for local in found.supports if found.complete else ():
            value, _ = self.rounder.evaluate(part.features[local])
            self.offer(part.features[local], value)
        if not (found.complete and all_below(part, found.supports, self.threshold)):
            self.attempts -= 1
            return False
        node.record["end"] = "alike"
        node.record["alike"] = part.features[group].astype(np.int32)
        return True

    def _branch(self, node: Node) -> None:
        part = node.part
        z = np.zeros(part.n) if node.z is None else node.z[part.features]
        j = best_feature(part, node.split, z) if self.priced else most_fractional(part, z)
        j = self.twins.leader(part, j, self.price)
        out = self.twins.dominated(part, j, self.price)
        node.record["end"] = "branch"
        keep = np.ones(part.n, dtype=bool)
        keep[out] = False
        forced = part.forced.copy()
        forced[j] = True
        everything = np.ones(part.n, dtype=bool)
        self._child(node, "in", part.features[[j]], part.restrict(everything, forced))
        self._child(node, "out", part.features[out], part.restrict(keep, part.forced))

    def _shrink(self, node: Node) -> None:
        """Branch on which x_i is zero, as no x > 0 on the one support left is a solution."""
        part = node.part
        full = self.nonnegative and not (self.priced or self.padded) and part.n >= 2
        if not (full and no_interior_solution(part.a, self.threshold)):
            self._undecided(node)
            return
        node.record["end"] = "shrink"
        for i in range(part.n):
            keep = np.ones(part.n, dtype=bool)
            keep[i] = False
            key = part.features[keep].astype(np.int32).tobytes()
            self._child(node, "shrink", part.features[[i]], part.restrict(keep, part.forced), key)

    def _undecided(self, node: Node) -> None:
        self.stuck.append(node)

    def _child(
        self, node: Node, side: str, moved: np.ndarray, part: Part, key: bytes | None = None
    ) -> None:
        position, record = self.log.node(node.position, side, moved)
        if key is not None and key in self.shrunk:
            record["end"], record["node"] = "same", self.shrunk[key]
            return
        if key is not None:
            self.shrunk[key] = position
        # with x >= 0 a support can be full before the other features are excluded
        if part.n == 0 or part.n_forced > self.s:
            record["end"] = "empty"
            return
        child = Node(part, node.split.on(part.features), record, position, node.guess, node.z)
        if not self._settle(child):
            self.open.push(child, child.guess)

    def _out_of_budget(self) -> str | None:
        if (stopped := self.monitor.stopped) is not None:
            return stopped
        if self.value > self.enough:
            return "enough"
        if self.nodes >= self.max_nodes or self.work >= self.max_work:
            return "nodes"
        return "memory" if self.log.size > LOG_LIMIT else None

    # --- the end ---

    def nothing(self) -> Proof:
        """Return the answer for a matrix of zeros: the cheapest feature, without a proof."""
        support = self.forced if self.forced.size else np.array([int(np.argmin(self.price))])
        value = -float(self.price[support].sum())
        log = self.log.steps(self._header(value))
        return Proof(value, support, value, "optimal", 0, 0, self.p - 1, log)

    def _header(self, bound: float) -> dict[str, Any]:
        header = {
            "step": "problem",
            "s": self.s,
            "nonnegative": self.nonnegative,
            "bound": bound * self.unit,
            "unit": self.unit,
            "twins": self.twins.record(),
        }
        if self.priced:
            header["prices"] = self.price * self.unit
        if self.forced.size:
            header["forced"] = self.forced.astype(np.int32)
        if self.lists():
            header["listed"] = [support.astype(np.int32) for support in self.lists()]
        if self.padded:
            header["pads"] = self.pad * self.unit
        return header

    def finish(self, status: str) -> Proof:
        """Bound the nodes that are still open and return the proof."""
        bound = self.claim
        for node in [*self.open, *self.stuck]:
            matrix = split_matrix(node.part, node.split).matrix
            guess = max(node.guess, self.threshold)
            slack = margins.OPEN * self.tol * self.scale_of_value
            bound = max(bound, proven_bound(matrix, guess, self.scale_of_value) + slack)
            self.log.close(node.record, node.split)
        if bound <= self.claim:
            status = "optimal"
        bound += self.twins.error + margins.tree(self.s) * self.scale_of_value
        return Proof(
            self.value * self.unit,
            self.support,
            bound * self.unit,
            status,
            self.nodes,
            self.n_eigen,
            self.eliminated,
            self.log.steps(self._header(bound)),
            again=self.again,
            work=self.work,
            listed=self.lists(),
        )
