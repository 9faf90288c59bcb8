"""JSON lines: every line holds a document."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

from .bytes import Path_, decoded_lines
from .documents import COUNTING, Document, count_words, name_of
from .reader import Parsed, Reader


def read_jsonl(
    source: Path_,
    names: Any,
    *,
    text_field: str = "text",
    label_field: str | None = None,
    index: str | None = None,
    label_needed: bool = True,
    index_needed: bool = True,
    encoding: str = "utf-8",
    **counting: Any,
) -> Parsed:
    """Every line is a JSON string, or an object whose `text_field` is the document, whose
    `label_field` is its label, and which `index` names."""
    beside = (
        _Field("label_field", label_field, label_needed),
        _Field("index", index, index_needed),
    )
    texts = _json_texts(source, text_field, beside, encoding)
    found = count_words(texts, names, source, counting)
    told = {**(found.texts or {}), "text_field": text_field}
    return found._replace(label_name=label_field, texts=told)


class _Field(NamedTuple):
    """A field beside the text: the option that names it, its name, and whether it must be there."""

    option: str
    name: str | None
    needed: bool


def _json_texts(
    source: Path_, text_field: str, beside: tuple[_Field, _Field], encoding: str
) -> Iterator[Document]:
    met: set[str] = set()  # fields beside the text that some line has
    fields = ""
    label_field, index = (field.name for field in beside)
    for number, line in decoded_lines(source, encoding):
        if not line.strip():
            continue
        try:
            entry = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise ValueError(f"{source}, line {number}: not JSON ({error})") from error
        text = entry.get(text_field) if isinstance(entry, dict) else entry
        if not isinstance(text, str):
            there = ", ".join(map(repr, entry)) if isinstance(entry, dict) else "none"
            raise ValueError(
                f"{source}, line {number}: no text in {text_field!r}; name its field: text_field "
                f"(there are {there})"
            )
        said = entry if isinstance(entry, dict) else {}
        met |= {field.name for field in beside if field.name in said and field.name is not None}
        fields = fields or ", ".join(map(repr, said))
        label = said.get(label_field)
        name = name_of(text, said.get(index))
        yield Document(text, name, None if label is None else str(label))
    for option, field, needed in beside:
        if field and needed and field not in met:
            raise ValueError(
                f"{source}: no line has a field {field!r}; {option} may be {fields or 'none'}"
            )


READER = Reader(
    "jsonl",
    (".jsonl", ".ndjson"),
    read_jsonl,
    options={
        **COUNTING,
        "text_field": (str,),
        "label_field": (str,),
        "index": (str,),
        "label_needed": (bool,),
        "index_needed": (bool,),
        "encoding": (str,),
    },
    counts_words=True,
)
