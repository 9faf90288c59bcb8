"""The demo runs on what is installed, the same way every time."""

from __future__ import annotations

import sys
import types

from click.testing import CliRunner

from sparcipal import demo
from sparcipal.cli import main


def test_the_corpus_is_large_named_and_the_same_every_time():
    table = demo.docstring_table()
    n, p = table.shape
    assert n > 2000
    assert p > 2000
    assert "scipy.signal.firwin" in table.sample_names
    again = demo.docstring_table()
    assert again.sample_names == table.sample_names
    assert again.feature_names == table.feature_names
    assert (again.X != table.X).nnz == 0


def test_a_paragraph_that_is_repeated_counts_once():
    def one(): ...
    def two(): ...

    shared = "the same words in both docstrings, " * 10
    one.__doc__ = f"{shared}\n\n{'first ' * 50}"
    two.__doc__ = f"{shared}\n\n{'second ' * 50}"
    seen: set[str] = set()
    assert "same words" in demo._unseen(one, seen)
    assert "same words" not in demo._unseen(two, seen)
    assert demo._unseen(one, seen) is None


def test_what_cannot_be_imported_or_read_is_passed_over(tmp_path, monkeypatch):
    package = tmp_path / "fragile"
    package.mkdir()
    text = " ".join(f"word{i}" for i in range(60))
    (package / "__init__.py").write_text(f'def fine():\n    """{text}"""\n')
    (package / "broken.py").write_text("raise RuntimeError('no')\n")
    (package / "noisy.py").write_text("import warnings; warnings.warn('old', DeprecationWarning)\n")
    (package / "_private.py").write_text("raise SystemExit\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(demo, "PACKAGES", ("fragile",))
    assert [name for name, _ in demo.docstrings()] == ["fragile.fine"]
    for name in [n for n in sys.modules if n.startswith("fragile")]:
        del sys.modules[name]


def test_an_object_whose_docstring_fails_is_passed_over():
    class Awkward:
        @property
        def __doc__(self):
            raise RuntimeError

    assert demo._unseen(Awkward(), set()) is None
    assert demo._unseen(types.SimpleNamespace(__doc__=3), set()) is None


def test_the_command_prints_topics_gain_and_what_was_eliminated(monkeypatch):
    """On a part of the corpus; docs/topics.rst shows what all of it gives."""
    monkeypatch.setattr(demo, "PACKAGES", ("sklearn",))
    monkeypatch.setattr(demo, "N_COMPONENTS", 3)
    monkeypatch.setattr(demo, "N_WORDS", 5)
    outcome = CliRunner().invoke(main, ["demo", "--quiet"])
    assert outcome.exit_code == 0, outcome.output
    assert "3 sparse components, at most 5 nonzeros each" in outcome.stdout
    assert "explains" in outcome.stdout
    assert "words were set aside by safe tests" in outcome.stdout
    gain = float(outcome.stdout.split("the joint search explains ")[1].split(" %")[0])
    assert 0 < gain < 100
