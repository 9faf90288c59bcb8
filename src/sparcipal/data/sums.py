"""Sums over rows that come and go: what `update` and `partial_fit` keep instead of the rows.

The moments of all columns and the products of as many as memory allows, all where it can. New rows
are added, rows that leave are subtracted, and the covariance is there without reading rows again.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any

import numpy as np

from ..problem import parameters
from ..problem.monitor import Monitor
from ..problem.saving import write_bytes
from .consistent import check_consistent
from .entries import stored
from .moments import Moments, check_moments
from .passes import MEMORY_LIMIT, SQUARES, memory_bytes, watch_moments
from .products import Gram, check_exact
from .rows import Rows, Watch
from .screening import Screened
from .sources import as_rows

FORMAT = 1  # of the file
HEAVIEST = 1e100  # sample weight; squares of entries times weights do not overflow


class Sums:
    """Moments of all columns and products of the kept ones, over rows that need not be there.

    `sparse_pca(covariance=sums)` finds components of the rows that were added. Sums are never
    changed: `grown` returns new ones. Those of integers are exact, so that neither the order nor
    the way in which rows came changes a bit of the answer.

    Parameters
    ----------
    moments : Moments
        Of all columns.
    gram : Gram
        Of the kept columns, over the same rows.
    feature_names : tuple of str, optional
    last : str
        A fingerprint of the sums over the rows that came last, so that it can be told when the same
        ones come again; empty where that is not known.

    Examples
    --------
    >>> import numpy as np
    >>> from sparcipal import Sums, sparse_pca
    >>> X = np.random.default_rng(0).poisson([9, 1, 7, 2, 8], (200, 5))
    >>> sums = Sums.of(X[:150]).grown(X[150:])
    >>> sums
    <Sums: 200 samples x 5 features, 5 kept, exact>
    >>> sparse_pca(covariance=sums, n_nonzero_coefs=2).n_samples
    200
    """

    def __init__(
        self,
        moments: Moments,
        gram: Gram,
        feature_names: tuple[str, ...] | None = None,
        last: str = "",
    ) -> None:
        if gram.n_samples != moments.n_samples:
            raise ValueError(
                f"moments of {moments.n_samples} rows and products of {gram.n_samples} are not of "
                "the same rows; sum both over all of them"
            )
        if gram.columns.size and gram.columns[-1] >= moments.n_features:
            raise ValueError(
                f"products of column {int(gram.columns[-1])}, but moments of {moments.n_features} "
                "columns; both must be of the same table"
            )
        self.moments, self.gram, self.feature_names = moments, gram, feature_names
        self.last = last

    @staticmethod
    def of(
        X: Any,
        *,
        sample_weight: Any = None,
        feature_names: Any = None,
        memory_limit: float | str = MEMORY_LIMIT,
    ) -> Sums:
        """Sum over the rows of X, anything that `sparse_pca` takes.

        Products are kept of all columns if they fit `memory_limit`, otherwise of those that vary
        most in X; what the others could add is part of every bound.
        """
        rows = rows_to_add(X, sample_weight, feature_names)
        return summed(rows, memory_bytes(memory_limit), Monitor())

    @property
    def n_features(self) -> int:
        return self.moments.n_features

    @property
    def n_samples(self) -> int:
        return self.moments.n_samples

    @property
    def exact(self) -> bool:
        """Whether all sums are of integers: nothing is rounded, and rows can be subtracted."""
        return self.moments.exact and self.gram.exact

    def __repr__(self) -> str:
        kind = "exact" if self.exact else "rounded"
        return (
            f"<Sums: {self.n_samples} samples x {self.n_features} features, "
            f"{self.gram.columns.size} kept, {kind}>"
        )

    def grown(self, new: Any = None, without: Any = None, *, sample_weight: Any = None) -> Sums:
        """Return the sums with some rows more, and without some that were added before.

        Parameters
        ----------
        new, without : what `sparse_pca` takes, optional
            Rows that come and rows that go, with these columns. Rows can be taken away where all
            are integers without weights; other sums are rounded, and what is left of them would
            not be known well enough.
        sample_weight : array, optional
            Of the new rows.
        """
        added = None if new is None else rows_to_add(new, sample_weight)
        return self.changed(added, None if without is None else rows_to_add(without), Monitor())

    def changed(self, new: Rows | None, without: Rows | None, monitor: Monitor) -> Sums:
        """Do what `grown` does for rows that were resolved."""
        for rows in (new, without):
            if rows is not None:
                self._check_columns(rows)
        if without is not None:
            check_exact(self.exact)
        moments, gram, last = self.moments.copy(), self.gram.copy_empty(), self.last
        if new is not None:
            added, gram = self._over(new, monitor)
            last = _fingerprint(added, gram)
            # sums that are moved to other shifts are known less well: those of more rows stay
            moments = moments.merge(added)
        gram = gram.merge(self.gram)
        if without is not None:
            gone, products = self._over(without, monitor)
            moments, gram = moments.subtract(gone), gram.subtract(products)
        return Sums(moments, gram, self.feature_names, last)

    def _over(self, rows: Rows, monitor: Monitor) -> tuple[Moments, Gram]:
        """Return the sums over other rows, of the same columns."""
        moments = rows.count(watch_moments(rows, monitor))
        what = f"of {self.gram.columns.size} of {self.n_features} features"
        return moments.copy(), rows.accumulate(
            self.gram.copy_empty(), Watch(monitor, "products", what)
        )

    def _check_columns(self, rows: Rows) -> None:
        if rows.n_features != self.n_features:
            raise ValueError(
                f"the new rows have {rows.n_features} features, but the sums have "
                f"{self.n_features}; pass rows with the same columns"
            )
        own, names = self.feature_names, rows.feature_names
        if own is not None and names is not None and own != names:
            place = next(i for i, (a, b) in enumerate(zip(own, names)) if a != b)
            raise ValueError(
                f"the new rows have other feature names, first at feature {place}: "
                f"{names[place]!r} instead of {own[place]!r}; pass the same columns in this order"
            )

    def screened(self, center: bool = True, scale: bool = False) -> Screened:
        """Return the covariance of the kept features, and the variances of all."""
        return Screened.of(self.moments, self.gram, center, scale)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the sums to a file, in one step, for `load`."""
        names = () if self.feature_names is None else self.feature_names
        arrays: dict[str, Any] = {
            "format": np.array([FORMAT]),
            "names": np.array(names, dtype=np.str_),
            "last": np.array([self.last], dtype=np.str_),
            **{f"moments_{name}": array for name, array in self.moments.arrays().items()},
            **{f"gram_{name}": array for name, array in self.gram.arrays().items()},
        }
        write_bytes(Path(path), lambda stream: np.savez(stream, **arrays))

    @staticmethod
    def load(path: str | os.PathLike[str]) -> Sums:
        """Read sums that `save` has written; ValueError when the file holds something else."""
        try:
            with open(path, "rb") as stream, np.load(stream, allow_pickle=False) as kept:
                parts = {name: kept[name] for name in kept.files}
            if (format := int(stored(parts, "format", np.int64, 1)[0])) != FORMAT:
                raise ValueError(f"format {format} is unknown")
            moments = Moments.from_arrays(_under("moments_", parts))
            gram = Gram.from_arrays(_under("gram_", parts))
            check_consistent(moments, gram)
            names = _texts(parts, "names")
            if names and (len(names) != moments.n_features or len({*names}) < len(names)):
                raise ValueError(
                    f"{len({*names})} names that differ, for {moments.n_features} columns"
                )
            last = _texts(parts, "last") if "last" in parts else ()
            return Sums(moments, gram, names or None, "".join(last))
        except OSError:
            raise
        except Exception as error:  # whatever else NumPy or the sums find wrong with the bytes
            raise ValueError(
                f"{path} does not hold sums ({error}); sum over the rows again"
            ) from error


