"""Every value and bound that is reported while a run goes on holds for the question asked.

The truth comes from enumeration of all supports. Runs are also stopped on the reported gap, at
random moments.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from sparcipal import (
    Result,
    SparsePCA,
    alternatives,
    compare,
    sparse_path,
    sparse_pca,
    stability,
    update,
    verify,
)
from sparcipal.problem import monitor
from sparcipal.problem.monitor import Progress
from tests.support.mode_cases import KINDS

SLACK = 1e-9


def largest(A: np.ndarray, s: int) -> dict[tuple[int, ...], float]:
    supports = itertools.combinations(range(A.shape[0]), s)
    return {S: float(np.linalg.eigvalsh(A[np.ix_(S, S)])[-1]) for S in supports}


def truth(A: np.ndarray, k: int, s: int) -> float:
    """The largest sum of variances of k components of s features with disjoint supports."""
    values = largest(A, s)
    if k == 1:
        return max(values.values())
    order = sorted(values, key=values.__getitem__, reverse=True)
    best = -np.inf
    for i, one in enumerate(order):
        if 2 * values[one] <= best:
            break
        other = next((two for two in order[i + 1 :] if not set(one) & set(two)), None)
        if other is not None:
            best = max(best, values[one] + values[other])
    return best


def tables(count: int) -> Iterator[tuple[int, np.ndarray]]:
    for seed in range(count):
        rng = np.random.default_rng(seed)
        p = int(rng.integers(8, 12))
        X = rng.standard_normal((60, p)) @ rng.standard_normal((p, p)) * np.geomspace(1, 0.2, p)
        yield seed, X


def in_blocks(X: np.ndarray) -> Any:
    return lambda: iter([X[:25], X[25:]])


@pytest.mark.parametrize("stream", [False, True], ids=["held", "screened"])
@pytest.mark.parametrize("k", [1, 2])
def test_reported_figures_hold_for_the_question(k, stream):
    for seed, X in tables(8):
        A = np.cov(X, rowvar=False, bias=True)
        optimum = truth(A, k, 2)
        rng = np.random.default_rng(seed)
        enough = float(rng.choice([0.0, 0.05, 0.3, 1.0]))
        seen = []

        def watch(progress, seen=seen, enough=enough):
            seen.append(progress)
            return progress.gap is not None and progress.gap <= enough

        # so little room keeps a few features of a stream; the others are dropped
        limit = {"memory_limit": 4 * 8 * 8 * 5} if stream else {}
        result = sparse_pca(
            in_blocks(X) if stream else X,
            n_components=k, n_nonzero_coefs=2, callback=watch, random_state=seed, **limit,
        )  # fmt: skip
        for progress in seen:
            if progress.value is not None:
                assert progress.value <= optimum * (1 + SLACK)
            if progress.bound is not None:
                assert progress.bound >= optimum * (1 - SLACK), progress.stage
        assert result.value <= optimum * (1 + SLACK)
        assert result.bound >= optimum * (1 - SLACK)


@pytest.mark.parametrize("stream", [False, True], ids=["held", "screened"])
@pytest.mark.parametrize("kind", KINDS)
def test_reported_figures_of_every_kind_hold_for_all_components(kind, stream, monkeypatch):
    """What one component is bounded by alone, on the way, is no bound for several."""
    monkeypatch.setattr(monitor, "PULSE", 0.0)
    X = next(tables(1))[1][:, :6]
    limit = {"memory_limit": 4 * 8 * 8 * 5} if stream else {}
    asked = {"n_components": 2, "n_nonzero_coefs": 2, "method_options": {"effort": 0}}
    seen = []
    source = in_blocks(X) if stream else X
    whole = sparse_pca(source, callback=seen.append, **KINDS[kind], **asked, **limit)
    heard = []
    stop = int(np.random.default_rng(len(kind)).integers(1, len(seen)))

    def stopping(progress):
        heard.append(progress)
        return len(heard) >= stop

    cut = sparse_pca(source, callback=stopping, **KINDS[kind], **asked, **limit)
    for told in (*seen, *heard, whole, cut):
        assert told.bound is None or told.bound >= whole.value * (1 - SLACK), told
        assert told.value is None or told.value <= whole.bound * (1 + SLACK), told


@pytest.mark.parametrize("stage", ["eliminate", "search"])
def test_a_run_that_is_stopped_among_other_features_keeps_the_gap_it_has_reported(stage):
    """No pass can read again what an earlier answer speaks of, and a later one proves less."""
    for seed in (0, 1):
        X = np.random.default_rng(seed).standard_t(2, (19, 10))
        heard = []

        def stop(progress, heard=heard):
            heard.append(progress)
            return progress.stage == stage and any(p.gap is not None for p in heard[:-1])

        result = sparse_pca(
            lambda X=X: iter([X[:10], X[10:]]),
            n_nonzero_coefs=3, scale=True, memory_limit=1, callback=stop,
        )  # fmt: skip
        reported = min(p.gap for p in heard if p.gap is not None)
        assert result.certificate.gap <= reported * (1 + SLACK) + SLACK
        assert verify(result, X).verdict == "proved"
        assert [p.stage for p in heard].count("eliminate") == 2


Claim = tuple[int, float, float]  # nonzeros of a component, value and bound


def claims(*results: Result) -> list[Claim]:
    return [
        (result.settings["n_nonzero_coefs"][0], result.value, result.bound) for result in results
    ]


def stopped_by_scikit_learn(X: Any, asked: dict[str, Any], stop: Any) -> list[Claim]:
    """Its callbacks hear that a step has ended; the figures are those of `callback`."""
    heard: list[bool] = []

    class Stopping:
        def setup(self, estimator, context): ...
        def on_fit_task_begin(self, estimator, context): ...
        def teardown(self, estimator, context): ...

        def on_fit_task_end(self, estimator, context, *, fitted_estimator=None):
            return any(heard[-1:])

    model = SparsePCA(callback=lambda progress: heard.append(bool(stop(progress))), **asked)
    return claims(model.set_callbacks(Stopping()).fit(X).result_)


def compared(X: Any, asked: dict[str, Any], stop: Any) -> list[Claim]:
    found = compare(X, methods=["tpower", "gpower"], callback=stop, **asked)
    return [(asked["n_nonzero_coefs"], row.value, found.bound) for row in found.rows]


def updated(X: Any, asked: dict[str, Any], stop: Any) -> list[Claim]:
    first = sparse_pca(X[:40], **asked)
    return claims(update(first, X[40:], X=X[:40], callback=stop).result)


def others(X: Any, asked: dict[str, Any], stop: Any) -> list[Claim]:
    try:
        return claims(alternatives(X, callback=stop, **asked).result)
    except KeyboardInterrupt:  # the rows of a stream are read again, after the answer
        assert callable(X)
        return []


SIZES = [1, 2, 3]
RUNS: dict[str, Any] = {
    "fit": lambda X, asked, stop: claims(sparse_pca(X, callback=stop, **asked)),
    "estimator": lambda X, asked, stop: claims(SparsePCA(callback=stop, **asked).fit(X).result_),
    "scikit-learn": stopped_by_scikit_learn,
    "path": lambda X, asked, stop: claims(
        *sparse_path(X, callback=stop, **{**asked, "n_nonzero_coefs": SIZES})
    ),
    "alternatives": others,
    "stability": lambda X, asked, stop: claims(
        stability(X, n_resamples=2, callback=stop, **asked).reference
    ),
    "compare": compared,
    "update": updated,
}


@pytest.mark.parametrize("stream", [False, True], ids=["held", "screened"])
@pytest.mark.parametrize("k", [1, 2])
@pytest.mark.parametrize("run", RUNS)
def test_a_run_that_is_stopped_on_a_reported_gap_was_told_the_truth(run, k, stream, monkeypatch):
    """The gap is one of those that a whole run reports, chosen at random; in between the callback
    is asked at every step."""
    if run == "scikit-learn":
        pytest.importorskip("sklearn.callback", reason="scikit-learn has callbacks from 1.9 on")
    monkeypatch.setattr(monitor, "PULSE", 0.0)
    if run == "update" and stream:
        pytest.skip("rows that come are summed as they come")
    for seed, X in tables(1):
        A = np.cov(X, rowvar=False, bias=True)
        optima = {s: truth(A, k, s) for s in SIZES}
        asked = {"n_components": k, "n_nonzero_coefs": 2, "random_state": seed}
        asked |= {"memory_limit": 4 * 8 * 8 * 5} if stream else {}
        source, rng = in_blocks(X) if stream else X, np.random.default_rng(seed)
        every: list[Progress] = []
        RUNS[run](source, asked, every.append)
        gaps = [progress.gap for progress in every if progress.gap is not None]
        for enough in rng.choice(gaps, 3):
            heard: list[Progress] = []
            size = [2]

            def stop(progress, heard=heard, size=size, optima=optima, enough=enough):
                if progress.stage == "path":
                    size[0] = int(progress.message.split()[0])
                heard.append(progress)
                optimum = optima[size[0]]
                assert progress.value is None or progress.value <= optimum * (1 + SLACK)
                assert progress.bound is None or progress.bound >= optimum * (1 - SLACK)
                return progress.gap is not None and progress.gap <= enough

            found = RUNS[run](source, asked, stop)
            assert heard[-1].gap is not None
            assert len(found) > 0 or run == "alternatives"
            for size_asked, value, bound in found:
                assert value <= optima[size_asked] * (1 + SLACK)
                assert bound >= optima[size_asked] * (1 - SLACK)


def test_figures_beside_alternatives_are_those_of_the_answer():
    for _, X in tables(2):
        seen = []
        near = alternatives(X, n_nonzero_coefs=3, callback=seen.append)
        optimum = truth(np.cov(X, rowvar=False, bias=True), 1, 3)
        assert near is not None
        assert all(p.bound is None or p.bound >= optimum * (1 - SLACK) for p in seen)


@pytest.mark.parametrize("question", [compare, stability, update])
def test_figures_of_a_question_are_those_of_all_rows(question):
    """Resamples, the rows before an update and other methods answer other questions."""
    asked = {"n_components": 2, "n_nonzero_coefs": 2, "method_options": {"effort": 0}}
    X = next(tables(1))[1][:, :7]
    optimum, seen = truth(np.cov(X, rowvar=False, bias=True), 2, 2), []
    if question is update:
        update(sparse_pca(X[:40], **asked), X[40:], X=X[:40], callback=seen.append)
    elif question is stability:
        stability(X, n_resamples=2, callback=seen.append, **asked)
    else:
        methods = ["auto", "gpower"]
        compare(X, methods=methods, n_components=2, n_nonzero_coefs=2, callback=seen.append)
    assert any(p.bound is not None for p in seen)
    assert all(p.bound is None or p.bound >= optimum * (1 - SLACK) for p in seen)
    assert all(p.value is None or p.value <= optimum * (1 + SLACK) for p in seen)


@pytest.mark.parametrize("stream", [False, True], ids=["held", "screened"])
def test_figures_of_a_path_speak_of_the_size_at_hand(stream):
    for _, X in tables(2):
        A = np.cov(X, rowvar=False, bias=True)
        optima = {s: truth(A, 1, s) for s in (1, 2, 3)}
        size = [0]

        def watch(progress, size=size, optima=optima):
            if progress.stage == "path":
                size[0] = int(progress.message.split()[0])
                return
            if progress.bound is not None:
                assert progress.bound >= optima[size[0]] * (1 - SLACK)
            if progress.value is not None:
                assert progress.value <= optima[size[0]] * (1 + SLACK)

        limit = {"memory_limit": 4 * 8 * 8 * 5} if stream else {}
        source = in_blocks(X) if stream else X
        sparse_path(source, n_nonzero_coefs=[1, 2, 3], callback=watch, **limit)


@pytest.mark.parametrize("certify", ["fast", "full"])
def test_callback_ends_a_run_between_its_news(certify, monkeypatch):
    """The callback is asked at every step here and stops at a random one of them."""
    monkeypatch.setattr(monitor, "PULSE", 0.0)
    for seed, X in tables(8):
        optimum = truth(np.cov(X, rowvar=False, bias=True), 2, 3)
        asked = {"n_components": 2, "n_nonzero_coefs": 3, "certify": certify}
        calls = []
        whole = sparse_pca(X, callback=calls.append, **asked)
        last = int(np.random.default_rng(seed).integers(1, len(calls)))
        heard = []

        def stop(progress, heard=heard, last=last):
            heard.append(progress)
            return len(heard) >= last

        result = sparse_pca(X, callback=stop, **asked)
        assert last <= len(heard) <= len(calls)
        assert result.value <= optimum * (1 + SLACK)
        assert min(result.bound, whole.bound) >= optimum * (1 - SLACK)


def test_callback_hears_the_last_figures_again_from_its_own_thread_only(monkeypatch):
    monkeypatch.setattr(monitor, "PULSE", 0.3)
    heard = []
    watched = monitor.Monitor(heard.append)
    watched.update("prove", value=1.0, bound=2.0, nodes=3)
    assert watched.stopped is None
    assert len(heard) == 1
    time.sleep(1.05 * monitor.PULSE)
    with ThreadPoolExecutor(1) as other:
        assert other.submit(lambda: watched.stopped).result() is None
    assert len(heard) == 1
    assert monitor.Quiet(watched).stopped is None
    first, again = heard
    assert again.seconds > first.seconds
    assert replace(again, seconds=first.seconds) == first
