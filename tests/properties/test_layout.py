"""The map in CONTRIBUTING.md is true, and imports go one way: kernels <- stages <- faces."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.places import ROOT

PACKAGE = ROOT / "src" / "sparcipal"
FILES = sorted(PACKAGE.rglob("*.py"))
FACES = {"anndata", "cli", "compare", "demo", "estimator", "report"}
LONGEST = 500  # lines of a file that people still enjoy reading


def name_of(path: Path) -> str:
    return path.relative_to(PACKAGE).as_posix()


def imports(path: Path, *, top_level: bool = False) -> Iterator[str]:
    """Absolute names of everything a file imports, ours as sparcipal.x.y."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    home = ["sparcipal", *path.relative_to(PACKAGE).parts[:-1]]
    for node in tree.body if top_level else ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = home[: len(home) - node.level + 1] if node.level else []
            stem = ".".join([*base, *([node.module] if node.module else [])])
            yield from (f"{stem}.{alias.name}" for alias in node.names)


def ours(path: Path, **options: bool) -> set[str]:
    """First names below sparcipal that a file imports."""
    found = {
        name.split(".")[1] for name in imports(path, **options) if name.startswith("sparcipal.")
    }
    return found - {"__version__"}


def others(path: Path) -> set[str]:
    return {name.split(".")[0] for name in imports(path)} - {"sparcipal"}


def test_kernels_import_nothing_of_ours():
    for path in (PACKAGE / "kernels").glob("*.py"):
        assert not ours(path), f"{name_of(path)}: numba's cache does not notice an edit elsewhere"
        assert others(path) <= {"__future__", "math", "numba", "numpy"}, name_of(path)


def test_the_checker_shares_no_code_with_the_solver():
    for path in (PACKAGE / "verify").rglob("*.py"):
        assert ours(path) <= {"verify", "result"}, name_of(path)
        assert "numba" not in others(path), name_of(path)


def test_stages_do_not_know_the_faces():
    for path in FILES:
        if path.relative_to(PACKAGE).parts[0].removesuffix(".py") in FACES | {
            "__init__",
            "__main__",
        }:
            continue
        assert not ours(path, top_level=True) & FACES, name_of(path)


@pytest.mark.parametrize(
    ("library", "allowed"),
    [
        ("matplotlib", r"report/plots"),
        ("dask", r"scale\.py"),
        ("concurrent", r"parallel\.py"),
        ("multiprocessing", r"nowhere"),
        ("click", r"cli/"),
        ("rich", r"cli/|report/terminal\.py"),
        ("narwhals", r"readers/"),
        ("pyarrow", r"readers/"),
        ("anndata", r"readers/|anndata\.py"),
        ("pandas", r"nowhere"),
        ("polars", r"nowhere"),
        ("numba", r"kernels/"),
    ],
)
def test_each_library_has_its_place(library, allowed):
    for path in FILES:
        if library in others(path):
            assert re.match(allowed, name_of(path)), f"{name_of(path)} imports {library}"


def test_nothing_prints():
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            called = node.func if isinstance(node, ast.Call) else None
            assert not (isinstance(called, ast.Name) and called.id == "print"), name_of(path)


def test_files_stay_readable():
    long = {name_of(p): n for p in FILES if (n := len(p.read_text().splitlines())) > LONGEST}
    assert not long


@pytest.mark.parametrize(("title", "folder"), [("map", ""), ("map of proofs", "proofs")])
def test_the_map_is_true(title, folder):
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    block = text.split(f"<!-- {title} -->")[1].split(f"<!-- end of the {title} -->")[0]
    mapped = re.findall(r"^    (?:\w[\w ]{7} |  +)([\w/.]+) {2,}\S", block, flags=re.MULTILINE)
    tree = {
        path.name + ("/" if path.is_dir() else "")
        for path in (PACKAGE / folder).iterdir()
        if path.suffix == ".py" or (path / "__init__.py").exists()
    } - {"__init__.py", "__main__.py"}
    assert sorted(mapped) == sorted(set(mapped)), "a name is there twice"
    assert set(mapped) - tree == set(), "in the map of CONTRIBUTING.md, but not in the tree"
    assert tree - set(mapped) == set(), "in the tree, but not in the map of CONTRIBUTING.md"


def test_importing_the_package_loads_nothing_heavy():
    code = (
        "import sys, sparcipal; sparcipal.__version__; dir(sparcipal);"
        "print(sorted({'numba', 'sklearn', 'scipy', 'pandas', 'rich'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_every_public_name_is_there():
    import sparcipal

    for name in sparcipal.__all__:
        assert getattr(sparcipal, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = sparcipal.nothing
    import sparcipal.checker
    import sparcipal.data.table

    assert callable(sparcipal.read)
    assert callable(sparcipal.verify)
