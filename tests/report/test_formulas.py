"""Formulas of scores: they give what transform gives, whatever the features are called."""

from __future__ import annotations

import re
import sqlite3
from dataclasses import replace

import numpy as np
import pytest

from sparcipal import SparsePCA, Table, read, sparse_pca
from sparcipal.report.formulas import formula

NAMES = ("a", 'two "words"', "x-1", "naïve", "select")


@pytest.fixture(scope="module")
def model():
    X = np.random.default_rng(0).standard_normal((40, 5)) * [1, 2, 3, 4, 5] + [0, 10, -20, 3, 1]
    asked = SparsePCA(n_components=2, n_nonzero_coefs=2, scale=True)
    return asked.fit(Table(X, NAMES)), X


def test_sql_gives_the_scores(model):
    estimator, X = model
    database = sqlite3.connect(":memory:")
    columns = ", ".join('"' + name.replace('"', '""') + '" REAL' for name in NAMES)
    database.execute(f"CREATE TABLE data ({columns})")
    database.executemany("INSERT INTO data VALUES (?, ?, ?, ?, ?)", X.tolist())
    rows = database.execute(formula(estimator.result_, "sql")).fetchall()
    np.testing.assert_allclose(rows, estimator.transform(Table(X, NAMES)), atol=1e-12)


def test_sql_has_names_with_line_breaks_and_refuses_other_control_characters():
    X = np.random.default_rng(0).standard_normal((9, 2)) * [2, 1]
    asked = SparsePCA(n_nonzero_coefs=2)
    names = ("height\n(cm)", "a\tb")
    estimator = asked.fit(Table(X, names))
    database = sqlite3.connect(":memory:")
    database.execute(f'CREATE TABLE data ("{names[0]}" REAL, "{names[1]}" REAL)')
    database.executemany("INSERT INTO data VALUES (?, ?)", X.tolist())
    rows = database.execute(formula(estimator.result_, "sql")).fetchall()
    np.testing.assert_allclose(rows, estimator.transform(Table(X, names)), atol=1e-12)
    hostile = asked.fit(Table(X, ("a", "\x1b[2J"))).result_
    with pytest.raises(ValueError, match="has a control character in its name"):
        formula(hostile, "sql")


def test_python_gives_the_scores(model):
    estimator, X = model
    space: dict = {}
    exec(formula(estimator.result_, "python"), space)
    rows = [space["scores"](dict(zip(NAMES, row))) for row in X.tolist()]
    np.testing.assert_allclose(rows, estimator.transform(Table(X, NAMES)), atol=1e-12)


def test_equations_name_features_and_gather_the_constant(model):
    accuracy, *lines = formula(model[0].result_, "equation").splitlines()
    assert accuracy.startswith("# scores are right to about a thousandth")
    assert len(lines) == 2
    assert all(line.startswith(f"component{j} = ") for j, line in enumerate(lines, start=1))
    assert any("[x-1]" in line or '[two "words"]' in line for line in lines)
    with pytest.raises(ValueError, match="form='fortran' is unknown"):
        formula(model[0].result_, "fortran")


@pytest.mark.parametrize("supports", ["disjoint", "free"])
@pytest.mark.parametrize("scale", [False, True])
def test_equations_give_the_scores_to_a_thousandth_of_their_spread(scale, supports):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 1)) * [3.0, 2.0, 1e-3, 1.0] + rng.standard_normal((200, 4))
    X = X * [1.0, 1.0, 1e-4, 1e3] + [101325.0, 8848.86, 15.0, -2e7]
    model = SparsePCA(2, 2, scale=scale, supports=supports, certify=False).fit(X)
    scores = model.transform(X)
    columns = {f"x{j}": X[:, j] for j in range(4)}
    for line, expected in zip(formula(model.result_, "equation").splitlines()[1:], scores.T):
        told = re.sub(r"(\d) (x\d)", r"\1 * \2", line.partition(" = ")[2])
        assert np.abs(eval(told, {}, columns) - expected).max() < 3e-3 * expected.std()


