"""Mutants of the kernel: are there lines of sensitivity, scale, charge and clipping that could be wrong unnoticed?

    python bench/mutants.py [--only privacy.curator] [--sample 200] [--processes 2] [--list] [--record mutants.json]

Each mutant is one small change in one function of ``TARGETS``: a number one larger, a comparison that takes in its
border or not, plus for minus, a factor two on a budget, two arguments exchanged, a call left out, a condition turned
round. It is killed if a test of the kernel fails with it. Error texts are not changed, because what they say is no part
of a guarantee (that they say nothing of the data is tested elsewhere).

This does what mutmut and cosmic-ray do; it is a program of its own because neither can be kept to some lines and some
kinds of change at once, neither knows the two changes that matter most here (a budget doubled, a charge left out), and
because a mutant is put into a fork of one process that has imported everything and collected all tests. That process
runs them once and notes which run which lines, and how long they take: a mutant is tried with the tests that run its
line, those first that killed others in its function, then the shortest.
"""

import argparse
import ast
import contextlib
import copy
import importlib
import json
import os
import random
import re
import resource
import signal
import sys
import time
import types
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import coverage
import pytest
from hypothesis import HealthCheck, Phase, settings

ROOT = Path(__file__).parents[1]
TESTS = ROOT / "tests" / "privacy"
PATIENCE = 60.0
"""So many seconds of tests each mutant is given: one that lives so long counts as alive, though a test may kill it."""
MEMORY = 6 * 2**30
"""What a mutant may take, in bytes: one that needs more is seen."""

TARGETS: dict[str, tuple[str, ...]] = {
    "privacy.curator": (
        "Curator.count",
        "Curator.concentration",
        "Curator.histogram",
        "Curator.sums",
        "Curator.find_activities",
        "Curator.partitions",
        "Curator.training",
        "Curator.subsample",
        "Curator.carry",
        "Curator.guarantee",
    ),
    "privacy.clipping": ("check_sums", "exact_sums", "contributions", "clipped"),
    "privacy.histograms": ("check_size", "cases_in_bins", "every_bin", "bins_above", "_surviving_empty_bins"),
    "privacy.events": ("EventQuestions.sums", "EventQuestions.distinct", "EventQuestions.frequent_values"),
    "privacy.labels": ("label_threshold", "_smallest", "_holds", "label_weights", "labels_noise", "frequent_labels"),
    "privacy.mechanisms.noise": (
        "check_scale",
        "_two_sided",
        "discrete_laplace",
        "geometric",
        "laplace_tail",
        "tsgd_tail",
        "tsgd_bound",
        "tsgd_noise",
        "_tsgd_zero",
        "_laplace_zero",
    ),
    "privacy.mechanisms.sampling": ("amplified", "unamplified", "_suffices", "poisson_sample"),
    "privacy.unit": ("Unit.of_one_case", "Unit.charges", "_growth", "bounded"),
    "privacy.account.accounting": ("parse_epsilon", "parse_delta", "compose"),
    "privacy.account.guarantee": ("Charge.__post_init__",),
    "privacy.account.account": (
        "Account.charge",
        "Account.carry",
        "Account._enter",
        "Account.assume",
        "Account.void",
        "Account.guarantee",
        "SampleAccount.__init__",
        "SampleAccount._enter",
    ),
    "privacy.mechanisms.mechanism": (
        "Sensitivity.of",
        "Laplace.decay",
        "Laplace.draw",
        "KTruncatedGeometric.of",
        "KTruncatedGeometric.draw",
        "NoisedSteps.__post_init__",
        "NoisedSteps.scaled",
    ),
    "privacy.training.gradients": ("Training.step", "pay_for"),
    "privacy.training.sums": ("clipped", "_whole", "_with_errors", "_longest", "integer_sums", "exact_product"),
    "privacy.mechanisms.gaussian": ("discrete_gaussian", "_proposed", "_layout", "_cumulative"),
    "privacy.training.accounting": ("composed_epsilon", "integer_variance"),
    "privacy.asking": ("bins_of", "triples_of", "_parts", "_alone", "_sorted", "_same"),
    "privacy.account.figures": ("round_up", "up"),
    "privacy.account.strength": ("strength_of",),
}
"""Of each module the functions that are changed."""

