"""SparsePCA as scikit-learn expects it, and what scikit-learn does not check by itself."""

from __future__ import annotations

import contextlib
import pickle
import subprocess
import sys

import joblib
import numpy as np
import pandas
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import load_iris, load_wine
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import estimator_checks
from sklearn.utils.estimator_checks import parametrize_with_checks

from sparcipal import Result, SparsePCA, Table, sparse_pca, update


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@parametrize_with_checks(
    [
        SparsePCA(),
        SparsePCA(certify=False, method="tpower"),
        SparsePCA(supports="free", nonnegative=True, scale=True),
    ]
)
def test_estimator_passes_the_checks_of_scikit_learn(estimator, check):
    check(estimator)


@pytest.mark.filterwarnings("ignore:X (has|does not have valid) feature names")
@pytest.mark.parametrize(
    "check",
    [
        "check_set_output_transform",
        "check_set_output_transform_pandas",
        "check_global_output_transform_pandas",
        "check_set_output_transform_polars",
        "check_global_set_output_transform_polars",
        "check_transformer_get_feature_names_out",
        "check_transformer_get_feature_names_out_pandas",
        "check_dataframe_column_names_consistency",
        "check_n_features_in_after_fitting",
    ],
)
def test_estimator_passes_checks_that_do_not_run_by_themselves(check):
    function = getattr(estimator_checks, check, None)
    if function is None:
        pytest.skip(f"this scikit-learn has no {check}")
    function("SparsePCA", SparsePCA(n_components=2, certify=False, method_options={"effort": 0}))


@pytest.fixture(scope="module")
def wine():
    return load_wine(return_X_y=True, as_frame=True)


def test_estimator_works_in_pipelines_and_grid_searches(wine):
    X, _ = wine
    model = make_pipeline(StandardScaler(), SparsePCA(n_components=2, certify=False))
    search = GridSearchCV(
        model,
        {"sparsepca__n_nonzero_coefs": [2, 4]},
        cv=3,
        scoring=lambda estimator, X, y=None: -_loss(estimator, X),
    ).fit(X)
    assert search.best_params_["sparsepca__n_nonzero_coefs"] == 4
    assert model.fit_transform(X).shape == (178, 2)


def _loss(model, X):
    return float(((model.inverse_transform(model.transform(X)) - X) ** 2).to_numpy().sum())


def test_estimator_survives_clone_pickle_and_joblib(wine, tmp_path):
    X, _ = wine
    fitted = SparsePCA(2, 3, scale=True).fit(X)
    assert clone(fitted).get_params() == fitted.get_params()
    for copy in (pickle.loads(pickle.dumps(fitted)), _through_joblib(fitted, tmp_path)):
        assert np.array_equal(copy.transform(X), fitted.transform(X))
        assert copy.certificate_ == fitted.certificate_ or copy.certificate_.gap == 0


# One value of every parameter that is not its default, and what it is after a round trip.
_KEPT = {
    "n_components": (2, 2),
    "n_nonzero_coefs": (3, [3]),
    "supports": ("free", "free"),
    "objective": ("adjusted", "adjusted"),
    "uncorrelated": (True, True),
    "nonnegative": (True, True),
    "method": ("tpower", "tpower"),
    "method_options": ({"restarts": 2}, {"restarts": 2}),
    "init": ([["ash", "hue"]], [["ash", "hue"]]),
    "rank": (3, 3),
    "center": (False, False),
    "scale": (True, True),
    "certify": ("full", "full"),
    "tol": (1e-3, 1e-3),
    "max_nodes": (77, 77),
    "time_limit": (60.0, 60.0),
    "n_jobs": (2, 2),
    "random_state": (7, 7),
    "verbose": (1, 1),
    "callback": (lambda progress: None, None),
    "memory_limit": ("1MiB", "1MiB"),
    "include": (["ash"], [["ash"]]),
    "exclude": ([6, "hue"], ["flavanoids", "hue"]),
    "missing": ("mean", "mean"),
}


