"""Tables read in passes: the bound holds for all features, verified, the same for all blocks."""

from __future__ import annotations

import pickle
from itertools import product

import numpy as np
import pytest
import scipy.sparse as sp

from sparcipal import Gram, Moments, Result, Screened, SparsePCA, sparse_pca, verify
from sparcipal.data.passes import Stream
from tests.support.brute import best_value

FORMATS = ("blocks", "dense", "sparse")


def problem(rng, p, n):
    kind = rng.integers(6)
    if kind == 0:
        return rng.poisson(rng.exponential(2, p), (n, p))
    if kind == 1:
        return rng.integers(-3, 4, (n, p)) * rng.integers(0, 5, p)
    if kind == 2:
        return rng.standard_normal((n, p)) * rng.exponential(1, p) * 10.0 ** rng.integers(-12, 13)
    if kind == 3:
        noise = 0.01 * rng.standard_normal((n, p)) * rng.integers(0, 2)
        return np.outer(rng.standard_normal(n), rng.standard_normal(p)) + noise
    if kind == 4:
        return rng.integers(0, 3, (n, p))[:, rng.integers(0, p, p)] * rng.choice([-1, 1], p)
    return (rng.random((n, p)) < 0.3) * rng.integers(1, 9, (n, p)) * rng.integers(0, 2, p)


def source_of(X, form, cut):
    if form == "sparse":
        return sp.csr_array(X)
    return X if form == "dense" else lambda: iter([X[:cut], X[cut:]] if cut else [X])


def covariance_of(X, center, scale, weights):
    w = np.ones(len(X)) if weights is None else weights
    share, Y = w / w.sum(), X.astype(float)
    Z = Y - share @ Y * center
    A = (Z * share[:, None]).T @ Z
    if scale:
        there = Y[w > 0]
        constant = (there == there[:1]).all(axis=0) if center else ~there.any(axis=0)
        d = np.where(constant, 1.0, np.sqrt(np.diagonal(A)))
        A = A / np.outer(d, d)
    return A


LAZY = {"effort": 0}  # of the search: it is the passes and the proof that are on trial


