"""TraVaG: its charge, its draws, resumption, and similarity to the log."""

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import openly
import pytest
from rapidfuzz.distance import Levenshtein
from refusals import refused

import veilog
from veilog.errors import ParameterError
from veilog.logs.variants import Variants
from veilog.measures.similarity import relative_log_similarity
from veilog.methods import METHODS
from veilog.methods.method import Request
from veilog.methods.travag import PUBLISHED, TRAVAG, TrainingState, configure, sample, train
from veilog.methods.travag.networks import initial
from veilog.methods.travag.private_training import MOST_COLUMNS, columns_that_fit, shares
from veilog.methods.travag.published_training import plan_as_published
from veilog.methods.travag.settings import CERTIFIED, Configuration, Networks
from veilog.methods.travag.steps import autoencoder_factors, nearest
from veilog.privacy.curator import Curator
from veilog.privacy.mechanisms import noise
from veilog.privacy.mechanisms.accountant import composed_epsilon, event_of

COUNTS = {("a", "b", "c"): 400, ("a", "c"): 300, ("b",): 150, ("a", "b", "b", "c"): 80, ("c", "c"): 4, ("b", "b"): 3}
LOG = Variants.from_dict(COUNTS)
QUICK = replace(CERTIFIED, free_generator_steps=150, free_batch=256)


def request(epsilon: str = "1", delta: str = "1e-5", as_published: bool = False, remarks: Any = None) -> Request:
    said = remarks if remarks is not None else []
    return Request(
        Fraction(epsilon), Fraction(delta), as_published, lambda text, done: None, lambda a, b: 0.0, said.append
    )


def curator(variants: Variants = LOG, seed: int | None = 1) -> Curator:
    return Curator(variants, randomness=None if seed is None else noise.seeded(seed))


# What it costs -------------------------------------------------------------------------------------------------------


@pytest.mark.nightly(but=1)
@pytest.mark.parametrize(("epsilon", "delta"), [("1", "1e-5"), ("0.3", "0.001")])
def test_certified_it_costs_exactly_what_was_asked_for(epsilon: str, delta: str, monkeypatch: Any) -> None:
    def refused(self: Curator, reason: str) -> Variants:
        raise AssertionError(f"peeked: {reason}")

    monkeypatch.setattr(Curator, "peek", refused)
    guarantee = openly.release(LOG, "travag", epsilon=epsilon, delta=delta, free_generator_steps=50).guarantee
    assert guarantee.proven and (guarantee.epsilon, guarantee.delta) == (float(epsilon), float(delta))
    assert [charge.question for charge in guarantee.charges] == ["count", "partitions", "gradients"]
    assert "float" not in str(guarantee.numerics)


@pytest.mark.nightly
def test_the_noise_of_the_gradients_is_what_their_charge_pays_for() -> None:
    asked = curator()
    states: list[TrainingState] = []
    train(asked, request(), QUICK, checkpoint=states.append)
    charge = asked.charges[-1]
    cost = composed_epsilon(states[0].plan, charge.delta)
    assert 0.99 * charge.epsilon <= cost <= charge.epsilon


@pytest.mark.nightly
@pytest.mark.parametrize(
    "values",
    [
        {"critic": "deep", "critic_steps": 30},
        {"critic": "deep", "critic_steps": 30, "critic_rate": 0.1},
        {"critic_steps": 20, "critic_rate": 0.5},
        {"autoencoder_steps": 10, "autoencoder_share": 0.2},
        {"outside": "drop", "columns_share": 0.5},
    ],
)
def test_every_setting_costs_the_same_and_draws_from_its_columns_only(values: dict[str, Any]) -> None:
    asked = curator(seed=None)
    configuration = configure(TRAVAG.parse({**values, "free_generator_steps": 40}), as_published=False)
    trained = train(asked, request(), configuration)
    guarantee = asked.guarantee()
    assert guarantee.proven and guarantee.epsilon == 1.0
    assert 0 < 1e-5 - (guarantee.delta or 0) < 4e-6, "all but what the noise of the columns does not need"
    assert set(trained.columns) <= set(COUNTS)
    assert sample(trained, 500, np.random.default_rng(0)).sum() == 500


