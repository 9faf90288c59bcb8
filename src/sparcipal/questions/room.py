"""Numbers of components and of nonzeros that fit a table, and keywords that are handed on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from inspect import signature
from typing import Any

from ..problem.constraints import Columns
from ..problem.parameters import Complaints, refuse_unknown
from ..settings import Settings

NAMED = 3  # numbers that do not fit are named


def fits(settings: Settings, k: int, s: int, n_features: int) -> bool:
    """Say whether k components of s nonzeros each exist among so many features."""
    return not _misfit(settings, k, s, n_features)


def most(settings: Settings, k: int, n_features: int) -> int:
    """Return the largest number of nonzeros of each of k components among so many features."""
    return n_features // k if settings.disjoint else n_features


def around(settings: Settings, k: int, s: int, n_features: int) -> tuple[list[int], list[int]]:
    """Return numbers of components and of nonzeros near k and s that fit with k or with s."""
    ks = [near for near in (k - 1, k, k + 1) if near > 0 and fits(settings, near, s, n_features)]
    sizes = [
        near for near in (s // 2, s, 2 * s) if near > 0 and fits(settings, k, near, n_features)
    ]
    return ks, sorted(set(sizes))


def _misfit(settings: Settings, k: int, s: int, n_features: int) -> str:
    """Return what is missing for k components of s nonzeros each; "" if nothing is."""
    pair = f"n_components={k} with n_nonzero_coefs={s}"
    if k > s and (settings.supports == "common" or settings.uncorrelated):
        return f"{pair} needs {k} nonzeros"
    needed = k * s if settings.disjoint else max(k, s)
    return f"{pair} needs {needed} of {n_features} features" if needed > n_features else ""


@dataclass(frozen=True)
class Tried:
    """The numbers to try, without those refused; `rows` is None until they are counted."""

    ks: tuple[int, ...]
    sizes: tuple[int, ...]
    folds: int | None
    rows: int | None
    ours: tuple[bool, bool]  # whether `ks` and `sizes` are defaults, not the user's

    def fitting(self, settings: Settings, room: int) -> Tried:
        """Return the same without defaults that do not fit; the smallest ones stay."""
        ks, sizes = self.ks, self.sizes
        if self.ours[1]:
            sizes = tuple(s for s in sizes if any(fits(settings, k, s, room) for k in ks))
        if self.ours[0]:
            ks = tuple(k for k in ks if any(fits(settings, k, s, room) for s in sizes))
            if self.folds and self.rows is not None:
                ks = tuple(k for k in ks if self.rows // self.folds >= _least_rows(k))
        return replace(self, ks=ks or self.ks[:1], sizes=sizes or self.sizes[:1])


def with_room(tried: Tried, settings: Settings, columns: Columns) -> Tried:
    """Return the numbers that are tried; one error names all that does not fit."""
    with Complaints() as check:
        available = check(settings.available, columns)
        room = columns.count if available is None else available
        check(settings.constraints, columns, [room], None)
        tried = tried.fitting(settings, room)
        if tried.sizes or not (settings.uncorrelated or settings.supports == "common"):
            check(_refuse_misfits, tried.ks or (1,), tried.sizes or (1,), settings, room)
        if tried.ks and tried.folds and tried.rows is not None:
            check(_check_folds, tried.ks[-1], tried.rows, tried.folds)
    return tried


def _refuse_misfits(
    ks: Sequence[int], sizes: Sequence[int], settings: Settings, n_features: int
) -> None:
    pairs = [[_misfit(settings, k, s, n_features) for s in sizes] for k in ks]
    wrong = [row[0] for row in pairs if all(row)]
    wrong += [column[0] for column in zip(*pairs) if all(column) and column[0] not in wrong]
    if len(wrong) > NAMED:
        wrong[NAMED:] = [f"{len(wrong) - NAMED} other numbers do not fit either"]
    if wrong:
        raise ValueError("; ".join(wrong) + "; leave such numbers out, or ask for smaller ones")


def _least_rows(k: int) -> int:
    """Return the rows that a fold needs so that regression on k scores says something."""
    return 2 * (k + 1)


def _check_folds(largest: int, n: int, folds: int) -> None:
    least = _least_rows(largest)
    needs = f"{largest} components need" if largest > 1 else "1 component needs"
    if n // folds < least:
        raise ValueError(
            f"folds={folds} leaves {n // folds} of {n} rows in a fold, but {needs} {least}; "
            "ask for fewer folds or components"
        )


def handed_on(
    function: Callable[..., Any], question: dict[str, Any], check: Complaints
) -> Settings:
    """Return the settings of keywords that a function hands on to `sparse_pca`; one that neither of
    them has is told as its own."""
    known = [field.name for field in fields(Settings)]
    check(refuse_unknown, function.__name__, question, [*signature(function).parameters, *known])
    return Settings.noted(check, **{name: question[name] for name in question if name in known})
