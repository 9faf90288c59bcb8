"""The command line as a user meets it: data to stdout, words to stderr, errors in one sentence."""

from __future__ import annotations

import contextlib
import csv
import inspect
import io
import json
import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace

import numpy as np
import pytest
from click.testing import CliRunner

from sparcipal import Result, sparse_pca
from sparcipal.cli import main
from sparcipal.cli.phrases import OPTIONS, in_the_shell
from sparcipal.cli.values import Memory
from sparcipal.search.registry import METHODS

RNG = np.random.default_rng(7)
X = RNG.standard_normal((60, 8)) @ RNG.standard_normal((8, 8))
NAMES = ["ant", "bee", "cat", "dog", "elk", "fox", "gnu", "hen"]
TEXTS = [
    "stars and planets move around stars",
    "planets circle stars far away",
    "bread needs flour water and salt",
    "flour and salt and water make bread",
    "a river of water",
]


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "x.csv"
    with path.open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(NAMES)
        writer.writerows(X.tolist())
    return str(path)


@pytest.fixture
def texts(tmp_path):
    path = tmp_path / "texts.txt"
    path.write_text("\n".join(TEXTS))
    return str(path)


def shell():
    """Keeps stderr apart: click 8.2 always does, 8.1 must be asked."""
    asked = "mix_stderr" in inspect.signature(CliRunner).parameters
    return CliRunner(**({"mix_stderr": False} if asked else {}))


def run(*arguments, code=0):
    outcome = shell().invoke(main, [str(a) for a in arguments])
    assert outcome.exit_code == code, outcome.output + repr(outcome.exception)
    return outcome


def test_fit_prints_what_python_finds(source):
    expected = sparse_pca(X, n_components=2, n_nonzero_coefs=3, feature_names=NAMES)
    outcome = run("fit", source, "-k", 2, "-s", 3)
    assert outcome.stdout.strip() == str(expected)
    assert outcome.stderr == ""


def test_fit_command_writes_csv_and_json(source):
    expected = sparse_pca(X, n_components=2, n_nonzero_coefs=[3, 2], feature_names=NAMES)
    rows = list(
        csv.DictReader(
            io.StringIO(run("fit", source, "-k", 2, "-s", "3,2", "--format", "csv").stdout)
        )
    )
    assert [row["feature"] for row in rows] == expected.names(0) + expected.names(1)
    assert sorted(float(row["weight"]) for row in rows) == sorted(
        w for weights in expected.weights for w in weights
    )
    document = run("fit", source, "-k", 2, "-s", "3,2", "--format", "json").stdout
    assert Result.from_json(document).value == expected.value


def test_options_reach_the_solver(source):
    document = run(
        "fit", source, "-s", 3, "--nonnegative", "--no-center", "--scale", "--certify", "none",
        "--tol", 0.01, "--seed", 5, "--method", "tpower", "--max-nodes", 9, "--format", "json",
    ).stdout  # fmt: skip
    settings = json.loads(document)["settings"]
    expected = {
        "nonnegative": True, "center": False, "scale": True, "certify": False, "tol": 0.01,
        "random_state": 5, "method": "tpower", "max_nodes": 9, "n_nonzero_coefs": [3],
    }  # fmt: skip
    assert {name: settings[name] for name in expected} == expected


def test_fit_command_takes_a_covariance_matrix(tmp_path):
    np.save(tmp_path / "a.npy", np.cov(X.T, bias=True))
    outcome = run("fit", tmp_path / "a.npy", "--covariance", "-s", 3)
    assert "a given covariance of 8 features" in outcome.stdout


def test_commands_save_verify_show_and_transform_one_model(source, tmp_path):
    model = tmp_path / "model.json"
    assert "saved" in run("fit", source, "-k", 2, "-s", 3, "-o", model).stderr
    assert run("verify", model, source).stdout.startswith("proved:")
    saved = Result.load(model)
    assert run("show", model).stdout.strip() == str(saved)
    rows = list(csv.reader(io.StringIO(run("transform", model, source).stdout)))
    assert rows[0] == ["component1", "component2"]
    np.testing.assert_allclose(
        np.array(rows[1:], dtype=float), (X - X.mean(axis=0)) @ saved.components.T, atol=1e-12
    )
    run("transform", model, source, "-o", tmp_path / "scores.npy")
    np.testing.assert_array_equal(np.load(tmp_path / "scores.npy"), np.array(rows[1:], dtype=float))


