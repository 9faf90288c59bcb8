"""Claims that are a little more than what is proved: `verify` refuses them, and says why."""

from __future__ import annotations

import importlib
from dataclasses import replace

import numpy as np
import pytest

from sparcipal import Status, sparse_pca, verify
from sparcipal.checker import dropped as screened
from sparcipal.checker import parts, value
from sparcipal.checker.arithmetic import Float
from sparcipal.checker.budget import Budget, Refused
from sparcipal.checker.covariance import Question, covariance_of_data
from sparcipal.checker.family import Case
from sparcipal.checker.gate import parse
from sparcipal.checker.records import Parts
from sparcipal.data.passes import Stream

checker = importlib.import_module("sparcipal.checker.result")


RNG = np.random.default_rng(0)


X = RNG.standard_normal((30, 6)) * [2.0, 1.8, 1.5, 1.2, 1.0, 0.8] + RNG.standard_normal((30, 1))


def claim(result, **changes):
    """The result with another certificate: gaps and statuses as they follow."""
    new = replace(result.certificate, **changes)
    status = Status.OPTIMAL if new.gap <= new.tol else Status.GAP
    if result.certificate.status is not Status.OPTIMAL and status is not Status.OPTIMAL:
        status = result.certificate.status
    return replace(result, certificate=replace(new, status=status))


def with_bound(result, place: int, factor: float):
    """Only one of the bounds, larger or smaller than it was."""
    bound = result.certificate.bounds[place]
    bound = replace(bound, value=bound.value * factor)
    return claim(result, bound=bound.value, bounds=(bound,))


@pytest.fixture(scope="module")
def results():
    """Bounds of every cheap kind, all with a gap."""
    options = [{"n_nonzero_coefs": 3}, {"n_components": 2, "n_nonzero_coefs": 2}]
    options.append({"n_components": 2, "n_nonzero_coefs": [3, 2], "supports": "free"})
    options.append({"n_nonzero_coefs": 3, "nonnegative": True})
    return [sparse_pca(X, certify=False, tol=1e-9, **option) for option in options]


def test_verify_refuses_bounds_below_their_proof_and_none_above(results):
    seen = set()
    for result in results:
        for place, bound in enumerate(result.certificate.bounds):
            if bound.value <= result.value * (1 + 1e-3):
                continue
            seen.add(bound.name)
            assert verify(with_bound(result, place, 1.0), X)
            for factor in (1 - 1e-9, 1 - 1e-4):
                verdict = verify(with_bound(result, place, factor), X)
                assert verdict.verdict == "refused"
                assert "can be proved" in verdict.reason
            # a larger bound says less, and is true
            assert verify(with_bound(result, place, 1.5), X).bound == 1.5 * bound.value
    assert seen >= {"trace", "gershgorin", "clip", "frobenius", "parts"}


def test_recheck_parts_adds_and_rounds_up(results, monkeypatch):
    result = results[2]
    bound = next(b for b in result.certificate.bounds if b.name == "parts")
    record = parse(Parts, bound.data, {"p": result.n_features, "n": result.n_features})
    monkeypatch.setattr(parts, "redone_part", lambda *_: 0.1)
    total = parts.recheck(
        record, Case(None, Question((3, 2), False, False, 0.0), Float(), Budget())
    )
    assert total > 0.2
    assert total < 0.2 * (1 + 1e-14)
    case = Case(None, Question((3, 3), False, False, 0.0), Float(), Budget())
    with pytest.raises(Refused, match="one bound per component"):
        parts.recheck(record, case)


def test_verify_refuses_values_that_the_loadings_do_not_give(results):
    small = sparse_pca(X * 2.0**-30, n_nonzero_coefs=3, certify=False, tol=1e-9)
    large = sparse_pca(X * 2.0**30, n_nonzero_coefs=3, certify=False, tol=1e-9)
    cases = [(result, X) for result in results]
    for result, data in [*cases, (small, X * 2.0**-30), (large, X * 2.0**30)]:
        certificate = result.certificate
        assert verify(result, data)
        for factor in (1 - 1e-6, 1 + 1e-6):
            assert "explain" in verify(claim(result, value=certificate.value * factor), data).reason
            variances = result.variances.copy()
            variances[-1] *= factor
            assert "explains" in verify(replace(result, variances=variances), data).reason
        more = replace(result, variances=np.append(result.variances, 0.0))
        assert "numbers, not" in verify(more, data).reason
        for rounding in (0.0, -1e-9 * certificate.value, 1e-6 * certificate.value):
            assert "rounding" in verify(claim(result, rounding=rounding), data).reason
        total = replace(result, total_variance=result.total_variance * (1 + 1e-5))
        assert "total variance" in verify(total, data).reason


