"""The command ``veilog``: every job of the library for people (tables) and for machines (--json).

Exit status: 0 success; 1 an error of the user's input or data, with a message on stderr and nothing written; 2 wrong
usage; 130 interrupted.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, cast

from cyclopts import App, CycloptsError, Parameter
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.text import Text

from veilog import display
from veilog._version import __version__
from veilog.demo import run_demo
from veilog.errors import InputError, OutputError, ParameterError, VeilogError
from veilog.logs import files
from veilog.logs.eventlog import EventLog
from veilog.logs.findings import Findings, Policy
from veilog.logs.variants import Variants
from veilog.measures.comparison import compare as compare_logs
from veilog.methods import METHODS
from veilog.privacy.domain import Domain
from veilog.releasing import release as release_log

__all__ = ["app", "main"]

app = App(
    name="veilog",
    help="Share event logs of a process without giving away the people in them.",
    version=__version__,
    version_flags=["--version"],
    help_format="plaintext",
    result_action="return_value",
    suppress_keyboard_interrupt=False,
)

Log = Annotated[Path, Parameter(help="Event log: .xes, .csv, .tsv (each also .gz) or .parquet.")]


@Parameter(name="*")
@dataclass(frozen=True)
class Reading:
    """How a log is read: the same options for every command that reads one."""

    case: Annotated[str | None, Parameter(help="Column of the case's name, for tables.")] = None
    activity: Annotated[str | None, Parameter(help="Column of the activity, for tables.")] = None
    timestamp: Annotated[str | None, Parameter(help="Column of the timestamp, for tables.")] = None
    on: Annotated[
        tuple[str, ...],
        Parameter(
            name="--on",
            negative="",
            help="RULE=POLICY: what to do about a finding (drop, keep, fail); see veilog validate. Repeatable.",
        ),
    ] = ()
    limit: Annotated[
        int | None,
        Parameter(help="Bytes that a compressed log may unpack to; by default suspicious ones are refused."),
    ] = None

    def arguments(self) -> dict[str, Any]:
        """As :func:`veilog.read` takes them, but for the policies."""
        columns = {"case": self.case, "activity": self.activity, "timestamp": self.timestamp}
        if self.limit is not None and self.limit < 1:
            raise ParameterError(f"--limit must be at least 1, not {self.limit}.", parameter="limit")
        return columns | ({} if self.limit is None else {"limit": self.limit})

    def policies(self) -> dict[str, Policy]:
        policies = cast("dict[str, Policy]", dict(_pair(text, "--on") for text in self.on))
        Findings(policies)  # refuses unknown rules and policies
        return policies


_AS_USUAL = Reading()

Json = Annotated[
    str | None, Parameter(name="--json", allow_leading_hyphen=True, help="Write the result as JSON to a file, or - .")
]
MemoryLimit = Annotated[str, Parameter(help="Memory for grouping a table's events, e.g. 4GB.")]

_LARGE_XES = 64 << 20
_COMPARE_AT_ONCE = 5_000
"""Up to so many variants a side `release` shows at once what was kept; beyond it takes longer than a glance."""


@app.command
def info(
    log: Log,
    *,
    reading: Reading = _AS_USUAL,
    json: Json = None,
) -> None:
    """Count cases, events, activities and variants of a log."""
    out = _Output(json)
    _show_columns(out, log, reading)
    event_log = _read(log, reading)
    out.json(event_log.statistics.to_json())
    out.show(display.info_table(event_log.statistics, str(log)))
    out.show(display.variants_table(event_log.variants))
    if event_log.findings:
        out.show(display.findings_table(event_log.findings))


@app.command
def validate(
    log: Log,
    *,
    reading: Reading = _AS_USUAL,
    json: Json = None,
) -> None:
    """Say everything that is noteworthy or wrong about a log, and what reading it does about that."""
    out = _Output(json)
    _show_columns(out, log, reading)
    with _progress() as progress:
        found = files.validate(log, **reading.arguments(), policies=reading.policies(), progress=progress)
    out.json({"findings": [finding.to_json() for finding in found]})
    out.show(display.findings_table(found))


@app.command
def convert(
    log: Log,
    target: Annotated[Path, Parameter(help="File to write; its suffix says how.")],
    *,
    lossy: Annotated[bool, Parameter(negative="", help="Accept that a CSV cannot hold all of this log.")] = False,
    reading: Reading = _AS_USUAL,
    json: Json = None,
) -> None:
    """Write a log in another format. Nothing is anonymised."""
    out = _Output(json)
    _check_target(target, log)
    _show_columns(out, log, reading)
    event_log = _read(log, reading)
    with _progress() as progress:
        progress(f"writing {target.name}", None)
        files.write(event_log, target, lossy=lossy)
    facts = {"cases": event_log.cases.num_rows, "events": len(event_log)}
    out.json(facts)
    out.show(display.key_values([*facts.items(), ("written to", str(target))]))
    if event_log.findings:
        out.show(display.findings_table(event_log.findings))


@app.command
def methods(*, json: Json = None) -> None:
    """List the methods, what each really guarantees, and its parameters."""
    out = _Output(json)
    out.json([method.to_json() for method in METHODS.values()])
    out.show(display.methods_table(METHODS.values()))


@app.command
def release(
    log: Log,
    target: Annotated[Path, Parameter(help="File to write the release to; its suffix says how.")],
    *,
    method: Annotated[str, Parameter(name=["--method", "-m"], help="See veilog methods.")],
    epsilon: Annotated[
        str | None, Parameter(help="Privacy budget; smaller is more private, 0.1 to 1 are usual.")
    ] = None,
    delta: Annotated[
        str,
        Parameter(allow_leading_hyphen=True, help="Probability of failure that is allowed; below one over the cases."),
    ] = "0",
    as_published: Annotated[
        bool, Parameter(negative="", help="The paper's own calibration, for comparison; see what is derived.")
    ] = False,
    seed: Annotated[int | None, Parameter(help="Make a run repeatable, for experiments: voids the guarantee.")] = None,
    p: Annotated[
        tuple[str, ...],
        Parameter(name=["-p", "--parameter"], negative="", help="NAME=VALUE of the method; repeated."),
    ] = (),
    activities: Annotated[
        str | None,
        Parameter(help="Declare the public activities: a,b,c or @FILE with one on each line."),
    ] = None,
    max_length: Annotated[int | None, Parameter(help="Declare the public bound on the length of a trace.")] = None,
    unit: Annotated[str, Parameter(help="Who is protected.")] = "case",
    reading: Reading = _AS_USUAL,
    memory_limit: MemoryLimit = "1GB",
    compare: Annotated[
        bool, Parameter(negative="--no-compare", help="Show what was kept, for you only; never written.")
    ] = True,
    json: Json = None,
) -> None:
    """Release a log: ask it questions with noise, write what comes out, and say what is guaranteed."""
    out = _Output(json)
    _check_target(target, log)
    domain = Domain(None if activities is None else _declared(activities), max_length)
    parameters = dict(_pair(text, "-p") for text in p)
    _show_columns(out, log, reading)
    with _progress() as progress:
        original = files.read_variants(
            log,
            **reading.arguments(),
            policies=reading.policies(),
            memory_limit=memory_limit,
            processes=_processes(log),
            progress=progress,
        )
        progress(f"releasing with {method}", None)
        released = release_log(
            original,
            method,
            epsilon=epsilon,
            delta=delta,
            as_published=as_published,
            seed=seed,
            domain=domain,
            unit=unit,
            progress=progress,
            **parameters,
        )
        progress(f"writing {target.name}", None)
        released.save(target)
    out.json(released.to_json())
    out.show(display.release_view(released, str(target)))
    if compare and json != "-":
        _show_kept(out, original, released.variants)


@app.command
def compare(
    original: Log,
    released: Log,
    *,
    models: Annotated[
        bool, Parameter(negative="", help="Also the model discovered from the release (extra 'models').")
    ] = False,
    reading: Reading = _AS_USUAL,
    json: Json = None,
) -> None:
    """Measure what a release kept of the original. The numbers are raw statistics: keep them inside."""
    out = _Output(json)
    first = _read(original, reading)
    second = _read(released, reading)
    with _progress() as progress:
        result = compare_logs(first, second, models=models, progress=progress)
    out.json(result.to_json())
    out.show(display.comparison_table(result))


@app.command
def demo(
    folder: Annotated[Path, Parameter(help="Where the sample log and its release go.")] = Path("demo"),
    *,
    json: Json = None,
) -> None:
    """Do the main job once on a made-up hospital log: read, release, compare."""
    out = _Output(json)
    out.json(run_demo(folder, out.show))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit status."""
    errors = Console(stderr=True, highlight=False)
    try:
        app(list(sys.argv[1:] if arguments is None else arguments), exit_on_error=False, print_error=False)
    except CycloptsError as error:
        errors.print(f"{error}", markup=False, soft_wrap=True)
        errors.print("See veilog --help.", markup=False)
        return 2
    except VeilogError as error:
        display.error_line(errors, str(error))
        return 1
    except KeyboardInterrupt:
        display.error_line(errors, "interrupted; nothing half written was left.")
        return 130
    except BrokenPipeError:
        # The reader of our output went away (a pager, head): not our error. Keep Python from failing on its last flush.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    return 0


