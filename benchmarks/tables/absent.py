"""Sets of the papers that are not among the data: run when their file is there, named otherwise.

The bags of words are UCI's files. The others have no common format: `amazon.npz` and
`pems_train.npz` hold an array X, `tweets.txt` a tweet in every line.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks import data
from benchmarks.baselines.sets import DataSet, array


def _bag(name: str) -> Callable[[], Any]:
    def load() -> Any:
        from sparcipal import read

        return sp.csr_matrix(read(data.path(f"docword.{name}.txt.gz")).X, dtype=float)

    return load


def _tweets() -> sp.csr_matrix:
    """Presence of words of at least three letters that occur more than once."""
    from sklearn.feature_extraction.text import CountVectorizer

    lines = data.path("tweets.txt").read_text(encoding="utf-8").splitlines()
    words = CountVectorizer(binary=True, token_pattern=r"(?u)\b\w{3,}\b", min_df=2)
    return sp.csr_matrix(words.fit_transform(lines), dtype=float)


@dataclass(frozen=True)
class Absent:
    """A set of the papers: its file, and the questions (components, nonzeros, rank) asked of it."""

    chosen: DataSet
    file: str
    questions: tuple[tuple[int, int, int], ...]


SETS = {
    wanted.chosen.name: wanted
    for wanted in (
        Absent(DataSet("Amzn Com Rev", array("amazon.npz")), "amazon.npz", ((5, 40, 4),)),
        Absent(DataSet("Pems Train", array("pems_train.npz")), "pems_train.npz", ((5, 40, 4),)),
        Absent(
            DataSet("BoW:Enron", _bag("enron"), center=False),
            "docword.enron.txt.gz",
            ((8, 15, 5),),
        ),
        Absent(
            DataSet("BoW:NyTimes", _bag("nytimes"), center=False),
            "docword.nytimes.txt.gz",
            ((8, 10, 4), (8, 15, 4), (8, 15, 5), (8, 20, 4)),
        ),
        Absent(
            DataSet("BoW:PubMed", _bag("pubmed"), center=False),
            "docword.pubmed.txt.gz",
            ((5, 5, 4),),
        ),
        Absent(DataSet("tweets", _tweets), "tweets.txt", ((5, 10, 3),)),
    )
}


def absent(folder: Path) -> Iterator[str]:
    from benchmarks.tables.joint import METHODS
    from sparcipal import sparse_pca

    yield "# Sets of the papers that are not among the data"
    yield f"\nA set is run when its file lies in {data.FOLDER}.\n"
    yield "| data | file | k, s | " + " | ".join((*METHODS, "auto")) + " | gap |"
    yield "| --- " * (len(METHODS) + 5) + "|"
    for name, wanted in SETS.items():
        if not (data.FOLDER / wanted.file).exists():
            yield f"| {name} | {wanted.file} | absent |" + " |" * (len(METHODS) + 2)
            continue
        X = wanted.chosen.load()
        for k, s, rank in wanted.questions:
            cells = []
            for method in (*METHODS, "auto"):
                result = sparse_pca(
                    X,
                    n_components=k,
                    n_nonzero_coefs=s,
                    center=wanted.chosen.center,
                    method=method,
                    rank=rank if method in ("spannogram", "bipartite") else None,
                    certify="fast" if method == "auto" else False,
                )
                total = np.sum(wanted.chosen.variances(X, result.supports))
                cells.append(f"{total:.4g}")
            cells.append(f"{100 * result.certificate.gap:.2g} %")
            yield f"| {name} | {wanted.file} | {k}, {s} | " + " | ".join(cells) + " |"
