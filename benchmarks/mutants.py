"""Mutation testing of the files a proof rests on: are the tests able to notice a changed operator?

    python -m benchmarks.mutants [AMOUNT [SEED [START]]] [TARGET | TARGET#NUMBER ...]

One operator, comparison or constant of a file is changed at a time. A process collects the tests
nearest to the target and runs them once, to see which lines each of them reaches and how long it
takes. Every mutant is then a fork of this process: it changes the code of the functions in place
and runs the tests that reach the changed line, the quick ones first, until one fails.

Survivors are printed with their number and line: each has to be looked at, for a mutant may be as
right as the original (a margin made larger, a limit moved). SEED orders the places, so that a run
can be repeated, and continued from START; `checker/cheap.py#17` tries a single mutant again.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import os
import pickle
import random
import signal
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from types import FrameType, FunctionType, ModuleType
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "sparcipal"
LIMIT = 60  # seconds; a mutant that makes the tests take so long is noticed
BUDGET = 4.0  # seconds of tests per mutant, measured without it
LONGEST = 1.5  # tests that take longer are left out
SOUND = "properties/test_soundness"
STREAMED = "properties/test_streamed_soundness"
# File or folder -> files and folders of tests that are meant to notice.
TARGETS = {
    # not the many runs of the solver, whose results are among the saved ones
    "checker": [
        *("checker", "bounds/test_cheap", "properties/test_rounding"),
        *("data/test_screening", STREAMED),
        "--deselect=tests/checker/test_verify.py::test_verify_accepts_true_results",
        f"--deselect=tests/{STREAMED}.py::test_streamed_certificates_hold_in_exact_fractions",
    ],
    "bounds/cheap.py": [
        *("bounds/test_cheap", "properties/test_rounding"),
        *("properties/test_certificates", "properties/test_values"),
    ],
    "bounds/enumeration.py": ["bounds/test_enumeration", "search/methods/test_enumerate", SOUND],
    "bounds/duals.py": ["bounds/test_duals", "search/test_baselines", "search/methods/test_dspca"],
    "bounds/tree": ["bounds/tree", "checker/test_tree", SOUND],
    "bounds/pairsplit": ["bounds/test_pairsplit", "properties/test_rounding", SOUND],
    "bounds/kyfan": ["bounds/test_kyfan", "properties/test_rounding", "search/test_joint"],
    "bounds/labels": ["bounds/test_labels", "checker/test_labels"],
    "bounds/configuration": ["bounds/test_configuration", "search/test_joint"],
    "bounds/dropped.py": ["data/test_screening", "properties/test_rounding", STREAMED],
    "bounds/lowrank": ["bounds/test_lowrank", "bounds/test_sphere"],
    "kernels/matching.py": ["kernels/test_matching"],
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
        self.which, self.count, self.said, self.line = which, 0, "", 0
        self.lines: range | None = None  # of the statement, if a function holds it
        self._statement: ast.stmt | None = None
        self._inside = False

    def visit(self, node: ast.AST) -> Any:
        if not isinstance(node, ast.stmt):
            return super().visit(node)
        before, self._statement = self._statement, node
        node = super().visit(node)
        self._statement = before
        return node

    def _here(self, node: ast.AST, said: str) -> bool:
        self.count += 1
        if self.count - 1 == self.which:
            self.line = getattr(node, "lineno", 0)
            self.said = f"line {self.line}: {said}"
            if self._inside and self._statement is not None:
                body = getattr(self._statement, "body", None)
                last = body[0].lineno - 1 if body else self._statement.end_lineno
                self.lines = range(self._statement.lineno, max(last or 0, self.line) + 1)
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
        node.args = self.visit(node.args)
        before, self._inside = self._inside, True
        node.body = [self.visit(statement) for statement in node.body]
        self._inside = before
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
        value = node.value
        if isinstance(value, bool):
            if self._here(node, f"not {value}"):
                return ast.copy_location(ast.Constant(not value), node)
        elif isinstance(value, int | float) and self._here(node, f"{value} changed"):
            return ast.copy_location(ast.Constant(value + 1), node)
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


def mutant(source: str, which: int) -> tuple[str, Mutator]:
    mutator = Mutator(which)
    tree = ast.fix_missing_locations(mutator.visit(ast.parse(source)))
    return ast.unparse(tree), mutator


# --- changing code in place ---


def change(module: ModuleType, source: str) -> None:
    """Make the functions of the module do what this source says, whoever has imported them."""
    made = {key: module.__dict__.get(key) for key in ("__name__", "__package__", "__file__")}
    # compiled code is kept by its instructions, which are the same with another constant
    source = source.replace("cache=True, ", "")
    exec(compile(source, str(module.__file__), "exec"), made)
    for name, new in made.items():
        old = module.__dict__.get(name)
        if name.startswith("__") or getattr(new, "__module__", module.__name__) != module.__name__:
            continue
        if isinstance(new, type):
            for key, value in vars(new).items():
                _recode(vars(old).get(key), value)
        elif not _recode(old, new):  # constants and compiled functions
            for other in list(sys.modules.values()):
                if getattr(other, "__dict__", {}).get(name) is old:
                    setattr(other, name, new)


def _recode(old: Any, new: Any) -> bool:
    """Whether this was a function; if so, the old one does what the new one does."""
    if isinstance(new, property):
        old, new = old.fget, new.fget
    elif isinstance(new, staticmethod | classmethod):
        old, new = old.__func__, new.__func__
    if not isinstance(new, FunctionType) or not isinstance(old, FunctionType):
        return False
    old, new = inspect.unwrap(old), inspect.unwrap(new)
    old.__code__ = new.__code__
    old.__defaults__, old.__kwdefaults__ = new.__defaults__, new.__kwdefaults__
    return True


# --- the tests, and what they reach ---


class Nearest:
    """A pytest plugin that runs the collected tests once, then for every mutant in a fork."""

    def __init__(self, sources: dict[str, str], jobs: list[tuple[str, int]]) -> None:
        self.sources, self.jobs = sources, jobs
        self.files = {str(PACKAGE / name): name for name in sources}
        self.reached: dict[tuple[str, int], set[int]] = defaultdict(set)
        self.spent: dict[int, float] = {}
        self.failed = False
        self.survivors: list[str] = []

    def pytest_sessionstart(self, session: Any) -> None:
        session.config.pluginmanager.unregister(name="terminalreporter")

    def pytest_runtest_logreport(self, report: Any) -> None:
        self.failed = self.failed or not report.passed

    def pytest_runtestloop(self, session: Any) -> bool:
        self._measure(session.items)
        total = sum(self.spent.values())
        print(f"{len(self.spent)} tests of {total:.0f} s", file=sys.stderr, flush=True)
        for name, which in self.jobs:
            self._try(session.items, name, which)
        return True

    def _passes(self, items: list[Any], place: int) -> bool:
        self.failed = False
        following = items[place + 1] if place + 1 < len(items) else None
        items[place].ihook.pytest_runtest_protocol(item=items[place], nextitem=following)
        return not self.failed

    def _measure(self, items: list[Any]) -> None:
        """Run every test once: which lines it reaches, and how long it takes."""
        number = 0

        def trace(frame: FrameType, event: str, argument: Any) -> Any:
            name = self.files.get(frame.f_code.co_filename)
            if name is None:
                return None
            self.reached[name, 0].add(number)
            self.reached[name, frame.f_lineno].add(number)
            return trace

        for number in range(len(items)):
            start = time.process_time()
            sys.settrace(trace)
            passed = self._passes(items, number)
            sys.settrace(None)
            spent = time.process_time() - start
            if passed and spent <= LONGEST:
                self.spent[number] = spent

    def _nearest(self, name: str, lines: range | None) -> list[int]:
        """Tests that reach one of the lines, by modules, the quick ones first."""
        compiled = name.startswith("kernels/")  # nobody sees which of its lines are reached
        near = set(self.spent)
        if not compiled:
            near &= set().union(*(self.reached[name, line] for line in lines or (0,)))
        return sorted(near, key=self.spent.__getitem__)

    def _try(self, items: list[Any], name: str, which: int) -> None:
        source = self.sources[name]
        changed, place = mutant(source, which)
        tests, total = [], 0.0
        for number in self._nearest(name, place.lines):
            total += self.spent[number]
            if total <= BUDGET:
                tests.append(items[number])
        start = time.monotonic()
        survived = _fork(lambda: self._survives(tests, name, changed))
        told = f"{name}#{which} {place.said}"
        spent = f"{time.monotonic() - start:.1f} s, {len(tests)} tests near"
        print(f"{'SURVIVED' if survived else 'noticed'} {told} ({spent})", flush=True)
        if survived:
            print(f"    {source.splitlines()[place.line - 1].strip()}", flush=True)
            self.survivors.append(f"{name}#{which}")

    def _survives(self, tests: list[Any], name: str, changed: str) -> bool:
        signal.alarm(LIMIT)
        module = "sparcipal." + name.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        change(importlib.import_module(module), changed)
        groups: dict[str, list[Any]] = defaultdict(list)
        for test in tests:  # fixtures of a module are made once
            groups[str(test.path)].append(test)
        tests = [test for group in groups.values() for test in group]
        return all(self._passes(tests, place) for place in range(len(tests)))


def _fork(work: Any) -> bool:
    """Whether the work says yes, in a process of its own."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            code = 0 if work() else 1
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def run(target: str, amount: int, seed: int, start: int, single: list[int]) -> list[str]:
    """Try mutants of a file or folder; the survivors."""
    import pytest

    place = PACKAGE / target
    files = sorted(place.rglob("*.py")) if place.is_dir() else [place]
    names = [str(file.relative_to(PACKAGE)) for file in files]
    sources = {name: (PACKAGE / name).read_text(encoding="utf-8") for name in names}
    choices = [(name, i) for name in names for i in range(sites(sources[name]))]
    random.Random(seed).shuffle(choices)
    chosen = choices[start : start + amount]
    if single:
        chosen = [(names[0], which) for which in single]
    tests = next(TARGETS[key] for key in TARGETS if (target + "/").startswith(key + "/"))
    folder = ROOT / "tests"
    paths = [
        n if n.startswith("-") else str(folder / n if (folder / n).is_dir() else folder / f"{n}.py")
        for n in tests
    ]
    nearest = Nearest(sources, chosen)
    os.chdir(ROOT)
    options = ["-p", "no:xdist", "-p", "no:cacheprovider", f"--rootdir={ROOT}"]
    pytest.main([*options, *paths], plugins=[nearest])
    alive = nearest.survivors
    print(f"{target}: {len(chosen)} of {len(choices)} mutants tried, {len(alive)} survived")
    if not single and start + amount < len(choices):
        print(f"go on with: python -m benchmarks.mutants {amount} {seed} {start + amount} {target}")
    return alive


def keep_subjects(folder: str) -> None:
    """Save the results that the checker's tests begin with: no mutant has to make them again."""
    from tests.support import forgeries

    saved = Path(folder) / "subjects.pickle"
    saved.write_bytes(pickle.dumps(forgeries.subjects()))
    os.environ["SPARCIPAL_SUBJECTS"] = str(saved)


def main(arguments: list[str]) -> None:
    numbers = [int(a) for a in arguments if a.isdigit()]
    amount, seed, start = [*numbers, *(20, 0, 0)[len(numbers) :]]
    targets: dict[str, list[int]] = {}
    for argument in [a for a in arguments if not a.isdigit()] or list(TARGETS):
        target, _, which = argument.partition("#")
        targets.setdefault(target, []).extend([int(which)] if which else [])
    with tempfile.TemporaryDirectory() as folder:
        if any(target.startswith("checker") for target in targets):
            keep_subjects(folder)
        for target, single in targets.items():
            _fork(lambda t=target, s=single: run(t, amount, seed, start, s) is not None)


if __name__ == "__main__":
    main(sys.argv[1:])
