"""Claims made of objects that are not what they look like: everything behind the gate is plain."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import pytest

from sparcipal import Result, sparse_pca, verify
from sparcipal.checker.budget import Refused
from sparcipal.checker.gate import Codes, Document, Features, Matrix, Number, Numbers, Text
from sparcipal.problem.result import Bound, Certificate, Status

rng = np.random.default_rng(1)
X = rng.standard_normal((30, 8))


class Sequel(np.ndarray):
    """An array to which every number is at least any other."""

    def __ge__(self, other):
        return np.ones(self.shape, dtype=bool)


def claim(result: Result, **change) -> Result:
    made = replace(result.certificate, **change)
    ended = Status.OPTIMAL if made.gap <= made.tol else Status.GAP
    return replace(result, certificate=replace(made, status=ended))


def only(result: Result, bound: Bound, **change) -> Result:
    return claim(result, bounds=(bound,), bound=bound.value, **change)


@pytest.fixture(scope="module")
def result() -> Result:
    return sparse_pca(X, n_nonzero_coefs=3)


# --- precision ---


def test_single_precision_is_compared_as_the_number_that_it_is():
    """In single precision the penalty rounds up to the entries that exceed it: the eigenvalues
    of the smaller matrix are a bound below the optimum, which is 40."""
    p = 40
    A = np.ones((p, p))
    honest = sparse_pca(covariance=A, n_nonzero_coefs=p, method="dspca", certify=False)
    assert verify(honest, covariance=A)
    step = float(np.finfo(np.float32).eps)
    penalty, entry = (1 + 0.5005 * step) / 4, np.float32((1 + step) / 4)
    assert float(entry) > penalty
    assert np.float32(penalty) == entry
    moved = np.full(p * (p - 1) // 2, -entry)
    unit = honest.certificate.unit
    M = A / unit - float(entry) * (1 - np.eye(p)) - penalty * np.eye(p)
    value = (np.linalg.eigvalsh(M)[-1] + penalty * p) * unit * (1 + 1e-10)
    assert value < p
    x = np.ones(p) / np.sqrt(p)
    x[0] += 6e-4
    x /= np.linalg.norm(x)
    worse = float(x @ A @ x)
    data = {"penalty": penalty, "core": np.arange(p), "moved": moved}
    bound = Bound("dspca-dual", value, data, honest.certificate.bounds[0].margin)
    forged = only(replace(honest, weights=(x,), variances=np.array([worse])), bound, value=worse)
    for one in (forged, Result.from_json(forged.to_json())):
        assert "further than the penalty" in verify(one, covariance=A).reason


@pytest.mark.parametrize("kind", [np.float16, np.longdouble])
def test_numbers_of_other_precisions_are_refused(result, kind):
    weights = (result.weights[0].astype(kind),)
    assert "an array of" in verify(replace(result, weights=weights), X).reason
    first = replace(result.certificate.bounds[0], value=kind(result.bound))
    assert "where a number should be" in verify(only(result, first), X).reason


def test_norms_are_those_of_the_stored_numbers(result):
    """The norm of these, in single precision, would be one."""
    grown = (result.weights[0] * (1 + 7e-8)).astype(np.float32)
    assert "norm" in verify(replace(result, weights=(grown,)), X).reason


@pytest.mark.parametrize("stored", [np.float32, np.float64, ">f4", ">f8"])
def test_arrays_are_plain_copies_in_double_precision(stored):
    raw = np.asfortranarray(np.ones((3, 2), dtype=stored)).view(Sequel)
    matrix = Matrix("p", 2).read(raw, "here", {"p": 3})
    numbers = Numbers(high=1.0).read(raw[:, 0], "here", {})
    for array in (matrix, numbers):
        assert type(array) is np.ndarray
        assert array.dtype == np.float64
        assert array.dtype.isnative
        assert array.flags.c_contiguous
        assert not np.shares_memory(array, raw)


def test_integers_are_plain_copies():
    raw = np.array([1, 2], dtype=np.int8)
    codes = Codes(0, 9).read(raw.view(Sequel), "here", {})
    assert type(codes) is np.ndarray
    assert not np.shares_memory(codes, raw)
    native = np.array([0, 1], dtype=np.intp)
    assert not np.shares_memory(Features("p").read(native, "here", {"p": 3}), native)


# --- subclasses ---


def test_masks_and_methods_of_arrays_hide_no_negative_loading(result):
    """Loadings of both signs, claimed as those of a nonnegative component."""
    weights = result.weights[0]
    assert (weights < 0).any()
    trace = next(b for b in result.certificate.bounds if b.name == "trace")
    asked = {**result.settings, "nonnegative": True}
    masked = np.ma.masked_array(weights, mask=weights < 0)
    for loadings, words in ((masked, "MaskedArray"), (weights.view(Sequel), "negative")):
        forged = only(replace(result, settings=asked, weights=(loadings,)), trace)
        assert words in verify(forged, X).reason


def test_numbers_and_texts_are_of_the_types_themselves():
    class Real(float):
        def __float__(self):
            return 0.0

    class Name(str):
        __slots__ = ()

    with pytest.raises(Refused, match="a Real where"):
        Number().read(Real(7.0), "here", {})
    with pytest.raises(Refused, match="a Name where"):
        Text().read(Name("trace"), "here", {})
    assert type(Number().read(np.float64(1.0), "here", {})) is float


def test_records_that_change_between_reads_are_refused(result):
    class Moody(dict):
        def __getitem__(self, key):
            raise AssertionError("a subclass is not asked")

    first = result.certificate.bounds[0]
    for data in (Moody(first.data), {**first.data, "log": Moody()}):
        assert "a Moody" in verify(only(result, replace(first, data=data)), X).reason
    with pytest.raises(Refused, match="a Moody"):
        Document().read({"parts": [Moody()]}, "here", {})
    settings = replace(result, settings=Moody(result.settings))
    assert "settings" in verify(settings, X).reason


def test_documents_are_copies_of_limited_depth():
    raw = {"parts": [{"s": np.int64(2), "u": np.ones(2)}]}
    copy = Document().read(raw, "here", {})
    raw["parts"][0]["u"][0] = raw["parts"][0]["s"] = 9
    assert copy["parts"][0]["s"] == 2
    assert type(copy["parts"][0]["s"]) is int
    assert copy["parts"][0]["u"].tolist() == [1.0, 1.0]
    raw["self"] = raw
    with pytest.raises(Refused, match="nested too deeply"):
        Document().read(raw, "here", {})
    with pytest.raises(Refused, match="a set in a proof"):
        Document().read({"parts": set()}, "here", {})


def test_the_gap_is_that_of_the_numbers(result):
    class Closed(Certificate):
        @property
        def gap(self) -> float:
            return 0.0

    trace = next(b for b in result.certificate.bounds if b.name == "trace")
    wide = only(result, trace)
    assert wide.status is Status.GAP
    told = {f.name: getattr(wide.certificate, f.name) for f in fields(Certificate)}
    forged = replace(wide, certificate=Closed(**{**told, "status": Status.OPTIMAL}))
    assert verify(forged, X).verdict == "refused"
