"""Commands that train a model and draw from it: train, sample, inspect."""

from __future__ import annotations

import json as json_text
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from cyclopts import Parameter
from rich.console import Group
from rich.text import Text

from veilog._files import check_writable
from veilog.cli.confirmation import cannot_be_undone, confirm_level, report_cost_on_interrupt
from veilog.cli.shared.ledger_options import DEFAULT_LEDGER, Keeping, account_of, show_account, show_notes
from veilog.cli.shared.log_input import Output, open_source, read_variants, show_progress
from veilog.cli.shared.log_input import read_log as read_whole
from veilog.cli.shared.options import (
    DEFAULT_GROUPING,
    DEFAULT_READING,
    WHOLE,
    Grouping,
    Json,
    Log,
    MethodSettings,
    Reading,
    pairs,
    quote_path,
)
from veilog.cli.shared.releases import guarantee_panel, strength_style
from veilog.cli.shared.requests import FOR_TRAINING, TrainOptions
from veilog.cli.shared.tables import key_values, variants_table
from veilog.cli.shared.terminal import CALL, INTERRUPTED, SafeConsole, put_out, stopped_by
from veilog.errors import ParameterError
from veilog.logs.variants import Variants
from veilog.messages import Message
from veilog.modelfile import kind_of
from veilog.releasing.checks import json_of
from veilog.releasing.model import KIND as RELEASE_MODEL
from veilog.releasing.model import ReleaseModel
from veilog.training import Model, remove, trainable
from veilog.training import train as train_model

ModelFile = Annotated[Path, Parameter(help="Model, as veilog train or veilog release --model writes it.")]
_SHOWN = 10_000
"""Number of cases that inspect draws to show what is frequent."""


def train(
    log: Log,
    model: Annotated[Path, Parameter(help="File to write the model to.")],
    *,
    method: Annotated[str, Parameter(name=["--method", "-m"], help="travag.")] = "travag",
    p: MethodSettings = (),
    checkpoint: Annotated[
        Path | None,
        Parameter(help="File for checkpoints. After Ctrl-C, the same command resumes the run from it."),
    ] = None,
    budget: TrainOptions = FOR_TRAINING,
    keeping: Keeping = DEFAULT_LEDGER,
    reading: Reading = DEFAULT_READING,
    grouping: Grouping = DEFAULT_GROUPING,
    json: Json = None,
) -> None:
    """Train a model of a log once, within a budget.
    Then veilog sample draws from it without the log."""
    out = Output(json, log)
    for place in filter(None, (model, checkpoint)):
        check_writable(place)
    # Before a large log is read: refusals that do not need it.
    trainable(method)
    planned = budget.request(method, pairs(p, "-p"))
    seeded = planned.seed is not None
    new = keeping.checked(log, seeded=seeded)
    if budget.by_column:
        grouping.needs_events("A unit that is a column")
    source = open_source(out, log, reading, grouping)
    original = read_whole(source, reading) if budget.by_column else read_variants(source, reading)
    goes_on = checkpoint is not None and checkpoint.exists()
    if not goes_on:
        confirm_level(out, keeping.of(log, seeded=seeded), planned, original)
    started = time.perf_counter()
    whole = budget.epsilon or f"an advantage of {budget.guessing_advantage}"
    spends = f"spends {whole} (delta {budget.delta}), charged at the start"
    most = planned.epsilon if planned.bounded else None
    with _resumable(checkpoint), show_progress(time_left=True, also=spends) as progress:
        if checkpoint is not None and goes_on:
            progress(f"going on with {checkpoint.name}", None)
        ledger = keeping.of(log, progress, seeded=seeded)
        with report_cost_on_interrupt(planned.method.name, original, ledger, most, files=[model], goes_on=goes_on):
            trained = train_model(original, planned, ledger=ledger or False, checkpoint=checkpoint, progress=progress)
            trained.save(model, overwrite=CALL.get().overwrite)
    cannot_be_undone("model-written", model=model)
    if checkpoint is not None:
        remove(checkpoint)
    seconds = time.perf_counter() - started
    account = account_of(trained.entry)
    notes, warned = keeping.warnings(original, trained.entry, trained.guarantee)
    facts = _facts(trained) | {"owner_only": {"seconds": seconds, **warned}}
    out.json(facts, model, account=account)
    out.show(_view(trained, [("written to", str(model)), ("seconds", f"{seconds:.1f}")]))
    show_notes(out, notes if trained.entry is not None else [])
    show_account(out, trained.entry, account, new)
    out.show(f"Draw from it as often as you like: veilog sample {quote_path(model)} OUT")


