"""The source is as CONTRIBUTING.md draws it: the map, the direction of imports, one home each."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from sparcipal import sparse_pca, verify
from tests.support.places import ROOT

PACKAGE = ROOT / "src" / "sparcipal"
FILES = sorted(PACKAGE.rglob("*.py"))
# Each room imports from itself and from the lines before it.
ORDER = [
    {"kernels", "lazy"},
    {"numerics"},
    {"problem"},
    {"data"},
    {"bounds"},
    {"search"},
    {"keywords", "settings", "verdict", "rounds", "fit", "path"},
    {"estimator", "questions", "comparison", "anndata", "demo", "report", "cli"},
]
# Imports against the order, each with its reason.
ALLOWED = {
    ("problem.result", "report"): "a result prints itself; loaded when it does",
    ("problem.result", "data"): "a result scores samples; loaded when it does",
    ("problem.answers", "report"): "alternatives print themselves; loaded when they do",
    ("problem.monitor", "report"): "lines of verbose=1; loaded when they are asked for",
    ("path", "report"): "a path draws itself; loaded when it does",
}
# The checker stands outside the order: it knows a result, and the faces know it.
CHECKER_KNOWS = {"problem.result", "problem.answers"}
LONG = 500  # lines; a smell, not a wall
# Longer files, each with the reason why it is one.
LONGER = {
    "estimator.py": "one class; half of it documents parameters and attributes",
    "problem/covariance.py": "one abstraction with all its insides, and how a table becomes one",
    "bounds/tree/search.py": "one class: the state of a search, and every way to settle a node",
    "checker/records.py": "the schema of all proofs, one field after the other",
}


MANY = 6  # parameters; more of them are a frozen dataclass
# Functions whose parameters are the keywords that the documents list.
KEYWORDS = {
    "anndata.py": {"spca"},
    "data/files/csvtexts.py": {"read_texts"},
    "data/files/jsonl.py": {"read_jsonl"},
    "data/inputs.py": {"read"},
    "estimator.py": {"__init__"},
    "fit.py": {"sparse_pca"},
    "path.py": {"sparse_path"},
    "questions/choice.py": {"choose"},
    "questions/explanation.py": {"explain"},
    "questions/growth.py": {"update"},
    "questions/nearby.py": {"alternatives"},
    "questions/resampling.py": {"stability"},
    "report/page.py": {"write_report"},
    **{f"search/methods/{name}.py": {"run"} for name in ("bipartite", "dspca", "gpower")},
    **{f"search/methods/{name}.py": {"run"} for name in ("nspca", "spannogram")},
}


def name_of(path: Path) -> str:
    return path.relative_to(PACKAGE).as_posix()


def module_of(path: Path) -> str:
    """The dotted name below sparcipal; the package itself is the empty one."""
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_of(path): path for path in FILES}


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def statements(node: ast.AST) -> Iterator[ast.AST]:
    """All nodes of a tree but those that only a type checker sees."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING":
            for other in child.orelse:
                yield other
                yield from statements(other)
            continue
        yield child
        yield from statements(child)


@cache
def imports(path: Path) -> frozenset[str]:
    """Absolute names of everything a file imports, in functions too."""
    home = ["sparcipal", *path.relative_to(PACKAGE).parts[:-1]]
    found: set[str] = set()
    for node in statements(tree_of(path)):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = home[: len(home) - node.level + 1] if node.level else []
            stem = ".".join([*base, *([node.module] if node.module else [])])
            found.update(f"{stem}.{alias.name}" for alias in node.names)
    return frozenset(found)


def ours(path: Path) -> set[str]:
    """Modules below sparcipal that a file imports."""
    found = set()
    for name in imports(path):
        if name.startswith("sparcipal."):
            inner = name.removeprefix("sparcipal.")
            while inner not in MODULES and "." in inner:
                inner = inner.rpartition(".")[0]
            found.add(inner if inner in MODULES else "")
    return found - {""}


def test_only_the_version_is_imported_from_the_package_itself():
    """A public name would lead around the order, and from the checker to the solver."""
    rooms = {room(module) for module in MODULES}
    for path in FILES:
        public = {
            name
            for name in imports(path)
            if name == "sparcipal"
            or (name.startswith("sparcipal.") and name.split(".")[1] not in rooms)
        }
        assert public <= {"sparcipal.__version__"}, name_of(path)


