"""What was parsed is kept: found again by content, whole or not at all, whatever happens."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp

from sparcipal import read, sparse_pca
from sparcipal.data.files import bagofwords, cache, spill
from sparcipal.data.files import bytes as source
from sparcipal.data.files.cache import Cache
from sparcipal.data.files.formats import format_of, reader_of

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals and limits of POSIX")


@pytest.fixture
def corpus(tmp_path):
    """A bag of words old enough for its time stamps to be trusted, and its matrix."""
    rng = np.random.default_rng(0)
    X = rng.poisson(0.4, size=(300, 50))
    X[7, 3] = 70_000
    X[200, 1] = 300
    return write(tmp_path / "docword.txt.gz", X), X


def write(path, X):
    rows, cols = np.nonzero(X)
    lines = [f"{i + 1} {j + 1} {X[i, j]}\n" for i, j in zip(rows, cols)]
    text = f"{X.shape[0]}\n{X.shape[1]}\n{len(lines)}\n" + "".join(lines)
    path.write_bytes(gzip.compress(text.encode(), mtime=0))
    return path


def trusted(monkeypatch):
    """As if the file were old."""
    monkeypatch.setattr(cache, "FRESH", -1.0)


def forbidden(monkeypatch):
    def fail(*args, **options):
        raise AssertionError("parsed again")

    monkeypatch.setattr(bagofwords, "parse", fail)


def same(table, X):
    np.testing.assert_array_equal(table.X.toarray(), X)
    assert table.moments.n_samples == X.shape[0]
    np.testing.assert_array_equal(table.moments.sums.astype(np.int64), X.sum(axis=0))


def names(folder):
    return sorted(path.name for path in folder.iterdir() if path.name != "notes")


def test_the_second_time_nothing_is_parsed(tmp_path, corpus, monkeypatch):
    path, X = corpus
    monkeypatch.setattr(bagofwords, "BLOCK", 1000)
    first = read(path, cache=tmp_path / "kept")
    same(first, X)
    assert first.X.dtype == np.uint32
    forbidden(monkeypatch)
    second = read(path, cache=tmp_path / "kept")
    same(second, X)
    base = second.X.indices
    while isinstance(base, np.ndarray) and not isinstance(base, np.memmap):
        base = base.base
    assert isinstance(base, np.memmap)
    assert not second.X.data.flags.writeable
    assert second.X.dtype == np.uint32
    assert second.cache_entry.folder.parent == tmp_path / "kept"
    assert len(names(tmp_path / "kept")) == 1


def test_an_unchanged_file_is_not_even_read(tmp_path, corpus, monkeypatch):
    path, X = corpus
    trusted(monkeypatch)
    read(path, cache=tmp_path / "kept")
    forbidden(monkeypatch)
    monkeypatch.setattr(cache, "content_of", lambda path: pytest.fail("read again"))
    same(read(path, cache=tmp_path / "kept"), X)


def test_a_file_written_a_moment_ago_is_looked_at_again(tmp_path, corpus):
    read(corpus[0], cache=tmp_path / "kept")
    note = json.loads(next((tmp_path / "kept" / "notes").iterdir()).read_text())
    assert note["state"] is None


def test_a_copy_is_found_by_its_content(tmp_path, corpus, monkeypatch):
    path, X = corpus
    read(path, cache=tmp_path / "kept")
    forbidden(monkeypatch)
    copy = tmp_path / "elsewhere.txt.gz"
    shutil.copy(path, copy)
    same(read(copy, cache=tmp_path / "kept"), X)
    os.utime(path)
    same(read(path, cache=tmp_path / "kept"), X)


def test_a_file_that_changed_is_parsed_again(tmp_path, corpus, monkeypatch):
    path, X = corpus
    trusted(monkeypatch)
    read(path, cache=tmp_path / "kept")
    before, state = names(tmp_path / "kept"), path.stat()
    raw = path.read_bytes()
    X[0, np.flatnonzero(X[0])[0]] += 1
    for _ in range(50):
        write(path, X)
        if path.stat().st_size == len(raw):
            break
        X[0, np.flatnonzero(X[0])[0]] += 1
    # the size and the time of before: only the system's own time stamp tells
    assert path.stat().st_size == len(raw)
    os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))
    same(read(path, cache=tmp_path / "kept"), X)
    after = names(tmp_path / "kept")
    assert len(after) == 1, "what belonged to the old content is gone"
    assert after != before


def test_damaged_entries_are_made_again(tmp_path, corpus):
    path, X = corpus
    for damage in ("indices.npy", "entry.json", "data.npy"):
        entry = read(path, cache=tmp_path / "kept").cache_entry.folder
        raw = (entry / damage).read_bytes()
        (entry / damage).write_bytes(raw[: len(raw) // 2])
        with pytest.warns(RuntimeWarning, match="damaged .* made again"):
            same(read(path, cache=tmp_path / "kept"), X)
    (entry / f"moments-{X.shape[1]}.npz").write_bytes(b"nonsense")
    with pytest.warns(RuntimeWarning, match=r"moments-50.npz: .*damaged .*`sparcipal cache clear`"):
        same(read(path, cache=tmp_path / "kept"), X)


def no_tail(a):
    a[-25:] = 0


def beyond(a):
    a[100] = 10**6


def fall(a):
    a[100], a[101] = a[101] + 1, a[100]


@pytest.mark.parametrize("limit", [1, 10**9])
@pytest.mark.parametrize(
    ("name", "change"),
    [("indptr", no_tail), ("indptr", beyond), ("indptr", fall), ("indices", beyond)],
)
def test_arrays_of_the_size_that_make_no_matrix_are_made_again(
    name, change, limit, tmp_path, corpus
):
    path, X = corpus
    whole = sparse_pca(read(path, cache=tmp_path / "kept"), n_nonzero_coefs=2, memory_limit=limit)
    for with_moments in (True, False):
        entry = read(path, cache=tmp_path / "kept").cache_entry.folder
        array = np.load(entry / f"{name}.npy")
        change(array)
        np.save(entry / f"{name}.npy", array)
        if not with_moments:  # which are counted before the indices are checked
            (entry / f"moments-{X.shape[1]}.npz").unlink()
        with pytest.warns(RuntimeWarning, match=r"kept.*: the cache entry is damaged .*made again"):
            table = read(path, cache=tmp_path / "kept")
        same(table, X)
        again = sparse_pca(table, n_nonzero_coefs=2, memory_limit=limit)
        assert (again.value, again.bound) == (whole.value, whole.bound)


def test_a_damaged_entry_of_a_table_is_made_again(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("a,b\n" + "1,2\n3,5\n" * 50)
    for name in ("names.json", "X.npy"):
        entry = read(path, cache=tmp_path / "kept").cache_entry.folder
        raw = (entry / name).read_bytes()
        (entry / name).write_bytes(raw[:20].replace(b"{", b"[") + b" " * (len(raw) - 20))
        with pytest.warns(RuntimeWarning, match="the cache entry is damaged .* made again"):
            assert read(path, cache=tmp_path / "kept").feature_names == ("a", "b")


@pytest.mark.parametrize("scale", [False, True])
def test_results_in_the_cache_that_hold_something_else_are_summed_again(tmp_path, corpus, scale):
    path, _ = corpus
    asked = {"n_nonzero_coefs": 3, "memory_limit": 1, "scale": scale}
    first = sparse_pca(read(path, cache=tmp_path / "kept"), **asked)
    results = sorted((tmp_path / "kept").rglob("*.npz"))
    assert {found.name.split("-")[0] for found in results} >= {"moments", "products"}
    for result in results:
        with np.load(result) as found:
            kept = dict(found)
        for name in set(kept) - {"digest"}:
            for array in (kept[name] * 2, kept[name][:-1], kept[name].astype("U9")):
                if array.tobytes() == kept[name].tobytes():  # no number, or nothing
                    continue
                np.savez(result, **{**kept, name: array})
                with pytest.warns(RuntimeWarning, match=f"{result.name}: .*damaged .*cache clear"):
                    again = sparse_pca(read(path, cache=tmp_path / "kept"), **asked)
                assert (again.value, again.bound) == (first.value, first.bound)
        np.savez(result, **{name: kept[name] for name in kept if name != "digest"})
        sparse_pca(read(path, cache=tmp_path / "kept"), **asked)  # of an earlier version: not there


def test_cache_keeps_nothing_of_a_faulty_file(tmp_path, corpus, monkeypatch):
    path, _ = corpus
    text = gzip.decompress(path.read_bytes())
    path.write_bytes(gzip.compress(text + b"1 1\n"))
    with pytest.raises(ValueError, match="2 fields"):
        read(path, cache=tmp_path / "kept")
    path.write_bytes(gzip.compress(text)[:-9])
    with pytest.raises(ValueError, match="damaged or cut short"):
        read(path, cache=tmp_path / "kept")
    path.write_bytes(gzip.compress(text + b"1 1 1\n"))
    with pytest.raises(ValueError, match="the header says"):
        read(path, cache=tmp_path / "kept")
    assert names(tmp_path / "kept") == []


def test_cache_holds_entries_that_come_in_any_order(tmp_path, monkeypatch):
    monkeypatch.setattr(bagofwords, "SLICE", 20)
    rng = np.random.default_rng(1)
    lines = [f"{d} {w} {c}\n" for d, w, c in rng.integers(1, 200, size=(400, 3))]
    path = tmp_path / "docword.txt"
    path.write_text("".join(lines))
    X = read(path, cache=False).X.toarray()
    same(read(path, cache=tmp_path / "kept"), X)
    forbidden(monkeypatch)
    same(read(path, cache=tmp_path / "kept"), X)
    assert len(names(tmp_path / "kept")) == 1


# --- where, and without being asked ---


def test_cache_lies_where_arguments_and_environment_say(tmp_path, corpus, monkeypatch):
    path, X = corpus
    home = tmp_path / "home"
    monkeypatch.setenv("SPARCIPAL_CACHE", str(home))
    same(read(path), X)
    assert not home.exists(), "small files are not kept unless asked for"
    same(read(path, cache=False), X)
    assert not home.exists()
    same(read(path, cache=True), X)
    assert len(names(home)) == 1
    same(read(path, cache="beside"), X)
    assert len(names(tmp_path / "docword.txt.gz.sparcipal")) == 1
    monkeypatch.setattr(cache, "LARGE", 5000)
    shutil.rmtree(home)
    same(read(path), X)
    assert len(names(home)) == 1
    shutil.rmtree(home)
    monkeypatch.setenv("SPARCIPAL_CACHE", "off")
    same(read(path), X)
    assert not home.exists()
    with pytest.raises(ValueError, match="is not a folder"):
        read(path, cache=path)
    with pytest.raises(TypeError, match="cache must be True, False"):
        read(path, cache=3)


@pytest.mark.parametrize("name", ["x.csv", "x.jsonl", "x.txt", "x.svmlight", "x.mtx"])
def test_other_text_is_kept_too(tmp_path, monkeypatch, name):
    A = np.array([[1.5, 0.0, 2.0], [0.0, 3.0, 0.0], [4.0, 0.0, 5.0]])
    path = tmp_path / name
    if name == "x.csv":
        path.write_text("a,b,c\n" + "".join(",".join(map(str, row)) + "\n" for row in A))
    elif name == "x.svmlight":
        rows = (" ".join(f"{j + 1}:{v}" for j, v in enumerate(row) if v) for row in A)
        path.write_text("".join(f"1 {row}\n" for row in rows))
    elif name == "x.mtx":
        scipy.io.mmwrite(path, sp.coo_array(A))
    else:
        texts = ["the cat and the dog", "an owl", "a dog saw an owl"]
        path.write_text("".join((json.dumps(t) if "json" in name else t) + "\n" for t in texts))
    plain = read(path, cache=False)
    read(path, cache=tmp_path / "kept")
    format = format_of(path)

    def fail(source, names, **options):
        raise AssertionError("parsed again")

    broken = replace(reader_of(format), read=fail, blocks=fail)
    monkeypatch.setattr(f"sparcipal.data.files.{format}.READER", broken)
    again = read(path, cache=tmp_path / "kept")
    assert again.cache_entry.folder.parent == tmp_path / "kept"
    assert again.feature_names == plain.feature_names
    assert again.sample_names == plain.sample_names
    assert again.X.dtype == plain.X.dtype
    dense = [t.X.toarray() if sp.issparse(t.X) else t.X for t in (again, plain)]
    np.testing.assert_array_equal(*dense)
    with pytest.raises(Exception, match="parsed again"):
        read(path, cache=tmp_path / "kept", feature_names=["cat", "dog", "owl"])


def test_results_can_be_kept_with_an_entry(tmp_path, corpus):
    entry = read(corpus[0], cache=tmp_path / "kept").cache_entry
    assert entry.load("gram-1") is None
    entry.store("gram-1", {"columns": np.arange(3), "second": np.eye(3)})
    np.testing.assert_array_equal(entry.load("gram-1")["second"], np.eye(3))
    assert entry.size > 0
    kept = cache.Cache(tmp_path / "kept")
    assert [e.folder for e in kept.entries()] == [entry.folder]
    assert kept.clear() > 0
    assert kept.entries() == []


def test_an_interrupted_run_goes_on_from_its_passes(tmp_path, corpus, monkeypatch):
    from sparcipal import fit as pipeline
    from sparcipal import sparse_pca
    from sparcipal.data import rows

    question = {"n_nonzero_coefs": 2, "memory_limit": 1000, "certify": False}
    expected = sparse_pca(read(corpus[0], cache=False), **question)
    with monkeypatch.context() as broken:

        def dies(*args, **options):
            raise RuntimeError("the machine went down")

        broken.setattr(pipeline, "solve", dies)
        with pytest.raises(RuntimeError, match="went down"):
            sparse_pca(read(corpus[0], cache=tmp_path / "kept"), **question)

    def passes(self, empty, watch=None):
        raise AssertionError("the rows are read again")

    monkeypatch.setattr(rows.Rows, "accumulate", passes)
    result = sparse_pca(read(corpus[0], cache=tmp_path / "kept"), **question)
    assert result.value == expected.value
    assert result.bound == expected.bound
    # another set of features needs other products
    with pytest.raises(AssertionError, match="the rows are read again"):
        sparse_pca(read(corpus[0], cache=tmp_path / "kept"), **{**question, "memory_limit": 400})


# --- processes that race, die, or run out of disk ---

READER = """
    import sys, time, warnings
    from pathlib import Path
    import numpy as np
    from sparcipal import read
    from sparcipal.data.files import bagofwords, cache
    path, folder = sys.argv[1:3]
    bagofwords.BLOCK = 500