@pytest.mark.nightly
def test_encoder_and_decoder_are_noised_together_when_they_are_noised_at_all() -> None:
    """The encoder is noised with the decoder, whose clipping alone bounds no case."""
    configuration = replace(QUICK, autoencoder_steps=3, autoencoder_share=0.5, free_autoencoder_steps=0)
    states: list[TrainingState] = []
    train(curator(), request(), configuration, checkpoint=states.append)
    assert [part.name for part in states[0].plan] == ["autoencoder", "critic"]
    assert {name.split(".")[0] for name in states[3].moments if name.endswith(".m")} == {"encoder", "decoder"}


def test_a_budget_that_affords_no_step_is_refused_before_anything_is_asked() -> None:
    asked = curator()
    with refused(ParameterError, "travag-no-step-affordable") as error:
        train(asked, request("1e-7", "1e-9"), QUICK)
    assert asked.charges == ()
    enough = str(error.value.advice_given.values["epsilon"])
    with refused(ParameterError, "travag-no-variant-frequent"):
        train(asked, request(enough, "1e-9"), QUICK)


@pytest.mark.slow
def test_both_networks_of_the_paper_cost_more_together_than_the_paper_says() -> None:
    """Both networks of the paper together cost 1.20, and not the stated 1 of each."""
    from dp_accounting import NeighboringRelation, rdp

    def by_renyi(*parts: Any) -> float:
        orders = [1 + x / 10 for x in range(1, 100)] + list(range(11, 200))
        accountant = rdp.RdpAccountant(orders, NeighboringRelation.ADD_OR_REMOVE_ONE)
        import dp_accounting

        for part in parts:
            accountant.compose(event_of(part, dp_accounting))
        return float(accountant.get_epsilon(1e-6))

    autoencoder, critic = plan_as_published(PUBLISHED["bpic13-1-1e-6"], 7554)
    assert critic.steps == 1_500
    assert by_renyi(autoencoder) == pytest.approx(0.91, abs=0.01)
    assert by_renyi(critic) == pytest.approx(0.76, abs=0.01)
    assert by_renyi(autoencoder, critic) == pytest.approx(1.20, abs=0.01)
    assert composed_epsilon((autoencoder, critic), 1e-6) == pytest.approx(1.12, abs=0.01)


# What it learns ------------------------------------------------------------------------------------------------------


@pytest.mark.nightly
def test_draws_have_the_shares_of_the_nearest_variants() -> None:
    """cc and bb are too rare for columns, and count for their nearest variants."""
    trained = train(curator(), request("2", "1e-5"), replace(QUICK, free_generator_steps=300))
    counts = sample(trained, 100_000, np.random.default_rng(0)) / 100_000
    found = dict(zip(trained.columns, counts.tolist(), strict=True))
    assert set(found) == set(list(COUNTS)[:4])
    expected = {("a", "b", "c"): 400, ("a", "c"): 304, ("b",): 153, ("a", "b", "b", "c"): 80}
    for variant, cases in expected.items():
        assert found[variant] == pytest.approx(cases / 937, abs=0.03), variant


@pytest.mark.slow
def test_the_same_seed_draws_the_same() -> None:
    one, other = (openly.release(LOG, "travag", epsilon=1, delta=1e-5, seed=3, free_generator_steps=20) for _ in "ab")
    assert one.variants == other.variants and not one.guarantee.proven


def test_a_case_goes_to_its_nearest_column_whatever_else_is_in_the_log() -> None:
    columns = Variants.from_dict({("a", "b", "c"): 1, ("c", "b"): 1, (): 1}).sequences
    log = Variants.from_dict({("a", "b", "d"): 1, ("d",): 1, ("b",): 1, (): 1, ("c", "b", "b"): 1, ("a", "b", "c"): 1})
    assign = nearest(columns, dropped=False)
    together = dict(zip(log.sequences, np.asarray(assign(log.sequences)).tolist(), strict=True))
    names = list(columns)
    for variant, column in together.items():
        alone = Variants.from_dict({variant: 1}).sequences
        assert np.asarray(assign(alone)).tolist() == [column]
        distances = [Levenshtein.normalized_distance(variant, name) for name in names]
        assert column == int(np.argmin(distances))
    exact = dict(zip(log.sequences, nearest(columns, dropped=True)(log.sequences), strict=True))  # type: ignore[arg-type]
    assert {v for v, column in exact.items() if column >= 0} == {(), ("a", "b", "c")}


