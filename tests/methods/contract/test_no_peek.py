"""Tree and directly-follows methods see raw data through noisy queries alone."""

import itertools
from typing import Any

import numpy as np
import pytest
from openly import release

from veilog.logs.variants import Variants
from veilog.methods import METHODS
from veilog.privacy.curator import Curator
from veilog.privacy.mechanisms import noise

LOG = Variants.from_dict({("a", "b", "c"): 300, ("a", "c"): 200, ("b",): 100, ("c", "a", "a"): 5, (): 2})

CHOICES: dict[str, dict[str, tuple[Any, ...]]] = {
    "laplace": {
        "depth": (None, 3),
        "threshold": (None, 5),
        "split": ("uniform", "decreasing"),
        "rest": ("stop", "drop", "share"),
        "consistency": (True, False),
    },
    "sacofa": {
        "depth": (None, 3),
        "threshold_harmful": (None, 9),
        "threshold_harmless": (None, 5),
        "rules_file": (None, "file"),
        "rule_share": (None, 0, 0.4),
        "score": ("binary", "continuous"),
    },
    "df-laplace": {
        "bound": (None, 3),
        "count_share": (None, 0),
        "playout": (None, "paper", "guided"),
        "noise_relations": (0.1, 2),
    },
    "sapa": {
        "k": (1, 3),
        "bound": (None, 3),
        "count_share": (None, 0),
        "playout": (None, "paper", "guided"),
        "noise_relations": (0.1, 2),
    },
    "dpim": {
        "bound": (None, 3),
        "count_share": (None, 0),
        "fitness": (None, 0.5),
        "fitness_share": (0.05, 0.5),
        "noise_relations": (0.1, 2),
    },
}


def every(method: str) -> list[dict[str, Any]]:
    names = CHOICES[method]
    settings = [dict(zip(names, values, strict=True)) for values in itertools.product(*names.values())]
    return [s for s in settings if not (s.get("rules_file") and s.get("rule_share"))]


@pytest.mark.slow
@pytest.mark.parametrize("method", sorted(CHOICES))
def test_certified_releases_never_peek(method: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    rules = tmp_path / "rules.json"
    rules.write_text('{"never": [["c", "b"]], "before": [["a", "c"]]}')

    def refused(self: Curator, reason: str) -> Variants:
        raise AssertionError(f"peeked: {reason}")

    monkeypatch.setattr(Curator, "peek", refused)
    for settings in every(method):
        given = {name: str(rules) if value == "file" else value for name, value in settings.items()}
        guarantee = release(LOG, method, epsilon=1, **{n: v for n, v in given.items() if v is not None}).guarantee
        assert (guarantee.status, guarantee.epsilon, guarantee.reasons) == ("proven", 1.0, ()), settings


@pytest.mark.slow(but=1)
@pytest.mark.parametrize("method", sorted(CHOICES))
def test_certified_releases_depend_on_the_log_through_the_answers_alone(
    method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two logs with equal answers get equal releases, so nothing else is read.

    The answers of one log are recorded and given again to a method that works on another log with the same labels and
    longest trace (both public). The draws after the answers come from the same generator.
    """
    monkeypatch.setattr(noise, "generator", lambda source: np.random.default_rng(7))
    other = Variants.from_dict({("a", "b", "c"): 3, ("c", "b"): 70, ("c",): 11})
    assert other.labels == LOG.labels and other.lengths.max() == LOG.lengths.max()
    another = {"df-laplace": {"playout": "paper"}, "sapa": {"playout": "paper"}, "dpim": {"fitness": 0.5}}
    for settings in ({}, another.get(method, {"rest": "share"})):
        answers: list[Any] = []
        with monkeypatch.context() as recording:
            for question in ("histogram", "sums", "count"):
                recording.setattr(Curator, question, recorder(getattr(Curator, question), answers))
            first = release(LOG, method, epsilon=1, seed=1, **settings).variants
        with monkeypatch.context() as replaying:
            left = iter(answers)
            for question in ("histogram", "sums", "count"):
                replaying.setattr(Curator, question, replayer(left))
            second = release(other, method, epsilon=1, seed=1, **settings).variants
        assert first == second and first.cases > 0
        assert next(left, None) is None


def recorder(question: Any, answers: list[Any]) -> Any:
    """Wrap a query so that its answers are kept."""

    def ask(self: Curator, *given: Any, **named: Any) -> Any:
        answers.append(question(self, *given, **named))
        return answers[-1]

    return ask


def replayer(answers: Any) -> Any:
    """Replace a query by the next of the answers, whatever its arguments."""

    def ask(self: Curator, *given: Any, **named: Any) -> Any:
        return next(answers)

    return ask


def test_all_methods_that_these_claims_are_about_exist() -> None:
    assert set(CHOICES) <= set(METHODS)
