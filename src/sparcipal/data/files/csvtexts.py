"""Texts in a column of a table of text: every line is a document."""

from __future__ import annotations

import csv
import difflib
import io
from collections.abc import Iterator
from typing import Any, NamedTuple

from ..notes import listed
from .bytes import Path_, open_bytes, stem_of
from .documents import COUNTING, Document, count_words, name_of
from .fields import is_number
from .reader import Parsed, Reader


def read_texts(
    source: Path_,
    names: Any,
    *,
    text_field: str = "text",
    label_field: str | None = None,
    index: str | None = None,
    label_needed: bool = True,
    index_needed: bool = True,
    empty: bool = False,
    delimiter: str | None = None,
    encoding: str = "utf-8",
    **counting: Any,
) -> Parsed:
    """Every line has a document in the column `text_field`, its label in `label_field` and its name
    in `index`. Lines without text are left out, but for new samples to be scored (`empty`)."""
    mark = delimiter or ("\t" if stem_of(source)[1] in (".tsv", ".tab") else None)
    if not (label_needed and index_needed):  # new texts need neither to be scored
        head = _head(source, mark, encoding)
        label_field = label_field if label_needed or label_field in head else None
        index = index if index_needed or index in head else None
    blank: list[str] = []
    columns = _Columns(text_field, label_field, index)
    texts = _texts(source, columns, mark, encoding, None if empty else blank)
    found = _counted(texts, names, source, text_field, counting)
    which = f" ({listed(blank)})" if index else ""
    gone = f"{len(blank)} row(s) without text in {text_field!r} left out{which}"
    notes = (*found.notes, gone) if blank else found.notes
    told = {**(found.texts or {}), "text_field": text_field}
    return found._replace(label_name=label_field, notes=notes, texts=told)


def _counted(
    texts: Iterator[Document], names: Any, source: Path_, text_field: str, counting: dict[str, Any]
) -> Parsed:
    """Return the counts of words; where there are none in a column of numbers, say that."""
    words = False

    def watched() -> Iterator[Document]:
        nonlocal words
        for document in texts:
            words = words or not is_number(document.text)
            yield document

    try:
        return count_words(watched(), names, source, counting)
    except ValueError as error:
        if words or "no words" not in str(error):
            raise
        raise ValueError(
            f"{source}: the column {text_field!r} holds numbers, not texts; name a column of texts "
            "with text_field=..."
        ) from error


class _Columns(NamedTuple):
    """The columns that are read, by name or by number."""

    text: Any
    label: Any
    index: Any


def _texts(
    source: Path_,
    columns: _Columns,
    delimiter: str | None,
    encoding: str,
    blank: list[str] | None,
) -> Iterator[Document]:
    """Yield the texts of a table with their names and labels; rows without text are left out, and
    what they are called is added to `blank` if that is a list."""
    with open_bytes(source) as stream:
        text = io.TextIOWrapper(stream, encoding, newline="")
        try:
            head, mark = _fields(text.readline(), delimiter)
            place = _Columns(*(field and _place(field, head, source) for field in columns))
            for row in csv.reader(text, delimiter=mark):
                given = _entry(row, place.text) or ""
                label, name = _entry(row, place.label), _entry(row, place.index)
                whole = given.strip() and (place.label is None or label is not None)
                if row and (whole or blank is None):
                    yield Document(given, name_of(given, name), label)
                elif row and blank is not None:
                    blank.append(name or "one without a name")
        except UnicodeDecodeError as error:
            raise ValueError(
                f'{source}: not {encoding} text; name its encoding, for instance encoding="latin-1"'
            ) from error
        text.detach()


def _entry(row: list[str], place: Any) -> str | None:
    """Return the entry of a row; None of no column, and where the row is too short."""
    return row[place] if place is not None and place < len(row) else None


def _head(source: Path_, delimiter: str | None, encoding: str) -> list[str]:
    """Return the names of the columns; none where standard input can be read once only."""
    if str(source) == "-":
        return []
    with open_bytes(source) as stream:
        return _fields(stream.readline().decode(encoding, "replace"), delimiter)[0]


def _fields(line: str, delimiter: str | None) -> tuple[list[str], str]:
    first = line.removeprefix("\ufeff")
    mark = delimiter or max(",;\t", key=first.count)
    return next(csv.reader([first], delimiter=mark), []), mark


def _place(field: str, head: list[str], source: Path_) -> int:
    if field in head:
        return head.index(field)
    near = difflib.get_close_matches(field, head, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else f"; there are {', '.join(map(repr, head))}"
    raise ValueError(f"{source}: no column {field!r}{hint}")


READER = Reader(
    "csvtexts",
    (),
    read_texts,
    options={
        **COUNTING,
        "text_field": (str,),
        "label_field": (str,),
        "index": (str,),
        "label_needed": (bool,),
        "index_needed": (bool,),
        "empty": (bool,),
        "delimiter": (str,),
        "encoding": (str,),
    },
    counts_words=True,
)
