"""Mutation testing of the files a proof rests on: are the tests able to notice a changed operator?

    python -m benchmarks.mutants [MUTANTS_PER_FILE [SEED]] [FILE ...]

The package is copied to a temporary folder; one operator, comparison or constant of a file is
changed at a time, and the tests nearest to it run until one fails. Survivors are printed with their
line: each has to be looked at, for a mutant may be as right as the original (a margin made larger,
a limit moved). Seeds choose the sample, so that a run can be repeated.
"""

from __future__ import annotations

import ast
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "sparcipal"
# File or folder -> the tests that are meant to notice.
TARGETS = {
    "certify.py": ["test_certificates.py", "test_verify.py"],
    "proofs/exact.py": ["test_exact.py", "test_proof.py", "test_budgets.py"],
    "verify": ["test_verify.py", "test_proof.py", "test_verify_mutations.py"],
    "kernels/matching.py": ["test_matching.py", "test_bipartite.py"],
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
    """Whether all the tests pass on the copy of the package."""
    environment = {**os.environ, "PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"}
    paths = [str(ROOT / "tests" / name) for name in tests]
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-x",
        "-q",
        "-p",
        "no:xdist",
        "-p",
        "no:cacheprovider",
    ]
    try:
        done = subprocess.run(
            [*command, *paths], cwd=ROOT, env=environment, capture_output=True, timeout=300
        )
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0


def run(target: str, amount: int, seed: int, copy: Path) -> tuple[int, int]:
    """Tried and survived."""
    place = PACKAGE / target
    files = sorted(place.rglob("*.py")) if place.is_dir() else [place]
    choices = [(f, i) for f in files for i in range(sites(f.read_text(encoding="utf-8")))]
    chosen = random.Random(seed).sample(choices, min(amount, len(choices)))
    alive = 0
    for file, which in chosen:
        source = file.read_text(encoding="utf-8")
        changed, said = mutant(source, which)
        victim = copy / "sparcipal" / file.relative_to(PACKAGE)
        victim.write_text(changed, encoding="utf-8")
        start = time.monotonic()
        if survives(copy, TARGETS[target]):
            alive += 1
            line = source.splitlines()[int(said.split()[1].rstrip(":")) - 1].strip()
            print(f"SURVIVED {file.relative_to(PACKAGE)} {said}\n    {line}", flush=True)
        victim.write_text(source, encoding="utf-8")
        print(f"{time.monotonic() - start:.0f} s {file.name} {said}", file=sys.stderr, flush=True)
    print(f"{target}: {len(chosen)} of {len(choices)} mutants tried, {alive} survived", flush=True)
    return len(chosen), alive


def main(arguments: list[str]) -> None:
    numbers = [int(a) for a in arguments if a.isdigit()]
    amount, seed = [*numbers, *(20, 0)[len(numbers) :]]
    targets = [a for a in arguments if not a.isdigit()] or list(TARGETS)
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder)
        shutil.copytree(PACKAGE, copy / "sparcipal", ignore=shutil.ignore_patterns("__pycache__"))
        for target in targets:
            if not survives(copy, TARGETS[target]):
                raise SystemExit(f"the tests of {target} fail without any mutant")
            run(target, amount, seed, copy)


if __name__ == "__main__":
    main(sys.argv[1:])
