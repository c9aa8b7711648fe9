"""TraVaG: costs of a noised step, draws, and a whole training as published.

A step of its networks is measured against a plain one: processor time of one thread, median of the repeats, at the
paper's sizes. These are n columns, and batches of 64 (autoencoder) and 128 (critic). The plain step computes the same
losses on batches of the same size and takes the same optimiser's step, with neither norms, clipping nor noise.

``travag-published --set configuration=bpic13-1-0.01`` is a long computation: its state is kept as it goes, and the same
command continues from there. The papers' figures themselves are ``veilog experiment travag-figures``.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np

from benchmark import NO_LOG, SIMILARITY, benchmark, grid
from columns import Column
from timing import cpu_of, timed
from veilog.experiments.experiment import Cell, Given, Measured, Profile
from veilog.experiments.papers.measures import drawn, similarity_by_place, variants_in_file
from veilog.logs.variants import Sequences, Variants
from veilog.measures.similarity import absolute_log_difference, relative_log_similarity
from veilog.methods.method import Request
from veilog.methods.travag import PROGRAM, PUBLISHED, Configuration, Trained, TrainingState, sample, train
from veilog.methods.travag.model import state_from, state_to
from veilog.methods.travag.networks import adam, gradients, initial, rmsprop
from veilog.methods.travag.settings import CERTIFIED, Networks
from veilog.methods.travag.steps import Trainer, autoencoder_factors, autoencoder_step, critic_factors, critic_step
from veilog.privacy.curator import Curator
from veilog.privacy.mechanisms import noise
from veilog.privacy.mechanisms.gradients import Training
from veilog.privacy.mechanisms.mechanism import NoisedSteps

CONFIGURATION = PUBLISHED["bpic13-1-1e-6"]
SIZES = {846: 1050, 1511: 7554}
"""Columns and cases of Sepsis and of BPIC13."""
CLIPS = (CONFIGURATION.autoencoder_clip, CONFIGURATION.critic_clip)
FILES = {"bpic13": "bpic2013_incidents", "sepsis": "sepsis"}
SAVE_EVERY = 250
PROGRAM_CELLS = ("sepsis-1-0.01", "bpic13-1-0.01", "bpic13-0.1-0.01", "bpic13-1-1e-6")
"""Configurations of the authors' program to repeat."""
FOUND = {"bpic13-1-0.01": 0.803, "bpic13-0.1-0.01": 0.669, "bpic13-1-1e-6": 0.794, "sepsis-1-0.01": 0.726}
"""Relative log similarity in the program's files of results."""
REPEATS = 5
Step = Callable[[], None]


def counts_of(columns: int, cases: int) -> np.ndarray:
    """Return the cases of each column, as uneven as in a log."""
    shares = 1 / np.arange(1, columns + 1) ** 1.1
    return np.maximum(1, np.rint(cases * shares / shares.sum())).astype(np.int64)


def steps(columns: int, cases: int) -> dict[str, tuple[Step, Step, int]]:
    """Return each network's noised step, plain step and number of noised weights."""
    counts, rng = counts_of(columns, cases), np.random.default_rng(0)
    plan = (
        NoisedSteps("autoencoder", 64 / counts.sum(), 6.0, 10**6),
        NoisedSteps("critic", 128 / counts.sum(), 4.0, 10**6),
    )
    training = Training(counts, plan, CLIPS, (0, 0), noise.seeded(0), apart=True)
    known = Variants.from_dict({(str(place),): int(count) for place, count in enumerate(counts)})
    request = Request(Fraction(1), Fraction(1, 10**6), True, lambda text, fraction: None, lambda a, b: 0.0)
    state = TrainingState.new(CONFIGURATION, request, known, known.cases, plan, rng)
    trainer = Trainer(state, request, lambda state: None, rng, training)
    networks, weights, moments = trainer.networks, trainer.weights, trainer.moments
    chances = counts / counts.sum()

    def plain_autoencoder() -> None:
        rows = rng.choice(columns, 64, p=chances)
        encoder, decoder = autoencoder_factors(networks, weights, rows, False)
        adam(networks.encoder, weights, moments, gradients(encoder), 0.005, scale=1 / 64)
        adam(networks.decoder, weights, moments, gradients(decoder), 0.005, scale=1 / 64)

    def plain_critic() -> None:
        rows = rng.choice(columns, 128, p=chances)
        sums, others = (
            gradients(critic_factors(networks.critic, weights, inputs, sign))
            for inputs, sign in ((trainer.generated(128), 1.0), (rows, -1.0))
        )
        for layer, other in zip(sums, others, strict=True):
            for part, more in zip(layer, other, strict=True):
                part += more
        rmsprop(networks.critic, weights, moments, sums, 0.005, scale=1 / 128, bound=0.01)

    def noised_autoencoder() -> None:
        autoencoder_step(trainer, 0, 64, encoder_free=True)

    def noised_critic() -> None:
        critic_step(trainer, 1, 128, pairs=True)

    return {
        "autoencoder": (noised_autoencoder, plain_autoencoder, networks.decoder.parameters),
        "critic": (noised_critic, plain_critic, networks.critic.parameters),
    }


