"""Nets allow the same cases by hand, and by pm4py's alignments; PNML is read."""

import random
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from refusals import refused

from veilog.errors import InputError, ParameterError
from veilog.logs.variants import Variants
from veilog.measures.use_cases import conformance
from veilog.measures.use_cases.conformance import Acceptor, conformance_rate, read_model
from veilog.mining.replay import Net, Transition

PAR = (Transition(None, (0,), (1, 2)), Transition("a", (1,), (3,)), Transition("b", (2,), (4,)))


def allowed(net: object, sequences: Iterable[str]) -> list[bool]:
    assert isinstance(net, Net)
    found = []
    for sequence in sequences:
        one = Acceptor(net).verdicts(Variants.from_sequences([tuple(sequence)]))
        assert one.decided.all()
        found.append(bool(one.conforming[0]))
    return found


def pnml(body: str, tmp_path: Path) -> Path:
    path = tmp_path / "net.pnml"
    path.write_text(f'<?xml version="1.0"?><pnml xmlns="http://www.pnml.org/version-2009/grammar/pnml">{body}</pnml>')
    return path


def test_a_case_conforms_where_silent_steps_can_help_it_to_the_end() -> None:
    net = Net((*PAR, Transition(None, (3, 4), (5,)), Transition(None, (3,), (1,))), (0,), frozenset({(5,)}))
    assert allowed(net, ("ab", "ba", "aab", "aba", "a", "b", "abb", "", "abc")) == [
        *(True, True, True, True),
        *(False,) * 5,
    ]


def test_places_can_hold_several_tokens_and_arcs_take_several() -> None:
    net = Net((Transition("a", (), (0,)), Transition("b", (0, 0), ())), (), frozenset({()}))
    assert allowed(net, ("", "aab", "aabaab", "aaaabb", "ab", "aaab")) == [True, True, True, True, False, False]


def test_a_loop_of_silent_steps_comes_to_an_end() -> None:
    net = Net(
        (Transition(None, (0,), (1,)), Transition(None, (1,), (0,)), Transition("a", (1,), (2,))),
        (0,),
        frozenset({(2,)}),
    )
    assert allowed(net, ("a", "")) == [True, False]


def test_what_leads_to_too_many_markings_is_not_decided(monkeypatch: pytest.MonkeyPatch) -> None:
    grows = (Transition("a", (0,), (1,)), Transition("b", (0,), (2,)), Transition(None, (2,), (2, 3)))
    net = Net((*grows, Transition("d", (3,) * 50, (1,))), (0,), frozenset({(1,), (2,)}))
    log = Variants.from_dict({("a",): 3, ("b", "d"): 2, ("c",): 1, ("b",): 1})
    # after b a d is possible, but leaves a token too many
    assert Acceptor(net).verdicts(log).decided.all()
    monkeypatch.setattr(conformance, "MOST_MARKINGS", 20)
    found = Acceptor(net).verdicts(log)
    assert dict(zip(log.sequences, zip(found.conforming, found.decided, strict=True), strict=True)) == {
        ("a",): (True, True),
        ("b",): (True, True),
        ("b", "d"): (False, False),
        ("c",): (False, True),
    }
    with refused(ParameterError, "conformance-cases-undecided", open=2, cases=7):
        conformance_rate(net, log)


def test_markings_of_all_cases_together_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    net = Net((Transition("a", (), (0,)),), (), frozenset({(0,) * 3}))
    log = Variants.from_sequences([("a",) * n for n in range(6)])
    assert Acceptor(net).verdicts(log).conforming.tolist() == [n == 3 for n in range(6)]
    monkeypatch.setattr(conformance, "MOST_LOOKED_AT", 4)
    assert not Acceptor(net).verdicts(log).decided[4:].any()


def test_many_branches_that_can_be_skipped_are_no_obstacle() -> None:
    many = 40
    steps = [Transition(None, (0,), tuple(range(1, many + 1)))]
    for place in range(1, many + 1):
        steps += [Transition(f"do {place}", (place,), (place + many,)), Transition(None, (place,), (place + many,))]
    steps.append(Transition(None, tuple(range(many + 1, 2 * many + 1)), (2 * many + 1,)))
    net = Net(tuple(steps), (0,), frozenset({(2 * many + 1,)}))
    log = Variants.from_sequences([[], ["do 7", "do 3"], ["do 3", "do 3"], [f"do {i}" for i in range(many, 0, -1)]])
    found = Acceptor(net).verdicts(log)
    assert found.decided.all()
    refused = [sequence for sequence, yes in zip(log.sequences, found.conforming, strict=True) if not yes]
    assert refused == [("do 3", "do 3")]


ARCS = '<arc id="1" source="p" target="t"/><arc id="2" source="t" target="q"/>'
PLACES = '<place id="p"/><place id="q"/>'


def test_a_net_is_read_with_weights_pages_and_markings(tmp_path: Path) -> None:
    path = pnml(
        '<net id="n"><page id="x"><place id="p"><initialMarking><text>2</text></initialMarking></place>'
        '<place id="q"/><transition id="t"><name><text> take both </text></name></transition>'
        '<transition id="s"><name><text>skip</text></name>'
        '<toolspecific tool="ProM" version="6.4" activity="$invisible$"/></transition><transition id="u"/>'
        '<arc id="1" source="p" target="t"><inscription><text>2</text></inscription></arc>'
        '<arc id="2" source="t" target="q"/></page>'
        '<finalmarkings><marking><place idref="q"><text>1</text></place><place idref="p"><text>0</text></place>'
        "</marking></finalmarkings></net>",
        tmp_path,
    )
    assert read_model(path) == Net(
        (Transition("take both", (0, 0), (1,)), Transition(None, (), ()), Transition(None, (), ())),
        (0, 0),
        frozenset({(1,)}),
    )