def test_verify_command_rechecks_without_rounding_when_asked(source, tmp_path):
    pytest.importorskip("flint")
    model = tmp_path / "model.json"
    run("fit", source, "-k", 2, "-s", 3, "-o", model)
    told = run("verify", model, source, "--exact").stdout
    assert told.startswith("proved: value and bound hold in exact arithmetic")
    assert "exact" not in run("verify", model, source).stdout


def test_verify_names_the_file_of_the_proof_that_is_missing(source, tmp_path):
    model = tmp_path / "model.json"
    run("fit", source, "-k", 2, "-s", 3, "-o", model)
    (tmp_path / "model.json.proof").unlink()
    told = run("verify", model, source, code=3).stdout
    assert told.startswith(f"not proved: there is no {model}.proof, which holds the proof")
    assert "bound" not in told


@pytest.mark.parametrize("command", ["verify", "transform"])
def test_swapped_arguments_are_asked_about(command, source, tmp_path):
    model = tmp_path / "model.json"
    run("fit", source, "-s", 3, "-o", model)
    for swapped in (source, tmp_path):
        told = run(command, swapped, model, code=1).stderr
        assert f"{model} is; are MODEL and SOURCE swapped?" in told
    assert "swapped?" not in run(command, source, source, code=1).stderr


@pytest.mark.processes
@pytest.mark.skipif(os.name == "nt", reason="pipes of Windows end otherwise")
def test_a_reader_who_has_seen_enough_ends_the_output_quietly(source, tmp_path):
    model = tmp_path / "model.json"
    run("fit", source, "-s", 3, "-o", model)
    np.save(tmp_path / "long.npy", np.tile(X, (1000, 1)))
    command = [sys.executable, "-m", "sparcipal", "transform", str(model), tmp_path / "long.npy"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout.readline() == "component1\n"
        process.stdout.close()
        assert process.stderr.read() == ""


def test_verify_command_exits_by_its_verdict(source, tmp_path):
    model = tmp_path / "model.json"
    run("fit", source, "-s", 3, "-o", model)
    document = json.loads(model.read_text())
    document["certificate"]["value"] *= 1.01
    for path in (tmp_path / "tampered.json", tmp_path / "tampered.json.proof"):
        path.write_text(json.dumps(document))
    assert run("verify", tmp_path / "tampered.json", source, code=1).stdout.startswith("refused:")
    np.save(tmp_path / "other.npy", X + RNG.standard_normal(X.shape))
    assert run("verify", model, tmp_path / "other.npy", code=1).stdout.startswith("refused:")


def test_transform_command_takes_the_features_of_the_model_by_name(source, tmp_path):
    model = tmp_path / "model.json"
    run("fit", source, "-s", 3, "-o", model)
    one, other = tmp_path / "x.csv", tmp_path / "y.csv"
    one.write_text(",".join(NAMES) + "\n1,2,3,4,5,6,7,8\n9,1,2,5,5,4,1,0\n")
    other.write_text(
        ",".join(["who", *reversed(NAMES)]) + "\nx,8,7,6,5,4,3,2,1\ny,0,1,4,5,5,2,1,9\n"
    )
    plain = run("transform", model, one).stdout.splitlines()
    named = run("transform", model, other, "--label", "who").stdout.splitlines()
    assert [line.rpartition(",")[2] for line in named[1:]] == plain[1:]
    assert named[0] == "sample,who,component1"
    other.write_text(",".join(NAMES[:-1]) + "\n1,2,3,4,5,6,7\n")
    assert f"fitted on: {NAMES[-1]!r}" in run("transform", model, other, code=1).stderr


@pytest.mark.parametrize("code", ["99", "-9"])
def test_numbers_may_stand_for_missing_entries(code, tmp_path):
    path = tmp_path / "m.csv"
    path.write_text(f"a,b,c\n1,{code},3\n4,5,6\n7,8,{code}\n2,1,0\n")
    told = run("fit", path, "-s", 2, "--na", code, code=1).stderr
    assert "contains 2 NaN" in told
    run("fit", path, "-s", 2, "--na", code, "--missing", "mean")


def test_a_label_of_the_fit_need_not_be_in_new_data(source, tmp_path):
    model, new, labelled = (tmp_path / name for name in ("model.json", "new.csv", "labelled.csv"))
    lines = [",".join(map(repr, row)) for row in X.tolist()]
    new.write_text("\n".join([",".join(NAMES), *lines]))
    groups = [f"{line},{'xy'[i % 2]}" for i, line in enumerate(lines)]
    labelled.write_text("\n".join([",".join([*NAMES, "group"]), *groups]))
    run("fit", labelled, "-s", 3, "--label", "group", "-o", model)
    with_labels = run("transform", model, labelled)
    assert with_labels.stdout.startswith("group,component1")
    found = run("transform", model, new)
    assert "there is no column 'group'" in found.stderr
    scores = [line.partition(",")[2] for line in with_labels.stdout.splitlines()]
    assert found.stdout.splitlines() == scores
    assert run("verify", model, new).stdout.startswith("proved")
    assert "no column for" in run("transform", model, new, "--label", "group", code=1).stderr


@pytest.mark.parametrize("missing", ["mean", "pairwise"])
def test_one_new_sample_may_have_gaps(missing, source, tmp_path):
    model, new = tmp_path / "model.json", tmp_path / "new.csv"
    with open(source, "a") as stream:
        stream.write("1,,3,4,5,,7,8\n")
    run("fit", source, "-s", 8, "--missing", missing, "-o", model)
    new.write_text(",".join(NAMES) + "\n1,,3,4,NA,,7,8\n")
    one = run("transform", model, new).stdout.splitlines()
    new.write_text(",".join(NAMES) + "\n1,,3,4,NA,,7,8\n1,2,3,4,5,6,7,8\n")
    assert run("transform", model, new).stdout.splitlines()[:2] == one
    assert np.isfinite(float(one[1]))


def test_topics_show_words_and_documents(texts, tmp_path):
    model = tmp_path / "m.json"
    outcome = run("topics", texts, "-k", 2, "-s", 3, "--stop-words", "english", "-o", model)
    assert "stars" in outcome.stdout
    _, documents = outcome.stdout.split("documents that load highest")
    assert any(text in documents for text in TEXTS)
    rows = list(csv.reader(io.StringIO(run("transform", model, texts).stdout)))
    assert rows[1][0] == TEXTS[0]


def test_a_model_remembers_how_its_text_was_read(texts, tmp_path):
    model = tmp_path / "m.json"
    reading = ["--stop-words", "english", "--ngrams", 2, "--max-df", 0.9]
    run("fit", texts, "-s", 8, *reading, "-o", model)
    assert Result.load(model).settings["read"] == {
        "stop_words": "english", "max_df": 0.9, "ngram_range": [1, 2],
    }  # fmt: skip
    outcome = run("verify", model, texts)
    assert outcome.stdout.startswith("proved:")
    said = "read as for the fit: --stop-words english --max-df 0.9 --ngrams 2\n"
    assert outcome.stderr.startswith(said)
    scores = run("transform", model, texts).stdout
    assert scores == run("transform", model, texts, *reading).stdout
    # What is given goes before what is remembered.
    single = run("transform", model, texts, "--ngrams", 1).stdout
    assert single != scores
    assert run("verify", model, texts, "--stop-words", "none", code=1).stdout.startswith("refused")


def test_a_model_read_by_default_remembers_nothing(source, tmp_path):
    run("fit", source, "-s", 3, "-o", tmp_path / "m.json")
    assert "read" not in Result.load(tmp_path / "m.json").settings


def test_what_does_not_apply_to_another_format_is_left_out(tmp_path, texts):
    lines = [json.dumps({"body": text}) for text in TEXTS]
    (tmp_path / "t.jsonl").write_text("\n".join(lines))
    model = tmp_path / "m.json"
    run("topics", tmp_path / "t.jsonl", "-s", 3, "--text-field", "body", "-o", model)
    assert run("verify", model, tmp_path / "t.jsonl").stdout.startswith("proved:")
    of_lines, of_json = (run("transform", model, x).stdout for x in (texts, tmp_path / "t.jsonl"))
    assert of_lines == of_json


def test_a_table_for_a_model_of_texts_is_told_to_name_its_texts(tmp_path, texts):
    run("topics", texts, "-s", 3, "-o", tmp_path / "m.json")
    table = tmp_path / "t.csv"
    table.write_text("stars,review\n" + "".join(f"5,{text}\n" for text in TEXTS))
    told = run("transform", tmp_path / "m.json", table, code=1).stderr
    assert "holds texts ('stars', 'review'), name it with --text-field" in told
    of_lines, of_table = (
        run("transform", tmp_path / "m.json", *source).stdout
        for source in ([texts], [table, "--text-field", "review"])
    )
    assert of_lines == of_table


def test_a_model_with_a_forged_reading_is_refused(texts, tmp_path):
    model = tmp_path / "m.json"
    run("topics", texts, "-s", 3, "--ngrams", 2, "-o", model)
    result = Result.load(model)
    for forged in (
        [1],
        {"ngram_range": 7},
        {"ngram_range": []},
        {"format": ["lines"]},
        {"format": "magic"},
    ):
        replace(result, settings={**result.settings, "read": forged}).save(model)
        assert "Traceback" not in run("transform", model, texts, code=1).stderr


def test_topics_as_json_have_documents(texts):
    document = run("topics", texts, "-k", 2, "-s", 3, "--documents", 2, "--format", "json").stdout
    documents = Result.from_json(document).info["documents"]
    assert [len(topic) for topic in documents] == [2, 2]
    assert documents[0][0]["document"] in TEXTS


def test_path_and_compare_count_words_as_topics_do(texts):
    for command in (["path", texts, "-s", "2"], ["compare", texts, "-s", 2, "--methods", "auto"]):
        plain = run(*command, "--format", "csv").stdout
        assert run(*command, "--stop-words", "none", "--format", "csv").stdout != plain


def test_too_rare_words_name_the_option(texts):
    assert "lower --min-df" in run("topics", texts, "--min-df", 1000, code=1).stderr


def test_path_lists_value_and_bound(source):
    lines = run("path", source, "-s", "1:7:3").stdout.splitlines()
    assert lines[0].split() == ["nonzeros", "value", "bound", "gap", "share", "status"]
    assert [line.split()[0] for line in lines[1:]] == ["1", "4", "7"]
    rows = list(
        csv.DictReader(io.StringIO(run("path", source, "-s", "2,5", "--format", "csv").stdout))
    )
    values = [float(row["value"]) for row in rows]
    assert values == sorted(values)
    assert all(float(row["bound"]) >= float(row["value"]) for row in rows)


def test_path_lists_sizes_of_several_components_and_of_other_methods(source):
    for more in (["-k", 2], ["--method", "tpower"]):
        lines = run("path", source, "-s", "1,2,3", *more).stdout.splitlines()
        assert [line.split()[0] for line in lines[1:]] == ["1", "2", "3"]


def test_path_command_draws_the_region(source, tmp_path):
    pytest.importorskip("matplotlib").use("Agg")
    run("path", source, "-s", "1:4", "--plot", tmp_path / "path.svg")
    assert "<svg" in (tmp_path / "path.svg").read_text()
    run("path", source, "-s", "1:2", "-k", 2, "--plot", tmp_path / "two.svg")
    assert "in each of 2 components" in (tmp_path / "two.svg").read_text()


def test_compare_judges_by_one_bound(source):
    outcome = run("compare", source, "-s", 3, "--methods", "threshold,auto", "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(outcome.stdout)))
    assert {row["method"] for row in rows} == {"threshold", "auto"}
    assert len({row["bound"] for row in rows}) == 1
    assert all(len(row["supports"].split()) == 3 for row in rows)
    values = {row["method"]: float(row["value"]) for row in rows}
    assert values["auto"] >= values["threshold"]
    assert all(float(row["bound"]) >= float(row["value"]) for row in rows)
    assert "no value can exceed" in run("compare", source, "-s", 3, "--methods", "auto").stdout


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["fit", "nowhere.csv"], 1, "Error: nowhere.csv: no such file or folder"),
        (
            ["fit", "{source}", "-s", "99"],
            1,
            "at most the number of features, 8",
        ),
        (["fit", "{source}", "-k", "0"], 1, "--components 0 must be at least 1"),
        (["fit", "{source}", "--method", "magic"], 1, "--method magic is unknown; choose one of"),
        (["fit", "{source}", "-s", "many"], 2, "'many' is neither a number nor"),
        (["fit", "{source}", "--min-df", "2"], 1, "'--min-df': for texts; name the column"),
        (["path", "{source}", "-s", "0:3"], 1, "--nonzero 0 must be at least 1"),
        (["choose", "{source}", "-k", "0:3", "--folds", "1"], 1, "2 problems: - --components 0"),
        (["fit", "{source}", "--exclude", "*"], 1, "exclude leaves none of 8 features"),
        (["explain", "m.json", "{source}", "--stability", "0"], 2, "0 is not in the range"),
        (["path", "{source}", "-s", "3:1"], 2, "'3:1' is no range; write 1:30"),
        (["compare", "{source}", "--methods", "auto,magic"], 1, "--methods magic is unknown"),
        (["verify", "{source}", "{source}"], 1, "x.csv does not begin with a brace"),
        (["fit", "-"], 1, "pass --input-format, one of bagofwords"),
        (["show", "nowhere.json"], 1, "Error: nowhere.json: No such file or directory"),
        (["topics", "{source}", "--covariance"], 2, "No such option"),
        (["fit", "{source}", "-k", "5", "-s", "4"], 1, "or pass --supports free"),
        (["fit", "{source}", "-s", "3", "--nonzero-total", "9"], 2, "exclude each other"),
        (["fit", "{source}", "--nonzero-total", "9"], 1, "--nonzero-total 9 must be at most"),
        (["fit", "{source}", "--covariance"], 1, "leave out --covariance for a data table"),
        (["fit", ""], 2, "the name is empty; name a file or folder"),
        (["transform", "m.json", ""], 2, "the name is empty; name a file or folder"),
        (["topics", "{source}", "--documents", "-1"], 2, "'--documents': -1 is not in the range"),
        (["topics", "{source}", "--max-df", "5"], 2, "'--max-df': '5' is not a share from 0 to 1"),
        (["topics", "{source}", "--min-df", "1.5"], 2, "or a number of documents"),
        (["topics", "{source}", "--min-df", "nan"], 2, "'--min-df': 'nan' is not a share"),
        (["topics", "{source}", "--ngrams", "0"], 2, "'--ngrams': 0 is not in the range"),
        (
            ["topics", "{source}", "--stop-words", "klingon"],
            2,
            "neither english nor none",
        ),
        (["topics", "{source}", "--encoding", "foo"], 2, "'--encoding': 'foo' is unknown"),
        (["fit", "{source}", "--tol", "nan"], 1, "--tol must be a number, got nan"),
        (["transform", "m.json", "{source}", "--covariance"], 2, "No such option"),
    ],
)
def test_errors_are_one_sentence(arguments, code, message, source):
    outcome = run(*(a.format(source=source) for a in arguments), code=code)
    assert message in outcome.stderr
    assert outcome.stdout == ""
    assert "Traceback" not in outcome.stderr
    if code == 1:
        assert len(outcome.stderr.strip().splitlines()) == 1


