"""TSV: a table as in csv.py whose fields are separated by tabs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .bytes import Path_
from .csv import READER as CSV
from .csv import csv_blocks, read_csv
from .reader import Parsed, Reader


def read_tsv(source: Path_, names: Any, **options: Any) -> Parsed:
    return read_csv(source, names, delimiter="\t", **options)


def tsv_blocks(source: Path_, names: Any, **options: Any) -> Iterator[Parsed]:
    return csv_blocks(source, names, delimiter="\t", **options)


READER = Reader(
    "tsv",
    (".tab", ".tsv"),
    read_tsv,
    tsv_blocks,
    options={name: types for name, types in CSV.options.items() if name != "delimiter"},
    tabular=True,
)
