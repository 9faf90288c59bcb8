"""New samples for a result: its features, found by their names, and the scores."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from .arrow import in_batches, plain_batch
from .columns import NUMBER, Wanted
from .frames import all_names, from_frame, is_frame, part_of
from .inputs import read_table
from .notes import listed, tell
from .rows import Rows
from .scores import Scorer, scores_of_blocks
from .sources import in_blocks, is_lazy, listed_blocks
from .table import Table, is_texts, table_of, untangled

if TYPE_CHECKING:
    from ..problem.result import Result


def scored(result: Result, X: Any) -> Any:
    """Score anything that holds samples; what dask makes is scored lazily."""
    scorer = Scorer(result)
    if is_lazy(X):
        from .dask import lazy_scores

        return lazy_scores(fitted_columns(X, result.feature_names), scorer, None)
    X = listed_blocks(X)
    if in_blocks(X):
        parts = X.blocks() if isinstance(X, Rows) else X()
        # each block by its own names: their columns may stand in another order than in the fit
        tables = (features_of(result, part, gaps=scorer.takes_gaps).X for part in parts)
        return scores_of_blocks(scorer, tables)
    return scorer(features_of(result, X, gaps=scorer.takes_gaps).X)


def features_of(result: Result, X: Any, *, gaps: bool = False) -> Table:
    """Return the features of a result in X, a frame, an array, AnnData, a Table or texts; a
    ValueError names what is not there."""
    names = result.feature_names
    if is_texts(X) and not result.info.get("texts"):
        raise TypeError(
            f"X is a list of texts, but the result did not come from texts: pass rows of its "
            f"{result.n_features} features"
        )
    if is_texts(X):
        table = read_table(list(X), like=result)
        tell(table.notes)
        return table
    if result.info.get("texts") and has_texts(X):
        at = next(i for i, text in enumerate(X) if not _is_text(text))
        raise TypeError(f"X[{at}] is {X[at]!r}, not a text; leave it out, or pass ''")
    if names is not None and is_frame(X):
        table = table_of(from_frame(X, Wanted(columns=names, index=False, empty=True)))
    else:
        table = untangled(X)
    table = aligned(names, table, result.settings.get("read", {}).get("one_hot"))
    absent = [name for name in names or () if name not in (table.feature_names or names or ())]
    if absent:
        more = f" and {len(absent) - 1} more" if len(absent) > 1 else ""
        raise ValueError(
            f"the table has no feature {absent[0]!r}{more}, but the result does; pass the columns "
            "of the fit, under the same names"
        )
    return table._check_but_for_gaps() if gaps else table._check()


def on_others(result: Result, X: Any) -> tuple[str, ...]:
    """Name the columns of numbers in a frame that the result does not have, in a sentence."""
    X = plain_batch(X)
    scanned = is_lazy(X) or in_batches(X) is not None
    if result.feature_names is None or not is_frame(X) or scanned:
        return ()
    part = part_of(X, set(all_names(X)) - set(result.feature_names))
    numbers = [c for c in part.columns.values() if c.kind == NUMBER]
    found = [repr(c.name) for c in numbers if not (c.whole and c.distinct_rows)]
    return (f"left out, since the result does not have them: {listed(found)}",) if found else ()


def has_texts(X: Any) -> bool:
    """Return whether some entries of a list are texts."""
    return isinstance(X, list | tuple) and any(map(_is_text, X))


def _is_text(entry: Any) -> bool:
    return isinstance(entry, str)


def aligned(names: tuple[str, ...] | None, table: Table, hot: Any = None) -> Table:
    """Return the table with the columns `names` in this order; encoded categories (`hot`) that it
    does not have are zero. A table that lacks other columns, or all names, stays as it is."""
    own = table.feature_names
    if names is None or own is None or tuple(names) == tuple(own) or not hasattr(table.X, "dtype"):
        return table
    place = {name: j for j, name in enumerate(own)}
    absent = [name for name in names if name not in place]
    if absent and not (hot and all("=" in name for name in absent)):
        return table
    if not absent:
        order = [place[name] for name in names]
        return replace(table, X=table.X[:, order], feature_names=tuple(names), moments=None)
    columns = [table.X[:, place[n]] if n in place else np.zeros(table.shape[0]) for n in names]
    return replace(table, X=np.column_stack(columns), feature_names=tuple(names), moments=None)


def fitted_columns(X: Any, names: tuple[str, ...] | None) -> Any:
    """Return the columns `names` of a lazy frame that has others too; anything else as it is."""
    given = getattr(X, "columns", None) if hasattr(X, "map_partitions") else None
    if names is None or given is None or callable(given) or tuple(map(str, given)) == tuple(names):
        return X
    place = {str(name): name for name in given}
    absent = [name for name in names if name not in place]
    if absent:
        raise ValueError(
            f"X has no column {absent[0]!r}, which the fit had; pass the columns of the fit"
        )
    return X[[place[name] for name in names]]
