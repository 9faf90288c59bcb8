"""Tables that do not fit in memory: what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from sparcipal import sparse_pca
from sparcipal.data.passes import Stream
from sparcipal.data.sources import as_rows
from sparcipal.problem.monitor import Monitor

X = np.random.default_rng(0).standard_normal((20, 5))


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (X[:1], "centring leaves nothing"),
        (X * 1e151, "whose square overflows"),
        (X * 1e-150, "variances underflow"),
    ],
)
def test_fit_in_passes_refuses_values_without_usable_variance(rows, message):
    with pytest.raises(ValueError, match=message):
        sparse_pca(lambda: iter([rows]), n_nonzero_coefs=1, memory_limit=1)


def _numbers(kind):
    rng = np.random.default_rng(3)
    table = rng.standard_normal((400, 60)) * np.linspace(3, 1, 60) + rng.uniform(-5, 5, 60)
    return np.round(10 * table).astype(np.int64) if kind == "integers" else table


CHANGES = {
    "scaled": lambda rows: 1000 * rows,
    "columns reversed": lambda rows: rows[:, ::-1],
    "sign": lambda rows: -rows,
    "zeros": lambda rows: 0 * rows,
    "one entry": lambda rows: rows + (np.arange(rows.size).reshape(rows.shape) == 0),
    "same means, wider": lambda rows: 2 * rows - rows.mean(axis=0),
    "noise": lambda rows: np.random.default_rng(9).standard_normal(rows.shape),
}


def _changing(first, second):
    """A source of blocks whose second pass gives other rows."""
    passes = iter([first])
    return lambda: iter(np.array_split(next(passes, second), 3))


@pytest.mark.parametrize("kind", ["integers", "floats"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("change", CHANGES)
def test_a_second_pass_over_other_rows_is_refused(kind, weighted, change):
    table = _numbers(kind)
    other = CHANGES[change](table).astype(table.dtype)
    weights = np.random.default_rng(5).uniform(0.5, 2, len(table)) if weighted else None
    with pytest.raises(ValueError, match="must give the same rows each time") as caught:
        sparse_pca(
            _changing(table, other), n_nonzero_coefs=3, memory_limit=20_000, sample_weight=weights
        )
    assert "mean" in str(caught.value)


def test_the_first_feature_that_differs_is_named_with_both_means():
    table = _numbers("integers")
    names = [f"name{j}" for j in range(60)]
    other = table.copy()
    other[0, 4:] += 400
    with pytest.raises(ValueError, match=r"feature 4 \('name4'\)") as caught:
        sparse_pca(
            _changing(table, other), n_nonzero_coefs=3, memory_limit=20_000, feature_names=names
        )
    for rows in (table, other):
        assert f"mean {rows[:, 4].mean():.10g} " in str(caught.value)


def test_a_memory_map_that_changes_between_passes_is_refused(tmp_path, monkeypatch):
    from sparcipal.data import passes

    table = _numbers("floats")
    np.save(tmp_path / "x.npy", table)
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r+")
    order = passes.Stream.order

    def then_written(stream):
        mapped[:] = table[::-1] * 1.001
        return order(stream)

    monkeypatch.setattr(passes.Stream, "order", then_written)
    with pytest.raises(ValueError, match="must give the same rows each time"):
        sparse_pca(mapped, n_nonzero_coefs=3, memory_limit=20_000)


def test_rows_in_another_order_and_type_are_the_same_rows():
    table = _numbers("integers")
    for other in (table[::-1], table[::-1].astype(np.float64)):
        result = sparse_pca(_changing(table, other), n_nonzero_coefs=3, memory_limit=20_000)
        assert result.n_samples == len(table)


@pytest.mark.parametrize("size", [1e-138, 1e-100, 1.0, 1e130])
@pytest.mark.parametrize("mean", [0.0, 1.0, 1e8, 1e15])
def test_the_same_rows_in_other_blocks_are_no_cause_for_alarm(size, mean):
    rng = np.random.default_rng(7)
    table = (rng.standard_normal((501, 40)) + mean) * size
    table[:, 7] *= 1e-160  # its squares underflow
    table[:, 8] = size
    weights = rng.uniform(1e-3, 1e3, 501)
    for weight in (None, weights):
        cuts = iter([5, 31])
        source = lambda cuts=cuts: iter(np.array_split(table, next(cuts, 7)))  # noqa: E731
        sparse_pca(
            source, n_nonzero_coefs=3, memory_limit=10_000, sample_weight=weight, certify=False
        )


def test_several_components_keep_features_down_to_a_share_of_the_variances():
    """The default proof leaves a small gap, so that features which hardly vary need no products."""
    spread = np.sqrt(np.r_[np.full(40, 1.0), np.full(50, 0.1), np.full(1100, 0.01)])
    table = np.random.default_rng(0).standard_normal((60, 1190)) * spread
    stream = Stream(as_rows(table), center=True, scale=False, memory_limit=1 << 30)
    stream.count(Monitor())
    assert stream.first(10) == 1000
    assert stream.first(10, rough=True) == 90
    assert stream.first(30, rough=True) == 120  # four for each nonzero at least


def test_variances_that_are_alike_do_not_say_which_features_to_keep():
    """Covariances say it instead: then as many are kept at first as for a close proof."""

    def stream(spread, scale=False):
        table = np.array([[-1.0], [1.0]]) * np.sqrt(spread)
        found = Stream(as_rows(table), center=True, scale=scale, memory_limit=1 << 30)
        found.count(Monitor())
        return found

    even, steep = np.ones(1200), np.r_[np.full(20, 10.0), np.ones(1180)]
    assert stream(even).alike(10, 1000)
    assert not stream(steep).alike(10, 1000)
    assert stream(steep, scale=True).alike(10, 1000)
    assert not stream(even[:900]).alike(10, 1000)  # all are kept
    assert stream(even).first(10, rough=True) == stream(even).first(10) == 1000
    assert stream(even, scale=True).first(10, rough=True) == 1000
    assert stream(even, scale=True).first(10) == 1200


def test_a_further_round_keeps_all_variances_that_matter_or_twice_as_many():
    table = np.array([[-1.0], [1.0]]) * np.sqrt(np.r_[np.full(30, 10.0), np.ones(970)])

    def more(count, enough, limit=1 << 30):
        stream = Stream(as_rows(table), center=True, scale=False, memory_limit=limit)
        stream.count(Monitor())
        return stream.more(count, 10, enough)

    assert more(20, 0.5) == 1000
    assert more(20, 5.0) == 40
    assert more(20, 0.5, limit=40 * 300**2) == 300  # as many as fit
