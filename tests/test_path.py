"""A path of cardinalities gives what separate calls give, each with its certificate."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

import sparcipal.path
from sparcipal import Result, sparse_pca, verify
from sparcipal.bounds import strategy
from sparcipal.path import sparse_path
from sparcipal.problem.covariance import covariance_of
from sparcipal.problem.monitor import Progress
from sparcipal.problem.problem import Component, Options, Problem
from sparcipal.rounds import Answer
from tests.bounds.tree.test_search import PITPROPS
from tests.support.places import data_file


def test_path_proves_every_cardinality_of_pitprops():
    A = np.loadtxt(data_file("pitprops.csv"), delimiter=",")
    path = sparse_path(covariance=A, n_nonzero_coefs=range(2, 13))
    assert path.n_nonzero_coefs.tolist() == list(range(2, 13))
    np.testing.assert_allclose(path.values, [PITPROPS[s] for s in range(2, 13)], atol=2e-10)
    assert (path.gaps <= 1e-6).all()
    assert (path.bounds >= path.values).all()
    assert all(verify(result, covariance=A) for result in path)


@pytest.mark.parametrize("nonnegative", [False, True])
def test_path_equals_separate_calls(nonnegative):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 25)) @ rng.standard_normal((25, 25))
    X[:, 4] = 1.0
    path = sparse_path(X, n_nonzero_coefs=[9, 2, 5], nonnegative=nonnegative)
    assert [r.settings["n_nonzero_coefs"] for r in path] == [[2], [5], [9]]
    for result in path:
        size = result.settings["n_nonzero_coefs"][0]
        alone = sparse_pca(X, n_nonzero_coefs=size, nonnegative=nonnegative)
        assert result.value == pytest.approx(alone.value, rel=2e-6)
        assert verify(result, X)


def test_path_refuses_bad_sizes():
    with pytest.raises(ValueError, match=r"has 5, more than n_features=3; pass numbers between"):
        sparse_path(covariance=np.eye(3), n_nonzero_coefs=[2, 4, 5])
    with pytest.raises(ValueError, match="n_nonzero_coefs"):
        sparse_path(covariance=np.eye(3), n_nonzero_coefs=[0])
    with pytest.raises(ValueError, match="n_nonzero_coefs is empty"):
        sparse_path(covariance=np.eye(3), n_nonzero_coefs=[])


@pytest.mark.parametrize(("p", "last"), [(3, 3), (40, 30)])
def test_path_chooses_sizes_by_default(p, last):
    path = sparse_path(covariance=np.diag(np.arange(1.0, p + 1)))
    assert path.n_nonzero_coefs.tolist() == list(range(1, last + 1))
    np.testing.assert_allclose(path.values, p)


def test_a_proof_among_fewer_features_is_no_start_when_constant_ones_join(monkeypatch):
    """Without them the tree is on all features, with them on a core."""
    monkeypatch.setattr(strategy, "WHOLE", 2)
    X = np.array([[0.0, 955.0, 1026.0], [0.0, 1032.0, 944.0]])
    asked = {"n_nonzero_coefs": [1, 3], "nonnegative": True, "certify": "full", "tol": 0.0}
    path = sparse_path(X, scale=True, **asked)
    assert path.values.tolist() == pytest.approx([1.0, 1.0])
    assert all(verify(result, X) for result in path)


def test_constant_features_join_when_nothing_else_is_left():
    X = np.zeros((20, 6))
    X[:, [1, 4]] = np.random.default_rng(3).standard_normal((20, 2))
    path = sparse_path(X)
    assert (path.gaps <= 1e-6).all()
    assert all(verify(result, X) for result in path)
    assert path.values[1:] == pytest.approx(path.values[1])


def test_a_path_with_cores_is_that_of_separate_calls():
    """The core and its certificate are handed from one cardinality to the next."""
    X = np.random.default_rng(4).standard_normal((40, 450)) * np.geomspace(4.0, 0.01, 450)
    path = sparse_path(X, n_nonzero_coefs=[2, 3, 4])
    assert (path.gaps <= 1e-6).all()
    for result in path:
        alone = sparse_pca(X, n_nonzero_coefs=result.settings["n_nonzero_coefs"][0])
        assert result.value == pytest.approx(alone.value, rel=2e-6)
        assert verify(result, X)


def test_an_interrupted_path_is_complete_and_valid():
    rng = np.random.default_rng(5)
    A = np.cov(rng.standard_normal((60, 20)), rowvar=False)
    calls = iter(range(10**6))
    path = sparse_path(
        covariance=A, n_nonzero_coefs=range(2, 7), callback=lambda progress: next(calls) == 12
    )
    assert len(path) == 5
    for result in path:
        alone = sparse_pca(covariance=A, n_nonzero_coefs=result.settings["n_nonzero_coefs"][0])
        assert result.value <= alone.bound * (1 + 1e-12)
        assert result.bound >= alone.value * (1 - 1e-12)
        assert verify(result, covariance=A)


def words(n=300, p=400):
    rng = np.random.default_rng(0)
    X = rng.poisson(2 / np.arange(1, p + 1), size=(n, p))
    X[:, :5] += rng.poisson(8.0, size=(n, 1))
    return X


def counted(X, passes):
    """Blocks of rows, and how often somebody asked for them."""

    def blocks():
        passes.append(1)
        return iter([X[:100], X[100:]])

    return blocks


def test_a_path_in_passes_is_about_all_features():
    X, passes = words(), []
    path = sparse_path(counted(X, passes), n_nonzero_coefs=[1, 3, 5], memory_limit=100_000)
    whole = sparse_path(X, n_nonzero_coefs=[1, 3, 5])
    assert path[0].n_features == 400
    # once to see the columns and how large they are, once for the variances, once for the products
    assert len(passes) <= 4
    for result, other in zip(path, whole):
        assert result.certificate.screening["bound_holds"]
        assert result.value == pytest.approx(other.value, rel=1e-9)
        assert np.array_equal(result.supports[0], other.supports[0])
        assert verify(result, X)
    assert (path.gaps <= 1e-6).all()


def test_a_path_keeps_more_features_where_it_must(monkeypatch):
    from sparcipal.data import passes as stream

    monkeypatch.setattr(stream, "FIRST", 8)
    X = words()
    path = sparse_path(lambda: iter([X]), n_nonzero_coefs=[2, 5], memory_limit=200_000)
    kept = [result.certificate.screening["kept"] for result in path]
    assert kept[0] >= 20  # four times as many as the last one needs
    assert kept == sorted(kept)
    harder = sparse_path(
        lambda: iter([X]), n_nonzero_coefs=[2, 5, 7], memory_limit=200_000, certify=False
    )
    assert harder[2].certificate.screening["kept"] > kept[0]
    for result in [*path, *harder]:
        assert verify(result, X)


def test_a_path_of_sums_from_elsewhere_is_proved():
    from sparcipal import Moments, Screened

    X = words()
    moments = Moments(400).add(X)
    screened = Screened.of(moments, moments.gram(moments.screen(30)).add(X))
    path = sparse_path(covariance=screened, n_nonzero_coefs=[2, 5])
    assert [result.status.value for result in path] == ["optimal"] * 2
    assert all(verify(result, X) for result in path)
    with pytest.raises(ValueError, match=r"30 kept features, but the components need 31"):
        sparse_path(covariance=screened, n_nonzero_coefs=[31])


rng = np.random.default_rng(0)


X = rng.standard_normal((30, 5))


def test_path_keeps_its_results_when_a_callback_stops_it():
    """The callback stops it during the second size."""
    told: list[str] = []

    def stop(progress: Progress) -> bool:
        told.append(progress.stage)
        return len(told) > 6

    path = sparse_path(X, n_nonzero_coefs=[1, 2, 3, 4], callback=stop)
    assert 1 <= len(path.results) <= 4
    for result in path.results:
        assert result.value <= result.bound * (1 + 1e-12)


TABLE = np.random.default_rng(0).standard_normal((20, 5))


def test_a_path_lists_no_bound_twice_where_proofs_stay_open():
    X = np.random.default_rng(0).normal(size=(30, 40))
    for result in sparse_path(X, n_nonzero_coefs=[5, 6], max_nodes=1):
        names = [bound.name for bound in result.certificate.bounds]
        assert result.certificate.gap > 1e-3
        assert len(set(names)) == len(names)


def test_results_of_a_nonnegative_path_verify():
    path = sparse_path(TABLE, n_nonzero_coefs=[1, 2, 4], nonnegative=True, certify=False)
    for result in path.results:
        assert verify(Result.from_json(result.to_json()), TABLE)


def test_path_draws_itself_when_matplotlib_is_there():
    X = np.random.default_rng(0).standard_normal((20, 5))
    pytest.importorskip("matplotlib")
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    drawn = sparse_path(X, n_components=2, n_nonzero_coefs=[1, 2], time_limit=60.0).plot()
    assert len(drawn.results) == 2
    assert drawn.ax_.get_xlabel() == "nonzeros allowed in each of 2 components"
    assert all(tick == round(tick) for tick in drawn.ax_.get_xticks())
    plt.close("all")


def test_path_of_several_components_is_never_below_separate_calls():
    rng = np.random.default_rng(6)
    X = rng.standard_normal((50, 15)) @ rng.standard_normal((15, 15))
    path = sparse_path(X, n_components=2, n_nonzero_coefs=[2, 4])
    for s, result in zip((2, 4), path):
        alone = sparse_pca(X, n_components=2, n_nonzero_coefs=s)
        assert result.settings["n_nonzero_coefs"] == [s, s]
        assert result.value >= alone.value * (1 - 1e-6)
        assert verify(result, X)


def test_path_of_several_components_refuses_sizes_without_room():
    with pytest.raises(ValueError, match=r"more than n_features // n_components=3; pass numbers"):
        sparse_path(covariance=np.eye(6), n_components=2, n_nonzero_coefs=[4])
    with pytest.raises(ValueError, match="n_components=7 components cannot have disjoint"):
        sparse_path(covariance=np.eye(6), n_components=7)


@pytest.mark.parametrize(
    "kind", [{"supports": "orthogonal"}, {"objective": "adjusted"}, {"supports": "common"}]
)
def test_path_of_other_kinds_is_never_below_separate_calls(kind):
    X = np.random.default_rng(0).standard_normal((40, 6)) * np.linspace(1, 2, 6)
    asked = {"n_components": 2, "certify": False, **kind}
    for result in sparse_path(X, n_nonzero_coefs=[2, 3], **asked):
        s = result.settings["n_nonzero_coefs"][0]
        alone = sparse_pca(X, n_nonzero_coefs=s, **asked)
        assert result.value >= alone.value * (1 - 1e-6)
        assert result.settings["supports"] == alone.settings["supports"]
        assert result.settings["objective"] == alone.settings["objective"]
        assert verify(result, X)


def test_path_of_a_common_set_begins_with_as_many_features_as_components():
    X = np.random.default_rng(0).standard_normal((40, 5))
    asked = {"n_components": 2, "supports": "common", "certify": False}
    assert sparse_path(X, **asked).n_nonzero_coefs.tolist() == [2, 3, 4, 5]
    with pytest.raises(ValueError, match="need at least 2 nonzeros"):
        sparse_path(X, n_nonzero_coefs=[1, 2], **asked)


@pytest.mark.parametrize(("left", "proofs"), [(0.0, 1), (0.02, 1), (0.03, 0)])
def test_a_proof_that_left_much_open_serves_longer(monkeypatch, left, proofs):
    cov = covariance_of(np.eye(20) + 0.3)
    asked, every = [], np.arange(20)

    def solve(whole, method, keywords, options, certify, again=None):
        asked.append(certify)
        return Answer((), SimpleNamespace(gap=0.04 if certify is False else 0.01), None, every)

    monkeypatch.setattr(sparcipal.path, "solve", solve)
    first = Component(np.arange(4), np.full(4, 0.5))
    before = Answer((first,), SimpleNamespace(bounds=()), None, every, left=left)
    monkeypatch.setattr(sparcipal.path, "_scaled", lambda *args: ())
    answer = sparcipal.path._scaled_step(Problem(cov, (5,)), before, Options(), thorough=False)
    assert asked.count("fast") == proofs
    assert answer.left == (0.01 if proofs else left)