class _Output:
    """Where results go: tables to stdout, unless the JSON goes there."""

    def __init__(self, target: str | None) -> None:
        self.target = target
        if target is not None and target != "-":
            files.check_writable(target)
        self.console = Console(highlight=False, width=None if sys.stdout.isatty() else 140)

    def json(self, value: object) -> None:
        if self.target is None:
            return
        text = json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
        if self.target == "-":
            sys.stdout.write(text)
            sys.stdout.flush()
        else:
            with files.atomic_target(self.target) as file:
                file.write(text.encode())

    def show(self, what: Any) -> None:
        if self.target != "-":
            self.console.print(what)


@contextmanager
def _progress() -> Iterator[Callable[[str, float | None], None]]:
    """A progress display on stderr for people; silent where stderr is not a terminal."""
    console = Console(stderr=True)
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("", total=None)

        def show(text: str, fraction: float | None) -> None:
            bar.update(task, description=text, total=None if fraction is None else 1.0, completed=fraction or 0.0)

        yield show


def _read(log: Path, reading: Reading) -> EventLog:
    with _progress() as progress:
        progress(f"reading {log.name}", None)
        return files.read(
            log,
            **reading.arguments(),
            policies=reading.policies(),
            processes=_processes(log),
            progress=progress,
        )


def _show_columns(out: _Output, log: Path, reading: Reading) -> None:
    """Say which columns were guessed: a wrong guess must be seen."""
    roles = files.roles_of(log, **reading.arguments())
    if roles is not None and roles.guessed:
        out.show(Text(f"columns: {roles}", style="yellow"))


