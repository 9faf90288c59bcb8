"""The records of the formats: complete, loaded when needed, and all that a new format takes."""

from __future__ import annotations

import inspect
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import sparcipal
from sparcipal import read
from sparcipal.data.files.formats import FORMATS, readers
from tests.support.places import ROOT, copied_package

PACKAGE = Path(sparcipal.__file__).parent
FOLDER = PACKAGE / "data" / "files"


def run(*command, package=PACKAGE, code=0):
    environment = {**os.environ, "PYTHONPATH": str(package.parent), "SPARCIPAL_CACHE": "off"}
    done = subprocess.run(
        [sys.executable, *map(str, command)],
        env=environment, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == code, done.stderr
    return done.stdout + done.stderr


def test_every_module_with_a_record_is_a_format():
    with_record = {
        path.stem for path in FOLDER.glob("*.py") if "\nREADER = Reader(" in path.read_text()
    }
    assert with_record == set(FORMATS)
    assert [reader.name for reader in readers()] == list(FORMATS)


@pytest.mark.parametrize("reader", readers(), ids=FORMATS)
def test_options_in_a_record_are_keywords_of_its_functions(reader):
    for function in (reader.read, reader.blocks or reader.read):
        parameters = inspect.signature(function).parameters.values()
        own = {p.name for p in parameters if p.kind is p.KEYWORD_ONLY}
        if any(p.kind is p.VAR_KEYWORD for p in parameters):
            assert own <= set(reader.options)
        else:
            assert own == set(reader.options)


def test_formats_that_share_a_suffix_recognise_their_files():
    claimed = [suffix for reader in readers() for suffix in reader.suffixes]
    for suffix in set(claimed):
        sharing = [reader for reader in readers() if suffix in reader.suffixes]
        assert sum(reader.recognises is None for reader in sharing) <= 1, suffix


@pytest.mark.parametrize("reader", readers(), ids=FORMATS)
def test_the_guide_names_every_format_and_suffix(reader):
    guide = (ROOT / "docs" / "guide.rst").read_text(encoding="utf-8")
    for word in (reader.name, *reader.suffixes):
        assert not word or f"``{word}``" in guide, word


@pytest.mark.processes
def test_readers_are_not_loaded_for_help_or_import():
    program = """
        import sys
        import sparcipal, sparcipal.cli
        sparcipal.cli.main(["fit", "--help"], standalone_mode=False)
        loaded = [name for name in sys.modules if name.startswith("sparcipal.data")]
        assert not loaded, loaded
    """
    run("-c", inspect.cleandoc(program))


def example():
    """The module in CONTRIBUTING.md, and its line."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    section = text[text.index("## Add a reader") :]
    return re.search(r"```python\n(.*?)```", section, flags=re.DOTALL)[1]


@pytest.fixture
def extended(tmp_path):
    """A copy of the package with one more file and one more line."""
    package = copied_package(tmp_path / "copy")
    folder = package / "data" / "files"
    (folder / "blanks.py").write_text(example())
    formats = folder / "formats.py"
    text = formats.read_text()
    formats.write_text(text.replace('    "bagofwords",\n', '    "bagofwords",\n    "blanks",\n'))
    assert len(formats.read_text()) == len(text) + len('    "blanks",\n')
    return package


@pytest.mark.processes
def test_a_new_format_is_one_file_and_one_line(tmp_path, extended):
    path = tmp_path / "x.blk"
    path.write_text("# a b c\n1 2 3\n4 5 7\n2 2 9\n")
    other = tmp_path / "y.blk"
    other.write_text("% a b c\n1 2 3\n4 5 7\n")
    program = f"""
        import sparcipal
        for cache in (False, {str(tmp_path / "entries")!r}, {str(tmp_path / "entries")!r}):
            table = sparcipal.read({str(path)!r}, cache=cache)
            print(table, table.X.tolist(), type(table.X).__name__)
        print(sparcipal.read({str(other)!r}, comment="%").shape)
        try:
            sparcipal.read({str(path)!r}, format="excel")
        except ValueError as error:
            print(error)
        try:
            sparcipal.read({str(path)!r}, header=True)
        except ValueError as error:
            print(error)
    """
    said = run("-c", inspect.cleandoc(program), package=extended).splitlines()
    rows = "[[1.0, 2.0, 3.0], [4.0, 5.0, 7.0], [2.0, 2.0, 9.0]]"
    table = "<Table: 3 samples x 3 unnamed features, {} of float64> {} {}"
    assert said[0] == table.format("ndarray", rows, "ndarray")
    assert said[1] == said[2] == table.format("memmap", rows, "memmap")
    assert said[3] == "(2, 3)"
    assert re.search(r"choose one of [\w, ]*\bblanks, ", said[4])
    assert said[5] == "option 'header' is unknown for format 'blanks'; there are: comment"


@pytest.mark.processes
def test_the_command_line_reads_a_new_format(tmp_path, extended):
    path, model = tmp_path / "x.blk", tmp_path / "model.json"
    path.write_text("1 2 3\n4 5 7\n2 2 9\n")
    fit = ("-m", "sparcipal", "fit", "-s", "1", "--certify", "none")
    assert "3 samples" in run(*fit, path, "--out", model, package=extended)
    other = path.rename(tmp_path / "x.dat")
    failed = run(*fit, other, package=extended, code=1)
    assert re.search(r"one of [\w, ]*\bblanks, ", failed)
    run(*fit, other, "--input-format", "blanks", package=extended)


@pytest.mark.parametrize("limit", ["1GiB", 40])
def test_folders_of_tables_are_one_table(limit, tmp_path):
    for number in (1, 2):
        (tmp_path / f"part-{number}.csv").write_text(f"a,b\n{number},2\n3,{number}\n")
    (tmp_path / "_SUCCESS").write_text("")
    (tmp_path / ".part-1.csv.crc").write_bytes(b"\x00\xff")
    found = read(tmp_path, memory_limit=limit)
    assert found.feature_names == ("a", "b")
    assert found.X.tolist() == [[1, 2], [3, 1], [2, 2], [3, 2]]
    assert read(tmp_path, columns="b").shape == (4, 1)
    (tmp_path / "part-2.csv").write_text("some words,of text\nsome,words\n")
    texts = read(tmp_path, format="folder", pattern="*.csv")
    assert texts.shape[0] == 2
    (tmp_path / "README.txt").write_text("what this is")
    with pytest.raises(ValueError, match=r"2 files .* CSV or TSV, and 1 .*\*\.csv.*'folder'"):
        read(tmp_path)
    (tmp_path / "README.txt").rename(tmp_path / "c.tsv")
    with pytest.raises(ValueError, match=r"both CSV and TSV files; name .*\*\.csv"):
        read(tmp_path)


def test_one_table_beside_documents_leaves_a_folder_of_texts(tmp_path):
    for number in range(3):
        (tmp_path / f"{number}.txt").write_text("some words of a text, some words")
    (tmp_path / "about.csv").write_text("name\nsome words\n")
    assert read(tmp_path, min_count=1).shape[0] == 4