@pytest.mark.parametrize(
    ("option", "name", "message"),
    [
        ("-o", "nowhere/m.json", "there is no folder"),
        ("--report", "nowhere/r.html", "there is no folder"),
        ("-o", "", "is a folder; name a file"),
        ("--plot", "picture.xyz", "must end in .png, .svg, .pdf"),
        ("-o", "page.html", "page.html writes a page"),
    ],
)
def test_files_that_cannot_be_written_are_refused_before_the_work(
    option, name, message, source, tmp_path, monkeypatch
):
    monkeypatch.setattr("sparcipal.cli.solving.data_keywords", lambda *given: pytest.fail("worked"))
    command = ["path", source, "-s", "1:2"] if option == "--plot" else ["fit", source]
    outcome = run(*command, option, tmp_path / name, code=2)
    assert message in outcome.stderr
    assert list(tmp_path.iterdir()) == [tmp_path / "x.csv"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["-o", "x.csv"], "--out would overwrite SOURCE"),
        (["--report", "x.csv"], "--report would overwrite SOURCE"),
        (["--names", "n.txt", "-o", "n.txt"], "--out would overwrite --names"),
        (["-o", "m.json", "--report", "m.json"], "--report would overwrite --out"),
        (["-o", "m", "--report", "m.proof"], "--report would overwrite the proof of --out"),
    ],
)
def test_nothing_that_is_read_is_written_over(options, message, source, tmp_path, monkeypatch):
    monkeypatch.setattr("sparcipal.cli.solving.data_keywords", lambda *given: pytest.fail("worked"))
    monkeypatch.chdir(tmp_path)
    before = (tmp_path / "x.csv").read_bytes()
    assert message in " ".join(run("fit", source, *options, code=2).stderr.split())
    assert (tmp_path / "x.csv").read_bytes() == before


