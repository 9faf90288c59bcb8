"""Results of tables in passes, and of low-rank sketches, changed: each refusal with its reason."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from sparcipal import Moments, Result, Screened, sparse_pca, verify
from sparcipal.bounds.lowrank.sphere import sphere_search
from sparcipal.checker import dropped
from sparcipal.checker.budget import Budget, Refused
from sparcipal.checker.covariance import Question
from sparcipal.checker.covariance import covariance_of as checked_covariance
from sparcipal.checker.covariance import covariance_of_data as checked_covariance_of_data
from sparcipal.checker.family import Case, redone
from sparcipal.checker.records import DroppedPart
from sparcipal.problem.result import Status
from tests.support.replay import FLOAT, majorant_of
from tests.support.second_checker import check

rng = np.random.default_rng(0)
X = rng.standard_normal((30, 8)) * np.r_[np.full(4, 3.0), np.full(4, 0.1)]
WEIGHTS = rng.random(30) + 0.1
KEPT, DROPPED = np.arange(4), np.arange(4, 8)


def screened(**change) -> Screened:
    A = X.T @ X / 30
    whole = {"matrix": A[:4, :4], "kept": KEPT, "variances": np.diagonal(A).copy()}
    return Screened(**{**whole, **change})


@pytest.fixture(scope="module")
def result() -> Result:
    return sparse_pca(covariance=screened(), n_nonzero_coefs=2)


def forged(result: Result, change) -> Result:
    document = json.loads(result.to_json())
    change(document)
    return Result.from_json(json.dumps(document))


def reason(result: Result, *given, **more) -> str:
    verdict = verify(result, *given, **more)
    assert verdict.verdict == "refused"
    return verdict.reason


# --- what was kept ---


def test_verify_accepts_honest_results_of_screened_tables(result):
    assert verify(result, covariance=screened())
    assert verify(result, covariance=screened()).value == pytest.approx(result.value)


def test_components_on_dropped_features_are_refused(result):
    """A dropped feature has a variance, but its covariances are unknown."""
    other = replace(result, supports=(np.array([0, 5]),), weights=(np.array([0.6, 0.8]),))
    assert "was not kept" in reason(other, covariance=screened())
    beyond = replace(result, supports=(np.array([0, 7]),), weights=(np.array([0.6, 0.8]),))
    assert "was not kept" in reason(beyond, covariance=screened())


@pytest.mark.parametrize(
    ("kept", "words"),
    [
        ([0, 1, 2, 8], "must lie in 0..7"),
        ([-1, 0, 1, 2], "must lie in 0..7"),
        ([], "at least 1"),
        ([[0, 1], [2, 3]], "2 dimensions"),
        ([0, 2, 1, 3], "out of order"),
        ([0, 1, 1, 3], "out of order, or one of them twice"),
        ([0, 1, 2, 4], "other features were kept"),
        ([0.0, 1.0, float("nan"), 3.0], "an array of float64"),
    ],
)
def test_lists_of_kept_features_are_refused_when_changed(result, kept, words):
    kept = np.array(kept, dtype=None if kept else int)
    bounds = [
        replace(b, data={**b.data, "screened": {**b.data["screened"], "kept": kept}})
        for b in result.certificate.bounds
    ]
    changed = replace(result, certificate=replace(result.certificate, bounds=tuple(bounds)))
    assert words in reason(changed, covariance=screened())


def test_screened_results_are_refused_with_other_tables(result):
    given = screened()
    wider = Screened(X.T @ X / 30, np.arange(8), given.variances)
    assert "other features were kept" in reason(result, covariance=wider)
    assert "a Screened: pass that" in reason(result, covariance=X.T @ X / 30)
    tiny = replace(result, certificate=replace(result.certificate, unit=2.0**-1073))
    assert "not that of the kept features" in reason(tiny, covariance=given)


def test_screened_results_verify_with_tables_read_in_passes():
    streamed = sparse_pca(X, n_nonzero_coefs=2, memory_limit=1, certify=False)
    assert streamed.certificate.screening
    for table in (X, X.tolist(), lambda: iter([X[:9], X[9:]])):
        assert verify(streamed, table), verify(streamed, table).reason
    last = int(streamed.certificate.bounds[0].data["screened"]["kept"][-1])
    assert "the data has" in reason(streamed, X[:, :last])
    with pytest.raises(ValueError, match="different numbers of columns"):
        verify(streamed, lambda: iter([X[:9], X[9:, :5]]))
    with pytest.raises(ValueError, match="X has no rows"):
        verify(streamed, lambda: iter([]))


def test_screened_results_verify_with_weights_in_passes():
    streamed = sparse_pca(X, n_nonzero_coefs=2, memory_limit=1, sample_weight=WEIGHTS)
    assert verify(streamed, X, sample_weight=WEIGHTS)
    with pytest.raises(ValueError, match="not one sample weight per row"):
        verify(streamed, X, sample_weight=WEIGHTS[:-1])
    assert "mean" in reason(streamed, X, sample_weight=WEIGHTS[::-1])


def retold(result: Result, rule: str) -> Result:
    """The result with another rule, in its certificate and in every proof."""

    def change(document):
        document["certificate"]["screening"]["rule"] = rule
        for bound in document["certificate"]["bounds"]:
            bound["data"]["screened"]["rule"] = rule

    return forged(result, change)


def test_the_rule_of_dropped_features_is_the_one_that_is_replayed(result):
    A = X[:, :4].T @ X[:, :4] / 30
    whole = Screened(A, KEPT, np.diagonal(A).copy())
    nothing = sparse_pca(covariance=whole, n_nonzero_coefs=2)
    for told, given, other in (
        (result, screened(), "nothing dropped"),
        (nothing, whole, "variances"),
        (nothing, whole, "rows"),
    ):
        assert verify(told, covariance=given)
        assert told.certificate.screening["rule"] != other
        assert "a rule that is not the one" in reason(retold(told, other), covariance=given)


def test_two_checkers_refuse_the_rule_of_nothing_dropped():
    told = sparse_pca(lambda: iter([X]), n_nonzero_coefs=2, memory_limit=1, certify=False)
    assert told.certificate.screening["dropped"] > 0
    assert check(told.to_json(), X) == "proved"
    assert check(retold(told, "nothing dropped").to_json(), X).startswith("refused: the rule")
    assert "a rule that is not the one" in reason(retold(told, "nothing dropped"), X)


# --- low-rank sketches ---


@pytest.fixture(scope="module")
def sketched() -> dict:
    """A proof for V V' of rank two, whose majorant is itself."""
    V = np.random.default_rng(1).standard_normal((7, 2))
    found = sphere_search(V, 3)
    data = {"V": V, "s": 3, "level": found.bound, "shift": 1e-9, "nonnegative": False}
    return data | {"proof": "features", "tree": found.tree}


