"""Mutation testing of the files a proof rests on: are the tests able to notice a changed operator?

    python -m benchmarks.mutants [MUTANTS_PER_TARGET [SEED]] [TARGET ...]

Package and tests are copied to a temporary folder; one operator, comparison or constant of a file
is changed at a time, and the tests nearest to it run, the quick ones first, until one fails. Each
mutant is a fork of a process that has loaded NumPy, SciPy and numba already; compiled kernels are
kept between mutants, and so are the saved results that the checker's tests begin with. Survivors
are printed with their line: each has to be looked at, for a mutant may be as right as the original
(a margin made larger, a limit moved). Seeds choose the sample, so that a run can be repeated.
"""

from __future__ import annotations

import ast
import os
import pickle
import random
import resource
import shutil
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "sparcipal"
LIMIT = 120  # seconds of a core; a mutant that makes the tests take so long is noticed
# File or folder -> the tests that are meant to notice, the quick ones first.
TARGETS = {
    "certify.py": ["test_margins.py"],
    "proofs/exact.py": [
        "test_proof.py",
        "test_exact.py::test_rejects_what_makes_no_sense",
        "test_exact.py::test_matrix_of_zeros",
        "test_exact.py::test_any_scale",
        "test_exact.py::test_stops_when_the_caller_says_so",
        "test_exact.py::test_time_limit_is_reported",
        "test_exact.py::test_features_outside_at_their_pads",
        "test_soundness.py::test_full_supports_that_no_positive_vector_solves",
        "test_exact.py::test_against_enumeration[0]",
        "test_exact.py::test_against_enumeration[1]",
        "test_exact.py::test_against_enumeration[2]",
    ],
    "verify": [
        "test_margins.py",
        "test_proof.py",
        "test_verify_mutations.py",
        "test_verify.py",
        # many runs of the solver, whose results are among the saved ones
        "--deselect=tests/test_verify.py::test_true_results_pass",
    ],
    "kernels/matching.py": ["test_matching.py"],
}
SWAPS: dict[type, type] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.And: ast.Or,
    ast.Or: ast.And,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}


class Mutator(ast.NodeTransformer):
    """Counts the places that can be changed, and changes the one whose number is `which`."""

    def __init__(self, which: int = -1) -> None:
        self.which, self.count, self.said = which, 0, ""

    def _here(self, node: ast.AST, said: str) -> bool:
        self.count += 1
        if self.count - 1 == self.which:
            self.said = f"line {getattr(node, 'lineno', 0)}: {said}"
            return True
        return False

    # types and decorators are no part of what is computed

    def visit_arg(self, node: ast.arg) -> ast.AST:
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        if node.value is not None:
            node.value = self.visit(node.value)
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        returns, decorators = node.returns, node.decorator_list
        node.returns, node.decorator_list = None, []
        self.generic_visit(node)
        node.returns, node.decorator_list = returns, decorators
        return node

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        other = SWAPS.get(type(node.op))
        if other and self._here(node, f"{type(node.op).__name__} -> {other.__name__}"):
            node.op = other()
        return node

    visit_AugAssign = visit_BinOp  # type: ignore[assignment]

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        self.generic_visit(node)
        other = SWAPS[type(node.op)]
        if self._here(node, f"{type(node.op).__name__} -> {other.__name__}"):
            node.op = other()
        return node

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        self.generic_visit(node)
        for i, op in enumerate(node.ops):
            other = SWAPS.get(type(op))
            if other and self._here(node, f"{type(op).__name__} -> {other.__name__}"):
                node.ops[i] = other()
        return node

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        if type(node.value) in (int, float) and self._here(node, f"{node.value} changed"):
            return ast.copy_location(ast.Constant(node.value + 1), node)
        if isinstance(node.value, bool) and self._here(node, f"not {node.value}"):
            return ast.copy_location(ast.Constant(not node.value), node)
        return node

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.op, ast.USub | ast.Not | ast.Invert) and self._here(node, "dropped"):
            return node.operand
        return node


def sites(source: str) -> int:
    counter = Mutator()
    counter.visit(ast.parse(source))
    return counter.count