def _processes(log: Path) -> int:
    """Two processes pay for themselves on large XES files only."""
    try:
        large = log.name.lower().endswith(".xes") and log.stat().st_size > _LARGE_XES
    except OSError:
        return 1
    return min(2, os.cpu_count() or 1) if large else 1


def _pair(text: str, option: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise ParameterError(f"{option} takes NAME=VALUE, not {text!r}.", parameter=option)
    return name.strip(), value.strip()


def _declared(text: str) -> tuple[str, ...]:
    if not text.startswith("@"):
        return tuple(name.strip() for name in text.split(",") if name.strip())
    path = Path(text[1:])
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"The list of activities cannot be read: {error}.", path=path) from error
    return tuple(line.strip() for line in lines if line.strip())


def _check_target(target: Path, log: Path) -> None:
    """Before any work: the target can be written, and is not the log itself."""
    files.check_target(target)
    if target.exists() and log.exists() and target.samefile(log):
        raise OutputError("This would overwrite the log itself.", path=target, advice="Give another file.")


def _show_kept(out: _Output, original: Variants, released: Variants) -> None:
    if max(len(original), len(released)) > _COMPARE_AT_ONCE:
        out.show("Compare it with the original: veilog compare LOG RELEASE (many variants, so this takes a while).")
        return
    with _progress() as progress:
        result = compare_logs(original, released, progress=progress)
    out.show("\n[bold]What was kept[/] [dim](computed from the raw log: for you only, not part of the release)[/]")
    out.show(display.comparison_table(result))