def low_rank(data: dict, question: Question | None = None) -> float:
    A = data["V"] @ data["V"].T
    question = question or Question((3,), False, True, 0.0)
    return redone("lowrank", data, Case(checked_covariance(A, 1.0), question, FLOAT, Budget()))


def test_sketches_are_refused_for_other_questions(sketched):
    top = low_rank(sketched)
    assert low_rank(sketched, Question((2,), False, True, 0.0)) == pytest.approx(top)
    with pytest.raises(Refused, match="fewer nonzeros"):
        low_rank(sketched, Question((4,), False, True, 0.0))
    with pytest.raises(Refused, match="one sign"):
        low_rank({**sketched, "nonnegative": True})
    priced = {**sketched, "prices": np.full(7, 0.1)}
    with pytest.raises(Refused, match="prices need disjoint supports"):
        low_rank(priced, Question((3, 3), False, False, 0.0))
    assert low_rank(sketched, Question((3, 3), False, False, 0.0)) == pytest.approx(2 * top)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"V": np.ones((6, 2))}, "V"),
        ({"V": np.full((7, 2), np.nan)}, "V"),
        ({"level": np.nan}, "level"),
        ({"prices": -np.ones(7)}, "prices"),
        ({"V": np.ones((7, 17))}, "V"),
        ({"tree": np.zeros(4)}, "tree"),
        ({"tree": np.full((2, 2), -1, dtype=np.int8)}, "tree"),
        ({"tree": np.array([-1], dtype=np.int8)}, "tree of cones is malformed"),
        ({"tree": np.full(9, -1, dtype=np.int8)}, "tree of cones is malformed"),
        ({"tree": np.array([4, -1], dtype=np.int8)}, "tree of cones is malformed"),
        ({"tree": np.array([0, -1], dtype=np.int8)}, "an edge that is a point"),
    ],
)
def test_trees_of_cones_are_refused_when_changed(sketched, change, message):
    cov = checked_covariance(sketched["V"] @ sketched["V"].T, 1.0)
    question = Question((3,), False, True, 0.0)
    with pytest.raises(Refused, match=message):
        redone("lowrank", {**sketched, **change}, Case(cov, question, FLOAT, Budget()))