def test_a_model_is_not_written_over(source, tmp_path):
    model = tmp_path / "m.json"
    run("fit", source, "-s", 3, "-o", model)
    assert "overwrite MODEL" in run("show", model, "--report", model, code=2).stderr


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_devices_and_pipes_are_not_replaced(source, tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for option in ("-o", "--report"):
        assert "name a regular file" in run("fit", source, option, pipe, code=2).stderr
    with pytest.raises(ValueError, match="name a regular file"):
        sparse_pca(X, n_nonzero_coefs=2).save(pipe)
    assert pipe.is_fifo()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["pipe", "x.csv"]


@pytest.mark.parametrize("name", ["-", ""])
def test_a_dash_is_no_file_to_write(name, source):
    for option in ("-o", "--report"):
        assert "use --format json on stdout" in run("fit", source, option, name, code=2).stderr


def test_a_total_is_shared_out(source):
    document = run("fit", source, "-k", 2, "--nonzero-total", 5, "--format", "json").stdout
    result = Result.from_json(document)
    assert sum(support.size for support in result.supports) == 5
    expected = sparse_pca(X, n_components=2, n_nonzero_coefs={"total": 5})
    assert result.value == expected.value


@pytest.mark.parametrize(
    ("text", "bytes_"), [("2GB", 2 * 10**9), ("1.5 mib", 1572864), ("4096", 4096), ("1k", 1000)]
)
def test_memory_limit_option_takes_sizes_in_words(text, bytes_):
    assert Memory().convert(text, None, None) == bytes_


def test_little_memory_gives_the_same_answer(source):
    plenty = Result.from_json(run("fit", source, "-s", 3, "--format", "json").stdout)
    little = run("fit", source, "-s", 3, "--format", "json", "--memory-limit", "1KB").stdout
    assert Result.from_json(little).value == pytest.approx(plenty.value, rel=1e-9)
    assert "is no size; write 2GB" in run("fit", source, "--memory-limit", "x", code=2).stderr


def test_a_file_that_is_no_text_is_no_model(tmp_path):
    np.save(tmp_path / "x.npy", X)
    message = run("show", tmp_path / "x.npy", code=1).stderr
    assert "not a sparcipal result" in message
    assert "name a file that save() or" in message


def test_remedies_name_options_of_the_command_line():
    assert in_the_shell("pass certify='full', or certify=False") == (
        "pass --certify full, or --certify none"
    )
    assert in_the_shell("n_nonzero_coefs=[2, 3] and n_nonzero_coefs={'total': 7}") == (
        "--nonzero 2,3 and --nonzero-total 7"
    )
    assert in_the_shell("raise time_limit; use center=False") == (
        "raise --time-limit; use --no-center"
    )
    assert in_the_shell("'a' in include and in exclude; exclude: no; exclude fewer") == (
        "'a' in --include and in --exclude; --exclude: no; exclude fewer"
    )
    assert in_the_shell("include needs method='em' or 'auto'; windows='week' is unknown") == (
        "--include needs --method em or auto; --windows week is unknown"
    )
    assert in_the_shell("times has 'x'; if it is a covariance, pass covariance=X") == (
        "the field of --label-field has 'x'; if it is a covariance, add --covariance"
    )
    # What is no keyword stays: words of English, names of features, Python that is meant.
    for text in ("the method is slow; n_samples=3", "x['key'] = 1", "a tol of 1", "word 'include'"):
        assert in_the_shell(text) == text
    options = {
        name for command in main.commands.values() for p in command.params for name in p.opts
    }
    assert set(OPTIONS.values()) <= options


def test_remedies_on_stdout_name_options(tmp_path):
    np.save(tmp_path / "x.npy", np.random.default_rng(0).standard_normal((30, 60)))
    text = run("fit", tmp_path / "x.npy", "-s", 6, "-k", 3, "--certify", "none").stdout
    assert "pass --certify full, or accept" in text


def test_the_methods_listed_are_those_there_are():
    for command in ("fit", "topics", "path", "compare"):
        text = "".join(run(command, "--help").stdout.split())
        assert all(name in text for name in METHODS)


def test_debug_lets_the_exception_through():
    outcome = shell().invoke(main, ["--debug", "fit", "nowhere.csv"])
    assert isinstance(outcome.exception, ValueError)


def test_every_command_has_help():
    overview = run("--help").stdout
    for name, command in main.commands.items():
        assert name in overview
        assert "..." not in command.get_short_help_str(100)
        page = run(name, "--help").stdout
        assert page.startswith(f"Usage: main {name}")


def test_doctor_finds_everything_that_is_needed():
    outcome = run("doctor").stdout
    assert "first answer" in outcome
    assert "python-flint" in outcome
    assert "MISSING" not in outcome
    assert "BROKEN" not in outcome


@pytest.mark.processes
def test_help_loads_nothing_heavy():
    heavy = "{'numpy', 'scipy', 'sklearn', 'numba', 'rich'}"
    code = (
        "import sys; from sparcipal.cli import main; main(['fit', '-h'], standalone_mode=False);"
        f"sys.exit(bool({heavy} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.processes
@pytest.mark.skipif(not hasattr(os, "openpty"), reason="needs a pseudo-terminal")
@pytest.mark.parametrize("twice", [False, True])
def test_progress_on_a_terminal_and_ctrl_c_gives_the_best_so_far(tmp_path, twice):
    np.save(tmp_path / "big.npy", np.random.default_rng(0).standard_normal((80, 300)))
    master, slave = os.openpty()
    command = [
        sys.executable, "-m", "sparcipal", "fit", str(tmp_path / "big.npy"), "-s", "12",
        "--certify", "full", "--format", "json",
    ]  # fmt: skip
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "100"}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=slave, env=environment)
    os.close(slave)
    try:
        seen = b""
        # The line that moves shows value and bound once the proof is under way.
        while b"bound" not in seen:
            seen += os.read(master, 4096)
        process.send_signal(signal.SIGINT)
        later: list[bytes] = []
        drain = threading.Thread(target=_read_all, args=(master, later), daemon=True)
        drain.start()
        if twice:
            while b"stopping" not in b"".join(later) and process.poll() is None:
                time.sleep(0.01)
            process.send_signal(signal.SIGINT)
        document, _ = process.communicate(timeout=120)
        drain.join(timeout=10)
    finally:
        process.kill()
    assert b"reading" in seen
    assert b"stopping; Ctrl-C again: quit" in b"".join(later)
    if twice:
        # Unless the answer came first.
        whole = document.endswith(b"}\n") and process.returncode in (0, -signal.SIGINT)
        assert (process.returncode, document) == (1, b"") or whole
        return
    assert process.returncode == 0
    result = Result.from_json(document.decode())
    assert result.status.value == "interrupted"
    assert result.bound >= result.value > 0


