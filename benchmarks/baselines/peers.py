"""Other packages on the same data, for the same number of nonzeros, judged by one judge.

The judge takes the supports only: it cuts each component to its s largest loadings, takes the best
weights on them one after the other, and reports the adjusted variance (what a component adds beyond
those before it), over the same for dense PCA. A penalty is searched for the number of nonzeros.
"""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from benchmarks import data
from benchmarks.baselines.sets import SETS
from sparcipal import sparse_pca

# R packages that Debian does not have, and whose registry is not always within reach.
NOT_RUN = "R: elasticnet, PMA, nsprcomp, sparsepca, mixOmics (not in Debian 12 or unstable)"
# What Debian has (r-cran-irlba, r-cran-pcapp): the loadings f, p x k, of X for k components of s.
IN_R = {
    "R irlba, ssvd": ("irlba", "f <- ssvd(X, k = k, n = s)$v"),
    "R pcaPP, sPCAgrid": (
        "pcaPP",
        """
        low <- 0; high <- 64; f <- matrix(0, ncol(X), k)
        for (i in 1:25) {
          g <- unclass(sPCAgrid(X, k = k, lambda = (low + high) / 2, method = "sd")$loadings)
          size <- max(colSums(abs(g) > 1e-6))
          if (size > s) low <- (low + high) / 2 else { high <- (low + high) / 2; f <- g }
          if (size == s) break
        }
        """,
    ),
}
# A semidefinite program of more features takes minutes.
SMALL = 40
HALVINGS = 25
LONGEST = 120  # seconds of a fit in R


def tables() -> Iterator[tuple[str, np.ndarray]]:
    from sklearn import datasets

    for name in ("wine", "breast_cancer", "digits"):
        X = getattr(datasets, f"load_{name}")().data
        X = X[:, X.std(axis=0) > 0]
        yield name.replace("_", " "), (X - X.mean(axis=0)) / X.std(axis=0)
    if (data.FOLDER / "alon.npz").exists():
        X = np.log(np.maximum(SETS["Colon"].load(), 1.0))
        X = X[:, np.argsort(-X.var(axis=0), kind="stable")[:500]]
        yield "colon, 500 genes", X - X.mean(axis=0)


def judged(X: np.ndarray, loadings: np.ndarray, s: int) -> float:
    """The adjusted variance of the components on the s largest loadings of each row."""
    rest, total = X / np.sqrt(len(X)), 0.0
    for row in np.atleast_2d(loadings):
        support = np.argsort(-np.abs(row), kind="stable")[:s]
        if not row[support].any():
            continue
        # the best weights on the support, for what the components before it have left
        left, sigma, _ = np.linalg.svd(rest[:, support], full_matrices=False)
        total += float(sigma[0]) ** 2
        rest = rest - np.outer(left[:, 0], left[:, 0] @ rest)
    return total


def ours(X: np.ndarray, k: int, s: int) -> np.ndarray:
    kind = {} if k == 1 else {"supports": "free"}
    return sparse_pca(X, n_components=k, n_nonzero_coefs=s, certify=False, **kind).components


def scikit(name: str) -> Callable[[np.ndarray, int, int], np.ndarray]:
    def fit(X: np.ndarray, k: int, s: int) -> np.ndarray:
        from sklearn import decomposition

        low, high, found = 0.0, 64.0, np.zeros((k, X.shape[1]))
        for _ in range(HALVINGS):
            alpha = (low + high) / 2
            model = getattr(decomposition, name)(k, alpha=alpha, random_state=0).fit(X)
            sizes = (model.components_ != 0).sum(axis=1)
            if sizes.max() > s:
                low = alpha
            else:
                high, found = alpha, model.components_
            if sizes.max() == s:
                break
        return found

    return fit


def abess(X: np.ndarray, k: int, s: int) -> np.ndarray:
    from abess.pca import SparsePCA

    found, rest = [], X
    for _ in range(k):  # number=k ends the process in abess 0.4.11
        model = SparsePCA(support_size=s).fit(rest)
        found.append(np.asarray(model.coef_).ravel())
        scores = rest @ found[-1]
        rest = rest - np.outer(scores, scores @ rest) / max(float(scores @ scores), 1e-300)
    return np.array(found)


