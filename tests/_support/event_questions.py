"""Queries about times and attributes of a release, and answers without noise."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import numpy as np

from veilog.logs.eventlog import EventLog
from veilog.privacy.cases import Cases
from veilog.privacy.contributions import CUBE_UNIT
from veilog.privacy.curator import Curator
from veilog.privacy.events import EventQuestions
from veilog.privacy.mechanisms import noise
from veilog.privacy.mechanisms.mechanism import NoisyMaximum

Asked = tuple[Callable[[Cases], Any], int, int, dict[str, Any]]
"""Function of cases, number of answers, bound of a case, and the query's options."""


@contextmanager
def heard() -> Iterator[list[Asked]]:
    """Yield the list of the sums that the block queries."""
    asked: list[Asked] = []
    ask = EventQuestions.sums

    def listening(self: EventQuestions, features: Any, size: int, bound: int, epsilon: Any, **more: Any) -> Any:
        asked.append((features, size, bound, more))
        return ask(self, features, size, bound, epsilon, **more)

    with patch.object(EventQuestions, "sums", listening):
        yield asked


def exact(log: EventLog, asked: Asked) -> np.ndarray:
    """Return the answer to one of them without noise."""
    features, size, bound, more = asked
    with patch.object(noise, "discrete_laplace", lambda epsilon, n, source: np.zeros(n, dtype=np.int64)):
        return Curator(log.variants, log=log).events.sums(features, size, bound, 1, **more)


Signs = tuple[Callable[[Cases], Any], int, int, dict[str, Any]]
"""The function of cases, how many rows of how many numbers it gives, and how it was asked."""


@contextmanager
def signs_heard() -> Iterator[list[Signs]]:
    """The sums of signs that are asked in this block."""
    asked: list[Signs] = []
    ask = EventQuestions.cube_sums

    def listening(self: EventQuestions, features: Any, rows: int, width: int, epsilon: Any, **more: Any) -> Any:
        asked.append((features, rows, width, more))
        return ask(self, features, rows, width, epsilon, **more)

    with patch.object(EventQuestions, "cube_sums", listening):
        yield asked


def exact_signs(log: EventLog, asked: Signs) -> np.ndarray:
    """The answer to one of them, a row each."""
    features, rows, width, more = asked
    with patch.object(noise, "cubes", lambda epsilon, width, n, source: np.zeros((n, width), dtype=np.int64)):
        found = Curator(log.variants, log=log).events.cube_sums(features, rows, width, "0.001", **more)
    return found.reshape(rows, width) / CUBE_UNIT


Choice = tuple[Callable[[Cases], Any], list[np.ndarray], dict[str, Any]]
"""Function of cases for a choice of tables, what each expects, and its options."""


@contextmanager
def choices_heard() -> Iterator[list[Choice]]:
    """Yield the list of the choices of tables that the block makes."""
    asked: list[Choice] = []
    ask = EventQuestions.most_apart

    def listening(self: EventQuestions, features: Any, expected: Any, less: Any, epsilon: Any, **more: Any) -> int:
        asked.append((features, list(expected), more))
        return ask(self, features, expected, less, epsilon, **more)

    with patch.object(EventQuestions, "most_apart", listening):
        yield asked


def scores(log: EventLog, choice: Choice, expected: Any, less: Any) -> np.ndarray:
    """Return the scores of all tables under these expectations; the largest wins."""
    features, _, more = choice
    with patch.object(NoisyMaximum, "largest", lambda self, numbers, source: numbers):
        return np.asarray(Curator(log.variants, log=log).events.most_apart(features, expected, less, 1, **more))
