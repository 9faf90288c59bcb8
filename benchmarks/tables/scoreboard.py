"""Printed, measured, why not: a figure of the papers in a row, and what it comes to here.

`measure` runs every figure in its paper's own setting (rank, algorithm, accuracy, random restarts)
and stores what came out in `measured.json`; `docs/printed.py` makes the page of the documents from
that and from the list `FIGURES`. The best known values are those of `benchmarks/library`.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import data
from benchmarks.baselines.sets import SETS, DataSet
from benchmarks.tables.absent import SETS as SETS_ELSEWHERE
from benchmarks.tables.absent import one_by_one

STORE = Path(__file__).with_name("measured.json")
RESTARTS = 20
CLOSE = 0.02
REPEATS = 1000
JOINT, LOW_RANK, NONNEGATIVE, TEXT = (
    "Asteris et al. 2015",
    "Papailiopoulos et al. 2013",
    "Asteris et al. 2014",
    "Zhang & El Ghaoui 2011",
)
# Names of the methods there, their names here, and options: random restarts as the paper has them.
METHODS: dict[str, tuple[str, dict[str, Any]]] = {
    "TPower": ("tpower", {"restarts": RESTARTS}),
    "EM": ("em", {"restarts": RESTARTS}),
    "SpanSPCA": ("spannogram", {}),
    "SPCABiPart": ("bipartite", {}),
}
ABSENT = "the data are not here; `make tables` runs it when {} is in the folder of the data"
NEVER = (
    "the tweets were never published: 20 Newsgroups stands in, below; `make tables` runs tweets "
    "when tweets.txt is in the folder of the data"
)


@dataclass(frozen=True)
class Figure:
    """A printed figure: where it stands, which measurement answers it, and what is to be said."""

    paper: str
    place: str
    what: str
    printed: str
    key: str = ""  # of the measurement in the setting of the paper
    best: str = ""  # of ours: a name in the library, or the key of a measurement
    reason: str = ""  # why what is measured is another number
    percent: bool = False

    def verdict(self, measured: float) -> str:
        """How what is measured compares with what is printed."""
        paper = float(self.printed)
        digits = len(self.printed.split("e")[0].replace(".", "").lstrip("0")) or 1
        if float(f"{measured:.{digits}g}") == paper:
            return "to the digit"
        if abs(measured / paper - 1) <= CLOSE:
            return "within 2 %"
        return "above" if measured > paper else "below"


def equalised() -> np.ndarray:
    """The faces with their histograms equalised: the rank of a pixel in its picture, over 360."""
    from scipy.stats import rankdata

    return (rankdata(SETS["CBCL Face Train"].load(), axis=1) - 1) / 360


# The joint tables: place, set, components nonzeros rank, what is printed for each method (-:
# nothing), and the instance of the library; none: the data are not here.
_TABLES = """
table 1 | Amzn Com Rev | 5 40 4 | 7.31e3 7.32e3 7.31e3 7.79e3 |
table 1 | Arcene Train | 5 40 4 | 1.08e7 1.02e7 1.08e7 1.10e7 | arcene-5x40
table 1 | CBCL Face Train | 5 40 4 | 5.06 5.18 5.23 5.29 | cbcl-5x40
table 1 | Isolet-5 | 5 40 4 | 33.1 34.3 33.4 35.1 | isolet-5x40
table 1 | Leukemia | 5 40 4 | 5.00e9 5.03e9 4.84e9 5.37e9 | leukemia-5x40
table 1 | Pems Train | 5 40 4 | 3.94 3.58 3.89 3.75 |
table 1 | Mfeat Pix | 5 40 4 | 500 527 508 547 | mfeat-5x40
table 2 | BoW:NIPS | 8 15 5 | 2.51e3 2.57e3 2.53e3 3.34e3 | nips-8x15
table 2 | BoW:KOS | 8 15 5 | 41.4 42.4 42.1 61.4 | kos-8x15
table 2 | BoW:Enron | 8 15 5 | 211 200 209 238 |
table 2 | BoW:NyTimes | 8 15 5 | 48.1 - 48.1 53.1 |
table 4 | BoW:NIPS | 8 10 4 | 2.5999e3 - 2.5981e3 3.2090e3 | nips-8x10
table 5 | BoW:NyTimes | 8 10 4 | 45.4014 - 46.0075 47.7212 |
table 6 | BoW:NyTimes | 8 15 4 | 48.140645 - 48.767864 51.873063 |
table 7 | BoW:NyTimes | 8 20 4 | 50.7686 - 52.8117 54.8906 |
"""


@dataclass(frozen=True)
class Table:
    """A line of the joint tables."""

    place: str
    name: str
    sizes: tuple[int, int, int]
    printed: tuple[str, ...]
    instance: str

    def key(self, method: str) -> str:
        k, s, rank = self.sizes
        return f"{self.name} {k}x{s} rank {rank} {method}"


def tables() -> Iterator[Table]:
    for line in _TABLES.strip().splitlines():
        place, name, sizes, printed, instance = (part.strip() for part in line.split("|"))
        k, s, rank = map(int, sizes.split())
        yield Table(place, name, (k, s, rank), tuple(printed.split()), instance)


_FACES = (
    "the preparation differs: a sum of variances depends on it. Divided by 255 first, then with "
    "histograms equalised, which comes closest of those tried; none matches this and figure 4"
)
_GREEDY = "a better first component can lower the total of a method that takes one after the other"
_RANDOM = f"not found; {RESTARTS} random restarts are in. {_GREEDY.capitalize()}"
_RANK = "not found: at rank 4 no seed reaches it; rank 5 reaches 35.6"


def _joint() -> Iterator[Figure]:
    for table in tables():
        for method, value in zip(METHODS, table.printed):
            if value == "-":
                continue
            k, s, _ = table.sizes
            what = f"{table.name}, {k} x {s}, {method}"
            if not table.instance:
                absent = ABSENT.format(SETS_ELSEWHERE[table.name].file)
                yield Figure(JOINT, table.place, what, value, reason=absent)
                continue
            reason = {"SPCABiPart": _RANK, "SpanSPCA": f"not found: {_GREEDY}"}.get(method, _RANDOM)
            reason = _FACES if table.name.startswith("CBCL") else reason
            yield Figure(JOINT, table.place, what, value, table.key(method), table.instance, reason)


_WEIGHTS = (
    f"weights of the eigenvectors are not stated, equal here; {REPEATS} repetitions, 5000 there"
)
_PENALTY = "the scale of the penalty is not stated there; best: with a penalty that is searched"
_SPIKES = {
    "PCA + thresholding": ("0.98", "0.85", _WEIGHTS),
    "GPower l0, 0.8": ("1", "0.33", _PENALTY),
    "GPower l1, 0.8": ("1", "0.33", _PENALTY),
    "greedy (FullPath)": ("1", "0.96", _WEIGHTS),
    "TPower": ("1", "0.96", _WEIGHTS),
    "spannogram, rank 2": ("1", "0.96", _WEIGHTS),
}
_TWEETS = {
    "Rank-1": ("0.600", "0.815", "0.885"),
    "TPower": ("0.595", "0.869", "0.915"),
    "Rank-2": ("0.940", "0.934", "0.885"),
    "Rank-3": ("0.940", "0.936", "0.954"),
    "FullPath": ("0.935", "0.886", "0.953"),
}
_FIRST_DAY = {
    "Rank-1": ("0.9863", "0.8851", "0.7875", "0.7174"),
    "TPower": ("0.9861", "0.8850", "0.7877", "0.7520"),
    "Rank-2": ("0.9870", "0.9850", "0.8993", "0.8419"),
    "Rank-3": ("0.9870", "0.9852", "0.8994", "0.8420"),
    "FullPath": ("0.9283", "0.9852", "0.8994", "0.8412"),
}


def _single() -> Iterator[Figure]:
    for name, (many, few, reason) in _SPIKES.items():
        for samples, printed in ((50, many), (5, few)):
            what = f"two spikes, {samples} samples, {name}: both supports found"
            best = f"{name.removesuffix('0.8')}searched {samples}" if "GPower" in name else ""
            yield Figure(LOW_RANK, "section 4.1", what, printed, f"{name} {samples}", best, reason)
    for method, shares in _FIRST_DAY.items():
        for number, printed in enumerate(shares, start=1):
            what = f"tweets of a day, component {number}, {method}"
            yield Figure(LOW_RANK, "table 1", what, printed, reason=NEVER)
    for method, shares in _TWEETS.items():
        for column, printed in zip(("japan, 5 x 10", "1-5 May, 7 x 4", "May, 3 x 5"), shares):
            what = f"tweets, {column}, {method}"
            yield Figure(LOW_RANK, "table 2", what, printed, reason=NEVER)
    yield Figure(
        LOW_RANK,
        "section 4.3",
        "rows left by elimination, of 64k words (here: of 6,906, KOS, rank 2, s = 15)",
        "40-80",
        "rows left",
        reason="other data; the rule here is proved safe",
    )


# Set, nonzeros, printed share, reason.
_SHARES = [
    ("CBCL Face Train", 180, "58", "figure 4", "another preparation of the faces, see table 1"),
    ("Leukemia", 50, "44.6", "figure 5", "not found"),
    ("LRS", 20, "86", "figure 6", ""),
    ("LRS", 90, "93", "figure 6", "not found: here the answer has 11 nonzeros for s = 20 to 90, "
     "there it is no longer sparse near 90, so the bands were prepared in another way"),
]  # fmt: skip


def _shares() -> Iterator[Figure]:
    for name, s, printed, place, reason in _SHARES:
        what = f"{name}, x >= 0, s = {s}: share of the optimum proved"
        key = f"share {name} {s}"
        yield Figure(NONNEGATIVE, place, what, printed, key, f"{key} best", reason, percent=True)


def _texts() -> Iterator[Figure]:
    for name, printed in (("NYTimes", "500 of 102,660"), ("PubMed", "1000 of 141,043")):
        what = f"{name}: words that survive at cardinality 5"
        absent = ABSENT.format(f"docword.{name.lower()}.txt.gz")
        yield Figure(TEXT, "section 4", what, printed, reason=absent)


FIGURES = [*_joint(), *_single(), *_shares(), *_texts()]

# what is measured ----------------------------------------------------------------------------


def measurements() -> dict[str, Callable[[], dict[str, float]]]:
    """By name: each gives values by the keys of `FIGURES`."""
    jobs: dict[str, Callable[[], dict[str, float]]] = {}
    for table in tables():
        if table.instance:
            jobs[" ".join((table.name, *map(str, table.sizes)))] = partial(_sums, table)
    jobs["faces equalised"] = _faces
    for name, s, *_ in _SHARES:
        jobs[f"share {name} {s}"] = partial(_share, name, s)
    jobs["spikes"] = _recovered
    jobs["rows left"] = _rows_left
    jobs["accuracy"] = _promised
    jobs["error terms"] = _error_terms
    jobs["newsgroups"] = _newsgroups
    jobs["words left"] = _words_left
    jobs["figure 2"] = _figure_2
    return jobs


def _value(
    chosen: DataSet, X: Any, k: int, s: int, method: str, options: dict[str, Any], rank: int | None
) -> float:
    from sparcipal import sparse_pca

    own = rank if method in ("spannogram", "bipartite") else None
    result = sparse_pca(
        X,
        n_components=k,
        n_nonzero_coefs=s,
        center=chosen.center,
        method=method,
        method_options=options,
        rank=own,
        certify=False,
    )
    return sum(chosen.variances(X, result.supports))


def _sums(table: Table) -> dict[str, float]:
    X, (k, s, rank) = SETS[table.name].load(), table.sizes
    return {
        table.key(label): _value(SETS[table.name], X, k, s, method, options, rank)
        for (label, (method, options)), value in zip(METHODS.items(), table.printed)
        if value != "-"
    }


def _faces() -> dict[str, float]:
    chosen, X = SETS["CBCL Face Train"], equalised()
    found = {
        f"CBCL Face Train 5x40 rank 4 {label}, equalised": _value(chosen, X, 5, 40, *own, rank=4)
        for label, own in METHODS.items()
    }
    return found | _share("CBCL Face Train", 180, X, ", equalised")


def _share(name: str, s: int, X: Any = None, suffix: str = "") -> dict[str, float]:
    """The share by Algorithm 3 with d = 3 and eps = 0.1, and by all bounds there are."""
    from sparcipal import sparse_pca

    X = SETS[name].load() if X is None else X
    ask: dict[str, Any] = {"n_nonzero_coefs": s, "nonnegative": True}
    start = time.process_time()
    net = sparse_pca(
        X,
        **ask,
        method="spannogram",
        rank=3,
        certify=False,
        method_options={"algorithm": "net", "eps": 0.1},
    )
    spent = time.process_time() - start
    leading = np.linalg.svd(X - X.mean(axis=0), compute_uv=False)[:4] ** 2 / len(X)
    bound = net.info["rank_optimum_probably_at_most"] + leading[3]
    best = sparse_pca(X, **ask)
    key = f"share {name} {s}"
    return {
        f"{key}{suffix}": 100 * net.value / bound,
        f"{key}{suffix}, with the eigenvalue": 100 * net.value / min(bound, leading[0]),
        f"{key} best{suffix}": 100 * best.value / best.bound,
        f"seconds, {key}{suffix}": spent,
    }


def _recovered() -> dict[str, float]:
    from benchmarks.lowrank import experiments

    found = {}
    for name, (many, few), _, _ in experiments.recovery(REPEATS):
        found |= {f"{name} 50": many, f"{name} 5": few}
    return found


def _rows_left() -> dict[str, float]:
    """Rows of KOS that may be in the best support of rank 2, by the elimination of the method."""
    from sparcipal import sparse_pca

    X = SETS["BoW:KOS"].load()
    result = sparse_pca(
        X, n_nonzero_coefs=15, center=False, method="spannogram", rank=2, certify=False
    )
    return {"rows left": float(result.info["rows_left"])}


def _promised() -> dict[str, float]:
    """The rank that an accuracy of 0.05 takes on LRS, what it promises, and what is reached."""
    from sparcipal import sparse_pca

    result = sparse_pca(
        SETS["LRS"].load(),
        n_nonzero_coefs=20,
        method="spannogram",
        method_options={"accuracy": 0.05},
    )
    (promise,) = result.certificate.guarantees.values()
    reached = result.value / result.bound
    return {
        "accuracy, rank": float(result.info["rank"]),
        "accuracy, promised": 100 * promise,
        "accuracy, reached": 100 * reached,
    }


def _error_terms() -> dict[str, float]:
    """The error term of Theorem 2 of 2015, 40 nonzeros at rank 4, and what stands for it there."""
    from sparcipal import sparse_pca

    found = {}
    for name in ERROR_TERMS:
        start = time.process_time()
        result = sparse_pca(
            SETS[name].load(),
            n_components=5,
            n_nonzero_coefs=40,
            method="bipartite",
            rank=4,
            certify=False,
            method_options={"error_term": True},
        )
        term = result.info["error_term"]
        found |= {
            f"seconds, error term {name}": time.process_time() - start,
            f"error term {name}, at least": term["at_least"],
            f"error term {name}, at most": term["at_most"],
            f"error term {name}, eigenvalue": result.info["tail"],
        }
    return found


def _newsgroups() -> dict[str, float]:
    """The stand-in for the tweets: presence of words, five components of ten words."""
    X = SETS["20 newsgroups"].load()
    vocabulary = data.path("20ng_vocab.txt").read_text(encoding="utf-8").split()
    X = X.astype(bool).astype(float).tocsc()
    seen = np.asarray(X.sum(axis=0)).ravel()
    long = np.array([len(word) >= 3 for word in vocabulary])[: X.shape[1]]
    X = X[:, (seen > 1) & long].tocsr()
    chosen = DataSet("20 newsgroups", lambda: X, center=True)
    found = {}
    for label, (total, spent) in one_by_one(chosen, X, 5, 10).items():
        found |= {f"seconds, newsgroups {label}": spent, f"newsgroups {label}": total}
    return found


def _words_left() -> dict[str, float]:
    """One DSPCA component of about five words of KOS: seconds, and words that survive."""
    from sparcipal import sparse_pca

    X = SETS["BoW:KOS"].load()
    start = time.process_time()
    result = sparse_pca(
        X,
        n_nonzero_coefs=5,
        method="dspca",
        method_options={"cardinality": "about"},
        certify=False,
    )
    spent = time.process_time() - start
    most = max(step["survivors"] for step in result.info["relaxations"])
    return {"seconds, words left": spent, "words left": float(most)}


def _figure_2() -> dict[str, float]:
    """500 genes of the colon data, one component of up to all of them: share and proved bound."""
    from sparcipal import sparse_pca

    X = np.log(np.maximum(SETS["Colon"].load(), 1.0))
    X = X[:, np.argsort(-X.var(axis=0), kind="stable")[:500]]
    leading = np.linalg.svd(X - X.mean(axis=0), compute_uv=False)[0] ** 2 / len(X)
    found = {}
    for s in FIGURE_2:
        for method in ("threshold", "tpower", "greedy", "spannogram", "auto"):
            result = sparse_pca(
                X,
                n_nonzero_coefs=s,
                method=method,
                rank=3 if method == "spannogram" else None,
                certify="fast" if method == "auto" else False,
                method_options={"test": False} if method == "greedy" else None,
            )
            found[f"figure 2, {method} {s}"] = result.value / leading
        found[f"figure 2, bound {s}"] = result.bound / leading
    return found


ERROR_TERMS = ("Isolet-5", "Mfeat Pix", "CBCL Face Train")
FIGURE_2 = (5, 20, 50, 100, 200, 300, 400, 500)


def stored() -> dict[str, float]:
    return json.loads(STORE.read_text(encoding="utf-8")) if STORE.exists() else {}


def measure(folder: Path, only: tuple[str, ...] = ()) -> Iterator[str]:
    """Measure everything for which there is data, and store it after every step."""
    yield "# Printed and measured, one row per figure"
    yield "\n| what | value |\n| --- | --- |"
    for name, job in measurements().items():
        if only and name not in only:
            continue
        found = {key: float(f"{value:.7g}") for key, value in job().items()}
        everything = dict(sorted((stored() | found).items()))
        STORE.write_text(json.dumps(everything, indent=0) + "\n", encoding="utf-8")
        for key, value in found.items():
            yield f"| {key} | {value:.6g} |"
