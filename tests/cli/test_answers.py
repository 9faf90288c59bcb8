"""Questions after a fit on the command line: constraints, alternatives, explain."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace

import numpy as np
import pytest
from click.testing import CliRunner

from sparcipal import Alternatives, Result, alternatives, explain, sparse_pca
from sparcipal.cli import main
from sparcipal.problem.result import Status

NAMES = ["ant", "bee", "cat", "dog", "elk", "fox"]
X = np.random.default_rng(2).standard_normal((40, 6)) * [3, 2.9, 2, 2, 1, 1]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = (",".join(map(repr, row)) for row in X.tolist())
    (tmp_path / "t.csv").write_text("\n".join([",".join(NAMES), *rows]) + "\n")
    return tmp_path


def run(*words, code=0):
    done = CliRunner().invoke(main, [str(word) for word in words])
    assert done.exit_code == code, done.output + repr(done.exception)
    return done


def fitted(*words) -> Result:
    run("fit", "t.csv", "-s", 2, *words, "-o", "m.json")
    return Result.load("m.json")


def names(result: Result) -> list[set[str]]:
    return [set(result.names(j)) for j in range(len(result.supports))]


def test_fit_takes_include_and_exclude_by_name_and_number(folder):
    assert names(fitted("--include", "elk"))[0] >= {"elk"}
    expected = sparse_pca(X, n_nonzero_coefs=2, exclude=[0, 2], feature_names=NAMES)
    assert names(fitted("--exclude", "ant,2")) == names(expected)
    assert not names(expected)[0] & {"ant", "cat"}
    run("verify", "m.json", "t.csv")


def test_fit_takes_include_once_for_each_component(folder):
    found = names(fitted("-k", 2, "--include", "elk", "--include", "fox"))
    assert "elk" in found[0]
    assert "fox" in found[1]


def test_more_lists_to_include_than_components_are_refused(folder):
    done = run("fit", "t.csv", "-s", 2, "--include", "elk", "--include", "fox", code=2)
    assert "--include is given 2 times for --components 1" in done.output


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--include", "elk,elk"], "repeats 'elk'"),
        (["--include", "emu"], "emu"),
        (["--exclude", "emu"], "emu"),
        (["--include", "ant", "--exclude", "ant"], "ant"),
        (["--include", "ant,bee,cat"], "3"),
    ],
)
def test_constraints_that_cannot_hold_are_named(folder, words, said):
    done = run("fit", "t.csv", "-s", 2, *words, code=1)
    assert said in done.output
    assert "Traceback" not in done.output


def test_wrong_limits_of_a_list_are_named_by_their_options(folder):
    fitted()
    done = run("alternatives", "m.json", "t.csv", "--most", 0, "--force", -1, code=1)
    assert "--most 0 must be" in done.output
    assert "--force -1 must be" in done.output


def test_outsiders_that_are_not_named_are_counted():
    A = np.diag(np.linspace(3.0, 1.0, 9))
    assert "and 2 more" in str(alternatives(covariance=A, n_nonzero_coefs=2, within=0.0, force=0))


def test_alternatives_are_those_of_python_in_every_format(folder):
    result = fitted()
    expected = alternatives(result, X, within=0.2)
    words = ("alternatives", "m.json", "t.csv", "--within", 0.2)
    done = run(*words, "-o", "near.json")
    assert str(expected) in done.output
    assert Alternatives.load("near.json").records() == expected.records()
    run("verify", "near.json", "t.csv")
    assert Alternatives.from_json(run(*words, "--format", "json").output).complete
    rows = list(csv.DictReader(io.StringIO(run(*words, "--format", "csv").output)))
    assert [float(row["value"]) for row in rows] == [r["value"] for r in expected.records()]


def test_alternatives_are_drawn_one_picture_for_each_component(folder):
    pytest.importorskip("matplotlib").use("Agg")
    fitted()
    words = ("alternatives", "m.json", "t.csv", "--no-costs", "--force", 0, "--plot", "near.png")
    assert "wrote near.png" in run(*words).stderr
    fitted("-k", 2)
    run(*words)
    assert {p.name for p in folder.glob("near*.png")} == {"near.png", "near-1.png", "near-2.png"}


def test_parameters_of_resamples_and_folds_are_named_as_options(folder):
    assert "--resamples 1 must be" in run("stability", "t.csv", "--resamples", 1, code=1).output
    assert "--folds 1 must be" in run("choose", "t.csv", "--folds", 1, code=1).output


def test_alternatives_refuse_to_overwrite_and_other_data(folder):
    fitted()
    assert "overwrite" in run("alternatives", "m.json", "t.csv", "-o", "m.json", code=2).output
    swapped = run("alternatives", "t.csv", "m.json", code=1).output
    assert "swapped" in swapped
    text = (folder / "t.csv").read_text().splitlines()
    (folder / "u.csv").write_text("\n".join(text[:20]) + "\n")
    assert "the data that it came from" in run("alternatives", "m.json", "u.csv", code=1).output


def test_explain_is_the_page_of_python_in_every_format(folder):
    result = fitted()
    expected = explain(result, X, within=0.05, stability=2)
    words = ("explain", "m.json", "t.csv", "--within", 0.05, "--stability", 2)
    assert run(*words).output.strip() == str(expected)
    told = json.loads(run(*words, "--format", "json").output)
    assert told == json.loads(expected.to_json())
    assert "wrote page.html" in run(*words, "-o", "page.html").output
    assert (folder / "page.html").read_text("utf-8") == expected.to_html()
    run(*words, "--format", "text", "-o", "page.json")
    assert (folder / "page.json").read_text("utf-8").strip() == str(expected)


def test_explain_says_in_the_words_of_the_shell_what_is_not_known(folder):
    fitted("-k", 2, "--supports", "common", "--certify", "none")
    said = " ".join(run("explain", "m.json", "t.csv").output.split())
    assert "Not known: supports near each component are not listed (--supports common" in said


def test_explain_refuses_a_model_whose_bound_does_not_hold(folder):
    result = fitted("-k", 2, "--supports", "common", "--certify", "none")
    told = result.certificate
    bounds = tuple(replace(bound, value=told.value) for bound in told.bounds)
    forged = replace(told, bound=told.value, bounds=bounds, status=Status.OPTIMAL)
    replace(result, certificate=forged).save("m.json")
    assert "claims what does not hold" in run("explain", "m.json", "t.csv", code=1).output


def test_explain_refuses_to_overwrite_the_model(folder):
    fitted()
    assert "overwrite" in run("explain", "m.json", "t.csv", "-o", "m.json", code=2).output


def test_update_goes_on_with_the_sums_beside_the_model(folder):
    counts = np.random.default_rng(0).poisson(3.0, (90, 6))
    counts[:, 1] += counts[:, 0]
    for name, part in (("a", counts[:30]), ("b", counts[30:60]), ("c", counts[60:])):
        lines = [",".join(NAMES), *(",".join(map(str, row)) for row in part.tolist())]
        (folder / f"{name}.csv").write_text("\n".join(lines) + "\n")
    run("fit", "a.csv", "-s", 2, "-o", "m.json")
    said = run("update", "m.json", "b.csv", code=1).stderr
    assert "there is no m.json.sums; name the rows of m.json with --data" in said
    first = run("update", "m.json", "b.csv", "--data", "a.csv", "-o", "m.json")
    assert "30 rows more: 60 rows now" in first.stdout
    done = run("update", "m.json", "c.csv", "--without", "a.csv", "-o", "n.json", "--format", "csv")
    record = next(iter(csv.DictReader(io.StringIO(done.stdout))))
    assert (record["component"], record["before"]) == ("1", "1")
    result = Result.load("n.json")
    whole = sparse_pca(counts[30:], n_nonzero_coefs=2)
    assert result.value == pytest.approx(whole.value, rel=1e-12)
    lines = (folder / "b.csv").read_text() + (folder / "c.csv").read_text().split("\n", 1)[1]
    (folder / "bc.csv").write_text(lines)
    assert run("verify", "n.json", "bc.csv").stdout.startswith("proved")


def test_a_csv_that_was_stopped_says_so_beside_it_and_by_its_exit_code(folder):
    fitted("-k", 2)
    stop = ("--time-limit", "1e-9", "--format", "csv")
    done = run("alternatives", "m.json", "t.csv", *stop, code=3)
    assert "incomplete: stopped by the time limit" in done.stderr
    done = run("stability", "t.csv", "-s", 2, *stop, code=3)
    assert "incomplete: stopped after 0 of 50" in done.stderr
    done = run("fit", "t.csv", "-s", 2, *stop, code=3)
    assert "incomplete: stopped by the time limit" in done.stderr
    done = run("alternatives", "m.json", "t.csv", "--format", "csv")
    assert "incomplete" not in done.stderr
    numbers = {record["component"] for record in csv.DictReader(io.StringIO(done.stdout))}
    assert numbers == {"1", "2"}  # as the text and the other tables count


def test_too_many_anchors_are_of_a_component_that_counts_from_one(folder):
    words = ("--include", "ant,bee,cat", "--include", "dog")
    said = run("fit", "t.csv", "-k", 2, "-s", 2, *words, code=1).output
    assert "3 anchors of component 1" in said


def test_a_file_of_alternatives_says_what_it_is_and_what_was_rechecked(folder):
    fitted("-k", 2)
    run("alternatives", "m.json", "t.csv", "--force", 1, "-o", "near.json")
    found = Alternatives.load("near.json")
    listed = sum(len(near.supports) for near in found.components)
    costs = len(found.drops) + sum(len(near.drops) + 1 for near in found.components)
    told = run("verify", "near.json", "t.csv").output
    assert f"rechecked as well: {listed} listed supports, that none is missing" in told
    assert f"and {costs} costs of features" in told
    said = run("explain", "near.json", "t.csv", code=1).output
    assert "near.json: not a sparcipal result: these are alternatives to one" in said
    document = json.loads((folder / "near.json").read_text())
    del document["components"][0]["rounding"]
    (folder / "near.json").write_text(json.dumps(document))
    said = run("verify", "near.json", "t.csv", code=1).output
    assert "another version of sparcipal saved these alternatives, without 'rounding'" in said
    assert "make them again" in said


def test_show_prints_saved_alternatives_in_every_form(folder):
    fitted()
    words = ("m.json", "t.csv", "--within", 0.2)
    for form in ("table", "json", "csv"):
        made = run("alternatives", *words, "--format", form, "-o", "near.json").stdout
        assert run("show", "near.json", "--format", form).stdout == made
    assert (
        run("show", "near.json", "--as", "sql").stdout
        == run("show", "m.json", "--as", "sql").stdout
    )
    run("show", "near.json", "--report", "near.html")
    assert "Is it the only answer?" in (folder / "near.html").read_text()


@pytest.mark.parametrize("command", [["stability", "--resamples", 4], ["choose", "--folds", 3]])
def test_choose_and_stability_count_words_as_fit_does(command, folder):
    texts = ["sun sea sand sea", "sea sand", "sun", "oven bread", "bread bread oven", "sun oven"]
    (folder / "t.txt").write_text("\n".join(texts * 6))
    ones = ["-k", 1] if command[0] == "choose" else []
    asked = [*command, "t.txt", "-s", 2, *ones, "--report", "r.html"]
    done = run(*asked)
    assert "words are counted, as by fit; --weighting tfidf --normalize" in done.stderr
    assert "sparcipal fit t.txt -s 2<" in (folder / "r.html").read_text()
    weighted = run(*asked, "--weighting", "tfidf", "--normalize")
    assert "words are counted" not in weighted.stderr
    assert "--weighting tfidf --normalize" in (folder / "r.html").read_text()