@pytest.mark.parametrize("name", SparsePCA().get_params())
def test_every_parameter_comes_back_from_a_file(name, wine, tmp_path):
    X = wine[0]
    given, kept = _KEPT[name]
    method = "tpower" if name == "method_options" else "auto"  # "auto" has no options
    asked = {"n_nonzero_coefs": 3, "certify": False, "method": method, name: given}
    model = SparsePCA(**asked).fit(X)
    said = "set it again after load" if name == "callback" else None
    with pytest.warns(UserWarning, match=said) if said else contextlib.nullcontext():
        model.save(tmp_path / "model.json")
    loaded = SparsePCA.load(tmp_path / "model.json")
    assert loaded.get_params()[name] == kept
    if name in Result.load(tmp_path / "model.json").settings:
        assert SparsePCA.load(model.result_).get_params()[name] == kept
    again = clone(loaded).fit(X)
    assert np.array_equal(again.components_, model.components_)


def test_a_loaded_model_goes_on_under_its_constraints(wine, tmp_path):
    X = wine[0]
    model = SparsePCA(2, 3, scale=True, include=[["ash"], []], exclude=["flavanoids"])
    model.partial_fit(X[:90]).save(tmp_path / "model.json")
    loaded = SparsePCA.load(tmp_path / "model.json").partial_fit(X[90:])
    assert "ash" in loaded.result_.names(0)
    assert not loaded.components_[:, list(X).index("flavanoids")].any()
    unnamed = SparsePCA(1, 3, exclude=[2]).fit(X.to_numpy())
    assert SparsePCA.load(unnamed.result_).exclude == [2]


def test_an_answer_that_a_fit_began_with_comes_back_as_its_supports(wine, tmp_path):
    X = wine[0]
    first = SparsePCA(2, 3).fit(X)
    SparsePCA(2, 4, init=first).fit(X).save(tmp_path / "model.json")
    supports = [[X.columns[j] for j in support] for support in first.result_.supports]
    assert SparsePCA.load(tmp_path / "model.json").init == supports


def _through_joblib(model, folder):
    joblib.dump(model, folder / "model.joblib")
    return joblib.load(folder / "model.joblib")


def test_variance_is_that_of_the_scores(wine):
    X, _ = wine
    for scale in (False, True):
        model = SparsePCA(3, 4, scale=scale).fit(X)
        scores = model.transform(X)
        assert np.allclose(scores.var(axis=0), model.explained_variance_, rtol=1e-9)
        assert np.allclose(scores.mean(axis=0), 0, atol=1e-9 * scores.std())
        total = X.shape[1] if scale else X.to_numpy().var(axis=0).sum()
        assert np.allclose(model.explained_variance_ratio_, model.explained_variance_ / total)
        assert (np.diff(model.explained_variance_) <= 0).all()


def test_estimator_fixes_the_signs_of_components(wine):
    X, _ = wine
    model = SparsePCA(3, 4, scale=True).fit(X)
    lead = np.abs(model.components_).argmax(axis=1)
    assert (model.components_[np.arange(3), lead] > 0).all()
    flipped = SparsePCA(3, 4, scale=True).fit(-X)
    assert np.allclose(flipped.components_, model.components_)


def test_a_row_is_transformed_alone(wine):
    X = wine[0].to_numpy()
    model = SparsePCA(2, 5, scale=True).fit(X)
    for data in (X, sp.csr_array(X)):
        together = model.transform(data)
        apart = np.vstack([model.transform(data[[i]]) for i in range(X.shape[0])])
        assert np.array_equal(together, apart)


def test_inverse_transform_of_full_components_is_the_data():
    X = load_iris().data
    model = SparsePCA(4, 4, supports="free").fit(X)
    assert np.allclose(model.inverse_transform(model.transform(X)), X)


def test_adjusted_variance_of_all_directions_is_the_total():
    X = load_iris().data
    model = SparsePCA(4, 4, supports="free").fit(X)
    assert model.explained_variance_ratio_.sum() == pytest.approx(1.0)


def test_estimator_keeps_names_everywhere(wine):
    X, _ = wine
    model = SparsePCA(2, 3).fit(X)
    assert list(model.feature_names_in_) == list(X.columns)
    assert model.result_.feature_names == tuple(X.columns)
    assert set(model.result_.names(0)) <= set(X.columns)
    assert list(model.get_feature_names_out()) == ["sparsepca0", "sparsepca1"]
    assert any(name in str(model.table()) for name in X.columns)
    frame = SparsePCA(2, 3).set_output(transform="pandas").fit_transform(X)
    assert list(frame.columns) == ["sparsepca0", "sparsepca1"]
    with pytest.raises(ValueError, match="feature names"):
        model.transform(X.rename(columns={X.columns[0]: "other"}))
    for other in (X.assign(more=1.0), X[X.columns[::-1]]):
        with pytest.raises(ValueError, match=r"model.result_.transform\(X\), which finds columns"):
            model.transform(other)
        assert model.result_.transform(other) == pytest.approx(model.transform(X))


