"""What a run promises besides its numbers: determinism, limits, interruption, progress."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.sparse as sp

from sparcipal import SparsePCA, Status, sparse_pca, verify
from sparcipal.bounds.proved import Proved
from sparcipal.fit import SEARCHING, searched_on
from sparcipal.problem.covariance import covariance_of
from sparcipal.problem.monitor import Meter
from sparcipal.problem.problem import Component, Options, Problem
from sparcipal.problem.result import Bound
from sparcipal.search.method import Found, Method
from sparcipal.verdict import _percent
from tests.support.nearly import PASSES, falling, in_blocks

LAZY = {"effort": 0}


def spiked(p=40, n=60, seed=0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p))
    X[:, :5] += 2 * rng.standard_normal((n, 1))
    X[:, 5:9] -= 1.5 * rng.standard_normal((n, 1))
    return X


@pytest.mark.parametrize("options", [{}, {"nonnegative": True}, {"supports": "free"}])
def test_answers_are_identical_for_every_n_jobs(options):
    X = spiked(p=8 if "supports" in options else 20)
    asked = {"n_components": 2, "n_nonzero_coefs": 4, "method_options": {"effort": 1}, **options}
    runs = [sparse_pca(X, n_jobs=n_jobs, **asked) for n_jobs in (None, 2)]
    documents = {run.to_json() for run in runs}
    assert len(documents) == 1


def test_fit_gives_the_same_answer_for_the_same_seed():
    X = spiked()
    first = sparse_pca(X, n_components=2, n_nonzero_coefs=5, random_state=3)
    again = sparse_pca(X, n_components=2, n_nonzero_coefs=5, random_state=3)
    assert first.to_json() == again.to_json()


def test_fit_takes_generators_as_random_state():
    X = spiked()
    for state in (np.random.default_rng(1), np.random.RandomState(1), None):
        assert sparse_pca(X, n_nonzero_coefs=5, random_state=state).status == "optimal"


def test_callback_sees_the_gap_close_and_can_stop():
    seen = []
    result = sparse_pca(spiked(), n_nonzero_coefs=8, callback=seen.append)
    assert seen
    assert seen[-1].value == pytest.approx(result.value)
    assert all(a.seconds <= b.seconds for a, b in itertools.pairwise(seen))
    bounds = [s.bound for s in seen if s.bound is not None]
    assert bounds == sorted(bounds, reverse=True)

    noise = np.random.default_rng(0).standard_normal((60, 60))
    stopped = sparse_pca(noise, n_nonzero_coefs=15, callback=lambda progress: True)
    assert stopped.status is Status.INTERRUPTED
    assert verify(stopped, noise)


def test_fit_proves_a_gap_when_time_runs_out():
    noise = np.random.default_rng(0).standard_normal((80, 80))
    result = sparse_pca(noise, n_nonzero_coefs=20, time_limit=1e-3)
    assert result.status is Status.TIME_LIMIT
    assert result.bound > result.value
    assert "raise time_limit" in result.certificate.message
    assert verify(result, noise)


def test_fit_proves_a_gap_when_nodes_run_out():
    noise = np.random.default_rng(0).standard_normal((40, 40))
    result = sparse_pca(noise, n_nonzero_coefs=10, max_nodes=1, certify="full")
    assert result.status is Status.NODE_LIMIT
    assert "raise max_nodes" in result.certificate.message
    assert verify(result, noise)


def test_interrupt_once_gives_the_best_answer():
    import os
    import signal

    noise = np.random.default_rng(0).standard_normal((60, 60))

    def press(progress):
        if progress.stage == "search":
            os.kill(os.getpid(), signal.SIGINT)

    before = signal.getsignal(signal.SIGINT)
    result = sparse_pca(noise, n_nonzero_coefs=15, callback=press)
    assert result.status is Status.INTERRUPTED
    assert signal.getsignal(signal.SIGINT) is before


def test_constant_features_are_set_aside_and_counted():
    X = spiked(p=20)
    X[:, 4] = 3.0
    X[:, 11] = 0.0
    result = sparse_pca(X, n_components=2, n_nonzero_coefs=3)
    assert result.certificate.eliminated >= 2
    assert not {4, 11} & {int(i) for s in result.supports for i in s}
    assert verify(result, X)


def test_more_nonzeros_than_varying_features_are_answered():
    X = np.zeros((10, 6))
    X[:, 2] = np.arange(10)
    result = sparse_pca(X, n_components=3, n_nonzero_coefs=2)
    assert result.value == pytest.approx(X[:, 2].var())
    assert result.status is Status.OPTIMAL
    assert [s.size >= 1 for s in result.supports] == [True] * 3
    assert verify(result, X)


def test_a_method_for_comparison_keeps_its_own_answer():
    A = np.diag([3.0, 3.0, 3.0, 3.0]) + 0.0
    A[0, 1] = A[1, 0] = 1.0
    A[2, 3] = A[3, 2] = 2.9
    own = sparse_pca(covariance=A, n_nonzero_coefs=2, method="threshold")
    best = sparse_pca(covariance=A, n_nonzero_coefs=2)
    assert own.value <= best.value == pytest.approx(5.9)
    assert own.bound >= best.value * (1 - 1e-12)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_a_missing_entry_in_a_later_block_is_placed_in_the_table(form):
    X = np.ones((7, 3))
    X[5, 1] = np.nan
    place = r"1 NaN, the first in row 5 \(counted from 0\), column 1, X\[5, 1\]"
    with pytest.raises(ValueError, match=place):
        sparse_pca(lambda: (form(X[i : i + 4]) for i in (0, 4)), n_nonzero_coefs=2)


def test_a_bound_below_the_value_is_an_error_not_an_answer():
    from sparcipal.bounds.proved import Proved
    from sparcipal.problem.covariance import covariance_of
    from sparcipal.problem.monitor import Monitor
    from sparcipal.problem.problem import Component, Options, Problem
    from sparcipal.problem.result import Bound
    from sparcipal.search.method import Found
    from sparcipal.verdict import certificate_of

    problem = Problem(covariance_of(np.diag([1.0, 0.5])), (1,))
    best = (Component(np.array([0]), np.ones(1)),)
    options = Options(rank=None, seed=0, n_jobs=1, monitor=Monitor(), tol=1e-6, max_nodes=None)
    found = Found(best, 1)
    for value, right in ((1.0 - 1e-16, True), (1.0 - 1e-12, False)):
        proved = Proved(best, (Bound("trace", value, {}),))
        if right:
            assert certificate_of(problem, proved, options, "fast", found).bound == 1.0
        else:
            with pytest.raises(ArithmeticError, match=r"below the value 1 by more than rounding"):
                certificate_of(problem, proved, options, "fast", found)


X = np.random.default_rng(0).standard_normal((20, 5))


def test_verdict_rounds_percents_up():
    assert [_percent(f) for f in (0.0, np.inf, 0.0123401)] == ["0 %", "inf %", "1.24 %"]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_nonzero_coefs": {"total": 3}, "supports": "free"}, "needs supports='disjoint'"),
        ({"n_nonzero_coefs": {"total": 3}, "method": "em"}, "needs method="),
        ({"n_components": 6, "supports": "free"}, "there are no more directions"),
        ({"method": "dspca", "method_options": {"tol": "a"}}, "tol"),
    ],
)
def test_fit_refuses_questions_without_an_answer(settings, message):
    with pytest.raises((ValueError, TypeError), match=message):
        sparse_pca(X, **{"n_components": 2, "n_nonzero_coefs": 2, **settings})


def test_a_longer_proof_improves_overlapping_supports():
    rng = np.random.default_rng(0)
    table = rng.standard_normal((60, 12)) @ rng.standard_normal((12, 12))
    asked = {"n_components": 2, "n_nonzero_coefs": 3, "supports": "free", "method_options": LAZY}
    fast, full = (sparse_pca(table, certify=c, **asked) for c in ("fast", "full"))
    assert full.bound <= fast.bound
    for answer in (fast, full):  # hardly narrower: another remedy is named
        assert "ask for fewer nonzeros or components" in answer.certificate.message
    claimed = sparse_pca(table, certify=False, **asked)
    assert claimed.bound > fast.bound
    assert "pass certify='fast'" in claimed.certificate.message
    for other in (
        {"supports": "disjoint", "objective": "adjusted"},
        {"supports": "disjoint", "uncorrelated": True},
        {"supports": "disjoint", "n_nonzero_coefs": {"total": 6}},
    ):  # another question is no remedy, and a longer proof finds hardly more
        message = sparse_pca(table, **{**asked, **other, "tol": 0.0}).certificate.message
        assert "ask for fewer nonzeros or components" in message
    crossing = {**asked, "supports": "orthogonal", "tol": 0.0}
    assert "pass certify='full'" in sparse_pca(table, **crossing).certificate.message


@pytest.mark.parametrize(
    ("A", "k", "s"),
    [(np.ones((31, 31)), 2, 4), (np.eye(20) * 0.5 + 0.5, 4, 3), (np.eye(24), 3, 2)],
)
def test_fit_proves_the_optimum_when_all_features_tie(A, k, s):
    result = sparse_pca(covariance=A, n_components=k, n_nonzero_coefs=s)
    assert result.status is Status.OPTIMAL
    assert verify(result, covariance=A)


@pytest.mark.parametrize("copies", [6, 13, 20])
def test_fit_verifies_when_all_columns_are_copies_of_one(copies):
    X = np.repeat(np.random.default_rng(0).standard_normal((30, 1)), copies, axis=1)
    result = sparse_pca(X, n_components=2, n_nonzero_coefs=3)
    assert result.value == pytest.approx(6 * X[:, 0].var())
    assert verify(result, X)


def test_init_is_where_the_search_begins():
    """Without effort the search only improves its starts: a good one is not lost."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 30)) @ rng.standard_normal((30, 30))
    best = sparse_pca(X, n_components=2, n_nonzero_coefs=4)
    lazy = {"method_options": LAZY, "certify": False, "n_nonzero_coefs": 4}
    known = [support.tolist() for support in best.supports]
    again = sparse_pca(X, n_components=2, init=known, **lazy)
    assert again.value >= best.value * (1 - 1e-12)
    names = [f"f{i}" for i in range(30)]
    named = [[names[i] for i in support] for support in known]
    again = sparse_pca(X, n_components=2, init=named, feature_names=names, **lazy)
    assert again.value >= best.value * (1 - 1e-12)
    free = sparse_pca(X, n_components=2, init=known, supports="free", **lazy)
    assert free.value > 0


