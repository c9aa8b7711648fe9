"""Rules: what they mean, how they are written down, and what is refused."""

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused

from veilog.errors import InputError
from veilog.logs.variants import Variants
from veilog.methods.sacofa import eventually_follows, exact_rules, read_rules, rules_from_counts

ACTIVITIES = ("Register", "Release", "Triage", "check then go")
ABC = ("a", "b", "c", "d")
traces = st.lists(st.lists(st.sampled_from(ABC), max_size=6).map(tuple), min_size=1, max_size=12)


def follows(trace: tuple[str, ...], a: str, b: str) -> bool:
    """Return True if b occurs after the first a."""
    return a in trace and b in trace[trace.index(a) + 1 :]


def precedes(trace: tuple[str, ...], a: str, b: str) -> bool:
    """Return True if a occurs before the last b."""
    return b in trace and a in trace[: len(trace) - 1 - trace[::-1].index(b)]


@pytest.mark.slow
@given(cases=traces)
def test_exact_rules_are_those_that_every_case_obeys(cases: list[tuple[str, ...]]) -> None:
    rules = exact_rules(Variants.from_dict(Counter(cases)), ABC)
    for i, a in enumerate(ABC):
        having_a = [case for case in cases if a in case]
        assert rules.first[i] == any(case[:1] == (a,) for case in cases)
        for j, b in enumerate(ABC):
            having_b = [case for case in cases if b in case]
            if having_a and having_b:
                assert rules.never[i, j] == (not any(follows(case, a, b) for case in cases))
                assert rules.never[i, j] == (not any(precedes(case, a, b) for case in cases))
                assert rules.always[i, j] == all(follows(case, a, b) for case in having_a)
                assert rules.before[i, j] == (a != b and all(precedes(case, a, b) for case in having_b))


@pytest.mark.slow
@given(cases=traces)
def test_what_a_case_contributes_to_the_rules_does_not_depend_on_the_others(cases: list[tuple[str, ...]]) -> None:
    features = eventually_follows(ABC)

    def sums(some: list[tuple[str, ...]]) -> Counter[int]:
        variants = Variants.from_dict(Counter(some))
        total: Counter[int] = Counter()
        for row, column, value in zip(*features(variants.sequences), strict=True):
            total[int(column)] += int(value) * int(variants.counts[row])
        return total

    assert sums(cases) == sum((sums([case]) for case in cases), Counter())


def test_no_rule_is_made_of_what_noise_could_be() -> None:
    follows_ = np.array([[0, 990], [3, 0]])
    cases = np.array([1000, 995])
    first = np.array([True, False])
    rules = rules_from_counts(follows_, cases, first, 9)
    assert rules.never.tolist() == [[True, False], [True, True]]
    assert rules.always.tolist() == [[False, False], [False, False]]
    assert rules.before.tolist() == [[False, True], [False, False]]
    assert not rules_from_counts(follows_, cases, first, 120).never.any()


def test_rules_are_read_from_json(tmp_path: Path) -> None:
    path = tmp_path / "rules.json"
    path.write_text(
        '{"never": [["Release", "Triage"]], "always": [["check then go", "Release"]],'
        ' "before": [["Register", "Triage"]]}',
        encoding="utf-8",
    )
    rules = read_rules(path, ACTIVITIES)
    assert np.argwhere(rules.never).tolist() == [[1, 2]]
    assert np.argwhere(rules.always).tolist() == [[3, 1]]
    assert np.argwhere(rules.before).tolist() == [[0, 2]]
    assert rules.first.tolist() == [True, True, False, True], "what needs something before it cannot be first"
    path.write_text('{"first": ["Register"]}', encoding="utf-8")
    assert read_rules(path, ACTIVITIES).first.tolist() == [True, False, False, False]


@pytest.mark.parametrize(
    ("text", "line", "match"),
    [
        ("{}", None, "rules-file-empty"),
        ("never Register then Release\n", 1, "rules-file-not-json"),
        ('{"never": [["Register", "Release"]], "always": [["Register", "Release"]]}', None, "rules-file-contradictory"),
        (
            '{"before": [["Register", "Triage"], ["Triage", "Release"]], "never": [["Register", "Release"]]}',
            None,
            "rules-file-contradictory",
        ),
        ('{"before": [["Register", "Triage"], ["Triage", "Register"]]}', None, "rules-file-circular"),
        ('{"first": ["Triage"], "before": [["Register", "Triage"]]}', None, "rules-file-no-start-possible"),
        ('{"never": [["Register"]]}', None, "rules-file-entry-no-pair"),
        ('{"never": "Register"}', None, "rules-file-entry-not-list"),
        ('{"nevermore": []}', None, "rules-file-not-object"),
        ('[["never"]]', None, "rules-file-not-object"),
        ('{"first": [1]}', None, "rules-file-entry-no-name"),
        ('{"never": [["Register", "Relase"]]}', None, "rules-file-activity-unknown"),
        ('{"never": [\n["Register", ]]}', 2, "rules-file-not-json"),
        ("[" * 100_000, None, "rules-file-nested-too-deeply"),
    ],
)
def test_a_mistake_is_named(tmp_path: Path, text: str, line: int | None, match: str) -> None:
    path = tmp_path / "rules.txt"
    path.write_text(text, encoding="utf-8")
    with refused(InputError, match) as raised:
        read_rules(path, ACTIVITIES)
    assert raised.value.line == line
    assert raised.value.path == str(path)


def test_a_file_that_is_not_there_or_no_text_is_named(tmp_path: Path) -> None:
    with refused(InputError, "rules-file-not-readable"):
        read_rules(tmp_path / "none.txt", ACTIVITIES)
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00never")
    with refused(InputError, "rules-file-not-utf8"):
        read_rules(tmp_path / "binary", ACTIVITIES)