def test_a_table_brings_its_names(wine):
    X, _ = wine
    table = Table(X.to_numpy(), tuple(X.columns))
    model = SparsePCA(2, 3).fit(table)
    assert model.result_.feature_names == tuple(X.columns)
    assert np.array_equal(model.components_, SparsePCA(2, 3).fit(X).components_)
    assert np.array_equal(model.transform(table), model.fit_transform(table))
    other = Table(X.to_numpy(), tuple(X.columns[::-1]))
    with pytest.raises(ValueError, match="names"):
        model.transform(other)


def test_frames_of_every_kind_agree(wine):
    pl = pytest.importorskip("polars")
    pa = pytest.importorskip("pyarrow")
    from sparcipal import sparse_pca

    X, _ = wine
    expected = sparse_pca(X, n_components=2, n_nonzero_coefs=3)
    for frame in (pl.from_pandas(X), pa.Table.from_pandas(X)):
        result = sparse_pca(frame, n_components=2, n_nonzero_coefs=3)
        assert result.feature_names == expected.feature_names
        assert np.array_equal(result.components, expected.components)


def test_notes_of_a_method_are_warnings():
    model = SparsePCA(1, 2)
    result = SparsePCA(1, 2).fit(np.eye(4) + np.arange(4)).result_
    from dataclasses import replace

    from sklearn.exceptions import ConvergenceWarning

    with pytest.warns(ConvergenceWarning, match="did not converge"):
        model._keep(replace(result, note="did not converge"))


class Steps:
    """A callback of scikit-learn that counts, and stops after so many steps."""

    def __init__(self, limit=None):
        self.limit, self.names, self.ends = limit, [], []

    def setup(self, estimator, context):
        self.names.append("setup")

    def on_fit_task_begin(self, estimator, context):
        self.names.append(context.task_name)

    def on_fit_task_end(self, estimator, context, *, fitted_estimator=None):
        self.ends.append(fitted_estimator)
        return self.limit is not None and len(self.ends) >= self.limit

    def teardown(self, estimator, context):
        self.names.append("teardown")


def test_estimator_takes_callbacks_of_scikit_learn(wine):
    pytest.importorskip("sklearn.callback", reason="scikit-learn has callbacks from 1.9 on")
    X, _ = wine
    steps, seen = Steps(), []
    plain = SparsePCA(2, 3, scale=True).fit(X)
    heard = SparsePCA(2, 3, scale=True, callback=seen.append).set_callbacks(steps).fit(X)
    np.testing.assert_array_equal(heard.components_, plain.components_)
    assert steps.names[:2] == ["setup", "fit"]
    assert steps.names[2:-1] == [progress.stage for progress in seen]
    assert steps.names[-2:] == ["done", "teardown"]
    np.testing.assert_array_equal(steps.ends[-1].transform(X), plain.transform(X))


def test_a_callback_of_scikit_learn_can_stop():
    pytest.importorskip("sklearn.callback", reason="scikit-learn has callbacks from 1.9 on")
    rng = np.random.default_rng(0)
    noise = rng.standard_normal((60, 50))
    stopped = SparsePCA(n_nonzero_coefs=10, certify="full").set_callbacks(Steps(limit=3)).fit(noise)
    assert stopped.certificate_.status.value == "interrupted"
    assert stopped.certificate_.bound >= stopped.certificate_.value


def test_progress_bars_reach_into_pipelines(wine, capsys):
    callback = pytest.importorskip("sklearn.callback", reason="from scikit-learn 1.9 on")
    X, _ = wine
    model = make_pipeline(StandardScaler(), SparsePCA(2, 3))
    model.set_callbacks(callback.ProgressBar(max_propagation_depth=None)).fit(X)
    assert "SparsePCA" in capsys.readouterr().out


X = np.random.default_rng(0).standard_normal((20, 5))


def test_fit_forgets_the_names_of_an_earlier_fit():
    pandas = pytest.importorskip("pandas")
    model = SparsePCA(1, 2, certify=False).fit(pandas.DataFrame(X, columns=list("abcde")))
    assert model.feature_names_in_.tolist() == list("abcde")
    model.set_params(memory_limit=1).fit(lambda: iter([X[:9], X[9:]]))
    assert not hasattr(model, "feature_names_in_")
    assert model.n_features_in_ == 5