@pytest.mark.parametrize(
    ("init", "message"),
    [
        ([[0], [1, 99, -1]], r"init\[1\]: no feature 99, -1; numbers are 0 to 5"),
        ([["a"], [1]], "no feature 'a'.*the features have no names"),
        ([[0, 0], [1]], r"init\[0\] names 0 more than once"),
        ([[0], [0]], "init uses a feature in two components"),
        ([[0, 1, 2], [3]], r"init\[0\] has 3 features, but component 1 may use 2"),
        ([[0]], "init has 1 supports for n_components=2"),
    ],
)
def test_init_that_does_not_fit_is_refused(init, message):
    with pytest.raises(ValueError, match=message):
        sparse_pca(covariance=np.eye(6), n_components=2, n_nonzero_coefs=2, init=init)


def test_init_of_loadings_is_answered_by_what_is_wanted():
    for loadings in (np.eye(2, 6), [[0.5, 0.0, 0.0, 0.5, 0.0, 0.0], [0.0] * 6]):
        with pytest.raises(TypeError, match=r"number, as np.flatnonzero of loadings"):
            sparse_pca(covariance=np.eye(6), n_components=2, n_nonzero_coefs=2, init=loadings)


def test_init_needs_a_method_that_begins_with_it():
    with pytest.raises(ValueError, match="init needs method='auto', got 'tpower'"):
        sparse_pca(covariance=np.eye(4), n_nonzero_coefs=2, method="tpower", init=[0])


