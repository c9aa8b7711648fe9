"""TraVaG's authors' settings: their steps, and never a guarantee."""

from dataclasses import asdict, replace
from fractions import Fraction
from typing import Any

import numpy as np
import openly
import pytest
from refusals import refused

from veilog.errors import ParameterError
from veilog.logs.variants import Variants
from veilog.methods import METHODS
from veilog.methods.method import Request
from veilog.methods.travag import (
    PROGRAM,
    PUBLISHED,
    TRAVAG,
    Trained,
    TrainingState,
    configure,
    published_training,
    sample,
    train,
)
from veilog.methods.travag.model import trained_from, trained_to
from veilog.methods.travag.networks import Network, Normalised, backward, forward, gradients, initial
from veilog.methods.travag.settings import Configuration, Networks
from veilog.methods.travag.steps import autoencoder_factors
from veilog.privacy.curator import Curator
from veilog.privacy.mechanisms import noise

LOG = Variants.from_dict({("a", "b"): 400, ("a", "c"): 300, ("b",): 150, ("c",): 50})


def shortened(**more: Any) -> Configuration:
    changed = {"autoencoder_steps": 20, "critic_steps": 31, "latent": 16, "noise": 16, **more}
    return replace(PROGRAM["sepsis-1-0.01"], **changed)


def trained_by(configuration: Configuration, said: list[str] | None = None, **more: Any) -> tuple[Any, Curator]:
    request = Request(
        Fraction(1),
        Fraction(1, 100),
        True,
        lambda text, done: None,
        lambda a, b: 0.0,
        [].append if said is None else said.append,
    )
    asked = Curator(LOG, randomness=noise.seeded(1))
    return train(asked, request, configuration, **more), asked


def test_its_settings_are_found_by_log_epsilon_and_delta() -> None:
    found = configure(TRAVAG.parse({"configuration": "bpic13-1-0.01", "settings": "program"}), as_published=True)
    assert (found.autoencoder_noise, found.critic_noise, found.critic_steps) == (4, 2.4, 2000)
    assert found.of_program and not PUBLISHED["bpic13-1-0.01"].of_program
    assert found.nominal == PUBLISHED["bpic13-1-0.01"].nominal == ("1", "0.01")
    batches = {name: found.autoencoder_batch for name, found in PROGRAM.items()}
    assert {name for name, batch in batches.items() if batch == 32} == {
        *("bpic13-0.1-0.01", "bpic13-0.1-0.001", "sepsis-0.01-0.01"),
        *(f"sepsis-0.1-{delta}" for delta in ("0.01", "0.001", "1e-4", "1e-5", "1e-6")),
    }
    assert set(batches.values()) == {32, 64} and PROGRAM["sepsis-1-0.01"].critic_batch == 64
    assert len(PROGRAM) == 20 + 16 and set(PUBLISHED) == set(PROGRAM)
    differing = {
        name: [(field, getattr(paper, field), value) for field, value in asdict(PROGRAM[name]).items()
               if field != "name" and value != getattr(paper, field)]
        for name, paper in PUBLISHED.items()
    }  # fmt: skip
    assert {name: found for name, found in differing.items() if found} == {
        "bpic13-0.01-0.01": [("critic_steps", 1500, 1000)],
        "bpic13-0.01-0.001": [("critic_steps", 1500, 1000)],
        "sepsis-1-1e-4": [("critic_noise", 10, 11)],
    }
    assert TRAVAG.parse({}).to_json().keys() == METHODS["travag"].settings().to_json().keys()
    assert "settings" not in TRAVAG.parse({}).to_json(), "what was told before stays as it was"


@pytest.mark.parametrize(
    ("values", "as_published", "said"),
    [
        ({"settings": "program"}, False, "travag-guarantee-not-derivable"),
        ({"settings": "program", "configuration": "bpic13-1-0.01"}, False, "travag-guarantee-not-derivable"),
        ({"settings": "program"}, True, "travag-configuration-missing"),
        (
            {"settings": "program", "configuration": "bpic13-1-0.01", "outside": "drop"},
            True,
            "travag-setting-of-configuration",
        ),
    ],
)
def test_what_cannot_be_meant_is_refused(values: dict[str, Any], as_published: bool, said: str) -> None:
    with refused(ParameterError, said):
        configure(TRAVAG.parse(values), as_published=as_published)


@pytest.mark.slow
def test_nothing_is_derived_and_the_reasons_are_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(PROGRAM, "sepsis-1-0.01", shortened())  # type: ignore[arg-type]
    released = openly.release(
        LOG, "travag", epsilon=1, delta="0.01", as_published=True, configuration="sepsis-1-0.01", settings="program"
    )
    assert (released.guarantee.status, released.guarantee.epsilon) == ("none", None)
    for word in ("raw variants", "private path off", "with replacement", "chosen by results"):
        assert any(word in str(reason) for reason in released.guarantee.reasons), word
    assert [remark.code for remark in released.remarks] == ["travag-cost-of-critic"]
    assert released.variants.cases == LOG.cases and set(released.variants.sequences) <= set(LOG.sequences)
    with refused(ParameterError, "travag-configuration-budget-differs"):
        openly.release(
            LOG, "travag", epsilon=2, delta="0.01", as_published=True, configuration="sepsis-1-0.01", settings="program"
        )