def test_fit_refuses_a_callback_that_cannot_be_called():
    with pytest.raises((TypeError, ValueError), match="callback"):
        SparsePCA(1, 2, callback=3).fit(X)


def test_columns_that_share_a_name_are_renamed():
    pandas = pytest.importorskip("pandas")
    pa = pytest.importorskip("pyarrow")
    values = np.random.default_rng(0).standard_normal((20, 8))
    plain = SparsePCA(n_nonzero_coefs=2).fit(values)
    frame = pandas.DataFrame(values, columns=list("abcdefga"))
    arrow = pa.table(list(values.T), names=list("abcdefga"))
    for given in (frame, arrow):
        with pytest.warns(UserWarning, match="names made distinct"):
            found = SparsePCA(n_nonzero_coefs=2).fit(given)
        assert found.feature_names_in_[-1] == "a (2)"
        np.testing.assert_array_equal(found.transform(given), plain.transform(values))


def test_estimator_refuses_tables_of_other_features_and_bad_scores():
    X = np.random.default_rng(0).standard_normal((20, 6))
    model = SparsePCA(2, 2).fit(X)
    with pytest.raises(ValueError, match="6 features"):
        model.transform(X[:, :5])
    with pytest.raises(ValueError, match="one column per component: 2"):
        model.inverse_transform(X[:, :3])
    with pytest.raises(ValueError, match="X contains NaN"):
        model.inverse_transform(np.full((3, 2), np.nan))
    with pytest.raises(TypeError, match="dense data is required"):
        model.inverse_transform(sp.csr_array(np.ones((3, 2))))


@pytest.mark.parametrize("kind", [np.asarray, pandas.DataFrame, sp.csr_array])
def test_rows_with_gaps_are_refused_with_the_rules_that_score_them(kind, wine):
    X = wine[0]
    model = SparsePCA(2, 4).fit(kind(X))
    X = X.copy()
    X.iloc[3, 2] = np.nan
    with pytest.raises(ValueError, match="X contains 1 NaN") as caught:
        model.transform(kind(X))
    assert "scikit" not in str(caught.value).lower()
    assert kind is sp.csr_array or caught.match("fit with missing='mean', missing='rows'")


def test_sums_refuse_gaps_without_advice_that_they_cannot_take(wine):
    X = wine[0].copy()
    model = SparsePCA(2, 4).partial_fit(X)
    X.iloc[3, 2] = np.nan

    def blocks():
        return iter([X.to_numpy()])

    for call in (
        lambda: SparsePCA(2, 4, missing="mean").partial_fit(X),
        lambda: SparsePCA(2, 4).partial_fit(X),
        lambda: SparsePCA(2, 4).partial_fit(blocks),
        lambda: model.partial_fit(X),
        lambda: update(model, X),
        lambda: update(model, blocks),
    ):
        with pytest.raises(ValueError, match="sums know nothing of missing entries") as caught:
            call()
        assert "pass missing=" not in str(caught.value)


def test_estimator_refuses_what_the_function_refuses():
    masked = np.ma.array([[1.0, 2], [3, 5], [999, 999]], mask=[[0, 0], [0, 0], [1, 1]])
    pd = pytest.importorskip("pandas")
    for X in (masked, pd.DataFrame({"a": pd.Categorical(["1", "2"])})):
        for call in (sparse_pca, SparsePCA().fit):
            with pytest.raises((ValueError, TypeError)):
                call(X)


@pytest.mark.processes
def test_importing_the_estimator_does_not_load_the_compiler():
    code = "import sys; from sparcipal import SparsePCA; sys.exit('numba' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_frames_in_another_order_are_refused_with_the_way_out():
    pd = pytest.importorskip("pandas")
    X = pd.DataFrame(np.random.default_rng(0).standard_normal((20, 4)), columns=list("abcd"))
    model = SparsePCA(1, 2, certify=False).fit(X)
    with pytest.raises(ValueError, match=r"X\[list\(model\.feature_names_in_\)\]"):
        model.transform(X[list("dcba")])
    again = model.result_.transform(X[list("dcba")])
    np.testing.assert_allclose(np.asarray(again), model.transform(X))
