"""Texts in a column of a table of text: every line is a document."""

from __future__ import annotations

import csv
import difflib
import io
from collections.abc import Iterator
from typing import Any

from .bytes import Path_, open_bytes, stem_of
from .documents import COUNTING, Document, count_words, opening
from .reader import Parsed, Reader


def read_texts(
    source: Path_,
    names: Any,
    *,
    text_field: str = "text",
    label_field: str | None = None,
    label_needed: bool = True,
    delimiter: str | None = None,
    encoding: str = "utf-8",
    **counting: Any,
) -> Parsed:
    """Every line has a document in the column `text_field`, and its label in `label_field`."""
    mark = delimiter or ("\t" if stem_of(source)[1] in (".tsv", ".tab") else None)
    if label_field and not label_needed and label_field not in _head(source, mark, encoding):
        label_field = None  # new texts need no label to be scored
    empty: list[int] = []
    texts = _texts(source, (text_field, label_field), mark, encoding, empty)
    found = count_words(texts, names, source, counting)
    gone = (f"{len(empty)} row(s) without text in {text_field!r} left out",) if empty else ()
    told = {**(found.texts or {}), "text_field": text_field}
    return found._replace(label_name=label_field, notes=(*found.notes, *gone), texts=told)


def _texts(
    source: Path_,
    named: tuple[str, str | None],
    delimiter: str | None,
    encoding: str,
    empty: list[int],
) -> Iterator[Document]:
    """Yield the texts and labels of the fields `named`; rows without text are added to `empty`."""
    with open_bytes(source) as stream:
        text = io.TextIOWrapper(stream, encoding, newline="")
        try:
            head, mark = _fields(text.readline(), delimiter)
            places = [_place(field, head, source) for field in named if field]
            for number, row in enumerate(csv.reader(text, delimiter=mark)):
                if len(row) > max(places) and row[places[0]].strip():
                    label = row[places[1]] if len(places) > 1 else None
                    yield Document(row[places[0]], opening(row[places[0]]), label)
                elif row:
                    empty.append(number)
        except UnicodeDecodeError as error:
            raise ValueError(
                f'{source}: not {encoding} text; name its encoding, for instance encoding="latin-1"'
            ) from error
        text.detach()


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
        "label_needed": (bool,),
        "delimiter": (str,),
        "encoding": (str,),
    },
    counts_words=True,
)