def question(rng, p):
    k = min(int(rng.integers(1, 4)), p)
    s = int(rng.integers(1, max(2, p // k + 1)))
    ask = {"n_components": k, "n_nonzero_coefs": s, "supports": "disjoint"}
    choice = rng.integers(6) if k > 1 else 5
    sizes = [(s,) * k]
    if choice == 0:
        ask["supports"] = "free"
    elif choice == 1:
        total = int(rng.integers(k, p + 1))
        ask["n_nonzero_coefs"] = {"total": total}
        sizes = [z for z in product(range(1, total - k + 2), repeat=k) if sum(z) == total]
        sizes = sorted({tuple(sorted(z)) for z in sizes})
    elif choice == 2:
        sizes = [tuple(int(rng.integers(1, s + 1)) for _ in range(k))]
        ask["n_nonzero_coefs"] = list(sizes[0])
    ask["nonnegative"] = bool(rng.integers(2))
    ask["center"] = bool(rng.integers(2))
    ask["scale"] = bool(rng.integers(5) == 0)
    ask["certify"] = [False, "fast", "full"][rng.integers(3)]
    ask["method_options"] = LAZY
    return ask, sizes


@pytest.mark.parametrize("chunk", range(2))
def test_the_bound_holds_for_all_features(chunk, monkeypatch):
    ruled = set()
    for seed in range(chunk * 12, chunk * 12 + 12):
        rng = np.random.default_rng(seed)
        p, n = int(rng.integers(3, 8)), int(rng.integers(3, 25))
        X = problem(rng, p, n)
        ask, sizes = question(rng, p)
        weights = rng.integers(0, 4, n).astype(float) if rng.integers(4) == 0 else None
        if weights is not None and np.count_nonzero(weights) < 2:
            weights = None
        cap, first = rng.integers(1, p + 1, 2)
        most = lambda self, needed, cap=cap: min(max(cap, needed), self._varying(needed))  # noqa: E731
        monkeypatch.setattr(Stream, "most", most)
        monkeypatch.setattr(
            Stream, "first", lambda self, n, rough, first=first: min(self.most(n), max(first, n))
        )
        source = source_of(X, FORMATS[rng.integers(3)], int(rng.integers(n)))
        try:
            result = sparse_pca(source, sample_weight=weights, memory_limit=1, **ask)
        except ValueError as error:
            if "no variance" not in str(error):
                raise
            continue
        A = covariance_of(X, ask["center"], ask["scale"], weights)
        if ask["supports"] == "free":  # disjoint choices are some of the free ones
            sizes = [z for z in sizes if sum(z) <= p]
        best = max((best_value(A, z, ask["nonnegative"]) for z in sizes), default=0.0)
        size = np.abs(A).max()
        claims = result.certificate.screening
        assert result.bound >= best - 1e-10 * size, seed
        if ask["supports"] == "disjoint":
            assert result.value - result.certificate.rounding <= best + 1e-9 * size, seed
        if claims["support_unchanged"] and ask["supports"] == "disjoint":
            kept = result.certificate.bounds[0].data["screened"]["kept"]
            B = A[np.ix_(kept, kept)]
            there = max(best_value(B, z, ask["nonnegative"]) for z in sizes)
            assert there >= best - 1e-9 * size, seed
        saved = Result.from_json(result.to_json())
        checked = verify(saved, source, sample_weight=weights)
        assert checked, (seed, checked.reason)
        ruled.add((claims["rule"], claims["bound_holds"]))
    assert ("variances", False) in ruled
    assert ("nothing dropped", True) in ruled


def corpus(seed=0, n=400, p=300):
    rng = np.random.default_rng(seed)
    rate = 2.0 / (1 + np.arange(p)) ** 1.1
    X = rng.poisson(rate, (n, p))
    X[: n // 3, :6] += rng.poisson(3.0, (n // 3, 1))
    return X.astype(np.uint8)


@pytest.mark.parametrize("k", [1, 3])
def test_prices_prove_that_dropped_features_do_not_matter(k, monkeypatch):
    X = corpus(p=200)
    asked = {"n_components": k, "n_nonzero_coefs": 4, "method_options": LAZY}
    whole = sparse_pca(X, certify=False, **asked)
    monkeypatch.setattr("sparcipal.data.passes.FIRST", 40)
    monkeypatch.setattr(Stream, "most", lambda self, needed: 60)
    part = sparse_pca(sp.csr_array(X), memory_limit=1, **asked)
    claims = part.certificate.screening
    assert claims["rule"] == "prices"
    assert np.isclose(part.value, whole.value, rtol=1e-9)
    assert part.certificate.gap <= 0.02
    text = str(part)
    assert "within" in text
    assert f"{claims['dropped']}" in text
    if k == 1:
        assert claims["bound_holds"]
        assert claims["support_unchanged"]
        assert part.status.value == "optimal"
        assert "kept bound  holds" in text
        assert part.certificate.eliminated >= claims["dropped"] > 0
    assert verify(part, sp.csr_array(X))


def test_blocks_do_not_change_a_bit(tmp_path):
    X = corpus(1, n=200, p=100)
    sparse = sp.csr_array(X)
    path = tmp_path / "x.npy"
    np.save(path, X)
    sources = [
        lambda: (X[i : i + 7] for i in range(0, 200, 7)),
        lambda: iter([sparse[:100], X[100:101], sparse[101:].tocsc()]),
        np.load(path, mmap_mode="r"),
        sparse,
        X.astype(np.int64),
    ]
    ask = {"n_components": 2, "n_nonzero_coefs": 5, "memory_limit": 1e4, "certify": False}
    texts = {sparse_pca(source, **ask).to_json() for source in sources}
    assert len(texts) == 1


def test_small_sources_take_the_road_in_memory():
    X = corpus(2, n=60, p=20)
    direct = sparse_pca(X, n_nonzero_coefs=3)
    blocks = sparse_pca(lambda: iter([X[:30], X[30:]]), n_nonzero_coefs=3)
    assert blocks.to_json() == direct.to_json()
    assert verify(blocks, lambda: iter([X[:30], X[30:]]))


def test_the_estimator_reads_in_passes():
    X = corpus(3)
    streamed = SparsePCA(2, 4, memory_limit=1e5).fit(lambda: iter([X[:150], X[150:]]))
    assert streamed.n_features_in_ == 300
    assert streamed.certificate_.screening
    direct = SparsePCA(2, 4, certify=False).fit(X)
    assert np.allclose(streamed.components_, direct.components_, atol=1e-9)
    assert np.allclose(streamed.transform(X), direct.transform(X), atol=1e-6)


def test_standardised_noise_gets_an_honest_answer(monkeypatch):
    X = np.random.default_rng(4).standard_normal((200, 60))
    monkeypatch.setattr(Stream, "most", lambda self, needed: 20)
    result = sparse_pca(X, scale=True, n_nonzero_coefs=4, memory_limit=1)
    assert "standardised columns cannot be screened" in result.certificate.message
    assert not result.certificate.screening["support_unchanged"]
    everything = sparse_pca(X, scale=True, n_nonzero_coefs=4)
    assert result.bound >= everything.value
    assert verify(result, X)


def test_another_engine_hands_over_its_sums():
    X = corpus(5, p=100)
    moments = Moments(100).add(X)
    kept = moments.screen(30)
    gram = Gram(kept)
    for part in (X[300:], X[:300]):
        gram.merge(Gram(kept).add(part))
    own = Screened.of(moments, gram)
    asked = {"n_components": 2, "n_nonzero_coefs": 4, "method_options": LAZY}
    first = sparse_pca(covariance=own, certify=False, **asked)
    assert first.n_features == 100
    assert first.n_samples == 400
    assert verify(first, covariance=own)
    assert verify(first, X)
    Y = X - X.mean(axis=0)
    plain = Screened(Y[:, kept].T @ Y[:, kept] / 400, kept, X.var(axis=0))
    second = sparse_pca(covariance=plain, certify=False, **asked)
    assert np.isclose(first.value, second.value, rtol=1e-9)
    assert second.n_samples is None
    assert verify(second, covariance=plain)


def test_sums_that_are_handed_over_stay_as_they_are():
    X = np.random.default_rng(5).poisson(3.0, (60, 6))
    moments = Moments(6).add(X)
    gram = moments.gram(moments.screen(4)).add(X)
    before = gram.second.copy()
    first = Screened.of(moments, gram)
    kept = first.matrix.copy()
    sparse_pca(covariance=first, n_nonzero_coefs=2)
    np.testing.assert_array_equal(gram.second, before)
    np.testing.assert_array_equal(first.matrix, kept)


def test_forged_claims_of_screening_are_refused():
    from dataclasses import replace

    X = corpus(3)
    result = sparse_pca(X, n_components=2, n_nonzero_coefs=5, memory_limit=4e4)
    assert verify(result, X)
    certificate = result.certificate
    assert certificate.screening["rule"] == "prices"
    for change in (
        {"support_unchanged": not certificate.screening["support_unchanged"]},
        {"dropped": 3},
        {"touching": certificate.screening["touching"] * 0.9},
    ):
        forged = replace(certificate, screening={**certificate.screening, **change})
        assert verify(replace(result, certificate=forged), X).verdict == "refused"
    bound = certificate.bounds[0]
    screened = {**bound.data["screened"], "rule": "variances"}
    bounds = (replace(bound, data={**bound.data, "screened": screened}),)
    told = {**certificate.screening, "rule": "variances"}
    forged = replace(certificate, bounds=bounds, screening=told)
    assert verify(replace(result, certificate=forged), X).verdict == "refused"
    bare = Result.from_json(result.to_json(proof=False))
    assert verify(bare, X).verdict == "not proved"


def test_bad_sources_of_blocks_are_refused():
    X = corpus(7, n=20, p=5)
    with pytest.raises(TypeError, match="read once only"):
        sparse_pca(iter([X]))
    with pytest.raises(ValueError, match="no row"):
        sparse_pca(lambda: iter([]))
    with pytest.raises(TypeError, match="cannot be iterated"):
        sparse_pca(lambda: 3)
    with pytest.raises(ValueError, match="block 1 has 4 features"):
        sparse_pca(lambda: iter([X, X[:, :4]]))
    counts = iter([1, 2])  # two passes
    with pytest.raises(ValueError, match="the same rows each time"):
        sparse_pca(lambda: iter([X] * next(counts)), memory_limit=1)
    with pytest.raises(ValueError, match="sample_weight has 3"):
        sparse_pca(lambda: iter([X]), sample_weight=np.ones(3), memory_limit=1)
    with pytest.raises(ValueError, match="memory_limit"):
        sparse_pca(X, memory_limit=0)
    with pytest.raises(ValueError, match="another variance"):
        Screened(np.eye(2), np.array([0, 2]), np.array([1.0, 3.0, 2.0]))
    with pytest.raises(ValueError, match=r"are kept, .* needed; keep more"):
        sparse_pca(
            covariance=Screened(np.eye(2), np.array([0, 2]), np.ones(3)),
            n_components=3,
            n_nonzero_coefs=1,
        )
    broken = sp.csr_array(X)
    broken.indices = broken.indices.astype(np.int64)
    broken.indices[0] = 9
    with pytest.raises(ValueError, match="broken sparse matrix"):
        sparse_pca(broken)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"kept": np.array([1, 0])}, "kept must hold increasing integers"),
        ({"matrix": np.eye(3)}, r"matrix has shape \(3, 3\), but 2 features are kept"),
        ({"kept": np.array([0, 9])}, "kept names feature 9, but there are 4 variances"),
        ({"variances": np.array([3.0, 2.0, -1.0, 0.0])}, "finite and not negative"),
        ({"variances": np.array([3.0, 7.0, 1.0, 0.0])}, "feature 1 has another variance"),
    ],
)
def test_screened_refuses_parts_that_do_not_fit_together(changed, message):
    A = np.diag([3.0, 2.0])
    whole = {"matrix": A, "kept": np.array([0, 1]), "variances": np.array([3.0, 2.0, 1.0, 0.5])}
    assert Screened(**whole).n_features == 4
    with pytest.raises(ValueError, match=message):
        Screened(**{**whole, **changed})