def test_factors_of_a_row_depend_on_that_row_only() -> None:
    configuration = Configuration(latent=6, noise=6)
    networks = Networks.of(5, configuration)
    weights: dict[str, Any] = {}
    for network in networks.all():
        weights.update(initial(network, np.random.default_rng(0), np.float64))
    together = [t for part in autoencoder_factors(networks, weights, np.array([4, 0, 2, 0]), True) for t in part]
    alone = [t for part in autoencoder_factors(networks, weights, np.array([2]), True) for t in part]
    for many, one in zip(together, alone, strict=True):
        assert np.allclose(many.errors[2], one.errors[0], rtol=0, atol=1e-15)
        assert np.allclose(many.inputs[2], one.inputs[0], rtol=0, atol=1e-15)


def test_shares_are_the_closest_to_what_the_gradients_say_that_respects_the_columns_counts() -> None:
    found = shares(np.array([50, 10, 10]), np.array([40.0, 30.0, -20.0]), 5.0, 100.0)
    assert found.sum() == pytest.approx(1)
    assert found * 100 == pytest.approx([50, 45, 5]) or found * 100 == pytest.approx([52.5, 42.5, 5])
    assert shares(np.array([30, 10]), None, 5.0, 0.0) == pytest.approx([0.75, 0.25])


@pytest.mark.nightly(but=1)
@pytest.mark.parametrize("counts", [{("a",): 500}, {(): 500}, {("a",): 500, ("b", "a"): 400}])
def test_logs_with_one_or_two_variants_can_be_learned(counts: dict[tuple[str, ...], int]) -> None:
    released = openly.release(
        Variants.from_dict(counts), "travag", epsilon=1, delta=1e-5, seed=0, free_generator_steps=30
    ).variants
    assert set(released.sequences) == set(counts)


def test_where_no_variant_is_frequent_the_release_is_empty_and_training_says_so() -> None:
    rare = Variants.from_dict({(a, b): 1 for a in "abcdefgh" for b in "abcdefgh"})
    release = openly.release(rare, "travag", epsilon="0.5", delta="1e-6", seed=0)
    assert release.variants.cases == 0 and release.remarks[0].code.startswith("nothing-survived")
    with refused(ParameterError, "travag-no-variant-frequent"):
        train(curator(rare), request("0.5", "1e-6"), QUICK)


def test_there_are_no_more_columns_than_memory_allows() -> None:
    assert columns_that_fit(100, CERTIFIED) == 100
    assert columns_that_fit(10**6, CERTIFIED) == MOST_COLUMNS


# Interruptions -------------------------------------------------------------------------------------------------------


@pytest.mark.nightly
@pytest.mark.parametrize(
    "configuration",
    [
        replace(QUICK, critic_steps=12),
        replace(QUICK, critic_hidden=2, critic_steps=40, autoencoder_steps=10, autoencoder_share=0.3),
    ],
    ids=["linear", "deep"],
)
def test_an_interrupted_run_goes_on_and_costs_what_one_run_costs(configuration: Configuration) -> None:
    states: list[TrainingState] = []

    def interrupt(state: TrainingState) -> None:
        states.append(state)
        if state.step == 7:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(curator(seed=None), request(), configuration, checkpoint=interrupt)
    again, later = curator(seed=None), []
    trained = train(again, request(), configuration, resume=states[-1], checkpoint=later.append)
    assert [state.step for state in later] == list(range(7, states[0].steps + 1))
    assert trained.columns.labels == states[0].columns.labels and len(trained.columns) == len(states[0].columns)
    guarantee = again.guarantee()
    assert guarantee.proven and guarantee.epsilon == 1.0
    assert 0 < 1e-5 - (guarantee.delta or 0) < 4e-6, "all but what the noise of the columns does not need"
    assert [charge.question for charge in guarantee.charges] == ["count", "partitions", "gradients"]


@pytest.mark.nightly
def test_a_run_does_not_go_on_with_another_budget_or_configuration() -> None:
    states: list[TrainingState] = []
    train(curator(), request(), QUICK, checkpoint=states.append)
    for other, configuration in ((request("0.5"), QUICK), (request(), replace(QUICK, outside="drop"))):
        with refused(ParameterError, "travag-run-of-other-configuration"):
            train(curator(), other, configuration, resume=states[0])


