"""Bound "touch"; statement and proof: docs/methods/touch.rst.

Supports that leave a core H, sorted by the number tau of their features outside. For tau = 1..s-1
let M^tau = A_HH - U + Diag(the s-1-tau largest V_ab of each row), t a level above lambda_max(M^1),
and pi > 0 pads with tau Diag(pi) <= t I - M^tau in the order of positive semidefinite matrices. If
for every feature j outside and every tau = 1..s some pads give

    A_jj + the s-tau largest A_ja^2 / pi_a (a in H) + the tau-1 largest |A_jl| (l outside) <= t,

no support with a feature outside explains more than t. For x >= 0 only positive A_ja and A_jl
count. If every support contains the features F of the core, M^tau takes them as forced, and tau
ends at s - |F|. The numbers tau are dealt with in groups: pads that fit M^g at tau = g fit all tau
>= g when they are divided by tau / g, because M^tau decreases.

This is for one component. Joint bounds have prices and one number for each feature outside, see
outside.py; with one number for all tau the level here would be higher.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..numerics import margins
from ..numerics.eigen import inverse, leading_vector
from ..numerics.largest import magnitudes, prefix_sums, row_tops
from ..problem.covariance import Covariance, MatrixCovariance
from ..problem.monitor import Monitor
from .pairsplit import Split, prove_below
from .pairsplit.certificate import charges

GROWTH = 1.3  # from the first tau of a group to that of the next, before groups are halved
# Parts of the room that the pads of each step may take; those from TRIED on are yielded.
FRACTIONS = (0.5, 0.7, 0.8, 0.9, 0.95, 0.95, 0.97, 0.98, 0.99)
TRIED = 0.9
JOIN = 0.97  # features whose m_j exceeds this share of the level join the core
OWN = 12  # features that fail and get pads of their own
SAMPLE = 300  # features that shape the pads
LATER = 400  # features of a core beyond which scales are proved only once all features are cleared
ENTRIES = 1 << 21  # covariances outside that are formed at once
NEAR = 6000  # features outside whose covariances among each other are formed


@dataclass(frozen=True)
class Group:
    """Pads for tau = first..last: row i of `shapes` times scales[i], divided by tau / first."""

    first: int
    last: int
    shapes: np.ndarray  # (m, n) float32
    scales: np.ndarray  # (m,) first * scale * Diag(shape) <= t I - M^first

    def record(self) -> dict[str, Any]:
        pads = zip(self.shapes, self.scales.tolist())
        return {
            "first": self.first,
            "last": self.last,
            "pads": [{"shape": shape, "scale": scale} for shape, scale in pads],
        }


@dataclass(frozen=True)
class Touch:
    """A certificate that no support with a feature outside the core explains more than `level`."""

    core: np.ndarray  # increasing
    split: Split  # on positions within the core
    level: float
    near: np.ndarray  # features outside that are looked at one by one
    groups: tuple[Group, ...]

    def record(self) -> dict[str, Any]:
        """Return what a proof stores; the level is the bound that is claimed."""
        return {
            "core": self.core.astype(np.int32),
            "split": dict(self.split.origin),
            "near": self.near.astype(np.int32),
            "groups": [group.record() for group in self.groups],
        }


@dataclass(frozen=True)
class Attempt:
    """What came of a level: the certificate if it holds, and the features that speak against it."""

    touch: Touch | None
    # (features that variances alone did not clear, s): m_j for tau = 1..s, nan where it was not
    # looked at
    m: np.ndarray
    joining: np.ndarray  # features that should join the core, the worst first


def groups_of(s: int) -> list[tuple[int, int]]:
    """Return the first and the last tau of every group; none when s = 1."""
    out = []
    first = 1
    while first < s:
        after = max(first + 1, int(first * GROWTH))
        out.append((first, min(after, s) - 1))
        first = after
    return out


class Strata:
    """All that does not depend on the level, for one core and one split."""

    def __init__(
        self,
        cov: Covariance,
        s: int,
        nonnegative: bool,
        core: np.ndarray,
        split: Split,
        forced: np.ndarray | None = None,
    ) -> None:
        self.cov, self.s, self.nonnegative = cov, s, nonnegative
        self.forced = np.isin(core, () if forced is None else forced)  # (n,)
        self.anchors = anchors = int(np.count_nonzero(self.forced))
        self.alone = anchors == 0  # whether a support may lie outside altogether
        self.core, self.split = core, split
        self.block = cov.submatrix(core)
        self.outside = np.setdiff1d(np.arange(cov.n_features), core)
        # Cauchy-Schwarz needs a matrix that is positive semidefinite up to known rounding
        self.trusted = not (isinstance(cov, MatrixCovariance) and cov.n_samples is None)
        excess = 4 * cov.error_unit * cov.error_weights + cov.psd_shift
        self.variance = np.maximum(cov.diagonal, 0.0) + excess
        self.groups = groups_of(s if self.alone else s - anchors + 1)
        u = split.u.astype(np.float64)
        both = np.logical_and.outer(self.forced, self.forced)
        u[both] = np.minimum(u[both], 0.0) if nonnegative else 0.0
        self._base = self.block - u
        charge = charges(u, split.r, nonnegative)
        self._always = charge[:, self.forced].sum(axis=1)
        # a row chooses among the features that are not forced, one less if it is one of them
        self._choices = s - anchors - np.where(self.forced, 0, 1)
        self._chosen = prefix_sums(np.where(self.forced, 0.0, charge), max(s - anchors, 0))
        self._tops: dict[int, float] = {}
        self._lead = np.ones(core.size)
        self._shapes: dict[int, list[np.ndarray]] = {}
        self._near: np.ndarray | None = None
        self._monitor: Monitor | None = None
        self.work = 30.0 * core.size * core.size
        self._at_once = True  # whether scales are proved when they are found
        self.divisible = False  # whether there has been work for more groups
        self.shaping = self.dividing = 0.0  # work left for new shapes of pads, for more groups

    @property
    def may_shape(self) -> bool:
        """Whether there is work left for new shapes of pads, and time."""
        return self._goes_on(self.shaping)

    def _goes_on(self, work: float) -> bool:
        stopped = self._monitor is not None and self._monitor.stopped is not None
        return work > 0.0 and not stopped

    def matrix(self, tau: int) -> np.ndarray:
        """Return M^tau, with charges rounded up."""
        rows = np.arange(self.core.size)
        d = self._always + self._chosen[rows, np.maximum(self._choices - tau, 0)]
        out = self._base.copy()
        out[rows, rows] += d * (1 + margins.charges(self.s))
        return out

    def top(self, tau: int = 1) -> float:
        """Return about lambda_max(M^tau), -inf where there is none: levels must lie above that of
        M^1."""
        if not self.groups:
            return -np.inf
        if tau not in self._tops:
            self._tops[tau], self._lead = leading_vector(self.matrix(tau), self._lead)
            self.work += 7.0 * self.core.size**2 + 4e5
        return self._tops[tau]

    def uniform_level(self) -> float:
        """Return about the lowest level that uniform pads certify for the features looked at, -inf
        if none was: b + c / (t - top) <= t for each feature and each tau."""
        if self._near is None or not self.own.size:
            return -np.inf
        lowest = float((self.own + self.others[:, self.s - 1]).max()) if self.alone else -np.inf
        for first, last in self.groups:
            taus, top = np.arange(first, last + 1), self.top(first)
            b = self.own[:, None] + self.others[:, taus - 1] - top
            root = np.sqrt(b * b + 4 * taus * self.uniform[:, self.s - taus])
            lowest = max(lowest, top + float((b + root).max()) / 2)
        return lowest * (1 + 1e-6)

    # --- features outside ---

    def _by_variance(self, t: float, scales: dict[int, float]) -> np.ndarray:
        """Return which features outside are not cleared by variances alone."""
        if not self.trusted:
            return np.ones(self.outside.size, dtype=bool)
        v = self.variance[self.outside]
        root = np.sqrt(v)
        inner = prefix_sums(self.variance[self.core][None, :], self.s)[0]
        outer = prefix_sums(root[None, :], self.s)[0]
        rise = 1 + margins.outside(self.s)
        open_ = np.asarray((v + root * outer[self.s - 1]) * rise > t) & self.alone
        for first, last in self.groups:
            for tau in range(first, last + 1):
                slope = inner[self.s - tau] * tau / (first * scales[first])
                m = v * (1.0 + slope) + root * outer[tau - 1]
                open_ |= m * rise > t
        return open_

    def _look_at(self, near: np.ndarray) -> None:
        """Read entries between `near` and the core, and the largest ones to the others."""
        s, cov = self.s, self.cov
        self._near = near
        self.work += near.size * self.core.size * 20.0 + cov.forming(near, self.core)
        self.squares = magnitudes(cov.submatrix(near, self.core), self.nonnegative) ** 2
        self.uniform = prefix_sums(self.squares, s)
        self.own = cov.diagonal[near]
        self.others, self._formed = np.empty((near.size, s + 1)), np.zeros(near.size, dtype=bool)
        if not self.trusted:
            self._form(np.arange(near.size))
            return
        # covariances are at most what variances say; they are formed where that is not enough
        root = np.sqrt(self.variance[near])[:, None]
        top = np.sort(np.sqrt(self.variance[self.outside]))[::-1][: s - 1]
        self.others[:] = root * prefix_sums(top[None, :], s)
        self._formed[:] = near.size > NEAR

    def _form(self, rows: np.ndarray) -> None:
        """Sum the largest |A_jl| of these features over l outside, exact among those near."""
        s, cov, near = self.s, self.cov, self._near
        assert near is not None
        self._formed[rows] = True
        far = np.setdiff1d(self.outside, near) if self.trusted else self.outside[:0]
        beside = near if self.trusted else self.outside
        self.work += cov.forming(near[rows], beside) + 10.0 * rows.size * beside.size
        top = np.sort(np.sqrt(self.variance[far]))[::-1][: s - 1]
        step = max(1, ENTRIES // max(1, beside.size))
        for some in (rows[start : start + step] for start in range(0, rows.size, step)):
            chosen = near[some]
            among = magnitudes(cov.submatrix(chosen, beside), self.nonnegative)
            among[np.arange(some.size), np.searchsorted(beside, chosen)] = 0.0
            tops = [row_tops(among, s - 1), np.sqrt(self.variance[chosen])[:, None] * top]
            self.others[some] = prefix_sums(np.hstack(tops), s)

    def _form_where_close(self, t: float, scales: dict[int, float]) -> None:
        """Form the covariances of features that variances do not put well below the level."""
        rest = np.flatnonzero(~self._formed)
        if not rest.size:
            return
        rise = 1 + margins.outside(self.s)
        worst = (self.own[rest] + self.others[rest, self.s - 1]) * rise
        for first, last in self.groups:
            taus = np.arange(first, last + 1)
            m = self.rows(rest, self.uniform[rest], taus, first * scales[first])
            worst = np.maximum(worst, m.max(axis=1))
        close = rest[worst > JOIN * t]
        if close.size:
            self._form(close)

    # --- levels ---

    def attempt(self, t: float, shaping: float = np.inf, monitor: Monitor | None = None) -> Attempt:
        """Try to certify the level t; new shapes of pads may take so much work.

        Pads that were shaped at other levels are used in any case. Once the monitor says stop, no
        more are shaped. On a large core scales are proved at the end, as most attempts fail before.
        """
        self._monitor = monitor
        self._at_once = self.core.size <= LATER
        found = self._attempt(t, shaping)
        touch = found.touch
        if touch is None or self._at_once or all(self._holds(g, t) for g in touch.groups):
            return found
        self._at_once = True
        return self._attempt(t, shaping)

    def _holds(self, group: Group, t: float) -> bool:
        """Return whether factorisations show that all pads of a group fit."""
        pads = zip(group.shapes, group.scales.tolist())
        return all(self._fits(group.first, shape.astype(np.float64), c, t) for shape, c in pads)

    def _attempt(self, t: float, shaping: float) -> Attempt:
        nothing = np.empty(0, dtype=np.intp)
        if self.outside.size == 0:
            none = np.empty((0, self.s))
            return Attempt(Touch(self.core, self.split, -np.inf, nothing, ()), none, nothing)
        scales: dict[int, float] = {}
        for first, _ in self.groups:
            scale = self._uniform(first, t)
            if scale is None:
                return Attempt(None, np.full((1, self.s), np.inf), nothing)
            scales[first] = scale
        open_ = self.outside[self._by_variance(t, scales)]
        if self._near is None or np.setdiff1d(open_, self._near).size:
            self._look_at(open_)
        self._form_where_close(t, scales)
        self.shaping = self.dividing = shaping
        self.divisible = self.divisible or shaping > 0.0
        s = self.s
        m = np.full((self.own.size, s), np.nan)
        if self.alone:
            m[:, s - 1] = (self.own + self.others[:, s - 1]) * (1 + margins.outside(s))
        else:
            m[:, s - self.anchors :] = -np.inf
        hopeless = bool((m[:, s - 1] > t).any())
        groups: list[Group] = []
        spans: list[tuple[int, int]] = []
        carried: list[np.ndarray] = []
        waiting, looked_at = self.groups[::-1], 0
        while waiting:
            first, last = waiting.pop()
            if not hopeless and last > first:
                after = self._divided(first, last, t, scales)
                waiting += [(after, last)] if after <= last else []
                last = after - 1
            spans.append((first, last))
            # once a feature has failed, the rest serves only to tell which ones should join, and
            # groups that can be divided would be in a certificate
            few = hopeless and self.divisible
            if few and first < int(looked_at * GROWTH):
                continue
            taus, looked_at = np.arange(first, first + 1 if few else last + 1), first
            search = _GroupSearch(self, t, taus, scales[first])
            shapes = self._shapes.setdefault(first, [])
            search.with_shapes([*carried, *shapes])
            known = len(search.shapes)
            if not (hopeless and carried):
                search.shape_new_ones(one_by_one=not hopeless)
            shapes += search.shapes[known:]
            carried = search.shapes[-1:] if len(search.shapes) > 1 else carried
            hopeless = hopeless or bool(search.failing.size)
            m[:, taus - 1] = search.m
            groups.append(search.group(last))
        self.groups = spans
        if (m <= t).all():
            near = self._near if self._near is not None else nothing
            return Attempt(Touch(self.core, self.split, t, near, tuple(groups)), m, nothing)
        return Attempt(None, m, self._joining(m, t))

    def _joining(self, m: np.ndarray, t: float) -> np.ndarray:
        """Return the features whose m_j is close to the level or above it, the largest first."""
        assert self._near is not None
        worst = np.nanmax(m, axis=1)
        over = np.flatnonzero(worst > JOIN * t)
        return self._near[over[np.argsort(-worst[over], kind="stable")]]

    def _uniform(self, first: int, t: float) -> float | None:
        """Return the proved scale of uniform pads, None where the level is too low for any."""
        room = t - self.top(first)
        return self.proved(first, np.ones(self.core.size), room / first, t)

    def _divided(self, first: int, last: int, t: float, scales: dict[int, float]) -> int:
        """Return where a new group begins: after the last tau, or where uniform pads begin to fail.

        M^tau of the new group is smaller, which leaves more room for its pads.
        """
        if not self._goes_on(self.dividing):
            return last + 1
        m = self.rows(slice(None), self.uniform, np.arange(first, last + 1), first * scales[first])
        failing = np.flatnonzero((m[:, 1:] > t).any(axis=0))
        if not failing.size:
            return last + 1
        after = first + 1 + int(failing[0])
        before = self.work
        scale = self._uniform(after, t)
        self.dividing -= self.work - before
        # features that are cleared by variances count on pads that are not smaller
        if scale is None or after * scale < first * scales[first]:
            return last + 1
        scales[after] = scale
        return after

    def rows(self, chosen: Any, sums: np.ndarray, taus: np.ndarray, pad: float) -> np.ndarray:
        """Return m_j of the chosen features for each tau, with pads of first * scale = `pad`."""
        core = sums[:, self.s - taus] * (taus / pad)
        m = self.own[chosen][:, None] + core + self.others[chosen][:, taus - 1]
        return m * (1 + margins.outside(self.s))

    def proved(self, first: int, shape: np.ndarray, scale: float, t: float) -> float | None:
        """Return the scale, a little smaller if need be, once a factorisation shows that it
        fits."""
        if not scale > 0.0:
            return None
        if not self._at_once:
            return float(scale * (1 - 1e-7))
        for less in (1e-9, 1e-7, 1e-5, 1e-3):
            if self._fits(first, shape, scale * (1 - less), t):
                return float(scale * (1 - less))
        return None

    def _fits(self, first: int, shape: np.ndarray, scale: float, t: float) -> bool:
        """Return whether a factorisation shows first * scale * Diag(shape) <= t I - M^first."""
        trial = self.matrix(first)
        trial[np.diag_indices(len(trial))] += first * scale * shape
        self.work += 0.012 * float(len(trial)) ** 3 + 4.0 * trial.size + 5e4
        return prove_below(trial, t)


class _GroupSearch:
    """Which features fail with the pads at hand, for one group, and pads shaped for them."""

    def __init__(self, strata: Strata, t: float, taus: np.ndarray, scale: float) -> None:
        self.strata, self.t, self.taus = strata, t, taus
        self.first = int(taus[0])
        self.shapes = [np.ones(strata.core.size, dtype=np.float32)]
        self.scales = [scale]
        self.m = strata.rows(slice(None), strata.uniform, taus, self.first * scale)
        self.failing = np.flatnonzero((self.m > t).any(axis=1))
        self.pads = _Pads(strata, t, self.first) if self.failing.size else None

    def group(self, last: int) -> Group:
        """Return the pads that were used, as a certificate stores them."""
        return Group(self.first, last, np.array(self.shapes), np.array(self.scales))

    def use(self, shape: np.ndarray, scale: float) -> None:
        """Look at the failing features with other pads; these are stored if they help one."""
        strata, rows = self.strata, self.failing
        squares = strata.squares[rows] / shape.astype(np.float64)
        sums = prefix_sums(squares, strata.s - self.first)
        strata.work += 25.0 * squares.size
        now = strata.rows(rows, sums, self.taus, self.first * scale)
        better = np.minimum(self.m[rows], now)
        if ((better <= self.t) & (self.m[rows] > self.t)).any():
            self.shapes.append(shape)
            self.scales.append(scale)
        self.m[rows] = better
        self.failing = rows[(better > self.t).any(axis=1)]

    def with_shapes(self, shapes: list[np.ndarray]) -> None:
        """Use shapes that served at another level or for another group."""
        for shape in shapes:
            scale = self.pads.scaled(shape) if self.pads is not None and self.failing.size else None
            if scale is not None:
                self.use(shape, scale)

    def shape_new_ones(self, one_by_one: bool) -> None:
        """Shape pads for the features that fail together, then for few of them one by one."""
        if self.pads is None or not self.failing.size:
            return
        squares = self.strata.squares
        worst = self.failing[np.argsort(-self.m[self.failing].max(axis=1), kind="stable")]
        for shape, scale in self.pads.shaped(squares[worst[:SAMPLE]].mean(axis=0)):
            self.use(shape, scale)
            if not self.failing.size:
                return
        if not one_by_one or self.failing.size > OWN:
            return
        for j in self.failing.tolist():
            for shape, scale in self.pads.shaped(squares[j]) if squares[j].any() else ():
                self.use(shape, scale)
                if j not in self.failing:
                    break


class _Pads:
    """Pads at a level for one group, shaped for the features that need them."""

    def __init__(self, strata: Strata, t: float, first: int) -> None:
        self.strata, self.t, self.first = strata, t, first
        base = strata.matrix(first)
        self.gap = np.diag(np.full(base.shape[0], t)) - base
        self.inverse = inverse(self.gap)

    def _scale(self, shape: np.ndarray) -> float:
        """Return about the largest c with first * c * Diag(shape) <= t I - M."""
        assert self.inverse is not None
        root = np.sqrt(shape)
        scaled = self.inverse * root * root[:, None]
        # rather above the largest eigenvalue, which is not needed to more digits
        return 1.0 / (self.first * leading_vector(scaled, root, tol=1e-5)[0] * (1 + 1e-5))

    def scaled(self, shape: np.ndarray) -> float | None:
        """Return the proved scale of a shape, None where it has none."""
        if self.inverse is None:
            return None
        exact = shape.astype(np.float64)
        self.strata.work += 5.0 * exact.size**2 + 4e5
        return self.strata.proved(self.first, exact, self._scale(exact), self.t)

    def shaped(self, weight: np.ndarray) -> Iterator[tuple[np.ndarray, float]]:
        """Yield shapes, with scales, that come closer to the largest weighted sum of log pi."""
        if self.inverse is None or not self.strata.may_shape:
            return
        n = self.gap.shape[0]
        weight = weight / max(float(weight.sum()), 1e-300) + 1e-3 / n
        pi = np.ones(n) * self._scale(np.ones(n))
        for fraction in FRACTIONS:
            step = 0.035 * float(n) ** 3 + 16.0 * n * n + 4e5
            self.strata.work += step
            self.strata.shaping -= step
            inside = inverse(self.gap - np.diag(self.first * fraction * pi))
            if inside is None or not self.strata.may_shape:
                return
            pi = np.sqrt(pi * weight / np.diagonal(inside))
            pi *= self._scale(pi)
            if fraction < TRIED:
                continue
            shape = np.maximum((pi / pi.max()).astype(np.float32), np.float32(1e-12))
            scale = self.scaled(shape)
            if scale is not None:
                yield shape, scale
