"""What a file format is to the rest of the package: one record, `Reader`.

A format is a module of this folder that defines `READER`; the name of the module is the name of
the format and stands in `formats.FORMATS`. Nothing else knows it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ..columns import difference
from .bytes import Path_, Source

Names = tuple[str, ...] | None


class Parsed(NamedTuple):
    """A matrix with samples in rows, and what else a reader found."""

    matrix: Any
    features: Names = None
    samples: Names = None
    moments: Any = None  # Moments, when the reader has summed the columns
    cache_entry: Any = None  # cache.Entry, when the arrays of the matrix are maps of its files
    labels: Names = None  # of the samples, from a column that the user named
    label_name: str | None = None
    texts: dict[str, Any] | None = None  # how words were counted and weighted
    notes: tuple[str, ...] = ()  # sentences on what was set aside or converted


class Columns(NamedTuple):
    """What some formats know of the columns only at the end of the file. A reader may yield it
    after its last block: the number of columns, and the number in the file of the first one."""

    total: int
    first: int = 0


class NotInBlocks(Exception):
    """Raised by `Reader.blocks` and its consumer when the file must be read whole."""


def check_same_columns(
    names: Sequence[str], path: Path_, first: Path_, known: Sequence[str], why: str = ""
) -> None:
    """Raise ValueError for a file whose columns are not those of the first one, in any order."""
    found = difference(names, known)
    if found:
        raise ValueError(
            f"{path} {found}, compared with {first}{why}; files that are read as one "
            "table must have the same columns: name those to use (columns=...), or mend the files"
        )


@dataclass(frozen=True)
class Reader:
    """A file format.

    Parameters
    ----------
    name : str
        As in `read(format=...)`; also the name of the module.
    suffixes : tuple of str
        Endings of file names, in lower case and without .gz, that mean this format.
    read : callable
        `read(source, names, **options)` returns Parsed; `names` are the feature names that the user
        gave, or None. What it cannot read is a ValueError that names the file and, if it can, the
        line.
    blocks : callable, optional
        The same for files larger than memory: an iterator over Parsed, some samples each.
    options : mapping
        The keywords of `read`, and the types that a saved model may hold for each.
    from_pipe : bool
        Whether the file can come from standard input.
    worth_caching : bool or callable
        Whether parsing takes long enough to keep its result in the cache; a callable is given the
        source.
    folders : bool
        Whether a source that is a folder has this format.
    counts_words : bool
        Whether the features are words counted in texts; given feature names are then the words to
        count.
    prefixes : tuple of str
        Beginnings of file names that mean this format when no format has their suffix.
    recognises : callable, optional
        For suffixes that several formats share: whether the first lines of a file look like this
        one. Without it the format takes what the others do not recognise.
    tabular : bool
        Whether the columns may hold anything: those that cannot be features are set aside.
    numbers : callable, optional
        About how many bytes the numbers of a source take; without it four times those of the file.
        What takes more than half of the memory limit is read in blocks, if there are any.
    joins : bool
        Whether the files of a pattern are read as one table by this format, `parts` of the source;
        otherwise one after the other.
    """

    name: str
    suffixes: tuple[str, ...]
    read: Callable[..., Parsed]
    blocks: Callable[..., Iterator[Parsed | Columns]] | None = None
    options: Mapping[str, tuple[type, ...]] = field(default_factory=dict)
    from_pipe: bool = True
    worth_caching: bool | Callable[[Source], bool] = True
    folders: bool = False
    counts_words: bool = False
    prefixes: tuple[str, ...] = ()
    recognises: Callable[[Path_], bool] | None = None
    tabular: bool = False
    numbers: Callable[[Source], int] | None = None
    joins: bool = False

    def is_large(self, source: Source) -> bool:
        """Return whether the numbers of a source may be too many to be held."""
        size = 4 * source.size if self.numbers is None else self.numbers(source)
        return size > source.room

    def caches(self, source: Source) -> bool:
        """Return whether what is parsed of this source should go to the cache."""
        worth = self.worth_caching
        return worth(source) if callable(worth) else worth

    def accepts(self, source: Path_, name: str) -> bool:
        """Return whether a file with one of the suffixes, called `name`, has this format."""
        if self.recognises is None or name.startswith(self.prefixes):
            return True
        return self.recognises(source)
