"""The choice of k and s on tables whose structure is known."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from sparcipal import SparsePCA, choose, sparse_pca
from sparcipal.questions.choice import recommended


def planted(n=150, p=24, seed=0):
    """Two blocks of four features among noise."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p))
    X[:, :4] += 3.0 * rng.standard_normal((n, 1))
    X[:, 4:8] += 2.0 * rng.standard_normal((n, 1))
    return X


@pytest.fixture(scope="module")
def found():
    return choose(planted(), n_components=[1, 2, 4], n_nonzero_coefs=[2, 4, 7], permutations=4)


def test_planted_numbers_are_recommended(found):
    assert found.best[0] == 2
    assert found.best[1] in (2, 4)
    assert found.reason.startswith(f"Recommended: {found.best[0]} x {found.best[1]}.")
    again = choose(
        planted(seed=5), n_components=[1, 2, 3], n_nonzero_coefs=[2, 4], permutations=2,
        certify=False, random_state=3,
    )  # fmt: skip
    assert again.best[0] == 2


def test_pairs_without_room_are_left_out(found):
    assert np.isnan(found.held_out[2, 2])  # 4 x 7 of 24
    assert found.results[2][2] is None
    assert "- : the features do not suffice" in str(found)
    assert np.isfinite(found.held_out[1, 2])


def test_in_sample_figures_are_those_of_fits_with_their_certificates(found):
    alone = sparse_pca(planted(), n_components=2, n_nonzero_coefs=4)
    assert found.in_sample[1, 1] == pytest.approx(alone.value / alone.total_variance, rel=1e-9)
    assert (
        found.bound[np.isfinite(found.bound)] >= found.in_sample[np.isfinite(found.bound)]
    ).all()
    assert found.result.bound >= found.result.value


def test_held_out_share_is_the_score_of_models_that_have_not_seen_the_rows():
    X = planted(60)
    found = choose(X, n_components=[1], n_nonzero_coefs=[4], folds=3, permutations=0)
    order = np.random.default_rng([0, 1]).permutation(60)
    shares = []
    for fold in range(3):
        out = np.isin(np.arange(60), order[fold::3])
        shares.append(SparsePCA(1, 4, certify=False).fit(X[~out]).score(X[out]))
    assert found.held_out[0, 0] == pytest.approx(np.mean(shares), rel=1e-9)
    assert found.error[0, 0] == pytest.approx(np.std(shares, ddof=1) / np.sqrt(3), rel=1e-9)


@pytest.mark.parametrize("rule", ["mean", "median"])
def test_gaps_of_a_fold_are_filled_from_the_rows_that_are_not_held_out(rule):
    X = planted(60)
    X[np.random.default_rng(1).random(X.shape) < 0.2] = np.nan
    asked = {"missing": rule, "certify": False}
    order = np.random.default_rng([0, 1]).permutation(60)
    X[order[0::3], 3] += 50.0  # rows of a fold do not enter what they are filled with
    found = choose(X, n_components=[1], n_nonzero_coefs=[3], folds=3, permutations=2, **asked)
    shares = []
    for fold in range(3):
        out = np.isin(np.arange(60), order[fold::3])
        shares.append(SparsePCA(1, 3, **asked).fit(X[~out]).score(X[out]))
    assert found.held_out[0, 0] == pytest.approx(np.mean(shares), rel=1e-9)
    X[:, 23] = np.where(np.isin(np.arange(60), order[0::3]), 1.0, np.nan)
    X[order[0], 23] = 2.0  # the other folds know nothing of this column
    empty = choose(X, n_components=[1], n_nonzero_coefs=[3], folds=3, permutations=0, **asked)
    assert np.isfinite(empty.held_out).all()


def test_shares_of_a_map_count_all_features_whatever_passes_have_kept():
    rng = np.random.default_rng(0)
    X = rng.poisson(rng.uniform(1, 5, 12), (240, 12))
    X[:120, :3] += rng.poisson(4, (120, 1))
    X[120:, 5:8] += rng.poisson(5, (120, 1))
    asked = {"n_components": [1, 2], "n_nonzero_coefs": [2], "certify": False, "permutations": 0}

    def blocks():
        return iter([X[:100], X[100:]])

    assert sparse_pca(blocks, n_nonzero_coefs=2, memory_limit=3000).certificate.screening["dropped"]
    whole = choose(X, folds=3, **asked).held_out
    for limit in (3000, 2000):  # two cells share a pass, or each has its own
        found = choose(blocks, folds=3, memory_limit=limit, **asked)
        np.testing.assert_allclose(found.held_out, whole, rtol=1e-9)


