"""Small changes that make mutants of the kernel, and their insertion."""

import ast
import copy
import importlib
import types
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

TARGETS: dict[str, tuple[str, ...]] = {
    "privacy.curator": (
        "Curator.count",
        "Curator.concentration",
        "Curator.histogram",
        "Curator.sums",
        "Curator.find_activities",
        "Curator.rounds",
        "Curator.partitions",
        "Curator.training",
        "Curator.subsample",
        "Curator.carry",
        "Curator.guarantee",
    ),
    "privacy.contributions": (
        "check_sums",
        "exact_sums",
        "contributions",
        "clip_rows",
        "clipped_euclidean",
        "noise_of_sums",
    ),
    "privacy.cases": ("AllCases.over", "AllCases.sums", "AllCases.firsts", "_firsts"),
    "privacy.histograms": (
        *("check_size", "cases_in_bins", "every_bin", "bins_above", "_surviving_empty_bins"),
        *("label_threshold", "_smallest", "_holds", "label_weights", "labels_noise", "frequent_labels"),
        *("gaussian_rounds", "histogram_rounds", "rounds_pay", "strength_within", "_log_delta", "Rounds.histogram"),
    ),
    "privacy.events": (
        "EventQuestions.sums",
        "EventQuestions.distinct",
        "EventQuestions.frequent_values",
        "EventQuestions.most_apart",
    ),
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
    "privacy.mechanisms.sampling": ("amplify", "reverse_amplification", "_suffices", "poisson_sample"),
    "privacy.unit": ("Unit.of_one_case", "Unit.charges", "_growth", "bound_units"),
    "privacy.account.budgets": ("parse_epsilon", "parse_delta", "compose"),
    "privacy.account.guarantee": ("round_up", "up", "strength_of", "Charge.__post_init__"),
    "privacy.account.account": (
        "ChargeAccount.charge",
        "ChargeAccount.carry",
        "ChargeAccount._enter",
        "ChargeAccount.assume",
        "ChargeAccount.void",
        "ChargeAccount.guarantee",
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
        "GaussianRounds.strength",
        "GaussianRounds.draw",
    ),
    "privacy.mechanisms.gradients": ("Training.step", "pay_for"),
    "privacy.mechanisms.clipped_sums": (
        "clip_sums",
        "_whole",
        "_add_errors",
        "_longest",
        "integer_sums",
        "exact_product",
    ),
    "privacy.mechanisms.gaussian": (
        "discrete_gaussian",
        "_draw_proposals",
        "_layout",
        "_cumulative",
        "_terms",
        "draw_exceeding",
    ),
    "privacy.mechanisms.accountant": ("composed_epsilon", "integer_variance"),
    "privacy.case_functions": ("bins_of", "triples_of", "_parts", "_alone", "added_up", "_same"),
    "privacy.account.losses": (
        "losses_of",
        "_charge_losses",
        "composed_epsilon",
        "composed_delta",
        "_count_losses",
        "_response_delta",
    ),
    "privacy.account.composition": (
        "renyi_of",
        "renyi_room",
        "renyi_epsilon",
        "best_order",
        "_excess_epsilon",
        "planned_epsilon",
        "Answer.renyi",
        "answers_of",
        "_laplace_divergence",
    ),
    "privacy.partition": (
        "Partition.of_log",
        "Partition._holds",
        "Partition._select_by_start",
        "Partition._select_by_value",
        "_first_values",
    ),
}
"""Names of the functions to change in each module."""

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


@dataclass(frozen=True)
class Mutant:
    module: str
    function: str
    line: str
    """Line before the change."""
    change: str
    number: int
    """Position among the changes of the function."""
    lines: range
    """Lines of the statement, or of its head."""

    @property
    def name(self) -> str:
        return f"{self.module}.{self.function}: {self.line}  [{self.change}]"

    @property
    def key(self) -> str:
        """Return the name in a record: a line may have two mutants of one name."""
        return f"{self.name} {self.number}"


def function_in(tree: ast.Module, name: str) -> ast.FunctionDef:
    """Return the last definition of this name: earlier ones are overloads."""
    body: list[ast.stmt] = tree.body
    *classes, own = name.split(".")
    for part in classes:
        body = next(node.body for node in body if isinstance(node, ast.ClassDef) and node.name == part)
    return [node for node in body if isinstance(node, ast.FunctionDef) and node.name == own][-1]


def changes(function: ast.FunctionDef) -> Iterator[tuple[ast.AST, str]]:
    """Yield the function changed in place, one change at a time, each then undone."""
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
        called = ast.unparse(node.func)
        # The larger of two numbers does not depend on their order.
        if ast.dump(node.args[0]) != ast.dump(node.args[1]) and called.removeprefix("np.") not in NAMES:
            yield swapped, f"first two arguments of {called} exchanged"


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
    """Return the lines of the innermost statement around a line.

    Of a statement that holds others, these are the lines before the others.
    """
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
    """Change the function in place, so that all that imported it have the change."""
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
    """Clear cached answers."""
    for name in TARGETS:
        for value in vars(importlib.import_module(f"veilog.{name}")).values():
            if hasattr(value, "cache_clear"):
                value.cache_clear()