PROFILE = "mutants"
"""Of Hypothesis: a failure is all that matters, so the examples of failing tests are not made smaller."""
BUDGETS = {"eps", "epsilon", "failure", "delta", "bound", "clip", "scale", "resolution", "step"}
EXCHANGED: dict[type[ast.AST], tuple[type[ast.AST], ...]] = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
    ast.Add: (ast.Sub,),
    ast.Sub: (ast.Add,),
    ast.Mult: (ast.FloorDiv,),
    ast.Div: (ast.Mult,),
    ast.FloorDiv: (ast.Mult,),
    ast.Pow: (ast.Mult,),
    ast.Mod: (ast.Mult,),
    ast.And: (ast.Or,),
    ast.Or: (ast.And,),
    ast.BitAnd: (ast.BitOr,),
    ast.BitOr: (ast.BitAnd,),
}
NAMES = {"max": "min", "min": "max", "minimum": "maximum", "maximum": "minimum", "all": "any", "any": "all"}

REASONS: dict[str, str] = json.loads(Path(__file__).with_name("mutants_that_live.json").read_text())
"""Regular expressions for mutants that no test kills, with the reason why none has to."""


@dataclass(frozen=True)
class Mutant:
    module: str
    function: str
    line: str
    """The changed line as it was."""
    change: str
    number: int
    """Which of the changes of the function."""
    lines: range
    """Those of the statement, or of its head."""

    @property
    def name(self) -> str:
        return f"{self.module}.{self.function}: {self.line}  [{self.change}]"

    @property
    def key(self) -> str:
        """As it is called in a record: a line may have two of one name."""
        return f"{self.name} {self.number}"


def function_in(tree: ast.Module, name: str) -> ast.FunctionDef:
    """The last definition of this name: earlier ones are overloads."""
    body: list[ast.stmt] = tree.body
    *classes, own = name.split(".")
    for part in classes:
        body = next(node.body for node in body if isinstance(node, ast.ClassDef) and node.name == part)
    return [node for node in body if isinstance(node, ast.FunctionDef) and node.name == own][-1]


def changes(function: ast.FunctionDef) -> Iterator[tuple[ast.AST, str]]:
    """The function changed in place, one change after the other, each undone before the next."""
    body = function.body[1:] if ast.get_docstring(function) else function.body
    for parent, field, place, node in _nodes(body, function):
        for _, said in _of_node(parent, field, place, node):
            yield (node if hasattr(node, "lineno") else parent), said


def _nodes(body: list[ast.stmt], owner: ast.AST) -> Iterator[tuple[ast.AST, str, int | None, ast.AST]]:
    stack: list[tuple[ast.AST, str, int | None, ast.AST]] = [
        (owner, "body", owner.body.index(stmt), stmt)  # type: ignore[attr-defined]
        for stmt in reversed(body)
    ]
    while stack:
        parent, field, place, node = stack.pop()
        if isinstance(node, ast.Raise):
            continue
        yield parent, field, place, node
        children: list[tuple[ast.AST, str, int | None, ast.AST]] = []
        for name, value in ast.iter_fields(node):
            if name in ("annotation", "returns"):
                continue
            if isinstance(value, ast.AST):
                children.append((node, name, None, value))
            elif isinstance(value, list):
                children += [(node, name, i, item) for i, item in enumerate(value) if isinstance(item, ast.AST)]
        stack += reversed(children)


def _of_node(parent: ast.AST, field: str, place: int | None, node: ast.AST) -> Iterator[tuple[ast.AST, str]]:
    def put(new: ast.AST) -> None:
        if place is None:
            setattr(parent, field, new)
        else:
            getattr(parent, field)[place] = new

    for new, said in _instead(parent, field, node):
        put(ast.copy_location(new, node) if not hasattr(new, "lineno") else new)
        yield node, said
        put(node)