def test_map_does_not_depend_on_threads_or_container():
    X = np.round(4 * planted(60))
    asked = {"n_components": [1, 2], "n_nonzero_coefs": [2, 4], "folds": 3, "certify": False}
    one = choose(X, permutations=2, **asked)
    two = choose(X, permutations=2, n_jobs=2, **asked)
    np.testing.assert_array_equal(one.held_out, two.held_out)
    np.testing.assert_array_equal(one.noise, two.noise)
    for X_ in (sp.csr_array(X), lambda: iter([X[:20], X[20:]])):
        other = choose(X_, permutations=0, memory_limit=5_000_000, **asked)
        np.testing.assert_allclose(other.held_out, one.held_out, rtol=1e-9)


def test_noise_of_sparse_tables_keeps_the_columns():
    X = sp.random_array((80, 12), density=0.3, rng=np.random.default_rng(0), format="csr")
    found = choose(X, n_components=[1], n_nonzero_coefs=[2], permutations=3, certify=False)
    assert 0 < found.noise[0, 0] < 1


def test_recommendation_follows_the_two_rules():
    held = np.array([[0.30, 0.34, 0.35], [0.50, 0.58, 0.60], [0.55, 0.62, 0.63]])
    error = np.full((3, 3), 0.03)
    noise = np.array([[[0.05] * 3, [0.10] * 3, [0.15] * 3]] * 2)
    best, reason = recommended((1, 2, 3), (2, 4, 6), held, error, noise, (30, 15, 10))
    assert best == (2, 4)  # a third adds 3 points, noise 5; 0.58 is within 0.03 of 0.60
    assert "Going on to 3 components adds 3.0 points" in reason
    assert "one standard error of the best with 2 components, 60.0 % with 6" in reason


def test_words_of_a_choice_say_what_is_not_above_noise_and_what_was_the_largest_tried():
    held = np.array([[0.084, 0.089]])
    error = np.full((1, 2), 0.001)
    noise = np.array([[[0.088, 0.09]], [[0.086, 0.088]]])
    _, reason = recommended((1,), (3, 5), held, error, noise, (9,))
    assert "explain 8.9 % of the held-out variance, the most of the numbers tried" in reason
    assert "the largest of them: more may explain more" in reason
    assert "not above noise: noise of the same columns reaches 9.2 %" in reason
    _, full = recommended((1,), (3, 5), held, error, noise, (5,))
    assert "the largest of them: there is no room for more" in full
    _, above = recommended((1,), (3, 5), 2 * held[:, ::-1], error, noise, (9,))
    assert "noise" not in above
    assert "largest" not in above
    _, nothing = recommended((1,), (3, 5), held - 1.0, error, np.full((1, 1, 2), np.nan), (9,))
    assert "That is nothing: the means of the columns predict held-out rows as well." in nothing


def test_the_gain_of_noise_that_a_recommendation_rests_on_is_kept():
    found = choose(
        planted(60),
        n_components=[1, 2],
        n_nonzero_coefs=[2],
        folds=2,
        permutations=2,
        certify=False,
    )  # fmt: skip
    assert found.noise_gain[1, 0] == pytest.approx(found.noise[1, 0] - found.noise[0, 0])
    assert np.isnan(found.noise_gain[0, 0])
    needed = found.noise_gain[1, 0] + 2 * found.noise_gain_spread[1, 0]
    gain = found.held_out[1, 0] - found.held_out[0, 0]
    assert found.best[0] == (2 if gain > needed else 1)


def test_stopped_run_is_marked():
    calls = iter(range(10**6))
    found = choose(
        planted(60), n_components=[1, 2], n_nonzero_coefs=[2], permutations=0, certify=False,
        callback=lambda progress: progress.stage == "choose" and next(calls) == 1,
    )  # fmt: skip
    assert not found.complete
    assert "Stopped before the end" in str(found)
    assert "Recommended so far, from 2 of 5 folds: " in found.reason


def test_all_that_does_not_fit_is_in_one_error():
    with pytest.raises(ValueError, match="n_components=5") as error:
        choose(planted(20, 8), n_components=[1, 5], n_nonzero_coefs=[2, 9], folds=5)
    message = str(error.value)
    assert "n_components=5 with n_nonzero_coefs=2 needs 10 of 8 features" in message
    assert "n_components=1 with n_nonzero_coefs=9 needs 9 of 8 features" in message
    assert "folds=5 leaves 4 of 20 rows in a fold, but 5 components need 12" in message


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"n_components": 3}, "n_components must be a list or range of integers, got 3"),
        ({"n_nonzero_coefs": []}, "n_nonzero_coefs is empty"),
        ({"folds": 1}, "folds=1 must be at least 2"),
        ({"method": "tpower"}, "method='tpower': choose knows method='auto' only"),
        ({"init": [[1]]}, "choose does not take init"),
    ],
)
def test_questions_that_make_no_sense_are_refused(asked, message):
    with pytest.raises((ValueError, TypeError), match=message):
        choose(planted(), **asked)