def test_majorants_below_what_a_sketch_misses_prove_nothing():
    table = np.random.default_rng(2).standard_normal((5, 9))
    cov = checked_covariance_of_data(table, True, False, None, 1.0)[0]
    w, Q = np.linalg.eigh(cov.dense())
    V, missed = Q[:, -2:] * np.sqrt(w[-2:]), float(w[-3])
    above = majorant_of(cov, V, "samples", missed * 1.01, None, 2, False)
    assert missed <= above < missed * 1.02
    assert majorant_of(cov, V, "samples", 0.9 * missed, None, 2, False) == np.inf
    assert majorant_of(cov, V, "samples", 0.0, None, 2, False) == np.inf
    # entries are clipped only where the whole matrix is factored
    assert majorant_of(cov, V, "samples", missed, 0.1, 2, False) == np.inf
    assert majorant_of(cov, V, "trace", 0.0, None, 2, False) >= missed
    flat = np.column_stack([V[:, 0], V[:, 0]])
    assert majorant_of(cov, flat, "trace", 0.0, None, 2, False) >= float(w[-2])
    empty = np.column_stack([V[:, 1], Q[:, 0]])  # a direction in which nothing varies
    assert majorant_of(cov, empty, "trace", 0.0, None, 2, False) == np.inf


def test_the_largest_dropped_variance_is_known_to_its_own_error():
    """Kept features of large variance have large errors; those say nothing of a dropped one."""
    wide = np.random.default_rng(4).standard_normal((2000, 60))
    wide[:, :2] *= 1e5
    wide[:, 2:6] *= 3
    result = sparse_pca(wide, n_nonzero_coefs=2, memory_limit=2000)
    assert verify(result, wide)
    told = result.certificate.screening
    largest = told["largest_dropped"]
    for claim in (0.0, largest * (1 - 1e-6), largest * (1 + 1e-6), 2 * largest):
        screening = {**told, "largest_dropped": claim}
        other = replace(result, certificate=replace(result.certificate, screening=screening))
        assert "largest variance of a dropped feature" in reason(other, wide)


def test_what_dropped_features_add_is_charged_to_the_budget():
    """The eigenvalues that a given matrix may lack belong to the cost of the replay."""
    cov = dropped.of_given(screened(), KEPT, 1.0)
    rule = DroppedPart(s=2, inside=9.0, rule="variances")
    question = Question((2,), False, True, 0.0)
    with pytest.raises(Refused, match="operations"):
        dropped.touching(rule, 9.0, Case(cov, question, FLOAT, Budget(1.0)))


