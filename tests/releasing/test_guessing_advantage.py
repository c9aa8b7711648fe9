"""A guessing advantage as the budget: requested, stated, or refused as nonsense."""

import json
from pathlib import Path

import openly
import pytest
from refusals import refused

from veilog import METHODS, Variants, cli
from veilog.errors import ParameterError
from veilog.privacy.account.guarantee import Guarantee
from veilog.privacy.account.guessing_advantage import advantage_of, epsilon_of
from veilog.training import train

LOG = Variants.from_dict({("a", "b"): 500, ("a", "c", "c"): 300, ("a", "b", "c"): 80, ("d",): 2, (): 40})
QUICK: dict[str, dict[str, object]] = {"travag": {"free_generator_steps": 1}}
WITH_EPSILON = sorted(name for name, m in METHODS.items() if m.takes_epsilon and m.certified and not m.full_log)


def said_of_guessing(guarantee: Guarantee) -> tuple[str, str, str] | None:
    """Return code, unit and advantage of a guarantee's message, or None."""
    said = (m for m in guarantee.messages if m.code.startswith("guarantee-guessing"))
    return next(((m.code, str(m.values["unit"]), str(m.values["advantage"])) for m in said), None)


@pytest.mark.slow
@pytest.mark.parametrize("name", WITH_EPSILON)
def test_every_method_with_an_epsilon_takes_a_guessing_advantage_and_keeps_it(name: str) -> None:
    delta = "1e-3" if METHODS[name].needs_delta else 0
    guarantee = openly.release(LOG, name, guessing_advantage="0.3", delta=delta, **QUICK.get(name, {})).guarantee
    assert guarantee.proven and guarantee.guessing_advantage is not None
    assert 0 < guarantee.guessing_advantage <= 0.3
    assert guarantee.nominal_epsilon == pytest.approx(float(epsilon_of("0.3", delta=delta)))
    assert (guarantee.guessing_advantage_without_delta is None) == (guarantee.delta == 0)


def test_a_release_by_epsilon_states_its_guessing_advantage() -> None:
    guarantee = openly.release(LOG, "laplace", epsilon=1).guarantee
    assert guarantee.guessing_advantage == pytest.approx(float(advantage_of(1)))
    assert guarantee.to_json()["guessing_advantage"] == guarantee.guessing_advantage
    assert said_of_guessing(guarantee) == ("guarantee-guessing", "case", "0.245")


def test_with_a_delta_both_numbers_are_stated_and_never_understated() -> None:
    guarantee = openly.release(LOG, "travas", epsilon=1, delta="1e-3").guarantee
    (charge,) = guarantee.charges
    assert guarantee.guessing_advantage == pytest.approx(float(advantage_of(1, charge.delta)))
    assert guarantee.guessing_advantage_without_delta == pytest.approx(float(advantage_of(1)))
    assert said_of_guessing(guarantee) == ("guarantee-guessing-on-average", "case", "0.2451")


def test_the_advantage_of_a_person_is_that_of_all_their_cases() -> None:
    release = openly.release(LOG, "laplace", guessing_advantage=0.2, unit="person", max_cases=3)
    assert release.guarantee.guessing_advantage == 0.2
    assert said_of_guessing(release.guarantee) == ("guarantee-guessing", "person", "0.2")


def test_the_released_file_carries_it() -> None:
    operations = openly.release(LOG, "laplace", guessing_advantage=0.2).log.metadata.attributes[0]
    facts = {a.key: a.value for a in operations.children[0].children}
    assert facts["privacy:guessing_advantage"] == 0.2


def test_what_is_not_proven_states_none() -> None:
    guarantee = openly.release(LOG, "laplace", guessing_advantage=0.2, seed=1).guarantee
    assert guarantee.guessing_advantage is None and said_of_guessing(guarantee) is None


@pytest.mark.parametrize(
    ("name", "changes", "words"),
    [
        ("laplace", {"epsilon": 1}, "epsilon-and-guessing-advantage"),
        ("laplace", {"guessing_advantage": 1.5}, "guessing-advantage-not-share"),
        ("laplace", {"guessing_advantage": float("nan")}, "budget-not-finite"),
        ("laplace", {"guessing_advantage": "1e-12"}, "guessing-advantage-below-least"),
        ("travas", {"delta": "0.2"}, "guessing-advantage-of-delta"),
        *(
            (name, {"as_published": True}, "method-budget-not-taken")
            for name, method in METHODS.items()
            if not method.takes_epsilon and all(p.name != "guessing_advantage" for p in method.parameters)
        ),
    ],
)
def test_senseless_requests_are_refused(name: str, changes: dict[str, object], words: str) -> None:
    with refused(ParameterError, words):
        openly.release(LOG, name, **{"guessing_advantage": 0.2, **changes})  # type: ignore[arg-type]


@pytest.mark.slow
def test_the_command_takes_it(tmp_path: Path) -> None:
    log, out, facts = tmp_path / "log.parquet", tmp_path / "out.parquet", tmp_path / "facts.json"
    openly.release(LOG, "laplace", epsilon=20, seed=1).save(log)
    arguments = ["release", str(log), str(out), "--method", "laplace", "--guessing-advantage", "0.2", "--no-compare"]
    arguments += ["--activities", "log", "--max-length", "log"]
    assert cli.main([*arguments, "--json", str(facts)]) == 0
    assert json.loads(facts.read_text())["guarantee"]["guessing_advantage"] == 0.2


@pytest.mark.slow
def test_a_model_is_trained_for_it_too() -> None:
    model = train(LOG, "travag", guessing_advantage=0.3, delta="1e-3", free_generator_steps=1)
    assert 0 < (model.guarantee.guessing_advantage or 0) <= 0.3
