"""Kills, interrupts, full disks, missing folders: an old or a new file, an answer or a reason."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from sparcipal import Result, read, sparse_pca, verify

pytestmark = [
    pytest.mark.skipif(sys.platform == "win32", reason="signals and limits of POSIX"),
    pytest.mark.processes,
]

NO_HOME = "/dev/null/home"  # no folder can be made below a file, not even by root
ROUNDS = int(os.environ.get("SPARCIPAL_FAULTS", "2"))  # random moments that are tried


@pytest.fixture
def data(tmp_path) -> Path:
    path = tmp_path / "data.npy"
    np.save(path, np.random.default_rng(0).standard_normal((40, 7)))
    return path


def run(code: str, *arguments: object, **environment: str | None) -> subprocess.CompletedProcess:
    variables = {**os.environ, **{k: v for k, v in environment.items() if v is not None}}
    for name in [name for name, value in environment.items() if value is None]:
        variables.pop(name, None)
    return subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=180,
        env=variables,
    )


SAVING = """
import sys, numpy as np
from sparcipal import sparse_pca
X = np.load(sys.argv[1])
results = [sparse_pca(X, n_nonzero_coefs=s, certify=False) for s in (2, 3)]
print("ready", flush=True)
while True:
    for result in results:
        result.save(sys.argv[2])
"""


def test_kill_while_saving_leaves_whole_files(data, tmp_path):
    """Killed at any moment: the claim is an old or a new one, with its own proof or none."""
    model = tmp_path / "model.json"
    rng = np.random.default_rng(0)
    X = np.load(data)
    for _ in range(ROUNDS):
        process = subprocess.Popen(
            [sys.executable, "-c", SAVING, str(data), str(model)], stdout=subprocess.PIPE
        )
        assert process.stdout.readline() == b"ready\n"
        time.sleep(float(rng.uniform(0.0, 0.05)))
        process.kill()
        process.wait()
        process.stdout.close()
        if not model.exists():
            continue
        claim = Result.from_json(model.read_text())
        proof = model.with_name("model.json.proof")
        if proof.exists():
            Result.from_json(proof.read_text())
        verdict = verify(Result.load(model), X)
        assert verdict.verdict in ("proved", "not proved"), verdict.reason
        assert len(claim.supports) == 1


# A first, small fit: a signal inside an import would be told by the interpreter, not by us.
FITTING = """
import sys
from sparcipal.cli import main
options = ["-k", "2", "--certify", "full", "--quiet", "--out"]
main(["fit", sys.argv[1], "-s", "2", *options, sys.argv[2]], standalone_mode=False)
print("ready", file=sys.stderr, flush=True)
main(["fit", sys.argv[3], "-s", "4", *options, sys.argv[4]])
"""


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_fit_ends_cleanly_at_signals(how, data, tmp_path):
    """A kill leaves the old model; Ctrl-C gives a valid answer or ends cleanly."""
    X = np.random.default_rng(1).standard_normal((60, 60))
    table, model = tmp_path / "table.npy", tmp_path / "model.json"
    np.save(table, X)
    first = [str(data), str(tmp_path / "first.json")]
    old = sparse_pca(X, n_nonzero_coefs=2, certify=False)
    old.save(model)
    before = model.read_text()
    rng = np.random.default_rng(2)
    for _ in range(ROUNDS // 2):
        process = subprocess.Popen(
            [sys.executable, "-c", FITTING, *first, str(table), str(model)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        assert b"ready\n" in iter(process.stderr.readline, b"")
        time.sleep(float(rng.uniform(0.0, 2.0)))
        process.send_signal(how)
        _, said = process.communicate(timeout=60)
        assert b"Traceback" not in said, said.decode()
        if model.read_text() != before:
            assert verify(Result.load(model), X)
            old.save(model)
        if how is signal.SIGINT:
            assert process.returncode in (0, 1, 130, -signal.SIGINT), said.decode()


def test_interrupt_inside_the_library_gives_a_proved_answer():
    """The first Ctrl-C stops the search; what comes back is proved."""
    # the clock starts inside the call: on a busy machine a signal might come before it begins
    code = """