def _instead(parent: ast.AST, field: str, node: ast.AST) -> Iterator[tuple[ast.AST, str]]:
    if isinstance(node, ast.Constant) and not isinstance(node.value, str | bytes | None | bool):
        yield ast.Constant(node.value + 1), f"{node.value} -> {node.value + 1}"
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
        yield ast.Constant(not node.value), f"{node.value} -> {not node.value}"
    for other in EXCHANGED.get(type(node), ()):
        yield other(), f"{type(node).__name__} -> {other.__name__}"
    if isinstance(node, ast.Name) and node.id in BUDGETS and isinstance(node.ctx, ast.Load) and field != "func":
        double = ast.BinOp(ast.Name(node.id, ast.Load()), ast.Mult(), ast.Constant(2))
        yield ast.fix_missing_locations(ast.copy_location(double, node)), f"{node.id} -> {node.id} * 2"
    if isinstance(node, ast.Name) and node.id in NAMES:
        yield ast.Name(NAMES[node.id], ast.Load()), f"{node.id} -> {NAMES[node.id]}"
    if isinstance(node, ast.Attribute) and node.attr in NAMES:
        yield ast.Attribute(node.value, NAMES[node.attr], node.ctx), f"{node.attr} -> {NAMES[node.attr]}"
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.Not):
        yield node.operand, f"{type(node.op).__name__} left out"
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        yield ast.Pass(), "call left out"
    if isinstance(node, ast.AugAssign):
        yield ast.Pass(), "left out"
    if isinstance(node, ast.If | ast.IfExp | ast.While):
        turned = copy.copy(node)
        turned.test = ast.copy_location(ast.UnaryOp(ast.Not(), node.test), node.test)
        yield turned, "condition turned round"
    if isinstance(node, ast.Call) and len(node.args) >= 2:
        swapped = copy.copy(node)
        swapped.args = [node.args[1], node.args[0], *node.args[2:]]
        if ast.dump(node.args[0]) != ast.dump(node.args[1]):
            yield swapped, "first two arguments exchanged"


def mutants() -> Iterator[Mutant]:
    for module, functions in TARGETS.items():
        source = source_of(module)
        for name in functions:
            tree = ast.parse(source)
            function = function_in(tree, name)
            for number, (node, change) in enumerate(changes(function)):
                line = getattr(node, "lineno", None)
                text = source.splitlines()[line - 1].strip() if line else ast.dump(node)[:40]
                yield Mutant(module, name, text, change, number, statement_at(function, line or function.lineno))


def statement_at(function: ast.FunctionDef, line: int) -> range:
    """The lines of the innermost statement around a line; of one that holds others, the lines before these."""
    found = range(function.lineno, (function.end_lineno or line) + 1)
    for node in ast.walk(function):
        if isinstance(node, ast.stmt) and node is not function:
            held = getattr(node, "body", None)
            lines = range(node.lineno, held[0].lineno if held else (node.end_lineno or line) + 1)
            if line in lines and len(lines) <= len(found):
                found = lines
    return found


def source_file(module: str) -> str:
    found = importlib.import_module(f"veilog.{module}").__file__
    assert found is not None
    return found


def source_of(module: str) -> str:
    return Path(source_file(module)).read_text()


def code_of(mutant: Mutant) -> types.CodeType:
    tree = ast.parse(source_of(mutant.module))
    for number, _ in enumerate(changes(function_in(tree, mutant.function))):
        if number == mutant.number:
            compiled = compile(ast.fix_missing_locations(tree), f"mutant of {mutant.function}", "exec")
            break
    code = compiled
    for part in mutant.function.split("."):
        code = [c for c in code.co_consts if isinstance(c, types.CodeType) and c.co_name == part][-1]
    return code


