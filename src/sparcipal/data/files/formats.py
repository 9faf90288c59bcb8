"""Readers of files, one file per family of formats; `read.py` is the door.

A reader takes a source, feature names (or None) and its own keyword options, and returns the
matrix, the feature names and the sample names it found.
"""

from __future__ import annotations

import contextlib
import importlib
import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from .bytes import Path_, Source, stem_of

# Format -> module and function; loaded when asked for.
FORMATS = {
    "bagofwords": ("bagofwords", "read_bagofwords"),
    "csv": ("tables", "read_csv"),
    "folder": ("documents", "read_folder"),
    "h5ad": ("matrices", "read_h5ad"),
    "jsonl": ("documents", "read_jsonl"),
    "lines": ("documents", "read_lines"),
    "matrixmarket": ("matrixmarket", "read_matrixmarket"),
    "npy": ("matrices", "read_npy"),
    "npz": ("matrices", "read_npz"),
    "parquet": ("tables", "read_parquet"),
    "svmlight": ("matrices", "read_svmlight"),
    "tsv": ("tables", "read_tsv"),
}
_EXTENSIONS = {
    ".csv": "csv",
    ".h5ad": "h5ad",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".mtx": "matrixmarket",
    ".npy": "npy",
    ".npz": "npz",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".svmlight": "svmlight",
    ".libsvm": "svmlight",
    ".svm": "svmlight",
    ".tab": "tsv",
    ".tsv": "tsv",
}
LARGEST_WHOLE = 1 << 30  # bytes of a Parquet file that is read at once
_FROM_A_PIPE = {"bagofwords", "csv", "tsv", "jsonl", "lines", "svmlight", "matrixmarket"}


# Text that takes long to parse; bags of words are kept by their reader, while they are parsed.
_WORTH_KEEPING = {"csv", "tsv", "jsonl", "lines", "svmlight", "matrixmarket"}


def open_source(
    source: Source, format: str | None, names: tuple[str, ...] | None, options: dict[str, Any]
) -> tuple[Any, tuple[str, ...] | None, tuple[str, ...] | None]:
    """Matrix, feature names and sample names of a file or folder."""
    if format is None:
        format = format_of(source)
    if format not in FORMATS:
        raise ValueError(f"format={format!r} is unknown; choose one of {', '.join(FORMATS)}")
    if str(source) == "-" and format not in _FROM_A_PIPE:
        raise ValueError(f"format={format!r} cannot come from standard input; save it to a file")
    if str(source) != "-" and not Path(source).exists():
        raise ValueError(f"{source}: no such file or folder")
    module, function = FORMATS[format]
    reader = getattr(importlib.import_module(f".{module}", __package__), function)
    unknown = set(options) - _options_of(reader)
    if unknown:
        raise ValueError(
            f"option {sorted(unknown)[0]!r} is unknown for format {format!r}; "
            f"there are: {', '.join(sorted(_options_of(reader))) or 'none'}"
        )
    with _strange(source, format, bool(options)):
        if source.cache is not None and (format in _WORTH_KEEPING or _too_large(source, format)):
            from .cached import read_or_kept

            return read_or_kept(reader, source, format, names, options)
        result: tuple[Any, Any, Any] = reader(source, names, **options)
        return result


def _too_large(source: Source, format: str) -> bool:
    """Parquet files are read fast, but whole ones may not fit."""
    if format != "parquet":
        return False
    from .blocks import parquet_bytes

    return parquet_bytes(source) > LARGEST_WHOLE


@contextlib.contextmanager
def _strange(source: Path_, format: str, optioned: bool) -> Iterator[None]:
    """Whatever a parser stumbles over in a strange file is a ValueError that names the file."""
    try:
        yield
    except (ValueError, OSError, ImportError, AssertionError):
        raise
    except MemoryError as error:
        raise ValueError(
            f"{source}: there is not enough memory for what it says it holds ({error}); use a "
            "machine with more, leave the cache on (tables of text, svmlight, Parquet and Matrix "
            "Market files sorted by samples are then read in blocks), or check the file"
        ) from error
    except Exception as error:
        if optioned and isinstance(error, TypeError):
            raise
        raise ValueError(
            f"{source}: damaged, or not {format} ({type(error).__name__}: {error})"
        ) from error


def format_of(source: Path_) -> str:
    """The format a source has by its name, or for .txt by its first lines."""
    if str(source) == "-":
        raise ValueError(
            f"standard input has no name to tell its format; pass format=..., "
            f"one of {', '.join(sorted(_FROM_A_PIPE))}"
        )
    if not Path(source).exists():
        raise ValueError(f"{source}: no such file or folder")
    if Path(source).is_dir():
        return "folder"
    name, extension = stem_of(source)
    if extension in _EXTENSIONS:
        return _EXTENSIONS[extension]
    if (extension in {".txt", ""} or name.startswith("docword")) and Path(source).is_file():
        from .bagofwords import looks_like_bagofwords

        if name.startswith("docword") or looks_like_bagofwords(source):
            return "bagofwords"
        if extension == ".txt":
            return "lines"
    raise ValueError(
        f"{source}: the format cannot be told from the name; pass format=..., "
        f"one of {', '.join(FORMATS)}"
    )


def _options_of(reader: Callable[..., Any]) -> set[str]:
    """The keyword-only parameters of a reader, and of what it hands its further options to."""
    parameters = inspect.signature(reader).parameters.values()
    found = {p.name for p in parameters if p.kind is p.KEYWORD_ONLY}
    if any(p.kind is p.VAR_KEYWORD for p in parameters):
        from . import documents, tables

        onward: Any = tables.read_csv if reader is tables.read_tsv else documents.count_words
        found |= _options_of(onward)
    return found - ({"delimiter"} if reader.__name__ == "read_tsv" else set())
