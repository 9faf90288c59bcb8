"""One set of s features for all components: exchange search for the largest sum of eigenvalues.

The value of a set T is the sum of the k largest eigenvalues of A_T. Features are exchanged one for
one while it grows; those that enter are chosen by what a newcomer adds to the components of T.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..problem.components import common_set, newcomer_gain, principal
from ..problem.problem import Component, Options, Problem

ENTERING = 40  # features that are tried in an exchange
PERTURBED = 8  # starts near the best set, and how many of its features change in each
CHANGED = 3


def best_set(
    problem: Problem, starts: Sequence[Sequence[Component]], options: Options
) -> tuple[Component, ...]:
    """Return the principal components of the best set from the starts and from simple ones."""
    search = _Search(problem, options)
    sets = [common_set(problem, tuple(start)) for start in starts]
    sets += [search.of_variances(), search.of_loadings(), search.grown()]
    ends = [search.climb(one) for one in _distinct(sets)]
    best = max(ends, key=search.value)
    rng = np.random.default_rng(options.seed)
    for _ in range(PERTURBED):
        trial = search.climb(search.perturbed(best, rng))
        if search.value(trial) > search.value(best) * (1 + 1e-10):
            best = trial
    return principal(problem, best)


class _Search:
    def __init__(self, problem: Problem, options: Options) -> None:
        self.problem, self.options = problem, options
        self.cov, self.k, self.s = problem.covariance, problem.k, problem.s_max

    def value(self, features: np.ndarray) -> float:
        return float(np.linalg.eigvalsh(self.cov.submatrix(features))[-self.k :].sum())

    def of_variances(self) -> np.ndarray:
        return np.sort(np.argsort(-self.cov.diagonal, kind="stable")[: self.s])

    def of_loadings(self) -> np.ndarray:
        """Return the features with the largest parts in the leading directions of all features."""
        p = self.cov.n_features
        block = np.random.default_rng(0).standard_normal((p, min(p, self.k + 4)))
        for _ in range(8):
            block = np.linalg.qr(self.cov.matmat(block))[0]
        image = self.cov.matmat(block)
        values, turn = np.linalg.eigh(block.T @ image)
        loadings = (block @ turn[:, -self.k :]) ** 2 @ np.maximum(values[-self.k :], 0.0)
        return np.sort(np.argsort(-loadings, kind="stable")[: self.s])

    def grown(self) -> np.ndarray:
        """Return the set that grows from the largest variance by the feature that adds most."""
        features = np.array([int(np.argmax(self.cov.diagonal))])
        while features.size < self.s:
            enter = self._entering(features, 1)
            features = np.sort(np.append(features, enter))
        return features

    def perturbed(self, features: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        out = rng.choice(features, min(CHANGED, features.size), replace=False)
        kept = np.setdiff1d(features, out)
        enter = self._entering(kept, ENTERING)
        enter = enter[~np.isin(enter, out)]
        if enter.size < out.size:
            return features
        return np.sort(np.append(kept, rng.choice(enter, out.size, replace=False)))

    def climb(self, features: np.ndarray) -> np.ndarray:
        """Make the best exchange of one feature for another until none helps."""
        value = self.value(features)
        while features.size < self.cov.n_features and not self.options.monitor.stopped:
            enter = self._entering(features, ENTERING)
            best, found = value, features
            for a in features:
                kept = features[features != a]
                trials = np.array([np.append(kept, b) for b in enter])
                every = np.unique(trials)
                A = self.cov.submatrix(every)
                places = np.searchsorted(every, trials)
                blocks = A[places[:, :, None], places[:, None, :]]
                values = np.linalg.eigvalsh(blocks)[:, -self.k :].sum(axis=1)
                i = int(np.argmax(values))
                if values[i] > best * (1 + 1e-10):
                    best, found = float(values[i]), np.sort(trials[i])
            if found is features:
                break
            value, features = best, found
        return features

    def _entering(self, features: np.ndarray, count: int) -> np.ndarray:
        """Return features outside, those first that add most to some component of the set."""
        values, vectors = np.linalg.eigh(self.cov.submatrix(features))
        leading = vectors[:, -self.k :]
        link = self.cov.columns(features) @ leading  # (p, k)
        gain = newcomer_gain(values[-self.k :], self.cov.diagonal[:, None], link, False)
        # with fewer directions than components, a feature counts with its own variance, too
        score = gain.sum(axis=1) if features.size >= self.k else self.cov.diagonal.copy()
        score[features] = -np.inf
        order = np.argsort(-score, kind="stable")[:count]
        return order[np.isfinite(score[order])]


def _distinct(sets: list[np.ndarray]) -> list[np.ndarray]:
    return list({one.tobytes(): one for one in sets}.values())