def test_screened_refuses_sums_over_different_rows():
    X = np.random.default_rng(0).standard_normal((20, 5))
    moments = Moments(5).add(X)
    gram = Moments(5).add(X).gram(np.array([0, 1])).add(X[:10])
    with pytest.raises(ValueError, match="moments are of 20 rows, products of 10"):
        Screened.of(moments, gram)


@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("size", [1e-158, 1e-162, 1e-300])
def test_sums_of_another_engine_refuse_columns_whose_squares_underflow(size, center):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((50, 6))
    X[:, 1] = X[:, 0] + 0.01 * rng.standard_normal(50)
    X *= np.array([size, size, 1, 1, 1, 0])
    moments = pickle.loads(pickle.dumps(Moments(6).add(X)))
    gram = pickle.loads(pickle.dumps(moments.gram(np.arange(6)).add(X)))
    words = r"no entry larger than .* in a column, so that variances underflow"
    with pytest.raises(ValueError, match=words):
        Screened.of(moments, gram, center, scale=True)
    with pytest.raises(ValueError, match=words):
        sparse_pca(X, n_nonzero_coefs=2, center=center, scale=True, memory_limit=1)
    assert Screened.of(moments, gram, center).n_features == 6  # beside ordinary ones they are zero
    small = Moments(6).add(X * size)
    with pytest.raises(ValueError, match=r"no entry larger than .*, so that variances underflow"):
        Screened.of(small, small.gram(np.arange(6)).add(X * size), center)


def test_a_constant_column_whose_square_underflows_is_refused_without_centring():
    X = np.column_stack([np.full(9, 1e-200), np.zeros(9), np.arange(9.0)])
    with pytest.raises(ValueError, match="underflow"):
        sparse_pca(X, n_nonzero_coefs=1, center=False, scale=True, memory_limit=1)