def step(given: Given, cell: Cell) -> Measured:
    columns = int(cell.get("columns"))
    noised, plain, weights = steps(columns, SIZES[columns])[str(cell.get("network"))]
    for warm in (noised, plain):
        warm()
    room, rng = np.empty(weights, np.float32), np.random.default_rng(0)
    normal = cpu_of(lambda: rng.standard_normal(out=room, dtype=np.float32), REPEATS)
    values = {"noised": cpu_of(noised, REPEATS), "plain": cpu_of(plain, REPEATS), "normal": normal}
    return Measured({name: 1000 * value for name, value in values.items()} | {"weights": weights})


def draw(given: Given, cell: Cell) -> Measured:
    """Measure the processor seconds of 100,000 draws."""
    columns = int(cell.get("columns"))
    configuration = CERTIFIED if cell.get("networks") == "certified" else CONFIGURATION
    networks = Networks.of(columns, configuration)
    rng = np.random.default_rng(0)
    weights = {**initial(networks.generator, rng), **initial(networks.decoder, rng)}
    known = Sequences(tuple(map(str, range(columns))), np.arange(columns, dtype=np.int32), np.arange(columns + 1))
    trained = Trained(known, weights, configuration, 1)
    return Measured({"cpu": cpu_of(lambda: sample(trained, 100_000, rng))})


def keep(path: Path) -> Callable[[TrainingState], None]:
    """Return a checkpoint that writes the state at times, completely or not at all."""

    def write(state: TrainingState) -> None:
        if state.step % SAVE_EVERY:
            return
        facts, arrays = state_to(state)
        part = path.with_suffix(".part.npz")
        np.savez(part, facts=np.array(json.dumps(facts)), **arrays)
        part.replace(path)

    return write


def kept(path: Path, configuration: Configuration) -> TrainingState | None:
    if not path.exists():
        return None
    with np.load(path, allow_pickle=False) as stored:
        arrays = {name: stored[name] for name in stored.files if name != "facts"}
        state = state_from(json.loads(str(stored["facts"])), arrays)
    # settings of the certified mode, which this one does not use, may have changed since
    return replace(state, configuration=configuration)


def trained_as(given: Given, configuration: Configuration, seed: int) -> tuple[dict[str, float], Trained]:
    """Return the costs and result of a whole training as published.

    It continues from the stop of an earlier run.
    """
    (epsilon, delta), variants = configuration.nominal, given.log.variants

    def progress(text: str, fraction: float | None) -> None:
        print(text, flush=True)

    request = Request(Fraction(epsilon), Fraction(delta), True, progress, lambda a, b: 0.0, print)
    curator, state = Curator(variants, randomness=noise.seeded(seed)), given.folder / f"{configuration.name}-{seed}.npz"
    return timed(
        lambda: train(curator, request, configuration, resume=kept(state, configuration), checkpoint=keep(state))
    )


