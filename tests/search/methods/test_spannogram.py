"""The spannogram as a method: its references, its certificates, its guarantees."""

from __future__ import annotations

import importlib
import itertools

import numpy as np
import pytest

from sparcipal import sparse_pca, verify
from sparcipal.bounds.lowrank.sphere import sphere_search
from sparcipal.problem.covariance import covariance_of
from sparcipal.problem.result import Result
from sparcipal.problem.sketch import spectrum
from sparcipal.search import spannogram_enumeration as enumeration
from sparcipal.search.methods import spannogram as method
from tests.bounds.test_sphere import adversarial, brute_force
from tests.support.places import data_file
from tests.support.replay import recheck
from tests.support.spannogram import best_direction, spannogram

METHOD = {"method": "spannogram", "n_components": 1}


def optimum_of(A, s, nonnegative=False):
    best = 0.0
    for size in range(1, s + 1):
        for support in map(list, itertools.combinations(range(len(A)), size)):
            w, Q = np.linalg.eigh(A[np.ix_(support, support)])
            lead = Q[:, -1]
            if not nonnegative or (lead >= -1e-9).all() or (lead <= 1e-9).all():
                best = max(best, float(w[-1]))
    return best


# --- the papers' enumerations ---


@pytest.mark.parametrize("nonnegative", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_enumeration_agrees_with_brute_force_and_cones(seed, nonnegative):
    rng = np.random.default_rng(100 + seed)
    for _ in range(50):
        V, s = adversarial(rng)
        optimum = brute_force(V, s, nonnegative)
        listed = spannogram(V, s, nonnegative=nonnegative)
        cones = sphere_search(V, s, nonnegative=nonnegative)
        assert listed.value == pytest.approx(optimum, rel=1e-8, abs=1e-280)
        assert listed.value <= cones.bound * (1 + 1e-12)
        assert cones.value == pytest.approx(optimum, rel=1e-9, abs=1e-280)


def test_matrices_without_negative_entries_need_fewer_patterns():
    rng = np.random.default_rng(7)
    for _ in range(40):
        p, r = int(rng.integers(3, 8)), int(rng.integers(2, 4))
        V = rng.uniform(0, 1, (p, r))  # V V' >= 0
        s = int(rng.integers(1, p))
        full = spannogram(V, s)
        fewer = spannogram(V, s, same_sign=True)
        assert fewer.value == pytest.approx(full.value, rel=1e-9)


def test_crossings_are_where_curves_meet():
    W = np.random.default_rng(0).standard_normal((6, 2))
    for nonnegative, count in ((False, 2 * 15), (True, 15 + 6)):
        angles = enumeration.crossings(W, nonnegative)
        assert len(angles) == count
        assert (np.diff(angles) > 0).all()
        for f in angles:
            height = W @ [np.sin(f), np.cos(f)]
            height = np.append(height, 0.0) if nonnegative else np.abs(height)
            assert np.diff(np.sort(height)).min() < 1e-12


def test_best_direction_is_feasible_and_never_below_samples():
    rng = np.random.default_rng(1)
    for _ in range(60):
        m, r = int(rng.integers(1, 6)), int(rng.integers(1, 4))
        R = rng.standard_normal((m, r))
        c = best_direction(R)
        assert (R @ c >= -1e-9).all()
        value = ((R @ c) ** 2).sum()
        points = rng.standard_normal((4000, r))
        points /= np.linalg.norm(points, axis=1, keepdims=True)
        heights = points @ R.T
        feasible = (heights >= 0).all(axis=1)
        assert value >= (heights[feasible] ** 2).sum(axis=1).max(initial=0.0) - 1e-9


def test_random_net_keeps_its_promise():
    rng = np.random.default_rng(2)
    misses = 0
    for seed in range(60):
        V = rng.standard_normal((40, 3))
        best = sphere_search(V, 5, nonnegative=True).value
        net = enumeration.random_net(V, 5, 0.1, np.random.default_rng(seed))
        assert net.value <= best * (1 + 1e-6)
        misses += net.value < 0.9 * best
    assert misses <= 6  # at most 1 in 40 each; more than 6 of 60 happens once in 10^3
    assert enumeration.net_size(40, 3, 0.1) == net.samples
    assert enumeration.net_size(40, 1, 0.1) == 1


@pytest.mark.parametrize("nonnegative", [False, True])
def test_elimination_keeps_every_optimal_row(nonnegative):
    rng = np.random.default_rng(3)
    dropped = 0
    for _ in range(60):
        V, s = adversarial(rng)
        found = sphere_search(V, s, nonnegative=nonnegative)
        kept = enumeration.eliminate_rows(V, s, found.value, nonnegative)
        dropped += len(V) - kept.size
        assert brute_force(V[kept], s, nonnegative) == pytest.approx(
            found.value, rel=1e-9, abs=1e-280
        )
        if found.value > 0:
            assert np.isin(found.support, kept).all()
    assert dropped > 20


# --- the method ---


@pytest.mark.parametrize("nonnegative", [False, True])
def test_certificates_hold_and_are_confirmed(nonnegative):
    rng = np.random.default_rng(4)
    for trial in range(40):
        p = int(rng.integers(2, 9))
        s, rank = int(rng.integers(1, p + 1)), int(rng.integers(1, 6))
        X = rng.standard_normal((int(rng.integers(2, 12)), p))
        if trial % 4 == 1:
            X[:, -1] = -X[:, 0]
        if trial % 4 == 2:
            X = np.round(X)
        X *= 10.0 ** int(rng.integers(-12, 13))
        if np.ptp(X, axis=0).max() == 0:
            continue
        A = np.cov(X.T, bias=True).reshape(p, p)
        result = sparse_pca(
            X, n_nonzero_coefs=s, rank=rank, nonnegative=nonnegative, certify=False, **METHOD
        )
        optimum = optimum_of(A, s, nonnegative)
        assert result.value <= optimum * (1 + 1e-9)
        for bound in result.certificate.bounds:
            assert bound.value >= optimum * (1 - 1e-12)
        assert any(bound.name == "lowrank" for bound in result.certificate.bounds)
        assert verify(result, X), verify(result, X).reason
        if rank >= min(p, len(X) - 1):
            assert result.value >= optimum * (1 - 1e-5)


def test_rank_one_and_two_are_exact_on_their_sketch():
    rng = np.random.default_rng(5)
    for rank in (1, 2):
        W = rng.standard_normal((15, rank))
        A = W @ W.T
        for nonnegative in (False, True):
            result = sparse_pca(
                covariance=A, n_nonzero_coefs=4, rank=rank, nonnegative=nonnegative, **METHOD
            )
            assert result.value == pytest.approx(optimum_of(A, 4, nonnegative), rel=1e-9)
            assert result.status.value == "optimal"


def test_sigma_identity_plus_low_rank_is_solved_exactly():
    rng = np.random.default_rng(6)
    W = rng.standard_normal((14, 2))
    A = 3 * np.eye(14) + W @ W.T
    for nonnegative in (False, True):
        result = sparse_pca(
            covariance=A,
            n_nonzero_coefs=3,
            rank=5,
            nonnegative=nonnegative,
            certify=False,
            **METHOD,
        )
        assert result.value == pytest.approx(optimum_of(A, 3, nonnegative), rel=1e-9)
        assert result.certificate.proved_by == "lowrank"
        assert result.status.value == "optimal"
        assert "sigma I + a matrix of rank 2" in result.note


def test_rank_beyond_the_data_is_reduced_and_said_so():
    X = np.random.default_rng(0).standard_normal((4, 30))
    result = sparse_pca(X, n_nonzero_coefs=5, rank=7, certify=False, **METHOD)
    assert "rank=7 reduced to 3" in result.note
    assert result.status.value == "optimal"
    assert verify(result, X)


def test_more_rank_than_budget_ends_with_an_honest_bound():
    X = np.random.default_rng(0).standard_normal((300, 60))
    result = sparse_pca(
        X, n_nonzero_coefs=8, rank=8, certify=False, method_options={"max_cones": 500}, **METHOD
    )
    assert "not finished" in result.note
    assert "rank=7" in result.note
    assert verify(result, X)


def test_spannogram_answers_for_several_components_and_free_supports():
    X = np.random.default_rng(1).standard_normal((50, 12))
    for supports in ("disjoint", "free"):
        result = sparse_pca(
            X, n_components=3, n_nonzero_coefs=4, method="spannogram", supports=supports, rank=3
        )
        assert len(result.supports) == 3
        assert verify(result, X)


@pytest.mark.parametrize("kind", ["eigen", "randomized", "gaussian"])
def test_spannogram_answers_on_every_sketch(kind):
    X = np.random.default_rng(2).standard_normal((40, 25)) * np.geomspace(5, 0.1, 25)
    result = sparse_pca(
        X, n_nonzero_coefs=4, rank=3, certify=False, method_options={"sketch": kind}, **METHOD
    )
    assert result.info["sketch"] == kind
    assert verify(result, X)


def test_random_net_tells_its_samples_and_probability():
    X = np.random.default_rng(3).standard_normal((40, 25)) * np.geomspace(5, 0.1, 25)
    settings = {"algorithm": "net", "eps": 0.1}
    result = sparse_pca(
        X, n_nonzero_coefs=4, rank=3, nonnegative=True, method_options=settings, **METHOD
    )
    assert result.info["samples"] == enumeration.net_size(25, 3, 0.1)
    assert result.info["probability"] == pytest.approx(1 - 1 / 25)
    assert verify(result, X)


def test_spannogram_keeps_the_guarantees_of_the_papers():
    rng = np.random.default_rng(8)
    W = rng.standard_normal((12, 12)) * np.geomspace(1, 0.05, 12)
    A = W @ W.T
    w = np.linalg.eigvalsh(A)[::-1]
    for nonnegative in (False, True):
        result = sparse_pca(
            covariance=A,
            n_nonzero_coefs=6,
            rank=4,
            nonnegative=nonnegative,
            certify=False,
            **METHOD,
        )
        (promise,) = result.certificate.guarantees.values()
        if nonnegative:
            expected = max(6 / 24, 1 / (1 + 2 * 2 * w[4] / w[0]))
        else:
            expected = 1 - min(2 * w[4] / w[0], w[4] / result.value)
        assert expected * (1 - 1e-5) <= promise < expected, "less the tolerance of the search"
        assert result.value >= promise * optimum_of(A, 6, nonnegative) * (1 - 1e-9)
        # The shifted majorant is at least as good as the papers' bound after the run.
        assert result.bound <= result.info["rank_bound"] * (1 + 1e-9)


def test_promises_are_made_only_where_the_theorem_applies():
    """Not for deflation, other algorithms and sketches, a search that was cut, dropped features."""
    rng = np.random.default_rng(3)
    X = rng.standard_normal((40, 3)) @ rng.standard_normal((3, 60))
    X += 0.05 * rng.standard_normal((40, 60))

    def promised(**more):
        asked = {"n_nonzero_coefs": 4, "rank": 3, "certify": False, **METHOD, **more}
        return sparse_pca(X, **asked).certificate.guarantees

    assert promised()
    assert not promised(n_components=2)
    assert not promised(n_components=2, supports="free")
    assert not promised(method_options={"algorithm": "net", "eps": 0.1})
    for sketch in ("randomized", "gaussian"):
        assert not promised(method_options={"sketch": sketch})
    assert not promised(method_options={"max_cones": 1})
    assert not promised(memory_limit=4_000)


@pytest.mark.parametrize("nonnegative", [False, True])
def test_the_bound_alone_holds_for_several_components(nonnegative):
    from sparcipal.bounds.lowrank.bound import low_rank_bound
    from sparcipal.problem.covariance import covariance_of
    from sparcipal.problem.problem import Options, Problem
    from sparcipal.search.registry import get_method

    checked = importlib.import_module("sparcipal.checker.covariance")
    rng = np.random.default_rng(12)
    for sizes in ((2,), (2, 2), (1, 3)):
        W = rng.standard_normal((8, 8)) * np.geomspace(1, 0.1, 8)
        cov = covariance_of(W @ W.T)
        problem = Problem(cov, sizes, nonnegative=nonnegative)
        bound = low_rank_bound(problem, Options(), rank=3)
        best = get_method("enumerate").run(problem, Options()).bounds[0].value
        assert bound.value >= best * (1 - 1e-9)
        theirs = checked.covariance_of(W @ W.T, cov.unit)
        question = checked.Question(sizes, nonnegative, True, 0.0)
        own = recheck("lowrank", bound.data, theirs, question)
        assert best * (1 - 1e-9) <= own <= bound.value


def test_proof_survives_json_and_is_refused_when_changed():
    X = np.random.default_rng(9).standard_normal((30, 12)) * np.geomspace(4, 0.1, 12)
    result = sparse_pca(X, n_nonzero_coefs=4, rank=3, certify=False, **METHOD)
    again = Result.from_json(result.to_json())
    assert verify(again, X)
    low = next(b for b in again.certificate.bounds if b.name == "lowrank")
    low.data["level"] = low.data["level"] * 0.9
    assert not verify(again, X)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rank": 0}, "rank"),
        ({"rank": 11}, "up to rank 7"),
        ({"method_options": {"eps": 0.0}}, "eps"),
        ({"method_options": {"eps": 1.5}}, "eps"),
        ({"method_options": {"algorithm": "magic"}}, "'cones' or 'net'"),
        ({"method_options": {"sketch": "magic"}}, "'randomized'"),
        ({"method_options": {"max_cones": 0}}, "max_cones"),
        ({"rank": 6, "method_options": {"algorithm": "net"}}, "larger eps"),
    ],
)
def test_spannogram_refuses_bad_input(options, message):
    X = np.random.default_rng(0).standard_normal((20, 12))
    with pytest.raises(ValueError, match=message):
        sparse_pca(X, n_nonzero_coefs=3, **METHOD, **options)