def test_a_normalised_layer_has_the_derivatives_that_differences_show() -> None:
    network = Network("g", (3, 4, 4), ("tanh", "tanh"), residual=True, normalised=True)
    rng = np.random.default_rng(0)
    weights = initial(network, rng, np.float64)
    for name in weights:
        weights[name] = weights[name] + rng.normal(0, 0.3, weights[name].shape)
    rows, by_output = rng.normal(size=(5, 3)), rng.normal(size=(5, 4))
    factors, by_rows = backward(network, weights, forward(network, weights, rows), by_output, to_input=True)
    assert all(isinstance(term, Normalised) for term in factors)

    def loss() -> float:
        return float((forward(network, weights, rows).output * by_output).sum())

    arrays = [*((weights[n], g) for i, own in enumerate(gradients(factors)) for n, g in zip(network.names(i), own))]  # noqa: B905
    for array, found in [*arrays, (rows, by_rows)]:
        for place in np.ndindex(array.shape):
            kept, step = array[place], 1e-6
            array[place] = kept + step
            above = loss()
            array[place] = kept - step
            below = loss()
            array[place] = kept
            assert found is not None and found[place] == pytest.approx((above - below) / (2 * step), abs=1e-7)
    assert network.parameters == sum(array.size for array in weights.values())


@pytest.mark.slow
def test_the_whole_batch_is_clipped_and_noised_but_not_the_encoder(monkeypatch: pytest.MonkeyPatch) -> None:
    """One case may move the decoder as far as all together, hence no guarantee."""
    given: dict[str, Any] = {}
    monkeypatch.setattr(
        published_training,
        "adam",
        lambda network, w, m, sums, rate, **more: given.update({network.name: (sums, rate, more)}),
    )
    drawn: list[float] = []
    monkeypatch.setattr(published_training, "_add_noise", lambda sums, deviation, rng: drawn.append(deviation))
    configuration = shortened(autoencoder_steps=1, critic_steps=1, autoencoder_clip=1e-4)
    trained_by(configuration)
    sums, rate, _ = given["decoder"]
    norm = np.sqrt(sum(float((part**2).sum()) for layer in sums for part in layer))
    assert norm == pytest.approx(1e-4, rel=0.05) and rate == 0.005
    assert drawn[0] == pytest.approx(1e-4 * 25 / 64)
    assert given["encoder"][1:] == (0.005 / 64, {"scale": 1 / 64, "corrected": True})


def test_what_is_rounded_to_1_is_not_learned_from() -> None:
    """Outputs rounded to 1 are not learned from, as in the program's library."""
    networks, rng = Networks.of(4, shortened()), np.random.default_rng(0)
    weights = {**initial(networks.encoder, rng), **initial(networks.decoder, rng)}
    weights["decoder.1.weight"][:] = 0
    weights["decoder.1.bias"][:] = (-1, 12, 18, -40)
    columns = np.array([0, 3])
    smooth, stepwise = (
        autoencoder_factors(networks, weights, columns, False, stepwise=wise)[1][-1].errors * 4
        for wise in (False, True)
    )
    assert smooth[0] == pytest.approx([-0.731, 1, 1, 0], abs=1e-3)
    assert stepwise[0] == pytest.approx([-0.731, 1, 0, 0], abs=1e-3)
    assert (smooth[1, 3], stepwise[1, 3]) == (-1, pytest.approx(0, abs=1e-4))


def test_of_outputs_that_are_rounded_to_1_the_first_by_name_is_drawn() -> None:
    columns = Variants.from_dict({("b", "a"): 1, ("a b",): 1, ("a", "b"): 1, ("c",): 1}).sequences
    configuration = shortened()
    networks, rng = Networks.of(4, configuration), np.random.default_rng(0)
    weights = {**initial(networks.generator, rng), **initial(networks.decoder, rng)}
    weights["decoder.1.weight"][:] = 0
    outputs = {("b", "a"): 30, ("a b",): 18, ("a", "b"): 20, ("c",): 16}
    weights["decoder.1.bias"][:] = [outputs[sequence] for sequence in columns]
    trained = Trained(columns, weights, configuration, 10)
    drawn = dict(zip(columns, sample(trained, 10, rng).tolist(), strict=True))
    assert drawn == {("b", "a"): 0, ("a b",): 10, ("a", "b"): 0, ("c",): 0}, "a blank is before a comma"


@pytest.mark.slow
def test_the_critic_is_clipped_case_by_case_and_its_weights_are_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    noised: list[tuple[float, float]] = []

    def record(sums: Any, deviation: float, rng: Any) -> None:
        noised.append((float(np.sqrt(sum(float((part**2).sum()) for layer in sums for part in layer))), deviation))

    monkeypatch.setattr(published_training, "_add_noise", record)
    states: list[TrainingState] = []
    trained_by(shortened(autoencoder_steps=1, critic_steps=4, critic_clip=1e-3), checkpoint=states.append)
    of_critic = noised[1:]
    assert len(of_critic) == 4 and {deviation for _, deviation in of_critic} == {1e-3 * 8}
    assert all(norm <= 1e-3 * 150 for norm, _ in of_critic), "a case adds at most the clip"
    critic = {name: array for name, array in states[-1].weights.items() if name.startswith("critic")}
    assert max(float(np.abs(array).max()) for array in critic.values()) <= 0.01 + 1e-9


@pytest.mark.slow
def test_an_interrupted_run_goes_on_and_the_model_can_be_kept() -> None:
    states: list[TrainingState] = []
    trained_by(shortened(), checkpoint=states.append)
    assert [state.step for state in states] == list(range(52))
    later: list[TrainingState] = []
    trained, _ = trained_by(shortened(), resume=states[30], checkpoint=later.append)
    assert [state.step for state in later] == list(range(30, 52))
    again = trained_from(*trained_to(trained))
    assert (
        sample(again, 50, np.random.default_rng(0)).tolist() == sample(trained, 50, np.random.default_rng(0)).tolist()
    )
    assert again.configuration.of_program and Networks.of(4, again.configuration).critic.leak == 0.2
