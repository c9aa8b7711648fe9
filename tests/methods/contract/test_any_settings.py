"""Certified methods claim no more than requested and print no less than claimed."""

import io
import json
import re
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from rich.console import Console

import veilog
from veilog.cli.shared.releases import guarantee_panel
from veilog.errors import VeilogError
from veilog.logs.synthetic.hospital import hospital
from veilog.methods import METHODS
from veilog.methods.method import EpsilonAndDelta
from veilog.methods.settings import Parameter
from veilog.privacy.account.budgets import compose
from veilog.privacy.account.guarantee import up
from veilog.privacy.domain import PRIVATELY, Domain
from veilog.report import html

LOG = hospital(60, seed=1)
DECLARED = Domain(
    LOG.variants.labels,
    15,
    {"age group": ("0-19", "20-39", "40-59", "60-79", "80+"), "urgency": (1, 5)},
)
NAMES = sorted(name for name, method in METHODS.items() if method.certified and method.takes_epsilon)
SETTINGS = 5

CHOSEN: dict[str, tuple[Any, ...]] = {
    "rules_file": (None,),
    "b": (None,),  # these two are of use as published only
    "alpha": (None,),
    "configuration": (None,),
    "settings": ("paper",),
    "start_window": (None, "log"),
    "attribute_names": (None, "age group", "age group,urgency"),
    "query": (None, "laplace", "evolve"),
    "query_parameters": (None,),
    "autoencoder_steps": (0, 2),
    "autoencoder_share": (0.0, 0.1),
    "critic_steps": (1, 3),
    "free_generator_steps": (1, 4),
    "subqueries": (1, 2, 5),
    "largest_log": (1_000, 1_000_000),
}
"""Values where the range is no help: names of files and columns, and time limits."""


def drawn(parameter: Parameter, rng: np.random.Generator) -> Any:
    """Return the parameter's default half of the time, else a value from its range."""
    if parameter.name in CHOSEN:
        options = CHOSEN[parameter.name]
        return options[rng.integers(len(options))]
    if rng.random() < 0.5:
        return parameter.default
    if parameter.choices:
        return parameter.choices[rng.integers(len(parameter.choices))]
    if parameter.kind is bool:
        return bool(rng.random() < 0.5)
    low = 0.0 if parameter.minimum is None else parameter.minimum
    high = min(low + 30 if parameter.kind is int else 1.0, parameter.maximum or np.inf)
    if parameter.kind is int:
        return int(rng.integers(int(low), int(high) + 1))
    return round(float(rng.uniform(low, max(low, high))), 4)


def settings_of(name: str, number: int, rng: np.random.Generator) -> dict[str, Any]:
    """Return random settings; the number decides the kind, so that a few have all."""
    method = METHODS[name]
    values = {parameter.name: drawn(parameter, rng) for parameter in method.parameters}
    wanted: dict[str, Any] = {key: value for key, value in values.items() if value is not None}
    wanted["epsilon"] = str(round(float(np.exp(rng.uniform(np.log(0.05), np.log(3)))), 7))
    if method.needs_delta or ("delta" in str(method.budget) and number % 2):
        wanted["delta"] = f"{10 ** -rng.uniform(2, 6):.4e}"
    if not method.full_log:
        if number % SETTINGS in (1, 2):
            wanted |= {"times": 0.2, "window": "log"}
        if number % SETTINGS in (2, 3):
            wanted["attributes"] = ("age group",)
    if number % SETTINGS in (3, 4):
        wanted |= {"unit": "person", "max_cases": int(rng.integers(1, 5))}
    return wanted | {"domain": DECLARED}


def exact(number: float | None) -> Fraction:
    """Return the exact number that people read."""
    return Fraction(Decimal(repr(number or 0.0)))


def panel(released: veilog.Release) -> str:
    console = Console(file=io.StringIO(), width=200, no_color=True)
    console.print(guarantee_panel(released.guarantee, as_published=False))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def numbers(text: str, name: str) -> list[Fraction]:
    """Return all numbers that a text prints for a name."""
    return [Fraction(Decimal(n)) for n in re.findall(rf"\b{name} (?:= |at most )?([0-9][0-9.e+-]*[0-9]|[0-9])", text)]