def test_a_net_without_markings_has_one_way_in_and_one_way_out(tmp_path: Path) -> None:
    named = '<transition id="t"><name><value>a</value></name></transition>'
    net = read_model(pnml(f"<net>{PLACES}{named}{ARCS}</net>", tmp_path))
    assert allowed(net, ("a", "", "aa")) == [True, False, False]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("", "pnml-nets-not-one"),
        ("<net/><net/>", "pnml-nets-not-one"),
        (f'<net>{PLACES}<place id="r"/><transition id="t"/>{ARCS}</net>', "pnml-marking-ambiguous"),
        ('<net><referencePlace id="r"/></net>', "pnml-net-not-supported"),
        ('<net><place id="p"><hlinitialMarking/></place></net>', "pnml-net-not-supported"),
        (f'<net>{PLACES}<transition id="t"/><arc source="p" target="x"/></net>', "pnml-arc-end-missing"),
        (f'<net>{PLACES}<transition id="t"/><arc source="p" target="q"/></net>', "pnml-arc-end-missing"),
        (
            f'<net>{PLACES}<transition id="t"/><arc source="p" target="t"><type value="inhibitor"/></arc></net>',
            "pnml-arc-type-not-supported",
        ),
        (
            f'<net>{PLACES}<transition id="t"/><arc source="p" target="t"><inscription><text>x</text></inscription>'
            "</arc></net>",
            "pnml-tokens-not-number",
        ),
        ("<net><place/></net>", "pnml-element-without-id"),
        (
            f'<net>{PLACES}<transition id="t"/>{ARCS}<finalmarkings><marking><place idref="z"/></marking>'
            "</finalmarkings></net>",
            "pnml-marking-place-missing",
        ),
    ],
)
def test_a_net_that_cannot_be_used_says_why(body: str, message: str, tmp_path: Path) -> None:
    with refused(InputError, message):
        read_model(pnml(body, tmp_path))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"<pnml><net></pnml>", "xml-not-well-formed"),
        (b'<!DOCTYPE pnml [<!ENTITY a "b">]><pnml>&a;</pnml>', "xml-document-type-declared"),
        (b"<svg/>", "model-format-unknown"),
        (b"\x89PNG", "model-not-utf8"),
    ],
)
def test_a_file_that_is_no_model_is_refused(content: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / "model"
    path.write_bytes(content)
    with refused(InputError, message):
        read_model(path)
    with refused(InputError, "model-not-readable"):
        read_model(tmp_path / "none")


def tree(rng: np.random.Generator, depth: int) -> str:
    """A random process tree in pm4py's words."""
    if depth == 0 or rng.random() < 0.2:
        return "tau" if rng.random() < 0.1 else f"'{rng.choice(list('abcde'))}'"
    operator = rng.choice(["->", "X", "+", "*", "O"], p=[0.3, 0.25, 0.2, 0.15, 0.1])
    children = [tree(rng, depth - 1) for _ in range(2 if operator == "*" else rng.integers(2, 4))]
    return f"{operator}({', '.join(children)})"


def samples(rng: np.random.Generator) -> list[tuple[str, ...]]:
    return [tuple(rng.choice(list("abcde"), size=rng.integers(0, 6)).tolist()) for _ in range(25)]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", range(20))
def test_membership_is_what_alignments_say_for_pnml_and_for_bpmn(seed: int, tmp_path: Path) -> None:
    pytest.importorskip("pm4py")
    from pm4py import convert_to_bpmn, convert_to_petri_net
    from pm4py.algo.conformance.alignments.petri_net import algorithm
    from pm4py.algo.simulation.playout.petri_net import algorithm as playing
    from pm4py.objects.bpmn.exporter import exporter as bpmn
    from pm4py.objects.log.obj import Event, Trace
    from pm4py.objects.petri_net.exporter import exporter as petri
    from pm4py.objects.process_tree.utils.generic import parse

    rng = np.random.default_rng(seed)
    made: Any = parse(f"->({tree(rng, 2)}, {tree(rng, 2)})")
    net, initial, final = convert_to_petri_net(made)
    petri.apply(net, initial, str(tmp_path / "net.pnml"), final_marking=final)
    bpmn.apply(convert_to_bpmn(made), str(tmp_path / "model.bpmn"), parameters={"enable_layout": False})
    random.seed(seed)
    log = playing.apply(net, initial, final_marking=final, parameters={"noTraces": 20, "maxTraceLength": 30})
    played = [tuple(event["concept:name"] for event in trace) for trace in log]
    cases = {case for case in (*played, *samples(rng)) if len(case) < 9} | {
        min(played, key=lambda case: (len(case), case))
    }
    expected = {
        case: algorithm.apply_trace(Trace([Event({"concept:name": name}) for name in case]), net, initial, final)[
            "cost"
        ]
        < 10_000
        for case in cases
    }
    assert sum(expected.values()) > 0
    variants = Variants.from_sequences(sorted(cases))
    for name in ("net.pnml", "model.bpmn"):
        model = read_model(tmp_path / name)
        assert isinstance(model, Net)
        found = Acceptor(model).verdicts(variants)
        assert found.decided.all()
        assert dict(zip(variants.sequences, found.conforming.tolist(), strict=True)) == expected, name
