"""The formats that `read` knows, which one a file has, and the way from a file to a matrix."""

from __future__ import annotations

import contextlib
import difflib
import glob
import importlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..notes import listed
from .bytes import Path_, Source, stem_of
from .reader import Parsed, Reader
from .several import read_several

# The modules of this folder that define a READER, each imported when it is first needed. A new
# format is one such module and one line here.
FORMATS = (
    "bagofwords",
    "csv",
    "csvtexts",
    "folder",
    "h5ad",
    "jsonl",
    "lines",
    "matrixmarket",
    "npy",
    "npz",
    "parquet",
    "svmlight",
    "tsv",
    "zarr",
)
TABLES = ("csv", "tsv", "csvtexts")  # whose files a folder may hold as one table
ZARR = ("zarr.json", ".zarray", ".zgroup")  # one of these is in a folder of zarr


def reader_of(format: str) -> Reader:
    """Return the record of a format; ValueError when there is no such format."""
    if format not in FORMATS:
        raise ValueError(f"format={format!r} is unknown; choose one of {', '.join(FORMATS)}")
    found: Reader = importlib.import_module(f".{format}", __package__).READER
    return found


def readers() -> list[Reader]:
    return [reader_of(format) for format in FORMATS]


def open_source(
    source: Source, format: str | None, names: tuple[str, ...] | None, options: dict[str, Any]
) -> Parsed:
    """Return matrix, feature names and sample names of a file or folder."""
    several = matching(source)
    reader = reader_for(source, format, options)
    if reader.name in TABLES and Path(source).is_dir():
        several = tables_of(Path(source))[0]
    if str(source) == "-" and not reader.from_pipe:
        raise ValueError(
            f"format={reader.name!r} cannot come from standard input; save it to a file"
        )
    if str(source) != "-" and not several and not Path(source).exists():
        raise ValueError(_absent(source))
    unknown = sorted(set(options) - set(reader.options))
    if unknown:
        raise ValueError(_unknown(unknown, reader))
    with _failures_named(source, reader.name, bool(options)):
        from .cached import read_cached, streamed

        if several:
            return read_several(reader, source, several, names, options)
        if source.cache is not None and reader.caches(source):
            return read_cached(reader, source, names, options)
        return streamed(reader, source, names, options)


# Options that are set for new samples of a model, not by people.
_INTERNAL = {"aside", "empty", "label_needed", "index_needed", "idf"}


def _unknown(names: list[str], reader: Reader) -> str:
    """Name the options that a format does not have, and those that are spelt like them."""
    known = set(reader.options)
    if reader.name in ("csv", "tsv"):
        known |= {"text_field", "label_field"}
        if set(names) <= set(reader_of("csvtexts").options):
            return (
                f"{listed([*map(repr, names)])}: for texts; name the column that holds them with "
                "text_field=..., or leave such options out"
            )
    near = [n for name in names for n in difflib.get_close_matches(name, known, n=1)]
    hint = f"did you mean {', '.join(map(repr, near))}?" if near else ""
    there = hint or f"there are: {', '.join(sorted(known - _INTERNAL)) or 'none'}"
    several = "options" if len(names) > 1 else "option"
    are = "are" if len(names) > 1 else "is"
    which = listed([*map(repr, names)])
    return f"{several} {which} {are} unknown for format {reader.name!r}; {there}"


def reader_for(source: Path_, format: str | None, options: dict[str, Any]) -> Reader:
    """Return the reader of a source: a table of which one field is asked for holds texts."""
    reader = reader_of(format_of(source) if format is None else format)
    texts = "text_field" in options and reader.name in ("csv", "tsv")
    return reader_of("csvtexts") if texts else reader