def test_check_value_asks_for_the_whole_rounding_margin(results, monkeypatch):
    """Errors of the covariance and of the sum, both in full."""
    result = results[0]
    cov = covariance_of_data(X, True, False, None, result.certificate.unit)[0]
    for unit, eps in ((1e-6, 0.0), (0.0, 1e-6)):
        monkeypatch.setattr(value, "EPS", eps)
        cov.error_unit = unit
        size = float(np.abs(cov.diagonal[result.supports[0]]).sum())
        margin = (cov.rounding(3) + 4 * 11 * eps * size) * cov.unit
        short = 1e-9 * result.value
        enough = claim(result, rounding=margin + short)
        value.check_value(enough, cov)
        with pytest.raises(Refused, match="rounding margin"):
            value.check_value(claim(result, rounding=margin - short), cov)
    # of overlapping components as much more as errors grow
    result, cov.error_unit = results[2], 1e-9
    monkeypatch.setattr(value, "EPS", 0.0)
    monkeypatch.setattr(value, "_variances", lambda A, W, free: (result.variances / cov.unit, 9.0))
    sizes = result.settings["n_nonzero_coefs"]
    margin = 9.0 * sum(cov.rounding(s) for s in sizes) * cov.unit
    value.check_value(claim(result, rounding=margin * 1.01), cov)
    with pytest.raises(Refused, match="rounding margin"):
        value.check_value(claim(result, rounding=margin * 0.99), cov)


@pytest.mark.parametrize("off", [1e-12, 1e-6, 1.0])
def test_verify_refuses_loadings_of_another_length(results, off):
    for result in results:
        for factor in (1 + off, 1 / (1 + off)):
            weights = tuple(w * factor for w in result.weights)
            longer = replace(result, weights=weights, variances=result.variances * factor**2)
            verdict = verify(claim(longer, value=result.value * factor**2), X)
            assert "norm" in verdict.reason


def test_check_value_caps_the_slack_when_errors_grow(monkeypatch):
    """Loadings that make errors grow do not widen what may be claimed."""
    for size in (2.0**-30, 1.0, 2.0**30):
        free = {"n_components": 2, "supports": "free", "method_options": {"effort": 0}}
        result = sparse_pca(X * size, n_nonzero_coefs=2, certify=False, **free)
        cov = covariance_of_data(X * size, True, False, None, result.certificate.unit)[0]
        known = (result.variances / cov.unit, 1e12)
        monkeypatch.setattr(value, "_variances", lambda A, W, free, known=known: known)
        for factor in (1 - 1e-4, 1 + 1e-4):
            with pytest.raises(Refused, match="explain"):
                value.check_value(claim(result, value=result.value * factor), cov)


@pytest.mark.parametrize("tol", [1e-9, 0.1])
def test_check_value_refuses_optimality_that_rounding_may_hide(results, monkeypatch, tol):
    result = results[2]
    cov = covariance_of_data(X, True, False, None, result.certificate.unit)[0]
    monkeypatch.setattr(value, "EPS", 0.0)
    known = (result.variances / cov.unit, 1.0)
    monkeypatch.setattr(value, "_variances", lambda A, W, free: known)
    for share, refused in ((0.9, False), (1.1, True)):
        margin = share * (2 * tol + 1e-6) * result.value
        cov.error_unit = 1.0
        cov.error_unit = margin / cov.unit / (cov.rounding(3) + cov.rounding(2))
        bound = replace(result.certificate.bounds[0], value=result.value)
        sure = claim(
            result, bound=bound.value, bounds=(bound,), tol=tol, rounding=margin * (1 + 1e-9)
        )
        assert sure.certificate.status is Status.OPTIMAL
        if refused:
            with pytest.raises(Refused, match="may hide"):
                value.check_value(sure, cov)
        else:
            value.check_value(sure, cov)