# As published --------------------------------------------------------------------------------------------------------


def shortened(name: str = "sepsis-1-1e-6") -> Configuration:
    return replace(PUBLISHED[name], autoencoder_steps=20, critic_steps=30, latent=16, noise=16)


@pytest.mark.slow
def test_as_published_nothing_can_be_derived_and_the_reasons_are_said() -> None:
    remarks: list[str] = []
    asked = curator(seed=None)
    trained = train(asked, request("1", "1e-6", True, remarks), shortened())
    guarantee = asked.guarantee(nominal_epsilon=1, nominal_delta="1e-6")
    assert guarantee.status == "none" and guarantee.epsilon is None and guarantee.nominal_epsilon == 1
    assert [word for word in ("columns", "encoder", "chosen") if word in " ".join(map(str, guarantee.reasons))] == [
        "columns",
        "encoder",
        "chosen",
    ]
    assert getattr(remarks[0], "code", None) == "travag-cost-of-noised-steps"
    assert list(trained.columns) == list(LOG.sequences)
    assert trained.cases == LOG.cases


@pytest.mark.slow
def test_as_published_an_interrupted_run_goes_on() -> None:
    states: list[TrainingState] = []
    train(curator(), request("1", "1e-6", True), shortened(), checkpoint=states.append)
    later: list[TrainingState] = []
    train(curator(), request("1", "1e-6", True), shortened(), resume=states[25], checkpoint=later.append)
    assert [state.step for state in later] == list(range(25, 51))


def test_the_papers_configurations_are_chosen_by_name_at_their_own_budget() -> None:
    assert set(METHODS["travag"].parameters[0].choices) == set(PUBLISHED)
    with refused(ParameterError, "travag-configuration-missing"):
        openly.release(LOG, "travag", epsilon=1, delta=1e-6, as_published=True)
    with refused(ParameterError, "travag-configuration-budget-differs", epsilon="0.1"):
        openly.release(LOG, "travag", epsilon=1, delta=1e-6, as_published=True, configuration="bpic13-0.1-1e-6")
    with refused(ParameterError, "travag-configuration-without-guarantee"):
        openly.release(LOG, "travag", epsilon=1, delta=1e-6, configuration="bpic13-1-1e-6")
    with refused(ParameterError, "travag-setting-of-configuration"):
        openly.release(
            LOG, "travag", epsilon=1, delta=1e-6, as_published=True, configuration="bpic13-1-1e-6", outside="drop"
        )


@pytest.mark.slow
def test_as_published_logs_that_do_not_fit_are_refused_in_words() -> None:
    one, few = Variants.from_dict({("a",): 500}), Variants.from_dict({("a",): 5, ("b",): 5})
    name = {"configuration": "bpic13-1-1e-6"}
    with refused(ParameterError, "travag-single-variant"):
        openly.release(one, "travag", epsilon=1, delta=1e-6, as_published=True, **name)
    with refused(ParameterError, "travag-batch-above-log", batch=64, cases=10):
        openly.release(few, "travag", epsilon=1, delta=1e-6, as_published=True, **name)
    with refused(ParameterError, "travag-networks-too-large"):
        many = Variants.from_sequences([(str(i),) for i in range(40_000)])
        openly.release(many, "travag", epsilon=1, delta=1e-6, as_published=True, **name)


# Real logs -----------------------------------------------------------------------------------------------------------


@pytest.mark.nightly
@pytest.mark.parametrize(("epsilon", "delta", "paper"), [("1", "1e-6", 0.794), ("0.1", "1e-6", 0.601)])
def test_on_bpic13_it_beats_the_published_similarity_at_the_same_budget(
    logs: Any, epsilon: str, delta: str, paper: float
) -> None:
    variants = veilog.read(logs / "bpic2013_incidents.xes.gz").variants
    released = openly.release(
        variants, "travag", epsilon=epsilon, delta=delta, seed=0, free_generator_steps=150
    ).variants
    assert relative_log_similarity(variants, released).value > paper + 0.1
    assert math.isclose(released.cases, variants.cases, rel_tol=0.5)
