"""Plain text: every line is a document."""

from __future__ import annotations

from typing import Any

from .bytes import Path_, decoded_lines
from .documents import COUNTING, count_lines
from .reader import Parsed, Reader


def read_lines(source: Path_, names: Any, *, encoding: str = "utf-8", **counting: Any) -> Parsed:
    """Every line that is not blank is a document."""
    texts = (line for _, line in decoded_lines(source, encoding) if line.strip())
    return count_lines(texts, names, source, counting)


READER = Reader(
    "lines",
    (".txt",),
    read_lines,
    options={**COUNTING, "encoding": (str,)},
    counts_words=True,
)
