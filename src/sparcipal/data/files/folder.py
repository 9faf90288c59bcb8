"""A folder of text files: every file is a document."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .bytes import Path_, decode, open_bytes
from .documents import COUNTING, count_words
from .reader import Parsed, Reader


def read_folder(
    source: Path_, names: Any, *, pattern: str = "**/*", encoding: str = "utf-8", **counting: Any
) -> Parsed:
    """Every file of the folder that matches is a document; hidden files and folders are not."""
    folder = Path(source)
    paths = sorted(
        path
        for path in folder.glob(pattern)
        if path.is_file() and not any(p.startswith(".") for p in path.relative_to(folder).parts)
    )
    if not paths:
        raise ValueError(f"{source}: no file matches pattern={pattern!r}")
    samples = tuple(str(path.relative_to(folder)) for path in paths)
    return Parsed(*count_words(_texts(paths, encoding), names, source, **counting), samples)


def _texts(paths: list[Path], encoding: str) -> Iterator[str]:
    for path in paths:
        with open_bytes(path) as stream:
            yield decode(stream.read(), path, encoding)


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
