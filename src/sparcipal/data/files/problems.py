"""What is wrong with a file of text, gathered until its end and said at once."""

from __future__ import annotations

from typing import Any

from ..checks import LARGEST
from .bytes import Path_


class Problems:
    """What is wrong with a file, gathered until its end."""

    def __init__(self, source: Path_) -> None:
        self.source = source
        self._widths: list[str] = []
        self._entries: dict[int, list[Any]] = {}  # column: first line, entry, name, count
        self._others: list[str] = []
        self._large: dict[int, str] = {}  # column: what is said of an integer that would be rounded

    def width(self, line: int, found: int, expected: int) -> None:
        self._widths.append(f"line {line}: {found} fields instead of {expected}")

    def entry(self, column: int, name: str | None, line: int, entry: str) -> None:
        self._entries.setdefault(column, [line, entry, name, 0])[3] += 1

    def large(self, column: int, name: str | None, line: int, entry: str) -> None:
        if column not in self._large:
            named = f" ({name!r})" if name is not None else ""
            self._large[column] = (
                f"line {line}: {entry.strip()}, column {column + 1}{named} is beyond 2**53 = "
                f"{LARGEST} and has no number in floating point; subtract a constant from the "
                "column first"
            )

    def other(self, sentence: str) -> None:
        self._others.append(sentence)

    def refuse(self) -> None:
        """Raise one error that names everything; none when nothing is wrong."""
        told = [*self._widths[:3], *self._others, *(self._large[j] for j in sorted(self._large))]
        if len(self._widths) > 3:
            told.append(f"{len(self._widths) - 3} more lines with another number of fields")
        for column, (line, entry, name, count) in sorted(self._entries.items()):
            named = f" ({name!r})" if name is not None else ""
            more = f" (nor are {count - 1} more of that column)" if count > 1 else ""
            told.append(f"line {line}: {entry!r}, column {column + 1}{named} is not a number{more}")
        if not told:
            return
        remedy = ""
        if self._entries:
            remedy = (
                "; drop such columns (drop=...), or say what stands for a missing entry "
                "(na_values=...)"
            )
        raise ValueError(f"{self.source}, {'; '.join(told)}{remedy}")