def _read_all(descriptor, into):
    with contextlib.suppress(OSError):
        while part := os.read(descriptor, 4096):
            into.append(part)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("sparcipal ver", "plain,verify"),
        ("sparcipal fit --sup", "plain,--supports"),
        ("sparcipal fit x.csv --method spann", "plain,spannogram"),
        ("sparcipal compare x.csv --methods auto,gree", "plain,auto,greedy"),
        ("sparcipal fit wine", "file,wine"),
        ("sparcipal verify model.json da", "file,da"),
    ],
)
def test_shells_complete_commands_options_and_files(words, expected):
    environment = {
        "_SPARCIPAL_COMPLETE": "bash_complete",
        "COMP_WORDS": words,
        "COMP_CWORD": str(len(words.split()) - 1),
    }
    outcome = shell().invoke(main, prog_name="sparcipal", env=environment)
    assert expected in outcome.stdout.splitlines()


def test_a_picture_that_cannot_be_drawn_is_refused_before_the_work(tmp_path, monkeypatch):
    source = tmp_path / "X.npy"
    np.save(source, np.eye(4))
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    monkeypatch.setattr("sparcipal.cli.solving.data_keywords", lambda *given: pytest.fail("worked"))
    picture = str(tmp_path / "path.svg")
    outcome = shell().invoke(main, ["path", str(source), "-s", "1:2", "--plot", picture])
    assert outcome.exit_code == 1
    assert "pip install 'sparcipal[plot]'" in outcome.stderr