def put_in(mutant: Mutant) -> None:
    """Change the function where it is, so that whoever imported it has the change."""
    held: Any = importlib.import_module(f"veilog.{mutant.module}")
    for part in mutant.function.split("."):
        held = vars(held)[part]
    held = getattr(held, "__wrapped__", held)
    if isinstance(held, staticmethod):
        held = held.__func__
    if isinstance(held, property):
        held = held.fget
    held.__code__ = code_of(mutant)
    forget()


def forget() -> None:
    """Leave out answers that were kept before."""
    for name in TARGETS:
        for value in vars(importlib.import_module(f"veilog.{name}")).values():
            if hasattr(value, "cache_clear"):
                value.cache_clear()


class Record:
    """Which mutants died so far, kept in a file if one is named: these are not tried again while their line stays."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._died: dict[str, bool] = json.loads(path.read_text()) if path is not None and path.exists() else {}

    def died(self, mutant: Mutant) -> bool | None:
        """Whether it did; None where that is not known."""
        return self._died.get(mutant.key)

    def enter(self, mutant: Mutant, dead: bool) -> None:
        self._died[mutant.key] = dead
        if self._path is not None:
            self._path.write_text(json.dumps(self._died, indent=1) + "\n")


class Judge:
    """A plugin of pytest that, once all tests are collected, tries mutants with them in place of running them."""

    def __init__(self, chosen: list[Mutant], record: Record, processes: int, patience: float) -> None:
        self.chosen, self.record, self.processes, self.patience = chosen, record, processes, patience
        self._failed = False
        self._seconds: dict[str, float] = {}
        self._tests: dict[tuple[str, int], set[str]] = {}
        """By file and line the tests that run it."""
        self._killers: dict[str, list[str]] = {}
        """By function the tests that killed its last mutants, the last first: they are likely to kill the next."""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._failed |= report.failed

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        items = {item.nodeid: item for item in session.items}
        self._run_once(items)
        with ThreadPoolExecutor(self.processes) as pool:
            for mutant, dead in zip(self.chosen, pool.map(lambda m: self._dies(m, items), self.chosen), strict=True):
                self.record.enter(mutant, dead)
                say("dies: " if dead else "lives:", mutant.name)
        return True

    def _fails(self, item: pytest.Item) -> bool:
        self._failed = False
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=None)  # without a next: nothing is kept for it
        return self._failed

    def _run_once(self, items: dict[str, pytest.Item]) -> None:
        """Note how long the tests take and which lines they run; leave out those that fail without a mutant."""
        traced = coverage.Coverage(data_file=None, include=[source_file(module) for module in TARGETS])
        traced.start()
        for name, item in list(items.items()):
            forget()
            traced.switch_context(name)
            started = time.process_time()
            if self._fails(item):
                say("fails without a mutant and is left out:", name)
                del items[name]
            self._seconds[name] = time.process_time() - started
        traced.stop()
        data = traced.get_data()
        for module in TARGETS:
            for line, names in data.contexts_by_lineno(source_file(module)).items():
                self._tests[module, line] = {name for name in names if name in items}
        say(f"{len(items)} tests, {sum(self._seconds.values()):.0f} s")

    def _dies(self, mutant: Mutant, items: dict[str, pytest.Item]) -> bool:
        names = set().union(*(self._tests.get((mutant.module, line), ()) for line in mutant.lines))
        likely = self._killers.setdefault(f"{mutant.module}.{mutant.function}", [])
        first = [name for name in likely if name in names]
        order = [*first, *sorted(names.difference(first), key=self._seconds.__getitem__)]

        def work() -> str:
            put_in(mutant)
            spent = 0.0
            for name in order:
                spent += self._seconds[name]
                if spent > self.patience:
                    say("out of patience:", mutant.name)
                    break
                signal.setitimer(signal.ITIMER_PROF, 10 + 10 * self._seconds[name])  # longer, and it never ends
                if self._fails(items[name]):
                    return name
            return ""

        killer = forked(work)
        if killer in items:
            likely[:] = [killer, *(name for name in likely if name != killer)]
        return killer != ""


def say(*words: str) -> None:
    """Print where pytest does not catch it."""
    print(*words, file=sys.__stdout__, flush=True)


def forked(work: Callable[[], str]) -> str:
    """What ``work`` returns in a fork of this process."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
        try:
            answer = work()
        except BaseException:  # noqa: BLE001 - a mutant may raise anything at all
            answer = "an exception"
        os.write(writing, answer.encode())
        os._exit(0)
    os.close(writing)
    _, status = os.waitpid(child, 0)
    with os.fdopen(reading, "rb") as said:
        return "no end" if os.WIFSIGNALED(status) else said.read().decode()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="a regular expression that the names of the mutants match")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--sample", type=int, default=None, help="run so many of them, drawn at random but repeatably")
    parser.add_argument("--tests", default="", help="a pytest expression (-k): the tests to run, in place of all")
    parser.add_argument("--patience", type=float, default=PATIENCE, help="seconds of tests that each is tried with")
    parser.add_argument("--new", action="store_true", help="not those of which it is known why they live")
    parser.add_argument("--list", action="store_true", help="say which there are, and what of them is known; run none")
    parser.add_argument("--record", type=Path, help="a JSON file of what was found: those that died are not run again")
    given = parser.parse_args()
    chosen = [mutant for mutant in mutants() if re.search(given.only, mutant.name)]
    if given.sample is not None and given.sample < len(chosen):
        picked = set(random.Random(1).sample(range(len(chosen)), given.sample))
        chosen = [mutant for place, mutant in enumerate(chosen) if place in picked]
    record = Record(given.record)
    if given.list:
        print(*(mutant.name for mutant in chosen), sep="\n")
    else:
        run([m for m in chosen if not (record.died(m) or (given.new and reason_for(m)))], record, given)
    summary(chosen, record)
    sys.exit(any(record.died(mutant) is False and not reason_for(mutant) for mutant in chosen))