def test_formulas_of_words_say_what_a_column_holds():
    texts = ["red apple", "blue sea", "green sea, blue sky", "red red wine"]
    result = sparse_pca(read(texts, weighting="tfidf", normalize=True), n_nonzero_coefs=2)
    first = formula(result, "sql").splitlines()[0]
    assert first.startswith("-- a column holds the count of the word times its idf")
    assert first.endswith("divided by the length of the document's vector")
    assert formula(sparse_pca(np.eye(4)), "python").startswith("def scores")


def test_formulas_fill_missing_entries_as_transform_does():
    """Codes of missing entries are named; gaps of a pairwise fit are left to transform."""
    X = np.random.default_rng(1).standard_normal((30, 3)).round(3)
    X[::7, 0] = X[3::9, 1] = np.nan
    table = Table(X, ("a", "b", "c"))
    estimator = SparsePCA(n_components=1, n_nonzero_coefs=3, missing="median").fit(table)
    expected = estimator.transform(table)
    database = sqlite3.connect(":memory:")
    database.execute("CREATE TABLE data (a REAL, b REAL, c REAL)")
    empty = [[None if np.isnan(x) else x for x in row] for row in X]
    database.executemany("INSERT INTO data VALUES (?, ?, ?)", empty)
    sql = formula(estimator.result_, "sql")
    np.testing.assert_allclose(database.execute(sql).fetchall(), expected, atol=1e-12)
    space: dict = {}
    exec(formula(estimator.result_, "python"), space)
    rows = [space["scores"](dict(zip("abc", row))) for row in empty]
    np.testing.assert_allclose(rows, expected, atol=1e-12)
    equation = formula(estimator.result_, "equation")
    assert f"a = {np.nanmedian(X[:, 0]):.4g}" in equation
    far = SparsePCA(1, 3, missing="median", certify=False).fit(np.round(X + 101325, 3))
    assert f"x0 = {np.nanmedian(X[:, 0]) + 101325:.3f}" in formula(far.result_, "equation")
    found = estimator.result_
    coded = replace(found, settings={**found.settings, "read": {"na_values": ["-999"]}})
    assert "entries of '-999' are missing ones: make them NULL" in formula(coded, "sql")
    pairs = sparse_pca(table, n_nonzero_coefs=2, missing="pairwise")
    assert "those with gaps need `sparcipal transform`" in formula(pairs, "sql")


def test_formulas_leave_gaps_of_rows_to_transform_and_fill_after_a_fit_without_gaps():
    X = np.random.default_rng(1).standard_normal((30, 3))
    left_out = SparsePCA(1, 2, missing="rows").fit(X)
    assert "those with gaps need `sparcipal transform`" in formula(left_out.result_, "sql")
    X[0, left_out.result_.supports[0][0]] = np.nan
    assert np.isfinite(left_out.transform(X)).all()  # which estimates them, as the formula says
    whole = SparsePCA(1, 2, missing="mean").fit(X[1:])
    assert formula(whole.result_, "sql").startswith("-- a missing entry counts as the mean")


def test_formulas_name_features_that_databases_confuse_and_refuse_one_name_for_two():
    X = np.random.default_rng(0).standard_normal((20, 4)) @ [
        [3, 3, 0, 0],
        [1, 0, 0, 0],
        [0, 0, 1, 0],
        [0, 0, 0, 1],
    ]
    told = "-- Hue and hue differ in upper and lower case only"
    for names, alike in ((["Hue", "hue", "c", "d"], True), (["Hue", "b", "c", "d"], False)):
        text = formula(sparse_pca(X, n_nonzero_coefs=2, feature_names=names), "sql")
        assert text.startswith(told) == alike
    with pytest.warns(UserWarning, match=r"names made distinct, as 'c' and 'c \(2\)'"):
        result = sparse_pca(X, n_nonzero_coefs=2, feature_names=["c", "c", "a", "b"])
    assert '"c (2)"' in formula(result, "sql")
    with pytest.raises(ValueError, match="several features are called c,"):
        formula(replace(result, feature_names=("c", "c", "a", "b")), "sql")
