"""The questions with one component: data set, cardinalities, and what is to be proved."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.sparse import load_npz

from sparcipal import read

from .. import data

CORRELATIONS = ("wine", "pitprops", "miniboone", "communities", "arrhythmia")
FILES = {
    "leukemia": "mll.npz",
    "arcene": "arcene_train.npz",
    "lrs": "lrs.npz",
    "isolet": "isolet5.npz",
    "mfeat": "mfeat_pix.npz",
}
# Genes in blocks: size of the largest block, ratio of one to the next, seed.
GENES = {
    "lymphoma 1": (800, 0.7, 0),
    "lymphoma 2": (800, 0.7, 1),
    "lymphoma 3": (500, 0.6, 2),
    "lymphoma 4": (400, 0.85, 3),
    "equal blocks": (60, 1.0, 0),
}
WORDS = {"nips": "docword.nips.txt.gz", "kos": "docword.kos.txt.gz"}


def correlation(name: str) -> dict[str, Any]:
    """A correlation matrix of the literature on exact solvers."""
    if name == "pitprops":
        return {"covariance": np.loadtxt(data.path("pitprops.csv"), delimiter=",")}
    matrix = np.load(data.path("benchmark_correlations.npz"))[name]
    return {"covariance": (matrix + matrix.T) / 2}


def table(name: str) -> dict[str, Any]:
    """A data set at full dimension; words are not centred unless the name says so."""
    if name in ("pbmc", "pbmc centred"):
        counts = load_npz(data.path("pbmc3k_csr.npz"))
        return {"X": counts, "center": name.endswith("centred")}
    if name in WORDS or name == "kos centred":
        file = WORDS[name.split()[0]]
        return {"X": read(data.path(file)), "center": name.endswith("centred")}
    if name == "colon":
        return {"X": np.log(np.maximum(np.load(data.path("alon.npz"))["X"].astype(float), 1))}
    if name == "cbcl":
        faces = np.load(data.path("cbcl_faces_raw.npz"))["train"]
        return {"X": faces.reshape(len(faces), -1) / 255.0}
    if name in GENES:
        return {"X": blocks_of_genes(*GENES[name])}
    file = FILES[name]
    return {"X": np.load(data.path(file))["X"].astype(float)}


def blocks_of_genes(largest: int, ratio: float, seed: int) -> np.ndarray:
    """62 samples of three classes and 4026 genes in blocks, like a study of lymphoma.

    A block has a common factor, which differs between the classes; its genes follow it more or
    less, up or down, and vary more or less. Each block is `ratio` times as large as the one before
    it, and has at least 20 genes. With ratio 1 no block is special: a component with more nonzeros
    than a block has genes then mixes blocks that are nearly uncorrelated, which is the hardest case
    for a relaxation.
    """
    rng, p = np.random.default_rng(seed), 4026
    label = np.repeat(np.arange(3), (42, 9, 11))
    sizes: list[int] = []
    while sum(sizes) < p:
        sizes.append(max(int(largest * ratio ** len(sizes)), 20))
    block = np.repeat(np.arange(len(sizes)), sizes)[:p]
    factors = rng.standard_normal((3, len(sizes)))[label]
    factors += rng.standard_normal(factors.shape)
    X = factors[:, block] * rng.uniform(0.2, 1.0, p) * rng.choice([-1, 1], p)
    X += rng.standard_normal(X.shape) * rng.uniform(0.3, 0.8, p)
    return np.asarray(X * rng.uniform(0.3, 1.5, p))


def questions(group: str) -> Iterator[tuple[str, dict[str, Any], int, dict[str, Any]]]:
    """Name, data, cardinality and further settings of every question of a group."""
    if group == "correlations":
        for name in CORRELATIONS:
            given = correlation(name)
            for s in (4, 5, 10, 20):
                if s < given["covariance"].shape[0]:
                    yield name, given, s, {}
    elif group == "full":
        sizes = {
            "nips": (10, 15),
            "kos": (5, 10, 15),
            "kos centred": (5, 10, 15),
            "leukemia": (10, 40, 50),
            "arcene": (40,),
            "colon": (5, 10, 20),
        }
        for name, cardinalities in sizes.items():
            given = table(name)
            for s in cardinalities:
                yield name, given, s, {"tol": 3e-6, "certify": "full"}
    elif group == "many":
        many = {
            "colon": (40, 60, 80, 100, 150),
            "leukemia": (40, 60, 80, 100, 150),
            "arcene": (80, 100, 150),
            "isolet": (150,),
            **dict.fromkeys(GENES, (200,)),
        }
        for name, cardinalities in many.items():
            given = table(name)
            for s in cardinalities:
                yield name, given, s, {}
        for s in (50, 100):
            yield "leukemia", table("leukemia"), s, {"nonnegative": True}
    elif group == "nonnegative":
        for name in ("pitprops", "wine", "communities", "arrhythmia", "lrs", "cbcl"):
            given = correlation(name) if name in CORRELATIONS else table(name)
            limit = next(iter(given.values())).shape[1]
            for s in (5, 10, 20, 40):
                if s < limit:
                    yield name, given, s, {"nonnegative": True, "certify": "full"}
    else:
        noise = np.random.default_rng(0).standard_normal((200, 100))
        yield "wishart", {"X": noise}, 10, {"certify": "full"}
