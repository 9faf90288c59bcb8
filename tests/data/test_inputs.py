"""Data come in through one door: read as often as needed, checked once, under one clock."""

from __future__ import annotations

import time

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.utils import validation

from sparcipal import SparsePCA, Table, compare, read, sparse_path, sparse_pca, verify
from sparcipal.data import rows as rows_module
from sparcipal.data import table as table_module
from sparcipal.data.inputs import Door, resolved
from sparcipal.data.moments import Moments
from sparcipal.data.screening import Screened
from sparcipal.data.sources import as_rows
from sparcipal.data.table import as_table
from sparcipal.problem.monitor import Monitor

X = np.random.default_rng(0).standard_normal((100, 7)) * np.geomspace(3, 1, 7)
QUESTION = {"n_nonzero_coefs": 4, "certify": False}
SIXTY_ROWS = 60 * 7 * 8  # bytes


class Counted:
    """A function of ten blocks that remembers how many blocks each call gave."""

    def __init__(self, wait=0.0, blocks=10):
        self.calls, self.wait, self.n = [], wait, blocks

    def __call__(self):
        self.calls.append(0)
        for start in range(0, 10 * self.n, 10):
            time.sleep(self.wait)
            self.calls[-1] += 1
            yield X[start % 100 : start % 100 + 10]


FACES = {
    "function": lambda source, **asked: sparse_pca(source, **asked),
    "estimator": lambda source, **asked: SparsePCA(**asked).fit(source).result_,
    "path": lambda source, n_nonzero_coefs, **asked: sparse_path(
        source, n_nonzero_coefs=[n_nonzero_coefs], **asked
    )[0],
}


@pytest.mark.parametrize("face", FACES)
@pytest.mark.parametrize(
    ("limit", "calls"), [(1 << 20, [10]), (SIXTY_ROWS, [10, 10]), (1, [10, 10])]
)
def test_a_function_of_blocks_is_read_once_if_it_fits_and_else_twice(face, limit, calls):
    source = Counted()
    result = FACES[face](source, memory_limit=limit, **QUESTION)
    assert source.calls == calls
    assert result.value == pytest.approx(sparse_pca(X, **QUESTION).value, rel=1e-9)


@pytest.mark.parametrize("face", FACES)
def test_a_function_of_blocks_is_read_twice_where_variances_prove_the_answer(face):
    rng = np.random.default_rng(0)
    wide = rng.standard_normal((100, 60)) * np.geomspace(10, 0.01, 60)
    wide[:, :3] += 20 * rng.standard_normal((100, 1))
    readings = []

    def blocks():
        readings.append(1)
        return iter(np.array_split(wide, 10))

    result = FACES[face](blocks, n_nonzero_coefs=3, memory_limit=20_000)
    assert len(readings) == 2
    assert result.certificate.screening["dropped"] > 0
    assert verify(result, blocks)
    assert len(readings) == 3


@pytest.mark.parametrize("limit", [1 << 20, 1])
def test_a_check_reads_a_function_of_blocks_once(limit):
    result = sparse_pca(X, memory_limit=limit, **QUESTION)
    source = Counted()
    assert verify(result, source)
    assert source.calls == [10]


def test_scores_of_a_function_of_blocks_take_one_reading():
    model, source = SparsePCA(**QUESTION).fit(X), Counted()
    np.testing.assert_array_equal(model.transform(source), model.transform(X))
    assert source.calls == [10]


def test_a_comparison_reads_what_fits_once():
    source = Counted()
    compare(source, ["threshold", "tpower", "em"], **QUESTION | {"certify": "fast"})
    assert source.calls == [10]


@pytest.mark.parametrize("weights", [None, np.arange(100) % 3 + 0.5])
def test_the_first_reading_counts_the_moments_of_a_pass_to_the_last_bit(weights):
    for block in (X, sp.csr_array(X * (X > 0)), np.rint(4 * X).astype(int)):
        parts = [block[start : start + 9] for start in range(0, 100, 9)]
        counted, passed = (as_rows(lambda parts=parts: iter(parts)) for _ in range(2))
        for rows in (counted, passed):
            if weights is not None:
                rows.weighted(weights)
        assert counted.gathered(5000) is None
        expected = passed.accumulate(Moments(7)).arrays()
        for name, array in counted.count().arrays().items():
            np.testing.assert_array_equal(array, expected[name])


