"""BPMN by hand: what each gateway and event lets cases do, and what is refused."""

import itertools
from pathlib import Path

import pytest
from refusals import refused

from veilog.errors import InputError
from veilog.logs.variants import Variants
from veilog.measures.use_cases.conformance import Acceptor, read_model
from veilog.mining.replay import Net

HEAD = (
    '<definitions xmlns="http://www.omg.org/spec/BPMN/20100524/MODEL" '
    'xmlns:di="http://www.omg.org/spec/BPMN/20100524/DI"><process id="p">'
)
KINDS = {"X": "exclusiveGateway", "P": "parallelGateway", "I": "inclusiveGateway", "E": "eventBasedGateway"}
KINDS |= {"s": "startEvent", "e": "endEvent", "m": "intermediateCatchEvent"}


def model(flows: str, tmp_path: Path, more: str = "") -> Path:
    """Return a model of flows like "s a X1 b e"; small letters but s, e, m are tasks."""
    paths = [path.split() for path in flows.split(",")]
    names = dict.fromkeys(name for path in paths for name in path)
    nodes = "".join(
        f'<{KINDS[name[0]]} id="{name}"/>' if name[0] in KINDS else f'<userTask id="{name}" name="{name[0]}"/>'
        for name in names
    )
    joined = [(a, b) for path in paths for a, b in itertools.pairwise(path)]
    lines = "".join(f'<sequenceFlow id="f{i}" sourceRef="{a}" targetRef="{b}"/>' for i, (a, b) in enumerate(joined))
    path = tmp_path / "model.bpmn"
    path.write_text(f"{HEAD}<laneSet/>{nodes}{lines}{more}</process><di:BPMNDiagram/></definitions>")
    return path


def allowed(path: Path, *sequences: str) -> list[str]:
    net = read_model(path)
    assert isinstance(net, Net)
    log = Variants.from_sequences([tuple(sequence) for sequence in sequences])
    found = Acceptor(net).verdicts(log)
    assert found.decided.all()
    return ["".join(one) for one, yes in zip(log.sequences, found.conforming, strict=True) if yes]


@pytest.mark.parametrize(
    ("flows", "yes", "no"),
    [
        ("s a b e", ["ab"], ["a", "ba", "", "abb"]),
        ("s a m b e", ["ab"], ["a"]),
        ("s X1 a X2 e, X1 b X2", ["a", "b"], ["ab", ""]),
        ("s E1 a X2 e, E1 X2", ["", "a"], ["aa"]),
        ("s X1 a X2 e, X2 X1", ["a", "aa", "aaa"], ["", "b"]),
        ("s P1 a P2 c e, P1 b P2", ["abc", "bac"], ["ac", "bc", "acb", "abb"]),
        ("s P1 a e1, P1 b c e2", ["abc", "bac", "bca"], ["a", "bc", "acb"]),
        ("s I1 a I2 c e, I1 b I2", ["ac", "bc", "abc", "bac"], ["c", "aac", "ab"]),
        ("s I1 a I2 e, I1 I2", ["", "a"], ["aa"]),
        ("s I1 a e1, I1 b c e2", ["a", "bc", "abc", "bac", "bca"], ["", "ab", "ac"]),
        (
            "s I1 I3 a I4 I2 e, I3 b I4, I1 c I2",
            ["a", "b", "ab", "ba", "c", "abc", "cba", "acb", "ca"],
            ["", "aa", "aca"],
        ),
        ("s X1 I1 a I2 X2 e, I1 b I2, X2 c X1", ["a", "ab", "abcb", "acba"], ["aa", "ac", "abcc"]),
        ("s I1 X1 a X2 I2 e, X1 b X2, I1 c I2", ["a", "b", "c", "ac", "cb"], ["ab", "abc", ""]),
        ("s a X1 b e, X1 a", ["ab", "aab"], ["b", "abb"]),
        ("s a b e1, a c e2", ["abc", "acb"], ["ab", "ac"]),
        ("s1 a X1 c e, s2 b X1", ["ac", "bc"], ["abc", "c"]),
        ("a b", ["ab"], ["a", "b"]),
    ],
)
def test_nodes_let_cases_do_what_bpmn_says(flows: str, yes: list[str], no: list[str], tmp_path: Path) -> None:
    assert sorted(allowed(model(flows, tmp_path), *yes, *no)) == sorted(yes)


def test_tasks_of_a_name_are_one_activity(tmp_path: Path) -> None:
    assert allowed(model("s a1 b a2 e", tmp_path), "aba", "ab", "bab") == ["aba"]


@pytest.mark.parametrize(
    ("flows", "more", "message"),
    [
        ("s a e", '<subProcess id="x" name="inner"/>', "bpmn-element-not-supported"),
        ("s a e", '<boundaryEvent id="x"/>', "bpmn-element-not-supported"),
        ("s a e", '<task id="t"/>', "bpmn-task-without-name"),
        ("s a e", '<task id="t" name="lost"/>', "bpmn-node-not-reached"),
        ("s a e", '<sequenceFlow id="f" sourceRef="a" targetRef="z"/>', "bpmn-flow-without-nodes"),
        ("s a e", '<endEvent id="t"><terminateEventDefinition/></endEvent>', "bpmn-terminate-not-supported"),
        ("s a e", '<task id="t" name="t"><standardLoopCharacteristics/></task>', "bpmn-repetition-not-supported"),
        (
            "s a e",
            '<sequenceFlow id="f" sourceRef="a" targetRef="e"><conditionExpression/></sequenceFlow>',
            "bpmn-flows-conditional",
        ),
        ("s a s", "", "bpmn-start-with-inflow"),
        ("s X1 a I2 e, X1 b I2", "", "bpmn-inclusive-branches-unsplit"),
        ("s I1 a X1 I2 e, I1 b I2, X1 e2", "", "bpmn-inclusive-branches-unjoined"),
        ("s X0 I1 a I2 e, I1 b I2, X0 c X1 b", "", "bpmn-inclusive-branches-unjoined"),
        ("s I1 a I1, I1 b e", "", "bpmn-gateway-joins-and-splits"),
        ("s I1 " + ", I1 ".join(f"{letter} e" for letter in "bcdfghjkl"), "", "bpmn-branches-too-many"),
        ("a b a", "", "bpmn-without-start"),
    ],
)
def test_what_is_not_supported_is_named(flows: str, more: str, message: str, tmp_path: Path) -> None:
    with refused(InputError, message):
        read_model(model(flows, tmp_path, more))


def test_one_process_is_needed(tmp_path: Path) -> None:
    path = tmp_path / "none.bpmn"
    path.write_text(f"{HEAD}</process></definitions>")
    with refused(InputError, "bpmn-processes-not-one"):
        read_model(path)