def test_spannogram_finds_known_optima():
    A = np.load(data_file("benchmark_correlations.npz"))["wine"]
    for s, nonnegative, value in ((5, False, 3.4397787195), (5, True, 3.4366317375)):
        result = sparse_pca(
            covariance=A,
            n_nonzero_coefs=s,
            rank=6,
            nonnegative=nonnegative,
            certify=False,
            **METHOD,
        )
        assert result.value == pytest.approx(value, rel=1e-9)
        assert result.gap < 0.01
        assert verify(result, covariance=A)


def test_spannogram_solves_a_diagonal_covariance():
    matrix = np.diag([3.0, 2.0, 1.0, 0.5])
    result = sparse_pca(covariance=matrix, n_nonzero_coefs=2, method="spannogram", rank=2)
    assert result.value == pytest.approx(3.0)
    assert result.bound >= 3.0


def test_guarantees_are_none_for_a_zero_covariance():
    cov = covariance_of(np.diag([2.0, 1.0]))
    pairs = spectrum(cov, 2)
    assert method.guarantees(pairs, 1, cov, 1, False)
    nothing = covariance_of(np.zeros((2, 2)))
    assert method.guarantees(spectrum(nothing, 2), 1, nothing, 1, False) == {}


@pytest.mark.parametrize("nonnegative", [False, True])
def test_accuracy_chooses_the_smallest_rank_that_promises_it(nonnegative):
    rng = np.random.default_rng(5)
    A = decaying(rng, 12)
    result = sparse_pca(
        covariance=A,
        n_nonzero_coefs=4,
        nonnegative=nonnegative,
        method="spannogram",
        method_options={"accuracy": 0.3},
    )
    (promise,) = result.certificate.guarantees.values()
    assert 0.7 * (1 - 1e-5) <= promise <= result.value / result.bound * (1 + 1e-9)
    less = sparse_pca(
        covariance=A,
        n_nonzero_coefs=4,
        nonnegative=nonnegative,
        method="spannogram",
        rank=result.info["rank"] - 1,
    )
    assert max(less.certificate.guarantees.values(), default=0.0) < 0.7


