"""Which features covary with others: one pass over the rows, p numbers for each test vector.

Variances alone do not say which features belong together: a block of related features may vary less
than noise. With A the covariance (or the correlations), a pass sums A [W, x_1, ..., x_k] without
forming A: W holds random signs, x_j the components that are known.

`strength`  The row norms of A without its diagonal, estimated from A W, less what sampling gives
            unrelated features: E (A_ij)^2 = A_ii A_jj / n.
`gains`     How much a feature could add to a known component, by the 2 x 2 problem of both.

Both only choose which features are looked at; no bound rests on them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from typing import Any, Self

import numpy as np
import scipy.sparse as sp

from ..numerics.margins import power_of_two
from ..problem.components import newcomer_gain
from ..problem.problem import Component
from .moments import TILE, Moments

FEWEST, MOST = 16, 64  # test vectors of random signs
BYTES = 64  # of memory for each of them and each feature
ENTRIES = 1 << 18  # stored entries of a sparse block at a time
GROUP = 8  # test vectors at a time, or more where they are short: what is formed of them is small
# Figures that differ by less count as equal, so that the order of summation chooses no feature.
STEPS = 1 << 20


class Covarying:
    """Sums over rows of X'(X V), for test vectors V; blocks are added and merged like moments.

    Parameters
    ----------
    moments : Moments
        Of all columns.
    center, scale : bool
        Whether A is the covariance about the means, and of standardised columns.
    components : sequence of Component
        Known ones, on all features.
    n_signs : int
        Test vectors of random signs.
    """

    def __init__(
        self,
        moments: Moments,
        center: bool,
        scale: bool,
        components: Sequence[Component] = (),
        n_signs: int = FEWEST,
    ) -> None:
        p = moments.n_features
        self._moments, self._center, self._scale = moments, center, scale
        self._components = tuple(components)
        self._signs = np.random.default_rng(p).integers(0, 2, size=(p, n_signs), dtype=np.int8)
        self._signs += self._signs - np.int8(1)
        variances = moments.variances(center)
        spread = np.sqrt(variances) if scale else np.ones(p)
        self._spread = np.where(spread > 0.0, spread, 1.0)
        self._variances = variances / self._spread**2
        self._mean = moments.means() if center else np.zeros(p)
        self._clear()

    def _clear(self) -> None:
        p, tests = self._signs.shape[0], self._n_signs + len(self._components)
        self._rows = 0
        self._sums = np.zeros(tests)  # of the tests' scores
        self._cross = np.zeros((p, tests))  # X' scores

    @property
    def _n_signs(self) -> int:
        return self._signs.shape[1]

    def _tests(self, part: slice) -> np.ndarray:
        """Return some of the test vectors, the signs first."""
        signs = self._signs[:, part]
        which = range(self._sums.size)[part]
        tests = np.zeros((signs.shape[0], len(which)))
        tests[:, : signs.shape[1]] = signs
        for j in range(signs.shape[1], len(which)):
            component = self._components[which[j] - self._n_signs]
            tests[component.support, j] = component.weights
        return tests

    def _groups(self, stop: int, least: int = GROUP) -> Iterator[slice]:
        """Divide the first `stop` test vectors."""
        size = max(least, TILE // self._signs.shape[0])
        return (slice(start, min(start + size, stop)) for start in range(0, stop, size))

    def copy_empty(self) -> Covarying:
        new = Covarying.__new__(Covarying)
        new.__dict__.update(self.__dict__)  # the signs are the same, and never changed
        new._clear()
        return new

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Send an empty one without its zeros; the signs are drawn again."""
        if self._rows == 0:
            known = (self._moments, self._center, self._scale, self._components, self._n_signs)
            return Covarying, known
        return super().__reduce_ex__(protocol)

    def add(self, block: Any, weights: np.ndarray | None = None) -> Self:
        # of the rows of a tile, or of their scores, there are no more numbers than there are sums
        step = self._cross.shape[0 if sp.issparse(block) else 1]
        step = max(step, TILE // self._cross.shape[1 if sp.issparse(block) else 0])
        if sp.issparse(block):  # entries become double precision in products
            step = min(step, max(1, ENTRIES * block.shape[0] // max(1, block.nnz)))
        for start in range(0, block.shape[0], step):
            heavy = None if weights is None else weights[start : start + step, None]
            self._add(block[start : start + step], heavy)
        self._rows += block.shape[0]
        return self

    def _add(self, tile: Any, heavy: np.ndarray | None) -> None:
        sparse = sp.issparse(tile)
        if not sparse:
            tile = np.subtract(tile, self._mean, dtype=np.float64)
        for part in self._groups(self._sums.size):
            loadings = self._tests(part)
            loadings /= self._spread[:, None]
            scores = np.asarray(tile @ loadings)
            if sparse:
                scores -= self._mean @ loadings
            if heavy is not None:
                scores *= heavy
            self._cross[:, part] += np.asarray(tile.T @ scores)
            if sparse:
                self._sums[part] += scores.sum(axis=0)  # the means are subtracted in the end

    def merge(self, other: Covarying) -> Self:
        self._rows += other._rows
        self._sums += other._sums
        self._cross += other._cross
        return self

    @property
    def name(self) -> str:
        """What the cache calls these sums: the same for the same tests of the same columns."""
        tests = hashlib.sha256(self._signs.tobytes())
        for component in self._components:
            tests.update(component.support.astype("<i8").tobytes())
            tests.update(component.weights.astype("<f8").tobytes())
        tests.update(bytes([self._center, self._scale]))
        return f"covariation-{tests.hexdigest()[:24]}"

    def arrays(self) -> dict[str, np.ndarray]:
        return {"rows": np.array([self._rows]), "sums": self._sums, "cross": self._cross}

    def restored(self, arrays: Any) -> Covarying:
        """Return the same tests with sums that were stored."""
        new = self.copy_empty()
        new._rows = int(np.asarray(arrays["rows"])[0])
        new._sums, new._cross = np.array(arrays["sums"]), np.array(arrays["cross"])
        return new

    def _images(self, part: slice) -> np.ndarray:
        """Return A times some of the test vectors, (p, tests)."""
        images: np.ndarray = self._cross[:, part] - np.outer(self._mean, self._sums[part])
        images /= self._spread[:, None]
        images /= self._moments.weight
        return images

    def strength(self) -> np.ndarray:
        """Return how strongly each feature covaries with all others, beyond chance."""
        unit = power_of_two(float(self._variances.max(initial=0.0)))  # no square may overflow
        variances = self._variances / unit
        energy = np.zeros(variances.size)
        for part in self._groups(self._n_signs, 1):
            others = self._images(part)
            others /= unit
            others -= variances[:, None] * self._signs[:, part]
            energy += np.square(others, out=others).sum(axis=1)
        chance = variances * (variances.sum() - variances) / max(self._rows, 1)
        return _rounded(np.maximum(energy / self._n_signs - chance, 0.0))

    def gains(
        self, values: Sequence[float], nonnegative: bool, losses: Sequence[float] | None = None
    ) -> np.ndarray:
        """Return the largest share of its value that a feature could add to a known component;
        less what that would lose for it, where `losses` are told: then some are negative."""
        best = np.full(self._variances.size, -1.0 if losses else 0.0)
        for j, (value, component) in enumerate(zip(values, self._components), self._n_signs):
            image = self._images(slice(j, j + 1))[:, 0]
            # one that explains nothing has no shares; any feature that varies adds to it
            unit = value if value > 0.0 else float(self._variances.max(initial=0.0)) or 1.0
            gain = newcomer_gain(value / unit, self._variances / unit, image / unit, nonnegative)
            if losses:
                gain -= losses[j - self._n_signs] / unit
            gain[component.support] = 0.0
            best = np.maximum(best, gain)
        return _rounded(best)


def signs_within(memory_limit: int, n_features: int) -> int:
    """Return how many test vectors of signs fit: more of them tell weaker relations from chance."""
    return min(MOST, max(FEWEST, memory_limit // (BYTES * n_features)))


def _rounded(figures: np.ndarray) -> np.ndarray:
    top = float(figures.max(initial=0.0))
    return np.rint(figures / top * STEPS) if top > 0.0 else figures


def taken_in_turn(count: int, *orders: np.ndarray) -> np.ndarray:
    """Return the first `count` different features when the orders are read in turn, increasing."""
    reach = 2 * count  # an order names a feature twice at most
    interleaved = np.stack([order[:reach] for order in orders], axis=1).ravel()
    first = np.sort(np.unique(interleaved, return_index=True)[1])
    return np.sort(interleaved[first[:count]])
