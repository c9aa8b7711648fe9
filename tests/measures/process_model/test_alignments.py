"""Fitness by optimal alignments."""

import pytest
from refusals import refused

from veilog.errors import MissingExtraError, ParameterError
from veilog.logs.variants import Variants
from veilog.measures import Pair
from veilog.measures import process_model as alignments
from veilog.measures.use_cases import judge
from veilog.measures.use_cases.use_case import UseCaseOptions
from veilog.mining.inductive import discover
from veilog.mining.replay import workflow_net

ORIGINAL = Variants.from_dict({("a", "b", "c", "d"): 50, ("a", "c", "b", "d"): 40, ("a", "e", "d"): 30})


@pytest.fixture(autouse=True)
def r4pm() -> None:
    pytest.importorskip("r4pm")


def test_changes_of_cases_counted_by_hand() -> None:
    """The model is a, then b and c in any order or e, then d: at least three steps."""
    net = workflow_net(discover(ORIGINAL))
    changes = alignments.Aligner(net).changes
    assert changes(()) == 3
    assert changes(("a", "c", "b", "d")) == 0
    assert changes(("a", "b", "d")) == 1  # c is put in
    assert changes(("a", "e", "e", "d")) == 1  # e is taken out
    assert changes(("x", "y")) == 2 + 3
    log = Variants.from_dict({("a", "e", "d"): 3, ("a", "b", "d"): 2, ("x", "y"): 1})
    assert alignments.aligned_fitness(log, net) == 1 - (2 * 1 + 1 * 5) / (3 * 6 + 2 * 6 + 1 * 5)
    assert alignments.aligned_fitness(ORIGINAL, net) == 1


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_fitness_is_that_of_pm4py() -> None:
    """But for its silent moves, which it counts a ten-thousandth of the others."""
    pm4py = pytest.importorskip("pm4py")
    pd = pytest.importorskip("pandas")
    log = {("a", "b", "c", "d"): 5, ("a", "d"): 4, ("e", "a", "c", "b", "b", "d"): 3, ("d", "a"): 2, ("x",): 1}

    def framed(log: dict[tuple[str, ...], int]) -> object:
        cases = [trace for trace, count in log.items() for _ in range(count)]
        minute = pd.Timestamp(2024, 1, 1)
        rows = [(str(i), a, minute + pd.Timedelta(minutes=k)) for i, t in enumerate(cases) for k, a in enumerate(t)]
        frame = pd.DataFrame(rows, columns=["case", "activity", "time"])
        return pm4py.format_dataframe(frame, case_id="case", activity_key="activity", timestamp_key="time")

    ours = alignments.aligned_fitness(Variants.from_dict(log), workflow_net(discover(ORIGINAL)))
    found = pm4py.fitness_alignments(framed(log), *pm4py.discover_petri_net_inductive(framed(ORIGINAL.to_dict())))
    assert ours == pytest.approx(found["log_fitness"], abs=2e-4)
    assert ours < 0.9


def test_a_log_of_empty_cases_fits_a_model_with_an_empty_way() -> None:
    net = workflow_net(discover(Variants.from_dict({(): 5, ("a",): 5})))
    assert alignments.aligned_fitness(Variants.from_dict({(): 3}), net) == 1


def test_the_purpose_has_it_where_it_is_asked_for() -> None:
    pair = Pair(ORIGINAL, Variants.from_dict({("a", "b", "c", "d"): 120}))
    assert "aligned" not in judge(pair, ["discovery"])["discovery"].aspects
    found = judge(pair, ["discovery"], UseCaseOptions(alignments=True))["discovery"]
    one_variant = found.aspects["aligned"]
    assert one_variant.original == 1
    # 40 cases have c before b: one event is taken out and one put in; 30 have e for b and c.
    assert one_variant.value == pytest.approx(1 - (40 * 2 + 30 * 3) / (90 * 8 + 30 * 7))


def test_too_many_states_give_no_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alignments, "MOST_STATES", 1)
    with pytest.raises(alignments.TooManyStatesError):
        alignments.Aligner(workflow_net(discover(ORIGINAL))).changes(("x", "y"))
    found = judge(Pair(ORIGINAL, ORIGINAL), ["discovery"], UseCaseOptions(alignments=True))["discovery"]
    assert found.aspects["aligned"].value is None and found.grade == "good"


def test_the_command_refuses_what_nobody_hears() -> None:
    from veilog.cli.compare import MeasureOptions

    with refused(ParameterError, "use-case-not-asked-for"):
        MeasureOptions(use_cases="attributes", alignments=True).asked(person=False)


def test_without_r4pm_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alignments.importlib.util, "find_spec", lambda name: None)
    with refused(MissingExtraError, "extra-missing"):
        alignments.check_alignments()