def test_an_unknown_keyword_is_answered_by_the_right_one():
    for call, given in ((sparse_pca, {"covariance": np.eye(3)}), (SparsePCA, {})):
        with pytest.raises(TypeError, match=r"'alpha'; pass n_nonzero_coefs"):
            call(alpha=1.0, **given)
        with pytest.raises(TypeError, match="'n_compnents'; did you mean 'n_components'"):
            call(n_compnents=2, **given)
    with pytest.raises(TypeError, match="a share of the variance does not say how many"):
        sparse_pca(covariance=np.eye(3), n_components=0.95)


def test_better_answer_of_an_earlier_round_is_found_again_beside_excluded_features():
    """What fits the memory is counted with the excluded feature, as it was before."""
    case = falling(1125109)
    result = sparse_pca(in_blocks(case.X), **case.keywords, memory_limit=PASSES)
    assert verify(result, in_blocks(case.X))


@pytest.mark.parametrize(("work", "found"), [(0.4, 1), (0.6, 3)])
def test_the_default_searches_on_only_while_its_account_holds_another_search(work, found):
    problem = Problem(covariance_of(np.diag([2.0, 1.0, 1.0, 0.5])), (1, 1))

    def run(problem, options):
        """Return two features, the best two with seed 1."""
        options.meter.spend(work * SEARCHING)
        second = 1 if options.seed == 1 else 3
        return Found((Component.even(np.array([0])), Component.even(np.array([second]))))

    method = Method("auto", "", run)
    options = Options(meter=Meter(SEARCHING))
    proved = Proved(run(problem, options).components, (Bound("trace", 4.5),))
    better = searched_on(problem, proved, method, {}, options, "fast")
    assert better.components[1].support == [found]


@pytest.mark.parametrize("screened", [False, True])
def test_the_default_does_not_search_on_for_the_gap_of_a_rough_proof(screened, monkeypatch):
    """Where features were screened out, the gap is what the proof leaves, not the search."""
    again = []
    monkeypatch.setattr(
        "sparcipal.fit.searched_on", lambda problem, proved, *rest: again.append(1) or proved
    )
    X = np.random.default_rng(0).standard_normal((60, 30)) * np.linspace(3, 1, 30)
    limit = {"memory_limit": 8 * 5 * 12**2} if screened else {}
    asked = {"n_components": 2, "n_nonzero_coefs": 3, "method_options": {"effort": 0}}
    result = sparse_pca(lambda: iter([X]), **asked, **limit)
    assert bool(result.certificate.screening) == screened
    assert bool(again) != screened