def test_weights_count_the_same_whether_a_function_fits_or_not():
    weights = np.arange(100) % 3 + 0.5
    answers = [
        sparse_pca(Counted(), sample_weight=weights, memory_limit=limit, **QUESTION)
        for limit in (1, SIXTY_ROWS, 1 << 20)
    ]
    assert answers[0].value == answers[1].value
    assert answers[0].value == pytest.approx(answers[2].value, rel=1e-9)
    assert all(answer.settings["sample_weight"] for answer in answers)


@pytest.fixture
def checks(monkeypatch):
    """How often entries are looked at: by us, or by scikit-learn."""
    seen = []

    def counting(check):
        def counted(*given, **options):
            seen.append(check)
            return check(*given, **options)

        return counted

    for module in (table_module, validation):
        monkeypatch.setattr(module, "check_array", counting(module.check_array))
    return seen


@pytest.mark.parametrize("face", FACES)
def test_data_are_checked_once(face, checks):
    FACES[face](X, **QUESTION)
    assert len(checks) == 1


@pytest.mark.parametrize("face", FACES)
def test_a_table_that_was_checked_is_not_checked_again(face, checks):
    table = read(X, feature_names=list("abcdefg"))
    assert len(checks) == 1
    result = FACES[face](table, **QUESTION)
    assert as_table(table, list("hijklmn")).feature_names == tuple("hijklmn")
    assert len(checks) == 1
    assert result.feature_names == tuple("abcdefg")


def test_a_table_that_was_not_checked_is():
    from dataclasses import replace

    bad = X.copy()
    bad[3, 2] = np.nan
    for table in (Table(bad), replace(read(X), X=bad)):
        with pytest.raises(ValueError, match=r"the first in row 3 .counted from 0., column 2"):
            sparse_pca(table, **QUESTION)


@pytest.mark.parametrize("limit", [1 << 20, 1])
@pytest.mark.parametrize("face", FACES)
def test_a_time_limit_ends_the_reading_of_a_slow_function(face, limit, monkeypatch):
    monkeypatch.setattr(rows_module, "GRACE", 0.0)
    source = Counted(wait=0.02, blocks=500)
    with pytest.raises(TimeoutError, match="time_limit ended while the rows were read"):
        FACES[face](source, time_limit=0.2, memory_limit=limit, **QUESTION)
    assert len(source.calls) == 1
    assert source.calls[0] <= 50, "ten blocks take as long as the limit"


@pytest.mark.parametrize("face", FACES)
def test_one_clock_runs_from_the_first_block_to_the_answer(face):
    seen = []
    FACES[face](Counted(wait=0.01), memory_limit=1, callback=seen.append, **QUESTION)
    seconds = [progress.seconds for progress in seen]
    assert seconds == sorted(seconds)
    assert seconds[-1] >= 0.2, "two readings of ten blocks"
    assert {progress.stage for progress in seen} >= {"moments", "products", "search"}


def test_sparse_blocks_that_fit_are_the_table():
    S = sp.csr_array(np.where(np.abs(X) > 0.5, X, 0.0))
    given = resolved(lambda: iter([S[:9], S[9:]]), door=Door(1 << 20, Monitor()))
    np.testing.assert_array_equal(given.source.X.toarray(), S.toarray())
    whole = sparse_pca(S, n_nonzero_coefs=2)
    blocks = sparse_pca(lambda: iter([S[:9], S[9:].toarray()]), n_nonzero_coefs=2)
    assert blocks.value == pytest.approx(whole.value, rel=1e-12)


