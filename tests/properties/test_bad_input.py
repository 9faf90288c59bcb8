"""Whatever is wrong with a call is named in one error, before any work, at every entry point."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from sparcipal import (
    SparsePCA,
    alternatives,
    choose,
    compare,
    explain,
    sparse_path,
    sparse_pca,
    stability,
)
from sparcipal.cli import main

X = pd.DataFrame(np.random.default_rng(0).standard_normal((30, 6)), columns=list("abcdef"))
RESULT = sparse_pca(X, n_nonzero_coefs=2)


def never(progress: Any) -> None:
    raise AssertionError(f"work has begun: {progress}")


def of_estimator(X: Any, sample_weight: Any = None, **question: Any) -> Any:
    return SparsePCA(**question).fit(X, sample_weight=sample_weight)


def of_parts(X: Any, sample_weight: Any = None, **question: Any) -> Any:
    return SparsePCA(**question).partial_fit(X, sample_weight=sample_weight)


# Each wrong thing, with the words that name it: settings, sizes, names, rows.
SETTINGS = {"tol": (-1, "tol=-1.0 must lie in"), "n_jobs": (0, "n_jobs=0 must be a nonzero")}
NAMES = {"exclude": (["zz", "a", "a"], "unknown features 'zz' .*exclude repeats 'a'")}
SIZE = {"n_nonzero_coefs": (50, "n_nonzero_coefs=50 must be at most n_features=5")}
COMMON = {**SETTINGS, **NAMES}
ENTRIES = {
    "sparse_pca": (
        sparse_pca,
        COMMON | SIZE | {"init": ([["q"]], r"init\[0\]: no feature 'q'")}
        | {"include": (["yy"], "include has unknown features 'yy'")},
    ),
    "SparsePCA.fit": (of_estimator, COMMON | SIZE | {"supports": ("one", "supports='one' is")}),
    "SparsePCA.partial_fit": (
        of_parts,
        COMMON | SIZE | {"missing": ("mean", "partial_fit with missing='mean'")},
    ),
    "sparse_path": (
        sparse_path,
        COMMON
        | {
            "n_nonzero_coefs": ([0, 50], r"n_nonzero_coefs=0 must be(.|\n)*has 50, more than"),
            "include": (["yy"], "include has unknown features 'yy'"),
        },
    ),
    "choose": (
        choose,
        COMMON
        | {
            "n_components": ([0, 1], "n_components=0 must be at least 1"),
            "n_nonzero_coefs": ([2, 50], "n_nonzero_coefs=50 needs 50 of 5 features"),
            "folds": (20, "folds=20 leaves 1 of 30 rows in a fold"),
            "permutations": (-1, "permutations=-1 must be at least 0"),
        },
    ),
    "stability": (stability, COMMON | SIZE | {"level": (2, "level=2.0 must lie in")}),
    "alternatives": (alternatives, COMMON | SIZE | {"within": (-1, "within=-1.0 must lie in")}),
    "compare": (
        compare,
        COMMON | SIZE | {"methods": (["magic"], "methods='magic' is"), "certify": (1, "certify=1")},
    ),
    "explain": (
        lambda X, **keywords: explain(RESULT, X, **keywords),
        {"within": (-1, "within=-1.0 must"), "stability": (1, "stability=1: halves come in pairs")},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ENTRIES)
def test_all_that_is_wrong_is_named_at_once_before_any_work(name):
    function, wrong = ENTRIES[name]
    given = {key: value for key, (value, _) in wrong.items()}
    with pytest.raises(ValueError, match="problems:") as caught:
        function(X, callback=never, sample_weight=[1.0], **given)
    for _, words in wrong.values():
        assert caught.match(words)
    assert caught.match(r"sample_weight must be one number per sample, shape \(30,\)")


@pytest.mark.parametrize("name", ENTRIES)
def test_an_unknown_keyword_is_named_with_the_rest_and_alone_before_any_work(name):
    function, wrong = ENTRIES[name]
    data = {"X": X} if name != "explain" else {"X": X.values}
    with pytest.raises(TypeError, match="unexpected keyword argument 'alpha'"):
        function(**data, callback=never, alpha=1.0)
    given = {key: value for key, (value, _) in wrong.items() if key in {*SETTINGS, "within"}}
    with pytest.raises(ValueError, match=f"{len(given) + 2} problems:") as caught:
        function(**data, callback=never, alpha=1.0, cardinality=3, **given)
    for words in ("'alpha'", "'cardinality'; pass n_nonzero_coefs", *(wrong[k][1] for k in given)):
        assert caught.match(words)


@pytest.mark.parametrize(
    ("sizes", "told"),
    [
        ([0, 50], ["=0 must be at least 1", "=50 must be at most n_features=6"]),
        (iter([50, 40]), ["=40, 50 must be at most n_features=6"]),
        ([50, 2.5], ["must be an integer", "=50 must be at most n_features=6"]),
    ],
)
def test_all_numbers_of_a_list_are_named(sizes, told):
    with pytest.raises((ValueError, TypeError)) as caught:
        sparse_pca(X, n_components=2, n_nonzero_coefs=sizes, callback=never)
    for words in told:
        assert caught.match(words)


@pytest.mark.parametrize("name", [name for name in ENTRIES if name != "explain"])
def test_a_table_that_cannot_be_used_is_named_with_the_rest(name):
    function, wrong = ENTRIES[name]
    gaps = X.copy()
    gaps.iloc[3, 2] = np.nan
    given = {key: value for key, (value, _) in wrong.items() if key != "missing"}
    with pytest.raises(ValueError, match="problems:") as caught:
        function(gaps, callback=never, **given)
    assert caught.match("X contains 1 NaN, the first in row 3")
    assert caught.match("tol=-1.0 must lie in")
    if name != "SparsePCA.partial_fit":  # names of a table that cannot be summed are not asked
        assert caught.match("unknown features 'zz'")
    with pytest.raises(ValueError, match="problems:") as caught:
        function("x.csv", callback=never, **given)
    assert caught.match("X='x.csv' is a path")
    assert caught.match("tol=-1.0 must lie in")


@pytest.mark.parametrize("missing", ["error", "mean"])
@pytest.mark.parametrize(
    "function", [sparse_pca, of_estimator, sparse_path, choose, stability, alternatives, compare]
)
def test_of_a_stream_only_the_first_block_is_read_to_know_what_is_wrong(function, missing):
    read = []

    def blocks() -> Any:
        for start in (0, 10, 20):
            read.append(start)
            yield X.iloc[start : start + 10]

    question = {"exclude": ["zz"], "missing": missing, "callback": never}
    if function is choose:
        question |= {"n_components": [1], "n_nonzero_coefs": [2]}
    with pytest.raises(ValueError, match=r"^exclude has unknown features 'zz'"):
        function(blocks, **question)
    assert read == [0]


@pytest.mark.parametrize("function", [alternatives, explain])
def test_features_that_an_answer_lacks_are_named_with_the_rest(function):
    other = X.rename(columns={"a": "A", "c": "C"})
    with pytest.raises(ValueError, match="2 problems:") as caught:
        function(RESULT, other, within=3, callback=never)
    assert caught.match("within=3.0 must lie in")
    assert caught.match("the data have no feature 'a', 'c', but the result has")
    with pytest.raises(ValueError, match="2 problems:") as caught:
        function(RESULT, X.to_numpy()[:, :4], within=3, callback=never)
    assert caught.match("n_features=6, but the data have 4")


def test_stand_ins_for_what_was_refused_make_no_complaints():
    include = [["a", "b"], ["c"]]
    for wrong in (
        {"n_components": 0, "n_nonzero_coefs": [2, 3], "include": include},
        {"n_components": 0, "include": include, "n_nonzero_coefs": 3},
        {"n_components": 2, "n_nonzero_coefs": 0, "include": include},
        {"n_components": 2, "n_nonzero_coefs": "ten", "uncorrelated": True},
        {"n_components": 2, "n_nonzero_coefs": 3, "method": "magic", "include": include},
        {"n_components": 2, "n_nonzero_coefs": 3, "supports": "some"},
        {"n_components": 3, "n_nonzero_coefs": {"total": 6}, "method": "magic"},
        {"memory_limit": -1},
        {"missing": "all", "include": ["a"]},
    ):
        with pytest.raises((ValueError, TypeError)) as caught:
            sparse_pca(X, callback=never, **wrong)
        assert "problems" not in str(caught.value), wrong


COMMANDS = {
    "fit": ["-s", "50", "--tol", "-1", "--exclude", "zz", "--jobs", "0"],
    "path": ["-s", "0:50", "--tol", "-1", "--exclude", "zz", "--jobs", "0"],
    "path by tpower": ["-s", "0:50", "--tol", "-1", "--exclude", "zz", "--method", "tpower"],
    "choose": ["-s", "0,50", "--tol", "-1", "--exclude", "zz", "--folds", "20"],
    "stability": ["-s", "50", "--tol", "-1", "--exclude", "zz", "--resamples", "0"],
    "compare": ["-s", "50", "--tol", "-1", "--exclude", "zz", "--methods", "auto,magic"],
}
TOLD = {
    "fit": ["--nonzero 50 must be", "--jobs 0 must"],
    "path": ["--nonzero 0 must", "--nonzero has 50, more than", "--jobs 0 must"],
    "path by tpower": ["--nonzero 0 must", "--nonzero 50 must"],
    "choose": ["--nonzero 0 must", "--nonzero 50 needs", "--folds 20 leaves 1 of 30"],
    "stability": ["--nonzero 50 must", "--resamples 0 must"],
    "compare": ["--nonzero 50 must", "--methods magic is unknown"],
}


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_names_all_that_is_wrong_with_its_options_and_its_file(name, tmp_path):
    source = tmp_path / "x.csv"
    X.to_csv(source, index=False)
    command = name.partition(" ")[0]
    done = CliRunner().invoke(main, [command, str(source), *COMMANDS[name]])
    assert done.exit_code == 1
    assert not done.stdout
    for words in ["--tol -1.0 must lie in", "unknown features 'zz'", *TOLD[name]]:
        assert words in done.stderr
    source.write_text("a,b\n1,2\n3\n")
    done = CliRunner().invoke(main, [command, str(source), *COMMANDS[name]])
    assert done.exit_code == 1
    assert "--tol -1.0 must lie in" in done.stderr
    assert "x.csv" in done.stderr


@pytest.mark.parametrize("command", ["alternatives", "explain"])
def test_a_command_about_a_model_names_its_options_and_its_file(command, tmp_path):
    model, source = tmp_path / "m.json", tmp_path / "x.csv"
    RESULT.save(model)
    X.drop(columns="c").to_csv(source, index=False)
    options = ["--within", "-1", "--time-limit", "-1"]
    done = CliRunner().invoke(main, [command, str(model), str(source), *options])
    assert done.exit_code == 1
    for words in ("--within -1.0 must lie in", "--time-limit -1.0 must lie in", "'c'"):
        assert words in done.stderr
