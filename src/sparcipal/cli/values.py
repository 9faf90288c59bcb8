"""These types are the values that options take; a wrong one is refused before the work."""

from __future__ import annotations

import codecs
import csv
import math
import os
from typing import Any

import click


class Named(click.Path):
    """This type is a name that shells complete to files; the reader checks that one exists."""

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        if value == "":  # the system would take it for the current folder
            self.fail("the name is empty; name a file or folder, . for the current one", param, ctx)
        return super().convert(value, param, ctx)


FILE = Named()
PICTURES = (".png", ".svg", ".pdf")


class Output(click.Path):
    """This type is a file to write; a name that cannot be written is refused before the work."""

    def __init__(self, endings: tuple[str, ...] = ()) -> None:
        super().__init__()
        self.endings = endings

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        folder = os.path.dirname(value) or "."
        if value in ("", "-"):
            stdout = "leave it out for CSV" if ".npy" in self.endings else "use --format json"
            self.fail(f"{value!r} is no file; {stdout} on stdout, or name a file", param, ctx)
        if os.path.isdir(value):
            self.fail(f"{value} is a folder; name a file", param, ctx)
        if os.path.exists(value) and not os.path.isfile(value):
            self.fail(f"{value} is a device or pipe; name a regular file", param, ctx)
        if not os.path.isdir(folder):
            self.fail(f"{value}: there is no folder {folder}; create it first", param, ctx)
        if not os.access(value if os.path.exists(value) else folder, os.W_OK):
            self.fail(f"{value} cannot be written; choose another place", param, ctx)
        if self.endings and not str(value).lower().endswith(self.endings):
            self.fail(f"{value} must end in {', '.join(self.endings)}", param, ctx)
        return super().convert(value, param, ctx)


class Model(Output):
    """This type is a file for a model; the name of a page or picture is one for another option."""

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        name = str(value).lower()
        if name.endswith((".html", ".htm", *PICTURES)):
            page = name.endswith((".html", ".htm"))
            other = f"--report {value} writes a page" if page else "path --plot draws pictures"
            self.fail(f"{value}: the model is saved as JSON, and {other}", param, ctx)
        return super().convert(value, param, ctx)


class Sizes(click.ParamType):
    """This type is `10` or `10,8,5`: one size for all components, or one each."""

    name = "S|S,S,..."

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        if isinstance(value, int | list):
            return value
        try:
            sizes = [int(part) for part in str(value).split(",")]
        except ValueError:
            self.fail(f"{value!r} is neither a number nor numbers with commas", param, ctx)
        return sizes[0] if len(sizes) == 1 else sizes


class Range(click.ParamType):
    """This type is several sizes: `1:30`, `5:50:5` or `2,5,10`."""

    name = "A:B[:STEP]"

    def convert(self, value: Any, param: Any, ctx: Any) -> list[int]:
        try:
            if ":" in str(value):
                first, last, *step = (int(part) for part in str(value).split(":"))
                sizes = list(range(first, last + 1, step[0] if step else 1))
            else:
                sizes = [int(part) for part in str(value).split(",")]
        except (ValueError, IndexError):
            sizes = []
        if not sizes:  # that they are positive is checked with all else
            self.fail(f"{value!r} is no range; write 1:30, 5:50:5 or 2,5,10", param, ctx)
        return sizes


class Memory(click.ParamType):
    """This type is `2GB` (10^9 bytes each), `2GiB` (2^30) or a number of bytes."""

    name = "SIZE"

    def convert(self, value: Any, param: Any, ctx: Any) -> int:
        from ..problem.parameters import size

        try:
            return size("SIZE", str(value))
        except ValueError:
            self.fail(f"{value!r} is no size; write 2GB, 500MB or a number of bytes", param, ctx)


class Frequency(click.ParamType):
    """This type is a number of documents that hold a word, or a share of all documents."""

    name = "float"

    def __init__(self, counts: bool) -> None:
        self.counts = counts

    def convert(self, value: Any, param: Any, ctx: Any) -> float:
        try:
            number = float(value)
        except ValueError:
            number = math.nan
        if 0 <= number <= 1 or (self.counts and number < math.inf and number == int(number) > 1):
            return int(number) if self.counts and number >= 1 else number
        limit = "a share from 0 to 1" + (", or a number of documents" if self.counts else "")
        self.fail(f"{value!r} is not {limit}", param, ctx)


class Encoding(click.ParamType):
    """This type is the name of an encoding that Python knows."""

    name = "text"

    def convert(self, value: Any, param: Any, ctx: Any) -> str:
        try:
            codecs.lookup(value)
        except (LookupError, ValueError):
            self.fail(f"{value!r} is unknown; write for instance utf-8 or latin-1", param, ctx)
        return str(value)


class Delimiter(click.ParamType):
    """This type is the one character between the fields of a line; `tab` stands for that one."""

    name = "CHARACTER|tab"

    def convert(self, value: Any, param: Any, ctx: Any) -> str:
        mark = {"tab": "\t", "\\t": "\t"}.get(value, str(value))
        if len(mark) != 1 or mark in '\r\n"':
            self.fail(f"{value!r} is not one character; write for instance ';' or tab", param, ctx)
        return mark


class Names(click.ParamType):
    """This type is names, patterns and ranges of columns with commas between them."""

    name = "NAME,..."

    def convert(self, value: Any, param: Any, ctx: Any) -> list[str]:
        if isinstance(value, list):
            return value
        names = [name.strip() for name in next(csv.reader([value], skipinitialspace=True), [])]
        if not any(names):
            self.fail("no name is given", param, ctx)
        return [name for name in names if name]


class StopWords(click.ParamType):
    """This type is `english`, `none`, a file with one word per line, or english,FILE for both."""

    name = "text"

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        if value in ("english", "none") or isinstance(value, list):
            return value
        path = value.removeprefix("english,")
        if not os.path.isfile(path):
            self.fail(f"{value!r} is neither english nor none nor a file of words", param, ctx)
        with open(path, encoding="utf-8", errors="replace") as stream:
            own = {line.strip() for line in stream if line.strip()}
        if path != value:
            from ..data.files.documents import english_stop_words

            own |= english_stop_words()
        return sorted(own)