def decaying(rng: np.random.Generator, p: int) -> np.ndarray:
    """A covariance whose eigenvalues halve, with leading features that vary together."""
    Q, _ = np.linalg.qr(rng.standard_normal((p, p)) + 2 * np.eye(p, 1))
    return (Q * 0.5 ** np.arange(p)) @ Q.T


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"method_options": {"accuracy": 1.0}}, "between 0 and 1"),
        ({"method_options": {"accuracy": 0.1}, "rank": 3}, "rank=3 or accuracy=0.1, not both"),
        ({"method_options": {"accuracy": 0.1}, "n_components": 2}, "for one component"),
        ({"method_options": {"accuracy": 0.1, "algorithm": "net"}}, "for one component"),
        ({"method_options": {"accuracy": 1e-6}}, "pass that accuracy, or method='auto'"),
    ],
)
def test_accuracy_that_cannot_be_promised_is_refused(asked, words):
    A = np.eye(12) + decaying(np.random.default_rng(5), 12)
    with pytest.raises(ValueError, match=words):
        sparse_pca(covariance=A, n_nonzero_coefs=3, method="spannogram", **asked)


def test_the_rows_that_elimination_leaves_are_said():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 60)) * np.r_[np.full(6, 5.0), np.full(54, 0.1)]
    result = sparse_pca(X, n_nonzero_coefs=3, method="spannogram", rank=2)
    left = result.info["rows_left"]
    assert 3 <= left < 60
    assert f"{left} of 60 rows left by elimination" in result.note