@contextlib.contextmanager
def _failures_named(source: Path_, format: str, optioned: bool) -> Iterator[None]:
    """Turn what parsers raise on strange files into a ValueError that names the file."""
    try:
        yield
    except (ValueError, OSError, ImportError, AssertionError):
        raise
    except MemoryError as error:
        blockwise = ", ".join(reader.name for reader in readers() if reader.blocks is not None)
        raise ValueError(
            f"{source}: there is not enough memory for what it says it holds ({error}); use a "
            f"machine with more, leave the cache on (of these formats files whose samples come one "
            f"after the other are then read in blocks: {blockwise}), or check the file"
        ) from error
    except Exception as error:
        # A wrong value of an option is the fault of the call, not of the file.
        if optioned and isinstance(error, TypeError):
            raise
        raise ValueError(
            f"{source}: damaged, or not {format} ({type(error).__name__}: {error})"
        ) from error


def _absent(source: Path_) -> str:
    """Say that a file is not there, and which one of its folder has nearly its name."""
    path = Path(source)
    beside = [found.name for found in path.parent.iterdir()] if path.parent.is_dir() else []
    near = difflib.get_close_matches(path.name, beside, n=1)
    hint = f"; did you mean {str(path.with_name(near[0]))!r}?" if near else ""
    return f"{source}: no such file or folder{hint}"


def format_of(source: Path_) -> str:
    """Return the format that a source has by its name, and where several share a suffix by its
    lines."""
    if str(source) == "-":
        piped = ", ".join(reader.name for reader in readers() if reader.from_pipe)
        raise ValueError(
            f"standard input has no name to tell its format; pass format=..., one of {piped}"
        )
    several = matching(source)
    if not several and not Path(source).exists():
        raise ValueError(_absent(source))
    found = _by_name(several[0] if several else Path(source))
    if found is None:
        raise ValueError(
            f"{source}: the format cannot be told from the name; pass format=..., "
            f"one of {', '.join(FORMATS)}"
        )
    return found.name


def matching(source: Path_) -> list[Path]:
    """Return the files that a pattern as "part-*.csv" names, in order; none for what is no
    pattern."""
    text = str(source)
    if not glob.has_magic(text) or Path(source).exists():
        return []
    found = sorted(Path(path) for path in glob.glob(text, recursive=True))
    if not found:
        raise ValueError(f"{source}: no file matches this pattern; check it, or name a file")
    return found


def tables_of(folder: Path) -> tuple[list[Path], list[Path]]:
    """Return the CSV and TSV files of a folder, and its other files; hidden ones, and those that
    engines keep for themselves, are neither."""
    found = sorted(path for path in folder.rglob("*") if path.is_file())
    shown = [
        path
        for path in found
        if not any(part.startswith((".", "_")) for part in path.relative_to(folder).parts)
    ]
    tables = [path for path in shown if stem_of(path)[1] in (".csv", ".tsv")]
    return tables, [path for path in shown if path not in set(tables)]


def _of_folder(folder: Path) -> Reader:
    """Return how a folder without Parquet is read: its tables as one, or its files as documents."""
    tables, others = tables_of(folder)
    kinds = {stem_of(path)[1] for path in tables}
    if len(kinds) == 1 and not others:
        return reader_of(kinds.pop()[1:])
    if len(tables) > len(others):
        first = min(kinds)
        raise ValueError(
            f"{folder}: {len(tables)} files of the folder are CSV or TSV, and {len(others)} are "
            f"something else, so that it is neither one table nor a folder of texts; name the "
            f"tables by a pattern ('{folder}/*{first}'), or count the words of all files with "
            "format='folder'"
            if others
            else f"{folder}: the folder holds both CSV and TSV files; name those of one kind by a "
            f"pattern ('{folder}/*{first}')"
        )
    return next(reader for reader in readers() if reader.folders)


def _by_name(path: Path) -> Reader | None:
    if path.is_dir():
        if any((path / name).exists() for name in ZARR):
            return reader_of("zarr")
        if any(path.rglob("*.parquet")):
            return reader_of("parquet")
        return _of_folder(path)
    name, suffix = stem_of(path)
    candidates = [reader for reader in readers() if suffix in reader.suffixes]
    if not candidates:
        candidates = [reader for reader in readers() if name.startswith(reader.prefixes)]
    if any(reader.recognises for reader in candidates) and not path.is_file():
        return None  # the lines of a pipe cannot be looked at before they are read
    candidates.sort(key=lambda reader: reader.recognises is None)
    return next((reader for reader in candidates if reader.accepts(path, name)), None)