SMALL_RNG = np.random.default_rng(0)


SMALL = SMALL_RNG.standard_normal((30, 5))


SMALL_NAMES = list("abcde")


def run_line(*arguments, code: int = 0):
    outcome = CliRunner().invoke(main, [str(a) for a in arguments])
    assert outcome.exit_code == code, outcome.output + repr(outcome.exception)
    return outcome


@pytest.fixture
def small_table(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text(
        ",".join(SMALL_NAMES) + "\n" + "\n".join(",".join(map(repr, r)) for r in SMALL.tolist())
    )
    return path


def test_fit_reads_features_from_rows_with_transpose(tmp_path):
    """--transpose: features in rows."""
    lines = [f"{i + 1} {j + 1} {SMALL[i, j]!r}" for i in range(30) for j in range(5)]
    path = tmp_path / "x.mtx"
    head = "%%MatrixMarket matrix coordinate real general\n5 30 150\n"
    turned = [" ".join([*reversed(line.split()[:2]), line.split()[2]]) for line in lines]
    path.write_text(head + "\n".join(turned).replace("np.float64(", "").replace(")", "") + "\n")
    model = tmp_path / "m.json"
    run_line("fit", path, "--transpose", "-s", 2, "-o", model)
    found = Result.load(model)
    assert found.value == pytest.approx(sparse_pca(SMALL, n_nonzero_coefs=2).value, rel=1e-9)
    assert found.settings["read"] == {"transpose": True}
    assert "proved" in run_line("verify", model, path).output


def test_new_samples_of_a_transposed_table_need_not_be_transposed(tmp_path, small_table):
    rows = [line.split(",") for line in small_table.read_text().splitlines()]
    head = [["gene", *(f"s{i}" for i in range(len(rows) - 1))]]
    turned = tmp_path / "turned.csv"
    turned.write_text("\n".join(map(",".join, [*head, *map(list, zip(*rows, strict=True))])))
    model = tmp_path / "m.json"
    run_line("fit", turned, "--transpose", "-s", 2, "-o", model)
    assert "proved" in run_line("verify", model, small_table, "--no-transpose").output
    same = run_line("transform", model, turned).stdout.splitlines()
    other = run_line("transform", model, small_table, "--no-transpose").stdout.splitlines()
    assert [line.split(",")[1] for line in same[1:]] == other[1:]


def test_a_model_with_labels_scores_a_transposed_table(tmp_path, small_table):
    lines = small_table.read_text().splitlines()
    labelled, turned = tmp_path / "labelled.csv", tmp_path / "turned.csv"
    kinds = ["kind", *("ab"[i % 2] for i in range(len(lines) - 1))]
    labelled.write_text(
        "\n".join(f"{kind},{line}" for kind, line in zip(kinds, lines, strict=True))
    )
    head = [["gene", *(f"s{i}" for i in range(len(lines) - 1))]]
    columns = zip(*(line.split(",") for line in lines), strict=True)
    turned.write_text("\n".join(map(",".join, [*head, *map(list, columns)])))
    model = tmp_path / "m.json"
    run_line("fit", labelled, "--label", "kind", "--drop", "kin*", "-s", 2, "-o", model)
    found = run_line("transform", model, turned, "--transpose").stdout.splitlines()
    same = run_line("transform", model, small_table).stdout.splitlines()
    assert [line.split(",")[1] for line in found[1:]] == same[1:]


def test_model_remembers_the_input_format_given(tmp_path, small_table):
    other = tmp_path / "data.bin"
    other.write_bytes(small_table.read_bytes())
    model = tmp_path / "m.json"
    run_line("fit", other, "--input-format", "csv", "-s", 2, "-o", model)
    assert Result.load(model).settings["read"] == {"format": "csv"}
    assert "proved" in run_line("verify", model, other).output


def test_show_writes_a_report_of_a_saved_model(tmp_path, small_table):
    model, page = tmp_path / "m.json", tmp_path / "r.html"
    run_line("fit", small_table, "-s", 2, "-o", model)
    run_line("show", model, "--report", page)
    text = page.read_text()
    assert all(name in text for name in Result.load(model).names(0))


def test_transform_compares_no_names_when_there_are_none(tmp_path):
    """Where either has no names there is nothing to compare."""
    np.save(tmp_path / "x.npy", SMALL)
    model = tmp_path / "m.json"
    run_line("fit", tmp_path / "x.npy", "-s", 2, "-o", model)
    lines = run_line("transform", model, tmp_path / "x.npy").output.split()
    assert lines[0] == "component1"
    found = np.array(lines[1:], dtype=float)
    np.testing.assert_allclose(found.var(), Result.load(model).value, rtol=1e-9)


def test_cache_list_is_empty_when_there_are_no_entries(tmp_path, monkeypatch):
    from sparcipal.data.files import cache

    monkeypatch.setenv(cache.VARIABLE, str(tmp_path / "kept"))
    assert "0 entries, 0 bytes" in run_line("cache", "list").output
