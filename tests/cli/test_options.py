"""Options of the command line: places to write to, and completion."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from sparcipal.cli import main, options, values
from sparcipal.problem.constraints import Columns, excluded


def test_output_option_refuses_a_folder_that_cannot_be_written(tmp_path, monkeypatch):
    import click

    monkeypatch.setattr(values.os, "access", lambda path, mode: False)
    with pytest.raises(click.BadParameter, match="cannot be written; choose another place"):
        values.Output().convert(str(tmp_path / "m.json"), None, None)


def test_completion_offers_the_words_that_fit():
    assert options.complete_cache(None, None, "b") == ["beside"]
    assert options.complete_methods(None, None, "auto,tpo") == ["auto,tpower"]


MESSY = "id,who,group,a,b,c\n" + "\n".join(
    f"{i},p{i},{'xy'[i % 2]},{i * 7 % 11},{'' if i == 3 else i * 5 % 13},{i * 3 % 7}"
    for i in range(1, 15)
)


def test_options_choose_columns_and_say_what_is_set_aside(tmp_path):
    source, model = tmp_path / "x.csv", tmp_path / "m.json"
    source.write_text(MESSY)
    runner = CliRunner()
    refused = runner.invoke(main, ["fit", str(source), "-s", "2"])
    assert refused.exit_code == 1
    assert "--missing pairwise" in refused.stderr
    asked = ["-s", "2", "--index", "who", "--label", "group", "--missing", "mean", "-o", str(model)]
    fitted = runner.invoke(main, ["fit", str(source), *asked])
    assert fitted.exit_code == 0
    assert "set aside, not fitted: 'id' (identifier)" in fitted.stdout
    assert "filled with the mean" in fitted.stdout
    assert runner.invoke(main, ["verify", str(model), str(source)]).stdout.startswith("proved")
    scores = runner.invoke(main, ["transform", str(model), str(source)]).stdout.splitlines()
    assert scores[0] == "sample,group,component1"
    assert len(scores) == 15
    hot = ["fit", str(source), "--columns", "a,c,group", "--one-hot", "group", "-o", str(model)]
    assert runner.invoke(main, hot).exit_code == 0
    part = tmp_path / "part.csv"
    part.write_text("\n".join(line for line in MESSY.splitlines() if ",y," not in line))
    assert runner.invoke(main, ["transform", str(model), str(part)]).exit_code == 0


def test_each_command_shows_only_options_that_act_on_it():
    shown = {
        name: CliRunner().invoke(main, [name, "--help"]).output
        for name in ("fit", "topics", "transform", "verify", "show")
    }
    assert "The question:" in shown["fit"]
    assert "Columns of a table:" in shown["fit"]
    for name in ("topics", "transform", "verify"):
        assert "--covariance" not in shown[name]
    assert "--columns" not in shown["transform"]
    assert "--missing" not in shown["topics"]
    choose = CliRunner().invoke(main, ["choose", "--help"]).output
    assert "--exclude" in choose
    assert "--include" not in choose
    assert "--rank" not in choose
    asked = CliRunner().invoke(main, ["transform", "m.json", "x.csv", "--missing", "mean"])
    assert "of transform: the model was made with it (sparcipal fit --missing)" in asked.stderr
    asked = CliRunner().invoke(main, ["verify", "m.json", "x.csv", "-q"])
    assert "of verify: it is one of fit, " in asked.stderr
    asked = CliRunner().invoke(main, ["fit", "x.csv", "--nonzeros", "2"])
    assert asked.stderr.endswith("Did you mean '--nonzero'?\n")


def test_topics_of_a_table_need_a_column_of_text(tmp_path):
    source = tmp_path / "x.csv"
    source.write_text(MESSY)
    refused = CliRunner().invoke(main, ["topics", str(source)])
    assert refused.exit_code == 1
    assert "name its column of text with --text-field" in refused.stderr


def test_texts_keep_their_names_from_the_fit_to_the_scores(tmp_path):
    source, model = tmp_path / "x.csv", tmp_path / "m.json"
    source.write_text("no,day,text\nR1,1,cat dog\nR2,2,\nR3,3,cat cat\nR4,4,dog star star\n")
    run = CliRunner().invoke
    asked = ["--text-field", "text", "--index", "no", "-k", "1", "-s", "2", "-o", str(model)]
    fitted = run(main, ["topics", str(source), *asked])
    assert fitted.exit_code == 0
    assert "  R4\n" in fitted.stdout
    assert run(main, ["verify", str(model), str(source)]).stdout.startswith("proved")
    scores = run(main, ["transform", str(model), str(source), "--label", "day"]).stdout
    assert [line.split(",")[:2] for line in scores.splitlines()] == [
        ["sample", "day"], ["R1", "1"], ["R2", "2"], ["R3", "3"], ["R4", "4"],
    ]  # fmt: skip
    without = tmp_path / "new.csv"
    without.write_text("text\ndog\n")
    assert run(main, ["transform", str(model), str(without)]).stdout.splitlines()[1][:4] == "dog,"
    unknown = run(main, ["transform", str(model), str(source), "--decimal", ","]).stderr
    assert "option --decimal is unknown for format csvtexts; there are: --containing, " in unknown


def test_separator_and_header_are_told_and_kept_for_new_rows(tmp_path):
    """The options hold against the guesses, and the model keeps them."""
    source, model = tmp_path / "x.csv", tmp_path / "m.json"
    body = "\n".join(f"{i * 7 % 11}|{i * 5 % 13}|{i * 3 % 7}" for i in range(1, 15))
    source.write_text(f"a, once|b|c, twice\n{body}\n")
    runner = CliRunner()
    asked = ["-s", "2", "--delimiter", "|", "--header", "-o", str(model)]
    fitted = runner.invoke(main, ["fit", str(source), *asked])
    assert fitted.exit_code == 0, fitted.output
    assert "c, twice" in model.read_text()
    scored = runner.invoke(main, ["transform", str(model), str(source)])
    assert scored.exit_code == 0
    assert len(scored.stdout.splitlines()) == 15
    assert "read as for the fit: --header --delimiter |" in " ".join(scored.stderr.split())
    bare = tmp_path / "y.csv"
    bare.write_text(f"{body}\n".replace("|", "\t"))
    asked = ["-s", "2", "--delimiter", "tab", "--no-header", "-o", str(model)]
    assert runner.invoke(main, ["fit", str(bare), *asked]).exit_code == 0
    scored = runner.invoke(main, ["transform", str(model), str(bare)])
    assert "--no-header --delimiter tab" in " ".join(scored.stderr.split())
    wrong = runner.invoke(main, ["fit", str(bare), "--delimiter", "::"])
    assert wrong.exit_code == 2
    assert "is not one character" in wrong.stderr


def test_features_are_named_by_patterns_and_in_quotes():
    data = {"feature_names": ("a1", "a2", "b,c", "x*", "7")}
    asked = {"components": 1, "include": ('"b,c", a1',), "exclude": ("a*,x*,7,3,none*",)}
    found = options.constraints(asked, data)
    assert found["include"] == ["b,c", "a1"]
    assert found["exclude"] == ["a*", "x*", "7", 3, "none*"]  # patterns are the library's


def test_a_feature_named_twice_is_not_merged_and_patterns_may_meet():
    data = {"feature_names": ("a1", "a2", "b")}
    asked = {"components": 1, "include": ("a1,a1",), "exclude": ("a*", "a1,?2")}
    found = options.constraints(asked, data)
    assert found == {"include": ["a1", "a1"], "exclude": ["a*", "a1", "?2"]}
    columns = Columns(3, data["feature_names"])
    assert excluded(found["exclude"], columns) == ([0, 1], [])


def test_trends_leave_out_what_is_excluded(tmp_path):
    source = tmp_path / "news.csv"
    lines = ["cat dog", "cat dog dog", "dog cat cow", "star moon", "moon star", "moon sun star"]
    rows = (f"{text},{2001 + i // 3}" for i, text in enumerate(lines))
    source.write_text("text,year\n" + "\n".join(rows) + "\n")
    asked = ["--text-field", "text", "--label", "year", "--windows", "year", "-k", "1"]
    asked += ["-s", "2", "--format", "csv", "-q"]
    runner = CliRunner()
    assert "cow" in runner.invoke(main, ["trends", str(source), *asked]).stdout
    left = runner.invoke(main, ["trends", str(source), *asked, "--exclude", "cow"])
    assert left.exit_code == 0, left.output
    assert "dog" in left.stdout
    assert "cow" not in left.stdout
