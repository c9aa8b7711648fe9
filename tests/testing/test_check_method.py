"""Our methods keep the contract for others, and each breach of it is named."""

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from veilog.logs.variants import Sequences, Variants
from veilog.methods import METHODS, Method, Request, Settings
from veilog.privacy.curator import Curator
from veilog.testing import check_method

QUICK: dict[str, dict[str, Any]] = {
    "travag": {"critic_steps": 2, "free_generator_steps": 3},
    "tlkc": {"k": 5},
    "pretsa": {"k": 3},
}


@pytest.mark.slow
@pytest.mark.parametrize("name", METHODS)
def test_our_methods_keep_the_contract(name: str) -> None:
    check_method(METHODS[name], **QUICK.get(name, {}))


def faulty(run: Callable[[Curator, Request, Settings], Variants]) -> Method:
    return dataclasses.replace(METHODS["laplace"], name="faulty", run=run, settings=Settings, needs=_activities)


def _activities(settings: Settings) -> frozenset[Any]:
    return frozenset({"activities"})


def counted(curator: Curator, epsilon: Any) -> Variants:
    return Variants.from_dict({("a",): max(1, curator.count(epsilon))})


def peeks(curator: Curator, request: Request, settings: Settings) -> Variants:
    """Ask, and release the number of raw cases by a peek."""
    answer = counted(curator, request.epsilon)
    return answer.with_counts(np.array([curator.peek("").cases]))


def looks(curator: Curator, request: Request, settings: Settings) -> Variants:
    """Release the number of raw cases without asking for a peek."""
    answer = counted(curator, request.epsilon)
    return answer.with_counts(answer.counts + curator._variants.cases)


def ranks(curator: Curator, request: Request, settings: Settings) -> Variants:
    """Put cases into bins by their place in the log."""

    def place(sequences: Sequences) -> Any:
        return np.arange(len(sequences)) % 2

    curator.histogram(place, 2, request.epsilon)
    return Variants.from_dict({("a",): 1})


def keeps(curator: Curator, request: Request, settings: Settings) -> Variants:
    """Release what a query's function was shown: the lengths of the raw cases."""
    seen: list[int] = []

    def by_length(sequences: Any) -> Any:
        seen.extend(sequences.lengths.tolist())
        return np.minimum(sequences.lengths, 9)

    curator.histogram(by_length, 10, request.epsilon)
    return Variants.from_dict({("a",) * length: seen.count(length) for length in sorted(set(seen))})


def keeps_the_last(curator: Curator, request: Request, settings: Settings) -> Variants:
    """Release the number of raw events that the function saw last."""
    seen: dict[str, int] = {}

    def by_length(sequences: Any) -> Any:
        seen["events"] = int(sequences.lengths.sum())
        return np.minimum(sequences.lengths, 9)

    curator.histogram(by_length, 10, request.epsilon)
    return Variants.from_dict({("a",): max(1, seen["events"])})


def claims(curator: Curator, request: Request, settings: Settings) -> Variants:
    """Claim a guarantee whose account lacks one of the queries."""
    answer = counted(curator, request.epsilon)
    getattr(curator, "_account").__dict__["_charges"].clear()  # noqa: B009 - so that its source does not show it
    curator.count(request.epsilon / 2)
    return answer


def overspends(curator: Curator, request: Request, settings: Settings) -> Variants:
    return counted(curator, 2 * request.epsilon)


def draws(curator: Curator, request: Request, settings: Settings) -> Variants:
    answer = counted(curator, request.epsilon)
    return answer.with_counts(answer.counts + np.random.default_rng().integers(1000))


def fails(curator: Curator, request: Request, settings: Settings) -> Variants:
    answer = counted(curator, request.epsilon)
    return answer if answer.cases > 9 else Variants.from_dict({("a",): 1 // 0})


@pytest.mark.slow
@pytest.mark.parametrize(
    ("run", "named"),
    [
        (peeks, "looks at more than the answers to its questions: it peeks"),
        (looks, "reaches into private parts"),
        (ranks, "A function of a question is not per case"),
        (keeps, "looks at more than the answers to its questions"),
        (keeps_the_last, "looks at more than the answers to its questions"),
        (claims, "It has a guarantee of its own"),
        (overspends, "It spends more than its budget"),
        (draws, "It draws randomness of its own"),
        (fails, "Its errors are no VeilogError"),
    ],
)
def test_a_fault_is_named(run: Any, named: str) -> None:
    with pytest.raises(AssertionError, match=named):
        check_method(faulty(run))


@pytest.mark.slow
def test_missing_words_and_taken_names_are_named() -> None:
    method = dataclasses.replace(METHODS["laplace"], name="No Name", advice=" ")
    with pytest.raises(AssertionError, match=r"'No Name'.*\badvice\b"):
        check_method(method)
