"""Plain text: every line is a document."""

from __future__ import annotations

from typing import Any

from .bytes import Path_, decoded_lines
from .documents import COUNTING, Document, count_words, opening
from .reader import Parsed, Reader


def read_lines(source: Path_, names: Any, *, encoding: str = "utf-8", **counting: Any) -> Parsed:
    """Every line that is not blank is a document."""
    texts = (
        Document(line, opening(line)) for _, line in decoded_lines(source, encoding) if line.strip()
    )
    return count_words(texts, names, source, counting)


READER = Reader(
    "lines",
    (".txt",),
    read_lines,
    options={**COUNTING, "encoding": (str,)},
    counts_words=True,
)