import os, signal, threading, numpy as np
from sparcipal import sparse_pca, verify
X = np.random.default_rng(0).standard_normal((80, 60))
sparse_pca(X, n_nonzero_coefs=2)
for delay in (0.05, 0.4, 1.0):
    timer = threading.Timer(delay, os.kill, (os.getpid(), signal.SIGINT))
    start = lambda _: None if timer.ident else timer.start()
    result = sparse_pca(X, n_components=3, n_nonzero_coefs=8, certify="full", callback=start)
    timer.join()
    assert result.status.value in ("interrupted", "optimal", "gap"), result.status
    assert verify(result, X), verify(result, X).reason
"""
    done = run(code)
    assert done.returncode == 0, done.stderr


# --- disks and folders ---

SAVE = """
import sys, resource, numpy as np
from sparcipal import sparse_pca
result = sparse_pca(np.load(sys.argv[1]), n_nonzero_coefs=3)
if sys.argv[3] == "limit":
    import signal
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (300, 300))
try:
    result.save(sys.argv[2])
except OSError as error:
    print("said", error)
"""


def test_saving_leaves_nothing_when_the_disk_is_full(data, tmp_path):
    model = tmp_path / "model.json"
    done = run(SAVE, data, model, "limit")
    assert done.returncode == 0, done.stderr
    assert "said" in done.stdout
    assert not model.exists()
    # nothing half written is left behind
    assert sorted(p.name for p in tmp_path.iterdir()) == ["data.npy"]


def test_command_says_so_when_its_output_is_full(data):
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full")
    command = [sys.executable, "-m", "sparcipal", "fit", str(data), "-k", "1", "-s", "2"]
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [*command, "--format", "json"], stdout=full, stderr=subprocess.PIPE, timeout=120
        )
    assert done.returncode != 0
    assert b"space" in done.stderr
    assert b"Traceback" not in done.stderr


def test_saving_says_so_when_the_folder_is_not_there(data, tmp_path):
    result = sparse_pca(np.load(data), n_nonzero_coefs=2, certify=False)
    with pytest.raises(OSError, match="nowhere"):
        result.save(tmp_path / "nowhere" / "model.json")


FIT = """
import sys, numpy as np
from sparcipal import sparse_pca, verify
X = np.load(sys.argv[1])
result = sparse_pca(X, n_components=2, n_nonzero_coefs=3, method_options={"effort": 0})
assert verify(result, X)
print(repr(result.value))
"""


@pytest.mark.parametrize(
    "environment",
    [
        {"HOME": None, "XDG_CACHE_HOME": None},
        {"HOME": NO_HOME},
        {"NUMBA_CACHE_DIR": "/proc/nowhere"},
        {"NUMBA_DISABLE_JIT": "1"},
    ],
    ids=lambda e: ",".join(e),
)
def test_fit_gives_the_same_answer_in_odd_surroundings(environment, data):
    """No home, no cache, no compiler: the same answer."""
    expected = sparse_pca(np.load(data), n_components=2, n_nonzero_coefs=3).value
    done = run(FIT, data, **environment)
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) == pytest.approx(expected, rel=1e-9)


# --- real devices: small, or not to be written ---


@pytest.fixture
def mounted(tmp_path):
    """Runs code where the first folder is mounted with the options; needs the rights to mount."""

    def start(code: str, folder: Path, options: str, *arguments: object, **variables: str):
        bind = f"-o bind,{options}" if options == "ro" else f"-t tmpfs -o {options}"
        target = '"$0" "$0"' if options == "ro" else 'none "$0"'
        again = ' && mount -o remount,bind,ro "$0"' if options == "ro" else ""
        script = f'mount {bind} {target}{again} && exec "$@"'
        command = ["unshare", "-m", "sh", "-c", script, str(folder)]
        try:
            tried = subprocess.run([*command, "true"], capture_output=True, text=True, timeout=60)
        except FileNotFoundError:
            pytest.skip("no unshare here")
        if tried.returncode:
            pytest.skip(f"may not mount: {tried.stderr.strip()}")
        return subprocess.run(
            [*command, sys.executable, "-c", code, *map(str, arguments)],
            capture_output=True,
            text=True,
            timeout=180,
            env={**os.environ, **variables},
        )

    return start


CACHED = """
import sys, warnings, numpy as np
from sparcipal import read
with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    table = read(sys.argv[1], cache=sys.argv[2])
print(int(table.X.sum()))
print([str(t.message) for t in told])
"""


@pytest.fixture
def corpus(tmp_path) -> tuple[Path, int]:
    rng = np.random.default_rng(0)
    rows = [(d, w, int(rng.integers(1, 300))) for d in range(1, 301) for w in range(1, 51)]
    path = tmp_path / "docword.txt"
    path.write_text("300\n50\n15000\n" + "".join(f"{d} {w} {c}\n" for d, w, c in rows))
    return path, sum(c for _, _, c in rows)


@pytest.mark.parametrize("options", ["size=16k", "ro"])
def test_read_goes_on_without_a_cache_on_a_small_or_read_only_device(
    options, mounted, corpus, tmp_path
):
    folder = tmp_path / "kept"
    folder.mkdir()
    done = mounted(CACHED, folder, options, corpus[0], folder)
    assert done.returncode == 0, done.stderr
    total, told = done.stdout.splitlines()
    assert int(total) == corpus[1]
    assert ("No space left" if "size" in options else "Read-only") in told
    assert "goes on without" in told


@pytest.mark.parametrize("options", ["size=4k", "ro"])
def test_saving_leaves_nothing_on_a_small_or_read_only_device(options, mounted, data, tmp_path):
    folder = tmp_path / "models"
    folder.mkdir()
    code = SAVE + "\nimport os\nprint(os.listdir(os.path.dirname(sys.argv[2])))"
    done = mounted(code, folder, options, data, folder / "model.json", "plain")
    assert done.returncode == 0, done.stderr
    said, left = done.stdout.splitlines()
    assert ("No space left" if "size" in options else "Read-only") in said
    assert left == "[]"


def test_fit_compiles_anew_where_neither_package_nor_home_can_be_written(mounted, data):
    """Nowhere to keep compiled code: compiled anew, the same answer."""
    import sparcipal

    expected = sparse_pca(np.load(data), n_components=2, n_nonzero_coefs=3).value
    package = Path(sparcipal.__file__).parent
    done = mounted(FIT, package, "ro", data, HOME=NO_HOME)
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) == expected


def test_kill_while_the_cache_is_written(corpus, tmp_path):
    """At random moments: the next reader finds all of it or nothing, and reads the same."""
    path, total = corpus
    code = """
import itertools, sys
from sparcipal import read
read(sys.argv[1], cache=False)
print("ready", flush=True)
for number in itertools.count():
    read(sys.argv[1], cache=f"{sys.argv[2]}/{number}")
"""
    rng = np.random.default_rng(3)
    for round_ in range(ROUNDS // 2):
        kept = tmp_path / str(round_)
        process = subprocess.Popen(
            [sys.executable, "-c", code, str(path), str(kept)], stdout=subprocess.PIPE
        )
        assert process.stdout.readline() == b"ready\n"
        time.sleep(float(rng.uniform(0.0, 0.1)))
        process.kill()
        process.wait()
        process.stdout.close()
        for folder in kept.glob("*"):
            assert int(read(path, cache=folder).X.sum()) == total
            assert not list(folder.glob("part-*"))