def check(released: veilog.Release, epsilon: Fraction, delta: Fraction) -> None:
    guarantee = released.guarantee
    assert guarantee.proven, guarantee.reasons
    # The derived pair is the one that was asked for, but for the rounding up to what can be written.
    spent = compose(guarantee.charges)
    assert spent[0] <= epsilon and spent[1] <= delta * (1 + Fraction(1, 2**38))
    assert epsilon <= exact(guarantee.epsilon) <= epsilon * (1 + Fraction(1, 2**51))
    assert guarantee.delta is not None
    budget = veilog.methods.METHODS[released.method].budget
    claims = guarantee.nominal_delta or spent[1]
    fixed = isinstance(budget, EpsilonAndDelta) and budget.fixed  # what it asks is no secret, so it claims that
    least = max(delta if claims and not fixed else Fraction(0), spent[1])
    assert least <= exact(guarantee.delta)
    assert exact(guarantee.delta) <= max(delta, spent[1]) * (1 + Fraction(1, 2**38))
    # Operations are what was done, charge by charge.
    for at, claimed in enumerate((guarantee.epsilon, guarantee.delta)):
        parts = sum((exact((o.epsilon, o.delta)[at]) for o in released.operations), Fraction(0))
        assert exact(claimed) * (1 - Fraction(1, 2**50)) <= parts
        assert parts <= exact(claimed) * (1 + len(released.operations) * Fraction(1, 2**50))
    printed(released, epsilon, delta)


def printed(released: veilog.Release, epsilon: Fraction, delta: Fraction) -> None:
    """Assert that no printed figure is below the derived one."""
    guarantee = released.guarantee
    derived, failure = max(epsilon, compose(guarantee.charges)[0]), exact(guarantee.delta)
    told = json.loads(json.dumps(released.to_json()))["guarantee"]
    assert exact(told["epsilon"]) >= derived and exact(told["delta"]) >= failure
    for charge, shown in zip(guarantee.charges, told["charges"], strict=True):
        assert exact(shown["epsilon"]) >= charge.epsilon and exact(shown["delta"]) >= charge.delta
    shown_words = numbers(guarantee.in_words(), "epsilon")
    assert shown_words and all(n >= derived for n in shown_words)
    if failure:
        assert all(n >= failure for n in numbers(guarantee.in_words(), "delta"))
    for text in (panel(released), html(released)):
        assert up(derived) in text
    assert Fraction(Decimal(up(derived))) >= derived


@pytest.mark.slow
@pytest.mark.nightly(but=len(NAMES))
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("seed", [4, 7])
def test_a_certified_method_claims_what_was_asked_at_any_settings(seed: int, name: str) -> None:
    rng = np.random.default_rng([seed, NAMES.index(name)])
    done, refused = 0, []
    while done < SETTINGS:
        wanted = settings_of(name, done, rng)
        try:
            released = veilog.release(LOG, name, **wanted)
        except VeilogError as error:
            refused.append((wanted, str(error)))
            assert len(refused) < 30, refused[-5:]
            continue
        check(released, Fraction(wanted["epsilon"]), Fraction(wanted.get("delta", "0")))
        done += 1


@pytest.mark.slow
@pytest.mark.parametrize("name", ["evolve", "laplace", "sacofa", "df-laplace", "sapa", "dpim"])
def test_a_method_that_finds_its_labels_claims_what_was_asked(name: str) -> None:
    log = veilog.Variants.from_dict({("a", "b"): 3000, ("b", "a"): 2000, ("b",): 900, ("c",): 1})
    rng = np.random.default_rng([8, NAMES.index(name)])
    for _ in range(3):
        epsilon, delta = Fraction(str(round(float(rng.uniform(0.2, 3)), 5))), Fraction(f"{rng.uniform(1e-6, 1e-3):.3e}")
        released = veilog.release(log, name, epsilon=epsilon, delta=delta, domain=Domain(PRIVATELY, 6))
        check(released, epsilon, delta)
        assert released.guarantee.conditions == () and released.guarantee.charges[0].question == "labels"
        assert released.variants.labels in ((), ("a",), ("a", "b"), ("b",))