@pytest.mark.parametrize("limit", [1 << 20, 1])
@pytest.mark.parametrize("named", [False, True])
def test_names_that_are_given_replace_those_of_the_blocks(named, limit):
    pandas = pytest.importorskip("pandas")
    parts = [X[:40], X[40:]]
    if named:
        parts = [pandas.DataFrame(part, columns=list("hijklmn")) for part in parts]
    result = sparse_pca(
        lambda: iter(parts), feature_names=list("abcdefg"), memory_limit=limit, **QUESTION
    )
    assert result.feature_names == tuple("abcdefg")


def test_inputs_refuse_names_that_do_not_fit_a_covariance():
    A = np.diag([3.0, 2.0])
    with pytest.raises(ValueError, match="feature_names has 3 names for n_features=2"):
        sparse_pca(covariance=A, n_nonzero_coefs=1, feature_names=["a", "b", "c"])
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(A, columns=["a", "b"], index=["b", "a"])
    with pytest.raises(ValueError, match="other names in its rows than in its columns"):
        sparse_pca(covariance=frame, n_nonzero_coefs=1)
    screened = Screened(A, np.array([0, 1]), np.array([3.0, 2.0, 1.0]))
    with pytest.raises(ValueError, match="feature_names has 2 names for n_features=3"):
        sparse_pca(covariance=screened, n_nonzero_coefs=1, feature_names=["a", "b"])


TABLE = np.random.default_rng(0).standard_normal((20, 6))


def with_entry(value):
    bad = TABLE.copy()
    bad[3, 2] = value
    return bad


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"X": with_entry(np.nan)}, ValueError, ["NaN"]),
        ({"X": with_entry(np.inf)}, ValueError, ["infinity"]),
        ({"X": sp.csr_array(with_entry(np.nan))}, ValueError, ["NaN"]),
        ({"X": TABLE[0]}, ValueError, ["2D array"]),
        ({"X": TABLE[:0]}, ValueError, ["sample"]),
        ({"X": TABLE[:, :0]}, ValueError, ["feature"]),
        ({"X": TABLE[:1]}, ValueError, ["n_samples=1", "center=False"]),
        ({"X": np.ones((5, 3))}, ValueError, ["constant"]),
        ({"X": sp.csr_array(np.ones((5, 3)))}, ValueError, ["constant"]),
        ({"X": TABLE + 1j}, ValueError, ["omplex"]),
        ({"X": np.array([["a", "b"], ["c", "d"]])}, ValueError, ["numbers"]),
        ({"X": TABLE * 1e200}, ValueError, ["1e150"]),
        ({"X": TABLE * 1e-200}, ValueError, ["1e-140"]),
        ({}, ValueError, ["exactly one of X"]),
        ({"X": TABLE, "covariance": np.eye(3)}, ValueError, ["exactly one of X"]),
        ({"X": TABLE, "feature_names": ["a"]}, ValueError, ["1", "6"]),
    ],
)
def test_inputs_refuse_tables_that_cannot_be_worked_with(arguments, error, words):
    with pytest.raises(error) as caught:
        sparse_pca(**arguments)
    for word in words:
        assert word in str(caught.value)


def test_a_covariance_passed_as_data_is_pointed_out():
    A = np.cov(np.random.default_rng(0).standard_normal((30, 4)).T)
    with pytest.warns(UserWarning, match="pass covariance=X"):
        sparse_pca(A, n_nonzero_coefs=2)


def test_wide_sparse_tables_are_read_in_passes_even_if_they_fit(monkeypatch):
    """In memory their products would be repeated for every block of rows a bound asks for."""
    monkeypatch.setattr(rows_module, "WIDE", 20)
    monkeypatch.setattr(rows_module, "WORK", 10_000)
    counts = np.random.default_rng(1).poisson(1 / np.arange(1, 31), (200, 30))
    for given in (sp.csr_array(counts), lambda: iter([sp.csr_array(counts)])):
        result = sparse_pca(given, n_nonzero_coefs=3)
        assert result.certificate.screening
        assert result.value == pytest.approx(sparse_pca(counts, n_nonzero_coefs=3).value)
    few = sparse_pca(sp.csr_array(counts[:, :15]), n_nonzero_coefs=3)
    assert not few.certificate.screening