# Files that import modules by a name that is computed: the lists of bounds, methods and formats,
# public names and modules, the modules of other packages, kernels to compile, and a faster gzip.
BY_NAME = {
    "__init__.py", "bounds/strategy.py", "checker/family.py", "cli/doctor.py",
    "data/files/bytes.py", "data/files/formats.py", "demo.py", "lazy.py", "search/registry.py",
}  # fmt: skip


def called(path: Path) -> set[str]:
    """The last name of every function that a file calls."""
    functions = [node.func for node in ast.walk(tree_of(path)) if isinstance(node, ast.Call)]
    return {ast.unparse(function).rpartition(".")[2] for function in functions}


def test_modules_are_imported_by_name_only_from_lists():
    """Such an import is in no graph: it could lead around the order and into a cycle."""
    found = {name_of(p) for p in FILES if called(p) & {"import_module", "__import__"}}
    assert found == BY_NAME


def others(path: Path) -> set[str]:
    return {name.split(".")[0] for name in imports(path)} - {"sparcipal"}


def room(module: str) -> str:
    return module.split(".")[0]


def level(module: str) -> int:
    return next(i for i, rooms in enumerate(ORDER) if room(module) in rooms)


def test_every_module_has_a_place_in_the_order():
    rooms = {room(module) for module in MODULES} - {"", "__main__", "checker"}
    assert rooms == set().union(*ORDER)


def against_the_order(path: Path) -> Iterator[str]:
    module = module_of(path)
    for other in sorted(ours(path)):
        allowed = (module, room(other)) in ALLOWED or (module, other) in ALLOWED
        if room(other) == "checker":
            wrong = level(module) < len(ORDER) - 1
        else:
            wrong = level(other) > level(module)
        if wrong and not allowed:
            yield f"{module} -> {other}"


@pytest.mark.parametrize("name", sorted(set().union(*ORDER)))
def test_imports_follow_the_order_of_the_packages(name):
    paths = [path for module, path in MODULES.items() if room(module) == name]
    assert [line for path in paths for line in against_the_order(path)] == []


def test_the_checker_shares_no_code_with_the_solver():
    for module, path in MODULES.items():
        if room(module) == "checker":
            known = {other for other in ours(path) if room(other) != "checker"}
            assert known <= CHECKER_KNOWS, name_of(path)
            libraries = others(path) - set(sys.stdlib_module_names)
            assert libraries <= {"numpy", "scipy", "narwhals", "flint"}, name_of(path)
            inner = {name for name in imports(path) if name.startswith("scipy")}
            assert inner <= {"scipy.sparse"}, f"{name_of(path)}: containers, not algorithms"


NO_KERNELS = {PACKAGE / "kernels" / name for name in ("__init__.py", "storage.py")}


def test_kernels_import_nothing_of_ours():
    for path in set((PACKAGE / "kernels").glob("*.py")) - NO_KERNELS:
        assert not ours(path), f"{name_of(path)}: numba's cache does not notice an edit elsewhere"
        assert others(path) <= {"__future__", "math", "numba", "numpy"}, name_of(path)


def test_kernels_are_compiled_alike():
    for path in set((PACKAGE / "kernels").glob("*.py")) - NO_KERNELS:
        functions = [n for n in ast.walk(tree_of(path)) if isinstance(n, ast.FunctionDef)]
        found = {ast.unparse(d) for function in functions for d in function.decorator_list}
        assert found <= {"njit(cache=True, nogil=True)"}, name_of(path)