@pytest.mark.parametrize(
    "wrong",
    [
        np.append(WEIGHTS, [5.0, 7.0]),
        np.append(WEIGHTS, 0.0),
        WEIGHTS[:-1],
        WEIGHTS[:, None],
        np.append(WEIGHTS[:-1], -1.0),
        np.append(WEIGHTS[:-1], np.nan),
        np.append(WEIGHTS[:-1], np.inf),
        0 * WEIGHTS,
        1.0,
    ],
)
def test_weights_are_one_finite_number_per_row(wrong):
    result = sparse_pca(X, n_nonzero_coefs=2, memory_limit=200, sample_weight=WEIGHTS)
    assert result.certificate.screening
    assert verify(result, X, sample_weight=WEIGHTS)
    for rows in (X, lambda: iter([X[:7], X[7:]])):
        with pytest.raises(ValueError, match="weight"):
            verify(result, rows, sample_weight=wrong)


def test_certificates_of_components_name_features_of_their_own_matrix():
    """One kept feature is excluded, so that a bound on adjusted variances speaks of fewer."""
    rows = np.round(4 * rng.standard_normal((30, 12)) * np.linspace(3, 0.3, 12)) / 4
    blocks = lambda: iter([rows[:15], rows[15:]])  # noqa: E731
    asked = {"n_components": 2, "n_nonzero_coefs": 2, "supports": "free", "exclude": [1]}
    moments = Moments(12).add(rows)
    screened = Screened.of(moments, moments.gram(moments.screen(6)).add(rows))
    honest = sparse_pca(covariance=screened, **asked, certify=False)
    old, unit = honest.certificate.bounds[0], honest.certificate.unit
    kept = np.asarray(old.data["screened"]["kept"])
    assert 1 in kept
    p, none = kept.size, np.zeros(0, dtype=np.int64)
    top = 2.0 ** np.ceil(np.log2(50 * honest.total_variance / unit))
    problem = {"s": 2, "nonnegative": False, "bound": top, "unit": top / 64, "twins": {}}
    root = {"parent": -1, "side": "root", "moved": none, "passes": [], "end": "closed"}
    log = [{"step": "problem", **problem}, {"step": "node", **root, "split": 2}]
    log += [{"step": "split", "clip": 0.0}]
    split = {"features": np.arange(p), "price": np.zeros(p), "pad": 1.0}
    split |= {"u": np.zeros(p * (p - 1) // 2), "r": np.zeros(p * (p - 1) // 2)}
    extended = {"s": 2, "inside": 2 * top, "rule": "prices", "price": 0.0, "split": split}
    inside, touching = 10 * top, 20 * top
    data = {
        "kept": np.flatnonzero(kept != 1),
        "parts": [{"s": 2, "name": "tree", "value": 2 * top, "data": {"log": log}}],
        "matrix": {"features": np.arange(1), "y": np.full((1, 1), 1e-3), "shift": 0.0},
        "screened": {"kept": kept, "rule": "prices", "inside": inside, "touching": touching}
        | {"parts": [extended]},
    }
    told = {"rule": "prices", "inside": inside * unit, "touching": touching * unit}
    told |= {"support_unchanged": False, "bound_holds": False}
    most = 40 * top * unit
    bound = replace(old, name="adjusted", value=most, data=data)
    certificate = replace(
        honest.certificate,
        bounds=(bound,),
        bound=most,
        screening={**honest.certificate.screening, **told},
        guarantees={},
        status=Status.GAP,
    )
    broken = replace(honest, certificate=certificate)
    assert "names features that are not there" in reason(broken, blocks)
    assert check(broken.to_json(), rows).startswith("refused")
    split |= {"features": np.arange(p - 1), "price": np.zeros(p - 1)}
    split |= {name: np.zeros((p - 1) * (p - 2) // 2) for name in ("u", "r")}
    assert verify(broken, blocks)
