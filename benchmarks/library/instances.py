"""The instances of the library: a matrix, how it was prepared, and what is asked of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from benchmarks import data
from benchmarks.baselines.sets import SETS
from benchmarks.exact.sets import correlation

# Numbers of nonzeros, and components x nonzeros, of every matrix that has so many features.
SINGLE = (5, 10, 20, 40, 80, 150)
NONNEGATIVE = (5, 20, 80)
JOINT = ((3, 5), (5, 10), (5, 40))
JOINT_NONNEGATIVE = ((3, 10),)


@dataclass(frozen=True)
class Source:
    """A matrix: where it comes from, how it is prepared, and the file that it needs."""

    name: str
    origin: str
    preparation: str
    n_features: int
    load: Callable[[], dict[str, Any]]
    file: str | None = None
    further: tuple[tuple[int, int], ...] = ()
    further_nonnegative: tuple[tuple[int, int], ...] = ()

    @property
    def absent(self) -> bool:
        return self.file is not None and not (data.FOLDER / self.file).exists()


@dataclass(frozen=True)
class Instance:
    """A question: `k` components of `s` nonzeros with disjoint supports, signed or not."""

    source: Source
    k: int
    s: int
    nonnegative: bool = False

    @property
    def name(self) -> str:
        return f"{self.source.name}-{self.k}x{self.s}{'-nonnegative' if self.nonnegative else ''}"

    def question(self) -> dict[str, Any]:
        """The keywords of `sparse_pca` that state the question."""
        return {
            **given(self.source.name),
            "n_components": self.k,
            "n_nonzero_coefs": self.s,
            "nonnegative": self.nonnegative,
        }


def _set(name: str) -> Callable[[], dict[str, Any]]:
    return lambda: {"X": SETS[name].load(), "center": SETS[name].center}


def _kos_centred() -> dict[str, Any]:
    return {"X": SETS["BoW:KOS"].load()}


def _colon() -> dict[str, Any]:
    return {"X": np.log(np.maximum(SETS["Colon"].load(), 1.0))}


def _toy(name: str, **settings: Any) -> Callable[[], dict[str, Any]]:
    def load() -> dict[str, Any]:
        from sklearn import datasets

        return {"X": getattr(datasets, f"load_{name}")().data, **settings}

    return load


def _wine_covariance() -> dict[str, Any]:
    from sklearn.datasets import load_wine

    return {"covariance": np.cov(load_wine().data.T)}


_MATRICES = "benchmark_correlations.npz"
_UCI = "UCI Machine Learning Repository"
SOURCES = {
    source.name: source
    for source in (
        Source(
            "pitprops",
            "Jeffers 1967",
            "correlations",
            13,
            lambda: correlation("pitprops"),
            "pitprops.csv",
            (*((1, s) for s in (4, 6, 7, 8, 9)), (2, 5), (3, 4), (4, 3)),
        ),
        Source(
            "wine",
            _UCI,
            "correlations",
            13,
            lambda: correlation("wine"),
            _MATRICES,
            ((3, 4), (4, 3)),
        ),
        Source("wine-covariance", "scikit-learn", "covariance, over n - 1", 13, _wine_covariance),
        Source(
            "miniboone",
            _UCI,
            "correlations",
            50,
            lambda: correlation("miniboone"),
            _MATRICES,
            ((3, 10),),
        ),
        Source(
            "communities",
            _UCI,
            "correlations",
            101,
            lambda: correlation("communities"),
            _MATRICES,
            ((5, 5), (3, 10)),
        ),
        Source(
            "arrhythmia",
            _UCI,
            "correlations",
            274,
            lambda: correlation("arrhythmia"),
            _MATRICES,
            ((5, 5), (3, 10)),
        ),
        Source(
            "breast-cancer", "scikit-learn", "standardised", 30, _toy("breast_cancer", scale=True)
        ),
        Source("digits", "scikit-learn", "centred", 64, _toy("digits")),
        Source("diabetes", "scikit-learn", "centred", 10, _toy("diabetes")),
        Source("lrs", _UCI, "centred", 93, _set("LRS"), "lrs.npz", ((3, 10),)),
        Source("mfeat", _UCI, "centred", 240, _set("Mfeat Pix"), "mfeat_pix.npz"),
        Source(
            "cbcl",
            "MIT CBCL",
            "divided by 255, centred",
            361,
            _set("CBCL Face Train"),
            "cbcl_faces_raw.npz",
            further_nonnegative=((1, 40), (3, 40)),
        ),
        Source("isolet", _UCI, "centred", 617, _set("Isolet-5"), "isolet5.npz"),
        Source("colon", "Alon et al. 1999", "log of max(x, 1), centred", 2000, _colon, "alon.npz"),
        Source(
            "kos",
            _UCI,
            "counts, not centred",
            6906,
            _set("BoW:KOS"),
            "docword.kos.txt.gz",
            ((1, 15), (8, 15)),
        ),
        Source(
            "kos-centred",
            _UCI,
            "counts, centred",
            6906,
            _kos_centred,
            "docword.kos.txt.gz",
            ((1, 15),),
        ),
        Source(
            "arcene",
            _UCI,
            "centred",
            10000,
            _set("Arcene Train"),
            "arcene_train.npz",
            ((1, 100),),
        ),
        Source(
            "nips",
            _UCI,
            "counts, not centred",
            12419,
            _set("BoW:NIPS"),
            "docword.nips.txt.gz",
            ((1, 15), (8, 10), (8, 15)),
        ),
        Source(
            "leukemia",
            "Armstrong et al. 2001",
            "centred",
            12582,
            _set("Leukemia"),
            "mll.npz",
            ((1, 50),),
            ((1, 50), (1, 100)),
        ),
        Source(
            "pbmc", "10x Genomics", "counts, not centred", 32738, _set("PBMC 3k"), "pbmc3k_csr.npz"
        ),
        Source(
            "20news",
            "20 Newsgroups",
            "counts, not centred",
            61188,
            _set("20 newsgroups"),
            "20ng_csr.npz",
        ),
    )
}


@cache
def given(source: str) -> dict[str, Any]:
    """The data of a source, read once."""
    return SOURCES[source].load()


def instances() -> Iterator[Instance]:
    for source in SOURCES.values():
        p = source.n_features
        yield from (Instance(source, 1, s) for s in SINGLE if s < p)
        yield from (Instance(source, 1, s, nonnegative=True) for s in NONNEGATIVE if s < p)
        joint = sorted({*JOINT, *source.further})  # and a few more of one component
        yield from (Instance(source, k, s) for k, s in joint if k * s <= p)
        joint = sorted({*JOINT_NONNEGATIVE, *source.further_nonnegative})
        yield from (Instance(source, k, s, True) for k, s in joint if k * s <= p)


INSTANCES = {instance.name: instance for instance in instances()}
