"""The data sets by the names that the papers give them, and the judge."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks import data


@dataclass(frozen=True)
class DataSet:
    """Where a matrix comes from and whether its columns are centred, as in the papers."""

    name: str
    load: Callable[[], Any]
    center: bool = True

    def variances(self, X: Any, supports: Any) -> list[float]:
        """The judge: the largest eigenvalue on each support, from the data."""
        found = []
        for support in supports:
            part = X[:, support]
            part = np.asarray(part.toarray() if sp.issparse(part) else part, dtype=float)
            part = part - part.mean(axis=0) if self.center else part
            found.append(float(np.linalg.eigvalsh(part.T @ part / len(part))[-1]))
        return found


def bag_of_words(name: str) -> sp.csr_matrix:
    t = np.loadtxt(data.path(f"docword.{name}.txt.gz"), skiprows=3, dtype=np.int64)
    return sp.csr_matrix((t[:, 2].astype(float), (t[:, 0] - 1, t[:, 1] - 1)))


def words(name: str) -> list[str]:
    return data.path(f"vocab.{name}.txt").read_text(encoding="utf-8").split()


def array(file: str, key: str = "X") -> Callable[[], np.ndarray]:
    return lambda: np.load(data.path(file))[key].astype(float)


def counts(file: str) -> Callable[[], sp.csr_matrix]:
    return lambda: sp.csr_matrix(sp.load_npz(data.path(file)), dtype=float)


def faces() -> np.ndarray:
    X = np.load(data.path("cbcl_faces_raw.npz"))["train"].astype(float)
    return X.reshape(len(X), -1) / 255


SETS = {
    s.name: s
    for s in (
        DataSet("BoW:KOS", lambda: bag_of_words("kos"), center=False),
        DataSet("BoW:NIPS", lambda: bag_of_words("nips"), center=False),
        DataSet("Leukemia", array("mll.npz")),
        DataSet("Arcene Train", array("arcene_train.npz")),
        DataSet("Isolet-5", array("isolet5.npz")),
        DataSet("Mfeat Pix", array("mfeat_pix.npz")),
        DataSet("CBCL Face Train", faces),
        DataSet("LRS", array("lrs.npz")),
        DataSet("Colon", array("alon.npz")),
        DataSet("PBMC 3k", counts("pbmc3k_csr.npz"), center=False),
        DataSet("20 newsgroups", counts("20ng_csr.npz"), center=False),
    )
}
