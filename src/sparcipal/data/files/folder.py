"""A folder of text files: every file is a document."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .bytes import Path_, decode, open_bytes
from .documents import COUNTING, Document, count_words
from .reader import Parsed, Reader

_DATED = re.compile(r"(?<!\d)((?:19|20)\d\d)[-_.]?(0[1-9]|1[0-2])(?:[-_.]?(0[1-9]|[12]\d|3[01]))?")


def read_folder(
    source: Path_, names: Any, *, pattern: str = "**/*", encoding: str = "utf-8", **counting: Any
) -> Parsed:
    """Every file of the folder that matches is a document; hidden files and folders are not. Its
    label is the date in its name, or that of its last change."""
    folder = Path(source)
    paths = sorted(
        path
        for path in folder.glob(pattern)
        if path.is_file() and not any(p.startswith(".") for p in path.relative_to(folder).parts)
    )
    if not paths:
        what = "no file in it" if pattern == "**/*" else f"no file matches pattern={pattern!r}"
        raise ValueError(f"{source}: {what}, but for hidden ones; name a folder of texts")
    parsed = count_words(_texts(paths, folder, encoding), names, source, counting)
    return parsed._replace(label_name="date")


def _texts(paths: list[Path], folder: Path, encoding: str) -> Iterator[Document]:
    for path in paths:
        name = str(path.relative_to(folder))
        with open_bytes(path) as stream:
            yield Document(decode(stream.read(), path, encoding), name, _date(path, name))


def _date(path: Path, name: str) -> str:
    found = _DATED.search(name)
    if found:
        return "-".join(part for part in found.groups() if part)
    changed = datetime.datetime.fromtimestamp(path.stat().st_mtime, datetime.UTC)
    return changed.date().isoformat()


READER = Reader(
    "folder",
    (),
    read_folder,
    options={**COUNTING, "pattern": (str,), "encoding": (str,)},
    from_pipe=False,
    worth_caching=False,
    folders=True,
    counts_words=True,
)
