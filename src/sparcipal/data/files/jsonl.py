"""JSON lines: every line holds a document."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from .bytes import Path_, decoded_lines
from .documents import COUNTING, Document, count_words, opening
from .reader import Parsed, Reader


def read_jsonl(
    source: Path_,
    names: Any,
    *,
    text_field: str = "text",
    label_field: str | None = None,
    label_needed: bool = True,
    encoding: str = "utf-8",
    **counting: Any,
) -> Parsed:
    """Every line is a JSON string, or an object whose `text_field` is the document and whose
    `label_field` is its label."""
    texts = _json_texts(source, text_field, label_field, label_needed, encoding)
    found = count_words(texts, names, source, counting)
    told = {**(found.texts or {}), "text_field": text_field}
    return found._replace(label_name=label_field, texts=told)


def _json_texts(
    source: Path_, text_field: str, label_field: str | None, label_needed: bool, encoding: str
) -> Iterator[Document]:
    labelled, fields = False, ""
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
        if isinstance(entry, dict):
            labelled |= label_field in entry
            fields = fields or ", ".join(map(repr, entry))
        label = entry.get(label_field) if isinstance(entry, dict) and label_field else None
        yield Document(text, opening(text), None if label is None else str(label))
    if label_field and label_needed and not labelled:
        raise ValueError(
            f"{source}: no line has a field {label_field!r}; label_field may be {fields or 'none'}"
        )


READER = Reader(
    "jsonl",
    (".jsonl", ".ndjson"),
    read_jsonl,
    options={
        **COUNTING,
        "text_field": (str,),
        "label_field": (str,),
        "label_needed": (bool,),
        "encoding": (str,),
    },
    counts_words=True,
)
