"""Makes a Table of arrays, sparse matrices, memory maps, frames and AnnData.

Nothing is clipped, dropped, imputed or densified; data that cannot be used as they are raise an
error that says where and what to do.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
import scipy.sparse as sp

from . import frames, genes
from .checks import check_array, check_shape, check_sparse, has_gaps, object_to_float
from .columns import distinct
from .moments import Moments
from .notes import tell


@dataclass(frozen=True, eq=False)
class Table:
    """Samples by features, with names.

    Attributes
    ----------
    X : ndarray, memmap, csr_array or csc_array, shape (n_samples, n_features)
        Real and finite, in the dtype it came in.
    feature_names : tuple of str or None
    sample_names : tuple of str or None
    moments : Moments or None
        What the reader has counted on its way: the rows need not be read for it again.
    cache_entry : Entry or None
        Where the cache has X; further results that cost a pass over the rows are stored with it.
    labels : tuple of str or None
        One per sample, from a column that is no feature: for pictures and scores.
    label_name : str or None
        The name of that column.
    notes : tuple of str
        Sentences that name what was set aside, renamed or converted.
    texts : dict or None
        How words were counted and weighted: "options" of `read`, and "idf" for weighting="tfidf".
    """

    X: Any
    feature_names: tuple[str, ...] | None = None
    sample_names: tuple[str, ...] | None = None
    moments: Moments | None = None
    cache_entry: Any = None
    labels: tuple[str, ...] | None = None
    label_name: str | None = None
    notes: tuple[str, ...] = ()
    texts: dict[str, Any] | None = None
    _checked: bool = field(default=False, init=False, repr=False)

    def __post_init__(self) -> None:
        if self.feature_names is not None:
            object.__setattr__(self, "feature_names", told_apart(self.feature_names))
        for names, axis, what in (
            (self.feature_names, 1, "feature"),
            (self.sample_names, 0, "sample"),
        ):
            if names is not None and len(names) != self.X.shape[axis]:
                raise ValueError(
                    f"{what}_names has {len(names)} names, but X has {self.X.shape[axis]} {what}s; "
                    f"pass one name per {what}"
                )

    @property
    def shape(self) -> tuple[int, int]:
        n, p = self.X.shape
        return int(n), int(p)

    def _of_checked(self, X: Any) -> Self:
        """Return the table with an X that is marked as checked, which `replace` would not do."""
        new = replace(self, X=X)
        object.__setattr__(new, "_checked", True)
        return new

    def _check(self) -> Self:
        """Return the table once its X is known to be real and finite; it is checked once."""
        if self._checked:
            return self
        check = check_sparse if sp.issparse(self.X) else check_array
        return self._of_checked(check(self.X, self.feature_names))

    def _check_but_for_gaps(self) -> Self:
        """Return the table once its X is known to be real, and finite but for entries that are
        missing; only one without gaps counts as checked."""
        if self._checked or sp.issparse(self.X) or self.X.dtype.kind != "f":
            return self._check()
        X = check_array(self.X, self.feature_names, gaps=True)
        return replace(self, X=X) if has_gaps(X) else self._of_checked(X)

    def _named(self, names: Iterable[str]) -> Self:
        """Return the table with other feature names; a checked X stays checked."""
        new = replace(self, feature_names=checked_names(names))
        return new._of_checked(self.X) if self._checked else new

    def __repr__(self) -> str:
        n, p = self.shape
        kind = type(self.X).__name__
        stored = f", {self.X.nnz} stored" if hasattr(self.X, "nnz") else ""
        named = "named" if self.feature_names is not None else "unnamed"
        return f"<Table: {n} samples x {p} {named} features, {kind} of {self.X.dtype}{stored}>"


def as_table(X: Any, feature_names: Iterable[str] | None = None) -> Table:
    """Return a checked Table of anything that holds samples in rows and features in columns.

    Parameters
    ----------
    X : array-like, sparse matrix, memmap, data frame, AnnData or Table
        pandas, polars and pyarrow frames keep their column names. A Table that was made here is
        not checked again.
    feature_names : iterable of str, optional
        One per column, instead of the names X brings.

    Raises
    ------
    ValueError
        When X is not two-dimensional, empty, not numeric, complex, or holds NaN or infinity.
    """
    table = untangled(X)
    return (table if feature_names is None else table._named(feature_names))._check()


def stacked(blocks: Sequence[Any], feature_names: tuple[str, ...] | None) -> Table:
    """Stack checked blocks of rows into one table, CSR if some of them are sparse."""
    if any(sp.issparse(block) for block in blocks):
        X: Any = sp.vstack([sp.csr_array(block) for block in blocks], format="csr")
    else:
        X = np.concatenate(blocks)
    return Table(X, feature_names)._of_checked(X)


def checked_names(names: Iterable[str]) -> tuple[str, ...]:
    """Return feature names as a tuple of str that differ; ValueError for anything else."""
    if isinstance(names, str | bytes):
        raise ValueError(f"feature_names={names!r} is one string; pass one name per feature")
    if not isinstance(names, Iterable):
        raise TypeError(f"feature_names must be a sequence of names, got {names!r}")
    found = tuple(names)
    for i, name in enumerate(found):
        if not isinstance(name, str):
            raise ValueError(
                f"feature_names[{i}]={name!r} is not a string; pass [str(name) for name in names]"
            )
    return told_apart(tuple(str(name) for name in found))


def told_apart(names: tuple[str, ...]) -> tuple[str, ...]:
    """Return feature names that differ, as those of a frame; a warning says where they did not."""
    if len(set(names)) == len(names) and all(map(str.strip, names)):
        return names
    found, notes = distinct(names)
    tell(notes)
    return found


def untangled(X: Any) -> Table:
    """Return matrix and names of X as a Table whose entries are not checked."""
    if isinstance(X, Table):
        return X
    if isinstance(X, str | bytes | os.PathLike):
        raise ValueError(f"X={X!r} is a path, not data; pass sparcipal.read({X!r})")
    if sp.issparse(X):
        return Table(_flat_refused(X))
    if genes.is_anndata(X):
        return Table(*genes.from_anndata(X), notes=genes.on_marked_genes(X))
    if frames.is_frame(X):
        return table_of(frames.from_frame(X))
    if isinstance(X, np.ma.MaskedArray):
        if np.ma.is_masked(X):
            raise ValueError(
                f"X is a masked array with {int(np.ma.getmaskarray(X).sum())} masked entries; "
                "remove these rows or columns, or fill the entries first"
            )
        X = X.data
    if is_texts(X):
        raise ValueError(
            f"X is a list of {len(X)} texts. Expected 2D array; pass sparcipal.read(X), which "
            "counts their words"
        )
    array = X if type(X) is np.memmap else _array(X)
    if array.dtype.kind == "O":
        array = object_to_float(array)
    return Table(_flat_refused(array))


def is_texts(X: Any) -> bool:
    """Return whether X is a list of texts."""
    return isinstance(X, list | tuple) and len(X) > 0 and all(isinstance(t, str) for t in X)


def table_of(found: frames.Framed) -> Table:
    """Return what was found in a frame as a Table whose entries are not checked."""
    return Table(
        found.matrix,
        found.features,
        found.samples,
        labels=found.labels,
        label_name=found.label_name,
        notes=found.notes,
    )


def _flat_refused(X: Any) -> Any:
    """Return X if it has two dimensions, which a Table needs to count its names."""
    check_shape(X)
    return X


def _array(X: Any) -> np.ndarray:
    try:
        return np.asarray(X)
    except ValueError as error:
        raise ValueError(f"X is not a table of numbers: {error}") from error
