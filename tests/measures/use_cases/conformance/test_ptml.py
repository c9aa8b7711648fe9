"""PTML by hand: what each operator lets cases do, and what is refused."""

from pathlib import Path

import pytest
from refusals import refused

from veilog.errors import InputError
from veilog.logs.variants import Variants
from veilog.measures.use_cases.conformance import Acceptor, read_model
from veilog.mining.replay import Net


def model(nodes: str, tmp_path: Path, trees: int = 1) -> Path:
    """Return a tree of nodes such as "seq sequence a b, a manualTask", the root first.

    A node has an id, its kind, and its parts. The names of tasks are their ids.
    """
    rows = [row.split() for row in nodes.split(",")]
    lines = [f'<{kind} id="{name}" name="{name}"/>' for name, kind, *_ in rows]
    lines += [f'<parentsNode id="{n}{p}" sourceId="{n}" targetId="{p}"/>' for n, _, *parts in rows for p in parts]
    tree = f'<processTree id="t" name="" root="{rows[0][0]}">{"".join(lines)}</processTree>'
    path = tmp_path / "model.ptml"
    path.write_text(f'<?xml version="1.0" encoding="UTF-8"?><ptml>{tree * trees}</ptml>')
    return path


TASKS = ", a manualTask, b manualTask, c manualTask, t automaticTask"


@pytest.mark.parametrize(
    ("root", "yes", "no"),
    [
        ("r sequence a b c", ["abc"], ["ab", "acb", ""]),
        ("r xor a b t", ["a", "b", ""], ["ab", "c"]),
        ("r and a b", ["ab", "ba"], ["a", "b", ""]),
        ("r or a b c", ["a", "b", "c", "ab", "ca", "abc", "cba"], ["", "aa", "abca"]),
        ("r xorLoop a b", ["a", "aba", "ababa"], ["", "ab", "aa"]),
        ("r xorLoop a b c", ["ac", "abac"], ["a", "abc", "aba"]),
        ("r xorLoop a t t", ["a", "aa"], ["", "ab"]),
    ],
)
def test_operators_let_cases_do_what_they_say(root: str, yes: list[str], no: list[str], tmp_path: Path) -> None:
    net = read_model(model(root + TASKS, tmp_path))
    assert isinstance(net, Net)
    log = Variants.from_sequences([tuple(trace) for trace in (*yes, *no)])
    found = Acceptor(net).verdicts(log)
    assert found.decided.all()
    assert {"".join(one) for one, ok in zip(log.sequences, found.conforming, strict=True) if ok} == {*yes}


@pytest.mark.parametrize(
    ("root", "trees", "code"),
    [
        ("r sequence a b", 2, "ptml-trees-not-one"),
        ("r sequence a z", 1, "ptml-node-missing"),
        ("r sequence a r", 1, "ptml-tree-too-deep"),
        ("r sequence", 1, "ptml-node-not-supported"),
        ("r xorLoop a", 1, "ptml-node-not-supported"),
        ("r def a b", 1, "ptml-node-not-supported"),
    ],
)
def test_what_is_no_tree_is_refused(root: str, trees: int, code: str, tmp_path: Path) -> None:
    with refused(InputError, code):
        read_model(model(root + TASKS, tmp_path, trees))