def test_picture_frames_the_recommended_cell(found):
    pytest.importorskip("matplotlib").use("Agg")
    display = found.plot()
    assert display.image_.get_array().shape == (3, 3)
    bold = [t.get_text() for t in display.axes_[0].texts if t.get_fontweight() == "bold"]
    i, j = found.n_components.index(found.best[0]), found.n_nonzero_coefs.index(found.best[1])
    assert bold == [f"{100 * found.held_out[i, j]:.1f}"]


@pytest.mark.parametrize("supports", ["orthogonal", "common"])
def test_pairs_that_do_not_fit_together_are_left_out(supports):
    found = choose(
        planted(40)[:, :4], n_components=[1, 2], n_nonzero_coefs=[1, 2], supports=supports, folds=2,
        permutations=0, certify=False,
    )  # fmt: skip
    assert np.isnan(found.held_out[1, 0]) == (supports == "common")
    assert not np.isnan(found.held_out[:, 1]).any()
    assert found.results[1][1].settings["supports"] == supports


@pytest.mark.parametrize(
    "asked", [{}, {"scale": True}, {"center": False}, {"supports": "free"}], ids=str
)
def test_figures_are_those_of_plain_regressions_on_weighted_rows(asked):
    """Held-out shares, their errors and the noise, each from its definition."""
    X, n, folds = planted(60, 8), 60, 3
    weights = np.random.default_rng(9).uniform(0.2, 2.0, n)
    found = choose(
        X, n_components=[1], n_nonzero_coefs=[3], folds=folds, permutations=2, certify=False,
        sample_weight=weights, **asked,
    )  # fmt: skip
    order = np.random.default_rng([0, 1]).permutation(n)

    def share(table, fold):
        out = np.isin(np.arange(n), order[fold::folds])
        model = SparsePCA(1, 3, certify=False, **asked)
        result = model.fit(table[~out], sample_weight=weights[~out]).result_
        Z = np.sqrt(weights)[:, None] * (table - result.mean) / result.scale
        T = Z @ result.components.T
        rest = Z[out] - T[out] @ np.linalg.lstsq(T[~out], Z[~out], rcond=None)[0]
        return 1 - (rest**2).sum() / (Z[out] ** 2).sum()

    shares = [share(X, fold) for fold in range(folds)]
    noise = [share(np.random.default_rng([0, 2, i]).permuted(X, axis=0), i) for i in range(2)]
    assert found.held_out[0, 0] == pytest.approx(np.mean(shares), rel=1e-9)
    assert found.error[0, 0] == pytest.approx(np.std(shares, ddof=1) / np.sqrt(folds), rel=1e-9)
    assert found.noise[0, 0] == pytest.approx(np.mean(noise), rel=1e-9)
    assert found.noise_spread[0, 0] == pytest.approx(np.std(noise, ddof=1), rel=1e-9)


def test_folds_that_say_nothing_are_an_error_that_names_them():
    X, asked = planted(60), {"n_components": [1], "n_nonzero_coefs": [2], "folds": 3}
    out = np.random.default_rng([0, 1]).permutation(60)[0::3]
    weights = np.ones(60)
    weights[out] = 0.0
    with pytest.raises(ValueError, match="fold 1 of 3: all of its rows have sample_weight 0"):
        choose(X, sample_weight=weights, permutations=0, **asked)
    X[out] = np.delete(X, out, axis=0).mean(axis=0)
    with pytest.raises(ValueError, match="fold 1 of 3: the rows that it holds out are the means"):
        choose(X, permutations=0, **asked)


def test_numbers_that_nobody_asked_for_fit_the_table():
    few = choose(planted(60)[:, :7], permutations=0, certify=False)
    assert few.n_components == (1, 2, 3)
    assert few.n_nonzero_coefs == (2, 3, 5)
    short = choose(planted(30), permutations=0, certify=False)
    assert short.n_components == (1, 2)  # a fold has 6 rows
    with pytest.raises(ValueError, match="needs 8 of 7 features; leave such numbers out"):
        choose(planted(60)[:, :7], n_nonzero_coefs=[2, 8])


def test_many_numbers_that_do_not_fit_are_counted():
    with pytest.raises(ValueError, match="n_components=5 with n_nonzero_coefs=5 needs") as error:
        choose(planted(), n_components=range(1, 30), n_nonzero_coefs=[5])
    assert "22 other numbers do not fit either; leave such numbers out" in str(error.value)
    assert "\n- folds=5 leaves" in str(error.value)
    assert len(str(error.value)) < 500