def program(given: Given, cell: Cell) -> Measured:
    """Measure one training with the settings of the authors' program, and its draws."""
    name, variants = str(cell.get("configuration")), given.log.variants
    costs, trained = trained_as(given, PROGRAM[name], cell.run)
    _, every, listed = drawn(trained, variants.cases, cell.run)
    values = {
        "similarity": relative_log_similarity(variants, every).value,
        "by_place": similarity_by_place(variants_in_file(given.log), listed),
        "found": FOUND[name],
        "variants": len(every),
        "cpu": costs["cpu"],
    }
    return Measured(values)


def program_cells(profile: Profile) -> Iterator[Cell]:
    """Yield three trainings of each repeated one; ``--set configuration=`` for some."""
    for cell in grid("travag", logs=NO_LOG, configuration=PROGRAM_CELLS)(profile):
        log = FILES[str(cell.get("configuration")).partition("-")[0]]
        if log in profile.logs:
            yield replace(cell, log=log)


def published(given: Given, cell: Cell) -> Measured:
    """Measure one training as published, and draws of log size from it."""
    variants = given.log.variants
    costs, trained = trained_as(given, PUBLISHED[str(cell.get("configuration"))], 1)
    rng = np.random.default_rng(0)
    similarities, differences, distinct = [], [], []
    for number in range(int(cell.get("draws"))):
        drawn = trained.variants(sample(trained, variants.cases, rng))
        similarities.append(relative_log_similarity(variants, drawn).value)
        distinct.append(len(drawn))
        if number < max(1, int(cell.get("draws")) // 10):  # the slow one, and it hardly varies
            differences.append(absolute_log_difference(variants, drawn, buffer="maximum").value)
    values = {"similarity": similarities, "difference": differences, "variants": distinct}
    means = {measure: statistics.fmean(found) for measure, found in values.items()}
    return Measured(means | {"spread": statistics.pstdev(similarities), "cpu": costs["cpu"]})


def published_cells(profile: Profile) -> Iterator[Cell]:
    """Yield the cells of the logs at hand; ``--set configuration=`` for some of them."""
    cells = grid("travag", logs=NO_LOG, configuration=tuple(PUBLISHED), draws=100, quick={"draws": 10})(profile)
    for cell in cells:
        log = FILES[str(cell.get("configuration")).partition("-")[0]]
        if log in profile.logs:
            yield replace(cell, log=log)


BENCHMARKS = (
    benchmark(
        "travag-step",
        "A noised step of TraVaG's networks against a plain one.",
        step,
        grid(logs=NO_LOG, columns=tuple(SIZES), network=("autoencoder", "critic")),
        (
            *(Column(f"{name}, ms", name, ".1f") for name in ("noised", "plain", "normal")),
            Column("noised / plain", "noised", over="plain"),
            Column("noised weights", "weights", ",.0f"),
        ),
        note="Normal: drawing as many float normals.",
        alone=True,
        page="results/travag.md",
    ),
    benchmark(
        "travag-draws",
        "100,000 draws from TraVaG's networks.",
        draw,
        [
            grid(logs=NO_LOG, columns=(45, 150), networks="certified"),
            grid(logs=NO_LOG, columns=(846, 1511), networks="published"),
        ],
        (Column("CPU s", "cpu"),),
        alone=True,
        page="results/travag.md",
    ),
    benchmark(
        "travag-published",
        "Whole trainings as published, each of which takes hours.",
        published,
        published_cells,
        (
            *(Column(name, name, ".3f") for name in ("similarity", "spread")),
            *(Column(name, name, ",.0f") for name in ("difference", "variants")),
            Column("CPU s of the last run", "cpu", ",.0f"),
        ),
        logs=tuple(FILES.values()),
        runs=1,
        page="results/travag.md",
    ),
    benchmark(
        "travag-program",
        "Whole trainings with the settings of the authors' program, some twenty minutes each.",
        program,
        program_cells,
        (
            SIMILARITY,
            Column("as the program measures it", "by_place", ".3f", "spread"),
            Column("in the program's files", "found", ".3f"),
            Column("variants", "variants", ",.0f"),
            Column("CPU s", "cpu", ",.0f"),
        ),
        logs=tuple(FILES.values()),
        runs=3,
        page="results/travag.md",
    ),
)