def _under(prefix: str, parts: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {name.removeprefix(prefix): a for name, a in parts.items() if name.startswith(prefix)}


def _texts(parts: dict[str, np.ndarray], name: str) -> tuple[str, ...]:
    if name not in parts or parts[name].ndim != 1 or parts[name].dtype.kind != "U":
        raise ValueError(f"{name!r} is no list of texts")
    return tuple(map(str, parts[name]))


def rows_to_add(X: Any, sample_weight: Any = None, feature_names: Any = None) -> Rows:
    """Return anything that holds rows as Rows, with their weights."""
    rows = as_rows(X, feature_names)
    return rows if sample_weight is None else with_weights(rows, sample_weight)


def with_weights(rows: Rows, sample_weight: Any) -> Rows:
    """Return the same rows, each with its weight as it is: other rows are weighed against them."""
    n = np.size(sample_weight) if rows.n_samples is None else rows.n_samples
    parameters.weights(sample_weight, n)  # refuses what cannot be weights
    given = np.asarray(sample_weight, dtype=np.float64)
    if given.max() > HEAVIEST or given[given > 0].min() < 1 / HEAVIEST:
        raise ValueError(
            f"sample_weight reaches {given.max():.3g}, and {given[given > 0].min():.3g} at least; "
            f"weights of rows that come in parts are between {1 / HEAVIEST:g} and {HEAVIEST:g}: "
            "multiply them all by one number"
        )
    return rows.weighted(given)


def summed(rows: Rows, memory_limit: int, monitor: Monitor) -> Sums:
    """Return the sums over the first rows, which choose the columns that are kept."""
    rows = rows.within(memory_limit)
    moments = rows.count(watch_moments(rows, monitor)).copy()
    check_moments(moments, False, False)
    p = moments.n_features
    most = max(int(np.sqrt(memory_limit / (8 * SQUARES))), 2)
    # A column that is constant so far may vary later: it stays where all fit.
    kept = np.arange(p) if p <= most else moments.screen(most)
    what = f"of {kept.size} of {p} features"
    gram = rows.accumulate(moments.gram(kept), Watch(monitor, "products", what))
    return Sums(moments, gram, rows.feature_names, _fingerprint(moments, gram))


def _fingerprint(moments: Moments, gram: Gram) -> str:
    """Return a text that sums over other rows do not have."""
    digest = hashlib.sha256()
    for array in (*moments.arrays().values(), *gram.arrays().values()):
        digest.update(array.tobytes())
    return digest.hexdigest()