def sample(
    model: ModelFile,
    target: Annotated[Path | None, Parameter(help="File for the cases; its suffix sets the format.")] = None,
    *,
    cases: Annotated[
        int | None,
        WHOLE,
        Parameter(allow_leading_hyphen=True, help="Number of cases; default the noisy number of cases of the log."),
    ] = None,
    where: Annotated[
        list[str] | None,
        Parameter(negative="", help="Value that every case has, as NAME=VALUE; of a model of a release. Repeatable."),
    ] = None,
    stream: Annotated[
        bool,
        Parameter(negative="", help="Write JSON lists to stdout, one case per line; endless without --cases."),
    ] = False,
    seed: Annotated[int | None, WHOLE, Parameter(help="Seed of the draw; it does not weaken the guarantee.")] = None,
    json: Json = None,
) -> None:
    """Draw cases from a model, as a log of any size or as a stream.
    This needs no log and uses no budget."""
    if stream == (target is not None):
        raise ParameterError("stream-and-file", parameter="stream")
    if stream and json is not None:
        raise ParameterError("stream-with-json", parameter="json")
    out = Output(json)
    if target is not None:
        check_writable(target)
    values, of_release = pairs(where or [], "--where"), kind_of(model) == RELEASE_MODEL
    loaded = ReleaseModel.load(model) if of_release else Model.load(model)
    if values and isinstance(loaded, Model):
        raise ParameterError("sample-values-of-training", parameter="where")
    if target is None:
        if isinstance(loaded, ReleaseModel):
            raise ParameterError("stream-of-release-model", parameter="stream")
        _stream(loaded, cases, seed)
        return
    started = time.perf_counter()
    drawn = _write_cases(loaded, target, cases, values, seed)
    seconds = time.perf_counter() - started
    counts = {"cases": drawn.cases, "events": drawn.events, "variants": len(drawn)}
    out.json({**_facts(loaded), **counts, "seconds": seconds}, target)
    out.show(
        key_values(
            [
                *counts.items(),
                ("written to", str(target)),
                ("seconds", f"{seconds:.2f}"),
                ("cost", "none: no data used"),
            ]
        )
    )
    out.show(Text(loaded.guarantee.in_words(), style=strength_style(loaded.guarantee)))


def _write_cases(
    model: Model | ReleaseModel, target: Path, cases: int | None, values: Mapping[str, Any], seed: int | None
) -> Variants:
    """Write cases of a model to a file, and return their variants."""
    with show_progress(time_left=True) as progress:
        how: dict[str, Any] = {"overwrite": CALL.get().overwrite, "progress": progress}
        if isinstance(model, Model):
            return model.write(target, cases, seed=seed, **how)
        released = model.release(cases, where=values, seed=seed)
        released.save(target, **how)
        return released.variants


def inspect(model: ModelFile, *, json: Json = None) -> None:
    """Describe a model: its training, its guarantee,
    and the most frequent of its drawn cases."""
    out = Output(json)
    size = ("file", f"{model}, {model.stat().st_size:,} bytes")
    if kind_of(model) == RELEASE_MODEL:
        release = ReleaseModel.load(model)
        out.json(_facts(release) | {"size": model.stat().st_size})
        out.show(_view(release, [size, ("made by", release.facts.software)]))
        return
    loaded = Model.load(model)
    drawn = loaded.sample(_SHOWN, seed=0)
    frequent = [
        {"variant": list(drawn.sequences[i]), "share": int(drawn.counts[i]) / drawn.cases}
        for i in drawn.by_frequency()[:10].tolist()
    ]
    out.json(_facts(loaded) | {"size": model.stat().st_size, "frequent": frequent})
    out.show(_view(loaded, [size, ("trained by", loaded.software)]))
    out.show(Text(f"\nof {_SHOWN:,} cases drawn from it:", style="dim"))
    out.show(variants_table(drawn))


def _facts(model: Model | ReleaseModel) -> dict[str, Any]:
    if isinstance(model, ReleaseModel):
        facts = model.facts
        return {
            "method": facts.method,
            "as_published": False,
            "parameters": dict(facts.parameters),
            "guarantee": json_of(facts.guarantee),
            "release": facts.digest,
            "remarks": [remark.to_json() for remark in facts.remarks],
            "software": facts.software,
        }
    return {
        "method": model.method,
        "as_published": model.as_published,
        "parameters": dict(model.parameters),
        "guarantee": json_of(model.guarantee),
        "columns": len(model.columns),
        "activities": len(model.columns.labels),
        "cases_expected": model.cases,
        "remarks": [remark.to_json() for remark in model.remarks],
        "software": model.software,
    }


def _view(model: Model | ReleaseModel, more: list[tuple[str, str]]) -> Group:
    if isinstance(model, ReleaseModel):
        parameters = [(f"  {name}", value) for name, value in model.facts.parameters.items() if value is not None]
        top = key_values(
            [("model of a release", model.facts.method), *parameters, ("release", model.facts.digest), *more]
        )
        return Group(top, guarantee_panel(model.guarantee, as_published=False))
    size = sum(array.size for array in model.trained.weights.values())
    lengths = model.columns.lengths
    top = key_values(
        [
            ("model", model.method + (" (as published)" if model.as_published else "")),
            *((f"  {name}", value) for name, value in model.parameters.items() if value is not None),
            ("variants", f"{len(model.columns):,}, of {int(lengths.min())} to {int(lengths.max())} events"),
            ("activities", ", ".join(model.columns.labels)),
            ("cases of the log, about", model.cases),
            ("weights", f"{size:,}"),
            *more,
        ]
    )
    remarks = [Text(str(remark), style="yellow") for remark in model.remarks]
    panel = guarantee_panel(model.guarantee, as_published=model.as_published)
    return Group(top, panel, *remarks)


def _stream(model: Model, cases: int | None, seed: int | None) -> None:
    """Write cases as lines of JSON until the reader goes away, Ctrl-C, or the number."""
    lines = np.array([json_text.dumps(list(trace)) + "\n" for trace in model.columns], dtype=object)
    try:
        for owner in model.draws(cases, seed=seed):
            put_out("".join(lines[owner]))
    except KeyboardInterrupt:
        if cases is not None or stopped_by() != INTERRUPTED:
            raise


@contextmanager
def _resumable(checkpoint: Path | None) -> Iterator[None]:
    """Show a user who stops a training how to resume it."""
    try:
        yield
    except KeyboardInterrupt:
        if checkpoint is not None and checkpoint.exists():
            words = f"{Message('run-kept', checkpoint=checkpoint)}\n"
            SafeConsole(stderr=True, highlight=False).print(words, markup=False, soft_wrap=True, end="")
        raise