def cycles() -> list[list[str]]:
    """Groups of modules that import one another, imports inside functions included (Tarjan)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(module: str) -> None:
        index[module] = low[module] = len(index)
        stack.append(module)
        for other in ours(MODULES[module]) - {module}:
            if other not in index:
                visit(other)
                low[module] = min(low[module], low[other])
            elif other in stack:
                low[module] = min(low[module], index[other])
        if low[module] == index[module]:
            group = stack[stack.index(module) :]
            del stack[stack.index(module) :]
            if len(group) > 1:
                found.append(sorted(group))

    for module in MODULES:
        if module not in index:
            visit(module)
    return sorted(found)


def test_no_modules_import_one_another():
    assert cycles() == []


def exports_only(path: Path) -> bool:
    """Whether a file has a docstring, imports and __all__, and nothing else."""
    return all(
        isinstance(node, ast.Import | ast.ImportFrom)
        or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))
        or (
            isinstance(node, ast.Assign)
            and all(isinstance(t, ast.Name) and t.id == "__all__" for t in node.targets)
            and isinstance(node.value, ast.List | ast.Tuple)
            and all(isinstance(name, ast.Constant) for name in node.value.elts)
        )
        for node in tree_of(path).body
    )


# Packages whose names are loaded when they are asked for.
LAZY = {
    "__init__.py", "questions/__init__.py", "report/__init__.py", "report/plots/__init__.py",
}  # fmt: skip


def test_packages_hold_exports_only():
    code = {name_of(p) for p in FILES if p.name == "__init__.py" and not exports_only(p)}
    assert code - LAZY == set()
    for name in LAZY:
        nodes = tree_of(PACKAGE / name).body
        functions = {n.name for n in nodes if isinstance(n, ast.FunctionDef | ast.ClassDef)}
        assert functions <= {"__getattr__", "__dir__"}, name


def test_no_module_has_the_name_of_a_public_function():
    import sparcipal

    names = {module.rpartition(".")[2] for module in MODULES}
    assert names & set(sparcipal.__all__) == set()


# A library -> where alone it is imported.
PLACES = [
    ("matplotlib", r"report/plots"),
    ("dask", r"data/dask(pass)?\.py"),
    ("distributed", r"data/dask(pass)?\.py"),
    ("h5py", r"data/files/"),
    ("joblib", r"problem/parameters\.py"),
    ("threadpoolctl", r"numerics/threads\.py"),
    ("concurrent", r"numerics/threads\.py"),
    ("multiprocessing", r"nowhere"),
    ("click", r"cli/"),
    ("rich", r"cli/|report/terminal\.py"),
    ("narwhals", r"data/frames\.py|checker/containers\.py"),
    ("pyarrow", r"data/(files/|arrow\.py)"),
    ("anndata", r"data/files/|anndata\.py"),
    ("pandas", r"nowhere"),
    ("polars", r"data/arrow\.py"),
    ("numba", r"kernels/"),
    ("isal", r"data/files/bytes\.py"),
    ("zarr", r"data/files/zarr\.py"),
    ("subprocess", r"data/files/h5ad\.py"),
    ("ctypes", r"nowhere"),
    ("flint", r"checker/exact\.py"),
    # the estimator, words, a format, one baseline, and displays of fitted estimators
    (
        "sklearn",
        r"estimator\.py|data/files/(documents|svmlight)\.py|search/methods/spca\.py"
        r"|report/plots/common\.py",
    ),
]


@pytest.mark.parametrize(("library", "allowed"), PLACES)
def test_each_library_has_its_place(library, allowed):
    for path in FILES:
        if library in others(path):
            assert re.match(allowed, name_of(path)), f"{name_of(path)} imports {library}"


def test_every_library_has_a_place():
    known = {"numpy", "scipy", *sys.stdlib_module_names, *(library for library, _ in PLACES)}
    for path in FILES:
        assert others(path) <= known, name_of(path)


STARTS = {"threading.Thread", "threading.Timer", "os.fork", "os.posix_spawn", "os.system"}


def test_threads_and_processes_start_in_their_places():
    """Executors and `subprocess` are libraries with a place; nothing starts any by hand."""
    for path in FILES:
        nodes = [node for node in ast.walk(tree_of(path)) if isinstance(node, ast.Attribute)]
        assert not {ast.unparse(node) for node in nodes} & STARTS, name_of(path)
        assert not imports(path) & STARTS, name_of(path)


# Both dual bounds have one file in bounds/ and one page.
TOGETHER = {"dspca": "duals", "greedy": "duals"}


def defines(path: Path, name: str) -> bool:
    return any(
        isinstance(target, ast.Name) and target.id == name
        for node in tree_of(path).body
        if isinstance(node, ast.Assign)
        for target in node.targets
    )


FAMILY_FILES = {p.stem for p in FILES if p.parent.name == "checker" and defines(p, "FAMILIES")}
FAMILY_FILES -= {"family"}  # the list of them all


@pytest.mark.parametrize("name", sorted(FAMILY_FILES))
def test_a_bound_has_one_name_in_solver_checker_and_documents(name):
    name = TOGETHER.get(name, name)
    file, folder = PACKAGE / "bounds" / f"{name}.py", PACKAGE / "bounds" / name / "__init__.py"
    assert file.exists() or folder.exists(), f"no bounds/{name}.py and no bounds/{name}/"
    assert (ROOT / "docs" / "methods" / f"{name}.rst").exists(), f"no docs/methods/{name}.rst"


def test_every_name_in_a_certificate_is_that_of_its_file_or_stands_on_its_page():
    from sparcipal.checker.family import FAMILIES

    for name, file in FAMILIES.items():
        assert defines(PACKAGE / "checker" / f"{file}.py", "FAMILIES"), file
        if name != file:
            page = (ROOT / "docs" / "methods" / f"{TOGETHER.get(file, file)}.rst").read_text()
            assert name in page, f"{name!r} is not on the page of {file}"


SHARED_BY_BOUNDS = {"joint", "outside", "proved", "strategy"}  # files of bounds/ that hold no bound
BOUND_FILES = sorted(set((PACKAGE / "bounds").rglob("*.py")) - {PACKAGE / "bounds" / "__init__.py"})


@pytest.mark.parametrize("path", BOUND_FILES, ids=name_of)
def test_a_file_of_a_bound_names_its_page_first(path):
    if path.parent.name == "bounds" and path.stem in SHARED_BY_BOUNDS:
        return
    name = path.parent.name if path.parent.name != "bounds" else path.stem
    first = (ast.get_docstring(tree_of(path)) or "").partition("\n")[0]
    assert f"docs/methods/{name}.rst" in first
    assert (ROOT / "docs" / "methods" / f"{name}.rst").exists()


def names_precision(path: Path) -> bool:
    """Whether a file asks for the rounding unit, to make a rounding term of its own."""
    units = {"EPS", "finfo", "spacing", "float_info"}
    nodes = list(ast.walk(tree_of(path)))
    names = {node.attr for node in nodes if isinstance(node, ast.Attribute)}
    names |= {name.rpartition(".")[2] for name in imports(path)}
    powers = {ast.unparse(node) for node in nodes if isinstance(node, ast.BinOp)}
    numbers = {n.value for n in nodes if isinstance(n, ast.Constant) and type(n.value) is float}
    return (
        bool(names & units)
        or bool(powers & {f"{base} ** -{bits}" for base in ("2", "2.0") for bits in (52, 53)})
        or bool(numbers & {2.0**-52, 2.0**-53, 2.2e-16, 1.1e-16})
    )


def test_rounding_terms_of_the_solver_have_one_home():
    solver = [path for path in FILES if room(module_of(path)) != "checker"]
    assert [name_of(path) for path in solver if names_precision(path)] == ["numerics/margins.py"]


def test_nothing_prints():
    for path in FILES:
        names = {node.id for node in ast.walk(tree_of(path)) if isinstance(node, ast.Name)}
        assert "print" not in names, name_of(path)
        if room(module_of(path)) != "cli":
            written = {
                ast.unparse(n) for n in ast.walk(tree_of(path)) if isinstance(n, ast.Attribute)
            }
            assert not written & {"sys.stdout", "sys.__stdout__"}, name_of(path)


def many_parameters(path: Path) -> set[str]:
    """The functions of a file with more parameters than MANY, self and cls not counted."""
    found = set()
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            own = node.args
            names = [each.arg for each in (*own.posonlyargs, *own.args, *own.kwonlyargs)]
            if len(names) - (names[:1] in (["self"], ["cls"])) > MANY:
                found.add(getattr(node, "name", "lambda"))
    return found


def test_only_documented_keywords_make_many_parameters():
    plain = [path for path in FILES if path.parent.name != "kernels"]
    found = {name_of(path): many_parameters(path) for path in plain}
    assert {name: own for name, own in found.items() if own} == KEYWORDS


def test_long_files_have_a_reason():
    long = {name_of(p) for p in FILES if len(p.read_text().splitlines()) > LONG}
    assert long == set(LONGER)


MAPPED = sorted(name_of(path.parent) for path in FILES if path.name == "__init__.py")


@pytest.mark.parametrize("folder", MAPPED, ids=str)
def test_the_map_is_true(folder):
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    title = f"map of {folder}/" if folder != "." else "map"
    block = text.split(f"<!-- {title} -->")[1].split(f"<!-- end of the {title} -->")[0]
    mapped = re.findall(r"^    ([\w/.]+) +\S", block, flags=re.MULTILINE)
    tree = {
        path.name + ("/" if path.is_dir() else "")
        for path in (PACKAGE / folder).iterdir()
        if path.suffix == ".py" or (path / "__init__.py").exists()
    } - {"__init__.py", "__main__.py"}
    assert sorted(mapped) == sorted(set(mapped)), "a name is there twice"
    assert set(mapped) - tree == set(), "in the map of CONTRIBUTING.md, but not in the tree"
    assert tree - set(mapped) == set(), "in the tree, but not in the map of CONTRIBUTING.md"


def test_the_lines_of_the_map_stand_in_the_order_of_imports():
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    block = text.split("<!-- map -->")[1].split("<!-- end of the map -->")[0]
    names = re.findall(r"^    (\w+)[/.]", block, flags=re.MULTILINE)
    levels = [level(name) for name in names if name != "checker"]
    assert levels == sorted(levels)


def test_the_map_of_the_readme_names_every_folder_and_nothing_else():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    part = text.split("## The map of the code")[1].split("\n## ")[0]
    named = [
        re.split(r" {3,}", line.strip())[0] for line in part.splitlines() if line[:4] == "    "
    ]
    words = [word for line in named for word in line.split()]
    listed = {word for word in words if word.endswith(("/", ".py"))}
    folders = {path.name + "/" for path in PACKAGE.iterdir() if (path / "__init__.py").exists()}
    assert folders <= listed
    assert {word for word in listed if not (PACKAGE / word).exists()} == set()
    rooms = [room(module_of(PACKAGE / word)) for word in words if word in listed]
    levels = [level(name) for name in rooms if name != "checker"]
    assert levels == sorted(levels)


@pytest.mark.processes
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


@pytest.mark.processes
def test_modules_that_the_documents_name_are_attributes_without_an_import():
    pages = [*(PACKAGE.parents[1] / "docs").rglob("*.rst"), PACKAGE.parents[1] / "README.md"]
    text = "\n".join(page.read_text(encoding="utf-8") for page in pages)
    named = set(re.findall(r"\bsparcipal(?:\.[A-Za-z_]\w*)+", text)) - {"sparcipal.search.registry"}
    assert {"sparcipal.report.plots", "sparcipal.anndata.spca"} <= named
    code = "\n".join(
        ["import sys, sparcipal", *sorted(named), "assert 'matplotlib' not in sys.modules"]
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_checker_of_a_default_result_is_read_in_an_hour():
    """The files of the reading order are all that takes part behind the gate: 2,500 lines, and room
    for a bound more."""
    text = (ROOT / "CONTRIBUTING.md").read_text()
    part = text.split("<!-- reading order of checker/ -->")[1]
    named = re.findall(r"`(\w+\.py)`", part.split("<!-- end of the reading order -->")[0])
    lines = [len((PACKAGE / "checker" / name).read_text().splitlines()) for name in named]
    assert sum(lines) <= 2600
    X = np.random.default_rng(0).standard_normal((60, 60))
    result = sparse_pca(X, n_nonzero_coefs=6)
    assert "tree" in [bound.name for bound in result.certificate.bounds]
    verify(result, X)  # files that are imported when they are needed
    met = set()

    def look(frame, event, _):
        path = Path(frame.f_code.co_filename)
        if event == "call" and path.parent == PACKAGE / "checker":
            met.add(path.name)

    sys.setprofile(look)
    try:
        assert verify(result, X)
    finally:
        sys.setprofile(None)
    assert met - {"gate.py", "plain.py", "records.py"} == set(named)