def run(chosen: list[Mutant], record: Record, given: argparse.Namespace) -> None:
    """Try these mutants, and enter in the record which of them die."""
    os.chdir(ROOT)
    settings.register_profile(
        PROFILE,
        derandomize=True,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.explicit, Phase.generate],
    )
    os.environ["HYPOTHESIS_PROFILE"] = PROFILE
    judge = Judge(chosen, record, given.processes, given.patience)
    with Path(os.devnull).open("w") as nowhere, contextlib.redirect_stdout(nowhere):
        quietly = ["-q", "-p", "no:cacheprovider", "--tb=no", "--capture=sys", "-k", given.tests]
        quietly += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]  # Hypothesis is there already
        pytest.main([*quietly, str(TESTS)], plugins=[judge])


def reason_for(mutant: Mutant) -> str:
    """Why no test has to kill it; nothing where that is not known."""
    return next((reason for pattern, reason in REASONS.items() if re.search(pattern, mutant.name)), "")


def summary(chosen: list[Mutant], record: Record) -> None:
    """Print a table by module, and why those live that do."""
    print("\n| module | mutants | judged | killed | need not die | left | killed of those that have to |")
    print("|---|---|---|---|---|---|---|")
    for module in [*TARGETS, ""]:
        all_ = [m for m in chosen if module in (m.module, "")]
        if all_:
            killed = sum(record.died(m) is True for m in all_)
            lived = [m for m in all_ if record.died(m) is False]
            left = sum(not reason_for(m) for m in lived)
            share = f"{killed / (killed + left):.1%}" if killed + left else ""
            facts = [len(all_), killed + len(lived), killed, len(lived) - left, left, share]
            print(f"| `{module}` |" if module else "| together |", *(f"{fact} |" for fact in facts))
    by_reason: dict[str, list[str]] = {}
    for mutant in chosen:
        if record.died(mutant) is False:
            by_reason.setdefault(reason_for(mutant) or "Without a reason", []).append(mutant.name)
    for reason, names in sorted(by_reason.items()):
        print(f"\n{reason} ({len(names)})", *names, sep="\n  ")


if __name__ == "__main__":
    main()