"""


def process(code, *arguments, **options):
    program = textwrap.dedent(READER) + textwrap.dedent(code)
    return subprocess.Popen(
        [sys.executable, "-c", program, *map(str, arguments)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options,
    )  # fmt: skip


@pytest.mark.processes
def test_cache_serves_two_processes_at_once(tmp_path, corpus):
    path, X = corpus
    code = """
        started = time.time()
        Path(sys.argv[3]).touch()
        keep = cache.Cache.keep
        def wait(*arguments):  # both have parsed before the first one renames
            Path(sys.argv[3] + "-parsed").touch()
            while len(list(Path(folder).parent.glob("ready*-parsed"))) < 2:
                assert time.time() < started + 60
                time.sleep(0.01)
            return keep(*arguments)
        cache.Cache.keep = wait
        X = read(path, cache=folder).X
        print(X.nnz, int(X.sum()))
    """
    both = [process(code, path, tmp_path / "kept", tmp_path / f"ready{i}") for i in (1, 2)]
    answers = [p.communicate(timeout=90) for p in both]
    assert {a[0] for a in answers} == {f"{np.count_nonzero(X)} {X.sum()}\n"}, answers
    assert len(names(tmp_path / "kept")) == 1
    same(read(path, cache=tmp_path / "kept"), X)


@pytest.mark.processes
@pytest.mark.parametrize("moment", ["write", "finish"])
def test_cache_is_whole_after_a_kill_while_writing(tmp_path, corpus, moment):
    path, X = corpus
    code = f"""
        def hang(*arguments):
            print("now", flush=True)
            time.sleep(60)
        if {moment!r} == "finish":
            cache.os.rename = hang
        else:
            write, calls = cache.Column.write, []
            def some(self, array):
                calls.append(1)
                return write(self, array) if len(calls) < 9 else hang()
            cache.Column.write = some
        read(path, cache=folder)
    """
    victim = process(code, path, tmp_path / "kept")
    assert victim.stdout.readline() == "now\n"
    assert names(tmp_path / "kept")[0].startswith("part-")
    os.kill(victim.pid, signal.SIGKILL)
    victim.communicate()
    same(read(path, cache=tmp_path / "kept"), X)
    (entry,) = names(tmp_path / "kept")
    assert not entry.startswith("part-"), "what the dead process left is gone"


@pytest.mark.processes
def test_read_goes_on_without_a_cache_when_the_disk_is_full(tmp_path, corpus):
    path, X = corpus
    code = """
        import resource
        read(path, cache=False)  # compiled kernels are files too
        for limit in (17_000, 10_000, 2000, 600, 100):
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
            with warnings.catch_warnings(record=True) as told:
                warnings.simplefilter("always")
                table = read(path, cache=f"{folder}{limit}")
            squares = (table.X.astype(np.int64) ** 2).sum()
            print(int(squares), table.moments.sums.sum(), table.X.dtype)
            print(len(told), told[0].message)
    """
    out, err = process(code, path, tmp_path / "kept").communicate(timeout=90)
    lines = out.splitlines()
    assert len(lines) == 10, err
    for answer, told in zip(lines[::2], lines[1::2]):
        assert answer == f"{(X.astype(np.int64) ** 2).sum()} {X.sum()} uint32", err
        assert told.startswith("1 ")
        assert "could not be kept (File too large); the work goes on without" in told
    assert [names(folder) for folder in tmp_path.glob("kept*")] == [[]] * 5


def test_a_disk_may_fail_at_any_step_of_reading(tmp_path, corpus, monkeypatch):
    path, X = corpus
    monkeypatch.setattr(bagofwords, "BLOCK", 500)
    monkeypatch.setattr(spill, "CHUNK", 100)
    write, steps = cache.Column._all, []

    def fails_at(step):
        def some(self, raw):
            steps.append(1)
            if len(steps) >= step:
                raise OSError(28, "No space left on device")
            return write(self, raw)

        return some

    monkeypatch.setattr(cache.Column, "_all", fails_at(np.inf))
    same(read(path, cache=tmp_path / "healthy"), X)
    total = len(steps)
    assert total > 100
    for step in [*range(1, total, 3), total]:
        steps.clear()
        monkeypatch.setattr(cache.Column, "_all", fails_at(step))
        with pytest.warns(RuntimeWarning, match="No space left"):
            same(read(path, cache=tmp_path / "kept"), X)
        assert names(tmp_path / "kept") == []
    monkeypatch.setattr(cache.Column, "_all", write)
    same(read(path, cache=tmp_path / "kept"), X)


def test_read_goes_on_when_the_cache_folder_cannot_be_written(corpus):
    path, X = corpus
    with pytest.warns(RuntimeWarning, match=r"/dev/null/kept: .* could not be kept .*cache=False"):
        same(read(path, cache="/dev/null/kept"), X)


def test_what_a_stranger_left_goes_after_days(tmp_path, corpus):
    kept = tmp_path / "kept"
    for name in ("part-deadbeef-1-00", "part-odd"):
        (kept / name).mkdir(parents=True)
    old = time.time() - 3 * 86400
    read(corpus[0], cache=kept)
    assert "part-deadbeef-1-00" in names(kept)
    os.utime(kept / "part-deadbeef-1-00", (old, old))
    cache.Cache(kept).draft().abandon()
    assert "part-deadbeef-1-00" not in names(kept)


def test_the_command_lists_and_clears(tmp_path, corpus):
    from click.testing import CliRunner

    from sparcipal.cli import main

    kept = tmp_path / "kept"
    shell = CliRunner()
    read(corpus[0], cache=kept)
    listed = shell.invoke(main, ["cache", "--folder", str(kept)])
    assert listed.exit_code == 0
    assert str(corpus[0]) in listed.output
    assert "1 entry" in listed.output
    assert "of at most" in listed.output
    assert "last used" in listed.output
    cleared = shell.invoke(main, ["cache", "clear", "--folder", str(kept)])
    assert cleared.exit_code == 0
    assert "cleared" in cleared.output
    assert names(kept) == []
    command = ["fit", str(corpus[0]), "-s", "2", "--certify", "none", "--cache", str(kept)]
    assert shell.invoke(main, command).exit_code == 0
    assert len(names(kept)) == 1


def test_least_recently_used_entries_go_first(tmp_path, monkeypatch):
    kept, rng = tmp_path / "kept", np.random.default_rng(0)
    paths = [write(tmp_path / f"docword.{i}.txt.gz", rng.poisson(0.5, (20, 8))) for i in range(3)]
    for path in paths[:2]:
        read(path, cache=kept)
    entries = {Path(e.facts["source"]).name: e for e in cache.Cache(kept).entries()}
    assert len(entries) == 2
    for age, path in ((100, paths[1]), (200, paths[0])):
        stamp = time.time() - age
        os.utime(entries[path.name].folder / "entry.json", (stamp, stamp))
    read(paths[0], cache=kept)  # used now: the other one is older
    taken = sum(entry.size for entry in entries.values())
    monkeypatch.setenv("SPARCIPAL_CACHE_SIZE", str(taken))
    read(paths[2], cache=kept)
    left = {Path(e.facts["source"]).name for e in cache.Cache(kept).entries()}
    assert left == {paths[0].name, paths[2].name}
    monkeypatch.setenv("SPARCIPAL_CACHE_SIZE", "1")
    with pytest.warns(
        RuntimeWarning, match=r"take \d+ bytes and the cache at most 1: they are not"
    ):
        assert read(paths[1], cache=kept).shape == (20, 8)
    assert not any("part-" in path.name for path in kept.iterdir())
    assert {Path(e.facts["source"]).name for e in cache.Cache(kept).entries()} == left
    monkeypatch.setenv("SPARCIPAL_CACHE_SIZE", "much")
    with pytest.raises(ValueError, match="SPARCIPAL_CACHE_SIZE"):
        read(paths[1], cache=kept)


@pytest.mark.parametrize(
    ("platform", "ending"),
    [("win32", "AppData/Local/sparcipal"), ("darwin", "Library/Caches/sparcipal")],
)
def test_default_folder_is_that_of_the_system(platform, ending, monkeypatch):
    for name in (cache.VARIABLE, "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(cache.sys, "platform", platform)
    assert cache.default_folder() == Path.home() / ending


def test_alive_counts_a_process_that_may_not_be_signalled(monkeypatch):
    assert cache._alive(os.getpid())

    def refused(pid, signal):
        raise PermissionError

    monkeypatch.setattr(cache.os, "kill", refused)
    assert cache._alive(1), "a process of somebody else lives"


def test_read_makes_an_entry_again_when_another_version_wrote_it(tmp_path):
    path = tmp_path / "docword.txt"
    path.write_text("2\n2\n2\n1 1 1\n2 2 3\n")
    from sparcipal import read

    read(path, cache=tmp_path / "kept")
    (facts,) = (tmp_path / "kept").rglob("entry.json")
    facts.write_text(json.dumps({**json.loads(facts.read_text()), "version": -1}))
    with pytest.warns(RuntimeWarning, match="written by another version"):
        assert read(path, cache=tmp_path / "kept").X.sum() == 4


def test_fit_in_passes_makes_no_pass_when_products_are_cached(tmp_path, monkeypatch):
    """The second fit of a streamed file makes no pass for the products."""
    from sparcipal import read
    from sparcipal.data.rows import Rows

    rng = np.random.default_rng(5)
    path = tmp_path / "docword.txt"
    table = rng.poisson(1.0, (40, 12))
    lines = [f"{i + 1} {j + 1} {table[i, j]}" for i, j in np.argwhere(table)]
    path.write_text(f"40\n12\n{len(lines)}\n" + "\n".join(lines) + "\n")
    question = {"n_nonzero_coefs": 3, "memory_limit": 1, "certify": False}
    first = sparse_pca(read(path, cache=tmp_path / "kept"), **question)
    monkeypatch.setattr(Rows, "accumulate", lambda *given, **more: pytest.fail("a pass was made"))
    again = read(path, cache=tmp_path / "kept")
    assert sparse_pca(again, **question).to_json() == first.to_json()


def test_keep_refuses_a_source_that_was_not_read_to_its_end(tmp_path):
    kept = cache.Cache(tmp_path / "kept")
    path = tmp_path / "x.csv"
    path.write_text("a,b\n1,2\n")
    with pytest.raises(ValueError, match="was not read to its end"):
        kept.keep(kept.draft(), source.Source(path), "csv", {})


def written(path, content):
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def test_clear_leaves_other_files_of_the_folder_alone(tmp_path):
    """Plain files and half-made folders are no entries; clearing leaves the files alone."""
    folder = tmp_path / "kept"
    path = written(tmp_path / "x.csv", "a,b\n1,2\n3,5\n")
    read(path, cache=folder)
    written(folder / "notes-of-mine.txt", "keep this")
    (folder / "part-1-x").mkdir()
    (folder / "empty-entry").mkdir()
    found = Cache(folder)
    assert len(found.entries()) == 1
    assert found.clear() > 0
    assert found.entries() == []
    assert (folder / "notes-of-mine.txt").read_text() == "keep this"


def test_entry_stays_when_one_of_two_equal_files_changes(tmp_path):
    """When one of them changes, the entry stays: the other one still has it."""
    folder = tmp_path / "kept"
    first = written(tmp_path / "x.csv", "a,b\n1,2\n3,5\n")
    second = tmp_path / "y.csv"
    shutil.copy(first, second)
    read(first, cache=folder)
    read(second, cache=folder)
    assert len(Cache(folder).entries()) == 1
    written(first, "a,b\n1,2\n3,7\n")
    assert read(first, cache=folder).X[1, 1] == 7.0
    assert len(Cache(folder).entries()) == 2
    np.testing.assert_array_equal(read(second, cache=folder).X, [[1.0, 2.0], [3.0, 5.0]])


def test_read_warns_once_when_the_cache_cannot_be_written(tmp_path, monkeypatch):
    path = written(tmp_path / "x.svmlight", "0 1:2 3:1\n1 2:1\n")
    whole = read(path, cache=False)

    def full(self, *arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(cache.Cache, "keep", full)
    with pytest.warns(RuntimeWarning, match="No space left") as told:
        table = read(path, cache=tmp_path / "kept")
    assert len(told) == 1
    np.testing.assert_array_equal(table.X.toarray(), whole.X.toarray())


def test_read_keeps_no_small_table(tmp_path, monkeypatch):
    """What parses to less than is worth it is handed over and forgotten."""
    monkeypatch.setattr(cache, "LARGE", 200)
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path / "kept"))
    path = written(tmp_path / "x.csv", "a,b\n" + "1.000000,2.0000000\n" * 4)
    assert read(path).X.tolist() == [[1.0, 2.0]] * 4
    assert Cache(tmp_path / "kept").entries() == []