def test_variances_report_how_errors_grow():
    A = np.array([[4.0, 1.0, 0.5], [1.0, 3.0, 0.2], [0.5, 0.2, 2.0]])
    variances, growth = value._variances(A, np.eye(3), True)
    first = (1 + 0.25) ** 2
    rest = A[1:, 1:] - np.outer(A[1:, 0], A[1:, 0]) / 4
    second = (1 + rest[1, 0] / rest[0, 0]) ** 2
    assert growth == pytest.approx(1 + first + first * second)
    assert variances == pytest.approx([4.0, rest[0, 0], np.linalg.det(A) / 4 / rest[0, 0]])
    assert value._variances(A, np.eye(3), False)[1] == 1.0
    # the third is a combination of the others: it explains nothing
    W = np.array([[1.0, 0.0, 0.6], [0.0, 1.0, 0.8], [0.0, 0.0, 0.0]])
    assert value._variances(A, W, True)[0][2] == 0.0


def test_verify_refuses_supports_that_repeat_or_leave_the_table(results):
    result = results[0]
    support = result.supports[0].copy()
    for wrong in (support[[0, 0, 2]], support[[1, 0, 2]]):
        assert "out of order" in verify(replace(result, supports=(wrong,)), X).reason
    for wrong in (support - support.max() - 1, support + 6):
        assert "must lie in" in verify(replace(result, supports=(wrong,)), X).reason


@pytest.mark.parametrize(
    "sizes", [[0], [-1], [2.0], ["2"], [True], "2", 2, [2, 0]], ids=lambda sizes: repr(sizes)
)
def test_verify_refuses_cardinalities_that_are_no_positive_integers(results, sizes):
    settings = {**results[0].settings, "n_nonzero_coefs": sizes}
    if isinstance(sizes, list):
        settings["n_components"] = len(sizes)
    assert verify(replace(results[0], settings=settings), X).verdict == "refused"


@pytest.fixture
def dropping(monkeypatch):
    monkeypatch.setattr(Stream, "most", lambda self, needed: 4)
    monkeypatch.setattr(Stream, "first", lambda self, needed, rough: 4)


def told(result, **changes):
    """What is said of dropped features, changed in certificate and proof alike."""
    (bound,) = result.certificate.bounds
    unit = result.certificate.unit
    inner = {key: value / unit for key, value in changes.items() if key != "rule"}
    inner |= {"rule": changes["rule"]} if "rule" in changes else {}
    data = {**bound.data, "screened": {**bound.data["screened"], **inner}}
    screening = {**result.certificate.screening, **changes}
    value = max(screening["touching"], screening["inside"])
    sure = result.value - result.certificate.rounding
    screening["support_unchanged"] = bool(screening["touching"] < sure)
    screening["bound_holds"] = bool(screening["touching"] <= screening["inside"])
    bound = replace(bound, value=value, data=data)
    return claim(result, bound=value, bounds=(bound,), screening=screening)


@pytest.mark.parametrize("supports", ["disjoint", "free"])
def test_verify_refuses_claims_that_play_dropped_features_down(dropping, supports):
    result = sparse_pca(
        X, n_components=2, n_nonzero_coefs=2, supports=supports, memory_limit=1, certify=False
    )
    claims = result.certificate.screening
    assert claims["dropped"] == 2
    assert verify(told(result), X)
    for name, words in (("touching", "may add more"), ("inside", "bound is too small")):
        for factor in (1 - 1e-9, 1 - 1e-3):
            verdict = verify(told(result, **{name: claims[name] * factor}), X)
            assert verdict.verdict == "refused"
            assert words in verdict.reason or "can be proved" in verdict.reason
    sure = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(screened, "unfounded", lambda *given: sure.append(given[-1]) or "")
        verify(told(result), X)
    assert sure == [result.value - result.certificate.rounding]
    for name in ("kept", "dropped"):
        changed = {**claims, name: claims[name] + 1}
        assert "numbers of kept" in verify(claim(result, screening=changed), X).reason
    for factor in (1 - 1e-6, 1 + 1e-6):
        changed = {**claims, "largest_dropped": claims["largest_dropped"] * factor}
        assert "largest variance" in verify(claim(result, screening=changed), X).reason
    for name, other in (("touching", 0.9), ("inside", 0.9), ("touching", 1.1), ("inside", 1.1)):
        changed = {**claims, name: claims[name] * other}
        assert "told differently" in verify(claim(result, screening=changed), X).reason
    for name in ("support_unchanged", "bound_holds"):
        changed = {**claims, name: not claims[name]}
        assert "does not follow" in verify(claim(result, screening=changed), X).reason