def dspca(X: np.ndarray, k: int, s: int) -> np.ndarray:
    import cvxpy as cp

    A, Z = X.T @ X / len(X), cp.Variable((X.shape[1],) * 2, PSD=True)
    rules = [cp.trace(Z) == 1, cp.sum(cp.abs(Z)) <= s]
    cp.Problem(cp.Maximize(cp.trace(A @ Z)), rules).solve(solver="CLARABEL")
    return np.linalg.eigh(Z.value)[1][:, -1:].T


def in_r(package: str, code: str) -> Callable[[np.ndarray, int, int], tuple[np.ndarray, float]]:
    """A fit by a package of R, with the CPU seconds that R counts for it."""

    def fit(X: np.ndarray, k: int, s: int) -> tuple[np.ndarray, float]:
        with tempfile.TemporaryDirectory() as folder:
            X.ravel(order="F").tofile(f"{folder}/X")
            script = f"""
            suppressMessages(library({package})); k <- {k}; s <- {s}; set.seed(0)
            X <- matrix(readBin("{folder}/X", "double", {X.size}), {len(X)})
            spent <- system.time({{ {code} }})
            writeBin(c(spent[["user.self"]] + spent[["sys.self"]], as.vector(f)), "{folder}/f")
            """
            command = ["Rscript", "--vanilla", "-e", script]
            subprocess.run(command, check=True, capture_output=True, timeout=LONGEST)
            spent, *f = np.fromfile(f"{folder}/f")
        return np.reshape(f, (k, X.shape[1])), float(spent)

    return fit


def has_r(package: str) -> bool:
    if shutil.which("Rscript") is None:
        return False
    command = ["Rscript", "--vanilla", "-e", f"library({package})"]
    return subprocess.run(command, check=False, capture_output=True).returncode == 0


PEERS: dict[str, tuple[str, Callable[[np.ndarray, int, int], np.ndarray]]] = {
    "sparcipal": ("sparcipal", ours),
    "abess": ("abess", abess),
    "scikit-learn SparsePCA": ("sklearn", scikit("SparsePCA")),
    "scikit-learn MiniBatchSparsePCA": ("sklearn", scikit("MiniBatchSparsePCA")),
    "DSPCA by cvxpy": ("cvxpy", dspca),
}


def peers() -> Iterator[str]:
    missing = [name for name, (module, _) in PEERS.items() if not importlib.util.find_spec(module)]
    fits = {name: fit for name, (_, fit) in PEERS.items() if name not in missing}
    for name, (package, code) in IN_R.items():
        if has_r(package):
            fits[name] = in_r(package, code)
        else:
            missing.append(name)
    asked = [(name, X, k, s) for name, X in tables() for k, s in ((1, 5), (3, 5))]
    yield "| package | " + " | ".join(f"{name}, {k} x {s}" for name, _, k, s in asked) + " |"
    yield "| --- " * (len(asked) + 1) + "|"
    for name, fit in fits.items():
        cells = []
        for _, X, k, s in asked:
            if fit is dspca and (k > 1 or X.shape[1] > SMALL):
                cells.append("")
                continue
            cells.append(_cell(X, k, s, fit))
        yield f"| {name} | " + " | ".join(cells) + " |"
    yield f"\nNot run: {'; '.join([*missing, NOT_RUN])}."


def _cell(X: np.ndarray, k: int, s: int, fit: Callable[[np.ndarray, int, int], Any]) -> str:
    """The share that a package explains, and its CPU seconds."""
    start = time.process_time()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # penalties at which nothing converges
            found = fit(X, k, s)
    except subprocess.TimeoutExpired:
        return f"over {LONGEST} s"
    spent = time.process_time() - start
    if isinstance(found, tuple):
        found, spent = found
    dense = np.linalg.svd(X / np.sqrt(len(X)), compute_uv=False)[:k] ** 2
    return f"{100 * judged(X, found, s) / dense.sum():.2f} % ({spent:.2g} s)"