def mutant(source: str, which: int) -> tuple[str, str]:
    mutator = Mutator(which)
    tree = ast.fix_missing_locations(mutator.visit(ast.parse(source)))
    return ast.unparse(tree), mutator.said


def survives(copy: Path, tests: list[str]) -> bool:
    """Whether all the tests pass on the copy, in a process of their own."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            code = _run_tests(copy, tests)
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def _run_tests(copy: Path, tests: list[str]) -> int:
    import pytest

    resource.setrlimit(resource.RLIMIT_CPU, (LIMIT, LIMIT))
    quiet = os.open(os.devnull, os.O_WRONLY)
    os.dup2(quiet, 1)
    os.dup2(quiet, 2)
    os.chdir(copy)
    sys.path[:0] = [str(copy / "src"), str(copy)]
    sys.dont_write_bytecode = True
    paths = [name if name.startswith("-") else str(copy / "tests" / name) for name in tests]
    options = ["-x", "-q", "-p", "no:xdist", "-p", "no:cacheprovider", f"--rootdir={copy}"]
    return int(pytest.main([*options, "-c", str(copy / "pyproject.toml"), *paths]))


def prepare(copy: Path) -> None:
    """Copy what is tested, load what takes long, and keep what all mutants share."""
    ignored = shutil.ignore_patterns("__pycache__")
    for name in ("src", "tests", "benchmarks"):
        shutil.copytree(ROOT / name, copy / name, ignore=ignored)
    shutil.copy(ROOT / "pyproject.toml", copy)
    os.environ["NUMBA_CACHE_DIR"] = str(copy / "compiled")
    os.environ.setdefault("SPARCIPAL_DATA", str(ROOT.parent / "shared" / "data"))
    import numba  # noqa: F401
    import pytest  # noqa: F401
    import scipy.optimize
    import scipy.sparse.linalg  # noqa: F401

    saved = copy / "subjects.pickle"
    child = os.fork()
    if child == 0:
        code = 1
        try:
            sys.path[:0] = [str(copy / "src"), str(copy)]
            from benchmarks.soundness import forgeries

            saved.write_bytes(pickle.dumps(forgeries.subjects()))
            code = 0
        finally:
            os._exit(code)
    if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]):
        raise SystemExit("the results that the checker's tests begin with could not be made")
    os.environ["SPARCIPAL_SUBJECTS"] = str(saved)


def run(target: str, amount: int, seed: int, copy: Path) -> tuple[int, int]:
    """Tried and survived."""
    place = PACKAGE / target
    files = sorted(place.rglob("*.py")) if place.is_dir() else [place]
    package = copy / "src" / "sparcipal"
    files = [package / file.relative_to(PACKAGE) for file in files]
    choices = [(f, i) for f in files for i in range(sites(f.read_text(encoding="utf-8")))]
    chosen = random.Random(seed).sample(choices, min(amount, len(choices)))
    alive = 0
    for file, which in chosen:
        source = file.read_text(encoding="utf-8")
        changed, said = mutant(source, which)
        file.write_text(changed, encoding="utf-8")
        start = time.monotonic()
        verdict = "noticed"
        if survives(copy, TARGETS[target]):
            alive, verdict = alive + 1, "SURVIVED"
            line = source.splitlines()[int(said.split()[1].rstrip(":")) - 1].strip()
            print(f"SURVIVED {file.relative_to(package)} {said}\n    {line}", flush=True)
        file.write_text(source, encoding="utf-8")
        spent = time.monotonic() - start
        print(f"{spent:.0f} s {file.name} {said} {verdict}", file=sys.stderr, flush=True)
    print(f"{target}: {len(chosen)} of {len(choices)} mutants tried, {alive} survived", flush=True)
    return len(chosen), alive


def main(arguments: list[str]) -> None:
    numbers = [int(a) for a in arguments if a.isdigit()]
    amount, seed = [*numbers, *(20, 0)[len(numbers) :]]
    targets = [a for a in arguments if not a.isdigit()] or list(TARGETS)
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder).resolve()
        prepare(copy)
        for target in targets:
            if not survives(copy, TARGETS[target]):
                raise SystemExit(f"the tests of {target} fail without any mutant")
            run(target, amount, seed, copy)


if __name__ == "__main__":
    main(sys.argv[1:])
