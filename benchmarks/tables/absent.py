"""Sets of the papers that are not among the data: run when their file is there, named otherwise.

The bags of words are UCI's files, docword.NAME.txt.gz and vocab.NAME.txt; read with their cache,
so that PubMed need not fit into memory. The others have no common format: `amazon.npz` and
`pems_train.npz` hold an array X, `tweets.txt` a tweet in every line.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks import data
from benchmarks.baselines.sets import DataSet, array
from sparcipal import Moments, Result, Table, read, sparse_pca


def _bag(name: str) -> Callable[[], Table]:
    return lambda: read(data.path(f"docword.{name}.txt.gz"))


def _tweets() -> Table:
    """Presence of words of at least three letters that occur in more than one tweet."""
    from sklearn.feature_extraction.text import CountVectorizer

    lines = data.path("tweets.txt").read_text(encoding="utf-8").splitlines()
    words = CountVectorizer(binary=True, token_pattern=r"(?u)\b\w{3,}\b", min_df=2)
    X = sp.csr_array(words.fit_transform(lines), dtype=float)
    return Table(X, tuple(words.get_feature_names_out()))


@dataclass(frozen=True)
class Absent:
    """A set of the papers, its file, and what they ask of it.

    `questions` are components, nonzeros and rank of joint tables, `curves` those of figures against
    the number of components, `deflated` components and nonzeros of the tables of tweets,
    `about_five` says that there are tables of words by DSPCA.
    """

    chosen: DataSet
    file: str
    questions: tuple[tuple[int, int, int], ...] = ()
    curves: tuple[tuple[int, int, int], ...] = ()
    deflated: tuple[tuple[int, int], ...] = ()
    about_five: bool = False


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
            curves=((6, 10, 4), (6, 15, 4), (6, 20, 4)),
            about_five=True,
        ),
        Absent(
            DataSet("BoW:PubMed", _bag("pubmed"), center=False),
            "docword.pubmed.txt.gz",
            about_five=True,
        ),
        Absent(
            DataSet("tweets", _tweets),
            "tweets.txt",
            deflated=((4, 10), (5, 10), (7, 4), (3, 5)),
        ),
    )
}
# The tables of tweets: names there, names here, options, rank; one component after the other.
DEFLATED: dict[str, tuple[str, dict[str, Any], int | None]] = {
    "Rank-1": ("spannogram", {}, 1),
    "TPower": ("tpower", {}, None),
    "Rank-2": ("spannogram", {}, 2),
    "Rank-3": ("spannogram", {}, 3),
    "FullPath": ("greedy", {"test": False}, None),
    "auto": ("auto", {}, None),
}


def absent(folder: Path) -> Iterator[str]:
    yield "# Sets of the papers that are not among the data"
    yield f"\nA set is run when its file lies in {data.FOLDER}.\n"
    yield "| data | file | |"
    yield "| --- | --- | --- |"
    there = []
    for name, wanted in SETS.items():
        found = (data.FOLDER / wanted.file).exists()
        there += [wanted] if found else []
        yield f"| {name} | {wanted.file} | {'run, below' if found else 'absent'} |"
    for wanted in there:
        yield f"\n## {wanted.chosen.name}"
        yield from run(wanted, folder)


def run(wanted: Absent, folder: Path) -> Iterator[str]:
    """All that the papers ask of a set whose file is there."""
    from benchmarks.tables.joint import curve

    chosen, loaded = wanted.chosen, wanted.chosen.load()
    table = loaded if isinstance(loaded, Table) else Table(loaded)
    for question in wanted.questions:
        yield from _joint(chosen, table, *question)
    for number, sizes in enumerate(wanted.curves, start=4):
        yield from curve(folder, f"Figure {number}", chosen, table.X, sizes)
    if wanted.deflated:
        yield from _one_by_one(chosen, table, wanted.deflated)
    if wanted.about_five:
        yield from _about_five(table)


def _joint(chosen: DataSet, table: Table, k: int, s: int, rank: int) -> Iterator[str]:
    """A line of the tables of 2015, and the words of the components where they have names."""
    from benchmarks.tables.scoreboard import METHODS, tables

    printed = {(t.name, t.sizes): t.printed for t in tables()}
    values = printed.get((chosen.name, (k, s, rank)), ("-",) * len(METHODS))
    yield f"\n{k} components of {s}, rank {rank}: measured (printed)\n"
    yield "| " + " | ".join((*METHODS, "auto")) + " | gap |"
    yield "| --- " * (len(METHODS) + 2) + "|"
    cells, results = [], {}
    ask: dict[str, Any] = {"n_components": k, "n_nonzero_coefs": s, "center": chosen.center}
    for (label, (method, options)), value in zip(METHODS.items(), values):
        own = {"rank": rank} if method in ("spannogram", "bipartite") else {}
        results[label] = sparse_pca(
            table, **ask, method=method, method_options=options, certify=False, **own
        )
        cells.append(f"{sum(chosen.variances(table.X, results[label].supports)):.5g} ({value})")
    best = results["auto"] = sparse_pca(table, **ask)
    cells += [f"{sum(chosen.variances(table.X, best.supports)):.5g}", f"{100 * best.gap:.2g} %"]
    yield "| " + " | ".join(cells) + " |"
    if table.feature_names is not None:
        for label, result in results.items():
            yield from _words(label, result)


def _words(label: str, result: Result) -> Iterator[str]:
    """The features of every component, the strongest first."""
    names = result.feature_names
    yield f"\n{label}\n"
    for j, (support, weights) in enumerate(zip(result.supports, result.weights), start=1):
        yield f"{j}. " + ", ".join(names[i] for i in support[np.argsort(-np.abs(weights))])


def _one_by_one(
    chosen: DataSet, table: Table, questions: tuple[tuple[int, int], ...]
) -> Iterator[str]:
    """The tables of tweets of 2013: variance as a share of the largest there is here."""
    yield "\n| components, nonzeros | " + " | ".join(DEFLATED) + " |"
    yield "| --- " * (len(DEFLATED) + 1) + "|"
    for k, s in questions:
        found = one_by_one(chosen, table, k, s)
        most = max(total for total, _ in found.values())
        shares = " | ".join(f"{total / most:.4f}" for total, _ in found.values())
        yield f"| {k}, {s} | {shares} |"


def one_by_one(chosen: DataSet, table: Any, k: int, s: int) -> dict[str, tuple[float, float]]:
    """Total variance and CPU seconds by the methods of the tables of tweets."""
    found = {}
    X = table.X if isinstance(table, Table) else table
    for label, (method, options, rank) in DEFLATED.items():
        start = time.process_time()
        result = sparse_pca(
            table,
            n_components=k,
            n_nonzero_coefs=s,
            center=chosen.center,
            method=method,
            method_options=options,
            rank=rank,
            certify=False,
        )
        spent = time.process_time() - start
        found[label] = (sum(chosen.variances(X, result.supports)), spent)
    return found


def _about_five(table: Table) -> Iterator[str]:
    """Zhang & El Ghaoui 2011: figure 2 in a sentence, tables 1 and 2, words that survive."""
    ranked = np.sort(Moments(table.X.shape[1]).add(table.X).variances())[::-1]
    start = time.process_time()
    result = sparse_pca(
        table,
        n_components=5,
        n_nonzero_coefs=5,
        method="dspca",
        method_options={"cardinality": "about"},
        certify=False,
    )
    spent = time.process_time() - start
    most = max(step["survivors"] for step in result.info["relaxations"])
    yield (
        f"\n{table.X.shape[1]:,} words, at most {most} survive; five components of about five "
        f"words in {spent:.3g} CPU s; the {min(500, ranked.size)}th largest variance is "
        f"{100 * ranked[:500][-1] / ranked[0]:.2g} % of the largest"
    )
    yield from _words("DSPCA", result)