def test_verify_checks_dropped_features_when_they_add_little(dropping):
    """Where kept features bound the whole, a claim about the others is still checked."""
    table = RNG.standard_normal((40, 6)) * [3.0, 2.8, 2.5, 2.2, 0.1, 0.05]
    result = sparse_pca(table, n_components=3, n_nonzero_coefs=1, memory_limit=1, certify=False)
    claims = result.certificate.screening
    assert claims["touching"] < 0.99 * claims["inside"]
    assert verify(told(result), table)
    for factor in (1 - 1e-9, 0.9):
        verdict = verify(told(result, touching=claims["touching"] * factor), table)
        assert "may add more" in verdict.reason


# --- nothing hides in a margin ---


def test_verify_refuses_a_bound_that_is_below_a_known_optimum_by_rounding_only():
    """The optimum is one, exactly; no slack is left below it."""
    result = sparse_pca(covariance=np.eye(3), n_nonzero_coefs=1)
    assert verify(result, covariance=np.eye(3))
    for low in (0.9999999999991, 1 - 2.0**-50):
        first = replace(result.certificate.bounds[0], value=low)
        bounds = (first, *result.certificate.bounds[1:])
        for rounding in (result.certificate.rounding, 1e-10):
            forged = replace(result.certificate, bound=low, bounds=bounds, rounding=rounding)
            verdict = verify(replace(result, certificate=forged), covariance=np.eye(3))
            assert verdict.verdict == "refused"


@pytest.mark.parametrize("rounding", [1e-9, 1e-11, 0.0])
def test_verify_refuses_a_rounding_that_is_not_that_of_the_computation(rounding):
    result = sparse_pca(covariance=np.diag([1.0, 0.5, 0.25]) + 0.125, n_nonzero_coefs=2)
    forged = replace(result.certificate, rounding=rounding)
    verdict = verify(
        replace(result, certificate=forged), covariance=np.diag([1.0, 0.5, 0.25]) + 0.125
    )
    assert "rounding margin" in verdict.reason


@pytest.mark.parametrize("memory", [1 << 30, 1])
def test_verify_compares_moments_in_the_units_of_their_own_feature(memory):
    """However large the other columns are."""
    table = np.random.default_rng(2).standard_normal((50, 4)) * [1e12, 1.0, 1.0, 1.0]
    result = sparse_pca(table, n_nonzero_coefs=2, scale=True, memory_limit=memory, certify=False)
    assert verify(result, table)
    for name, change in (("mean", 1e-9), ("mean", 10.0), ("scale", 1e-9), ("scale", 60.0)):
        moved = getattr(result, name).copy()
        moved[1] += change
        verdict = verify(replace(result, **{name: moved}), table)
        assert verdict.verdict == "refused"
        assert name in verdict.reason


def test_verify_refuses_a_margin_that_is_not_that_of_the_covariance():
    table = np.random.default_rng(4).standard_normal((40, 6))
    for settings in ({}, {"n_components": 2}, {"n_components": 2, "supports": "free"}):
        result = sparse_pca(table, n_nonzero_coefs=2, scale=True, **settings)
        assert verify(result, table)
        for place, bound in enumerate(result.certificate.bounds):
            for factor in (0.0, 0.4, 40.0):
                bounds = list(result.certificate.bounds)
                bounds[place] = replace(bound, margin=factor * bound.margin)
                forged = replace(result.certificate, bounds=tuple(bounds))
                assert "margin" in verify(replace(result, certificate=forged), table).reason


def test_what_rounding_may_hide_is_told_from_the_gap_that_is_claimed():
    result = sparse_pca(np.random.default_rng(0).standard_normal((40, 6)), n_nonzero_coefs=2)
    certificate = replace(result.certificate, value=1.0, bound=1.0 + 2e-11, rounding=1e-11)
    said = checker._sentence(certificate, Float())
    assert said.endswith("to within 3.01e-09 % (2.01e-09 % is claimed, rounding may hide the rest)")
    assert "claimed" not in checker._sentence(replace(certificate, bound=1.03), Float())
