"""The command ``veilog``: every job of the library, as tables or JSON (--json).

Exit status: 0 success; 1 unusable input, and any other failure; 2 wrong usage; 3 refused by a budget; 4 an empty
release, whose budget is spent; 5 no place to write; 130 interrupted, 143 by SIGTERM. For 1 to 5 one message is on
stderr.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import io
import itertools
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any

from cyclopts import App, CycloptsError, Group, MissingArgumentError, Parameter, UnknownOptionError, ValidationError

from veilog._version import __version__
from veilog.cli.shared.paths import WRITTEN, check_formats, check_named_once, check_places, hide_folder, remove_at_end
from veilog.cli.shared.terminal import (
    CALL,
    Call,
    SafeConsole,
    about,
    end_at_once,
    error_line,
    like_ctrl_c,
    nowhere,
    open_closed,
    plain_warnings,
    stopped_by,
    write_json,
)
from veilog.errors import BudgetError, EmptyReleaseError, OutputError, ParameterError, VeilogError
from veilog.messages import Message, for_surface

__all__ = ["application", "main"]

_COMMANDS = {
    "Look at a log": {
        "info": "Count cases, events, activities and variants of a log.",
        "validate": "List all findings about a log, and how reading treats each of them.",
        "map": "Propose groups of activities by the structure of their names, for you to edit and give to --map.",
        "risk": "Measure how well an attacker who knows a few activities of a person finds that person in a log.",
        "convert": "Write a log in another format. Nothing is anonymised.",
    },
    "Release it": {
        "suggest": "Suggest a method for a log, with reasons. The noisy answers it needs use a share of the budget.",
        "twin": "Make a synthetic log of the same size, to preview methods and budgets without using budget.",
        "methods": "List the methods with their guarantees; with a name, describe one in full.",
        "release": "Release a log: query it with noise, write the result, and state its guarantee.",
        "train": "Train a model of a log once, within a budget. Then veilog sample draws from it without the log.",
        "sample": "Draw cases from a model, as a log of any size or as a stream. This needs no log and uses no budget.",
        "inspect": "Describe a model: its training, its guarantee, and the most frequent of its drawn cases.",
        "demo": "Run the main steps once on a synthetic hospital log: read, release, compare.",
        "serve": "Open veilog in a browser: upload a log, see who is exposed, release, compare, download.",
    },
    "Check a release": {
        "compare": "Measure the utility of a release. The numbers are confidential: they come from the raw log.",
        "report": "Write a page about a release from its file: content, guarantee and limits.",
        "dossier": (
            "Write a dossier for the data protection officer: an annex to a DPIA, the three risks, sheets for the "
            "recipient and for an output check."
        ),
        "audit": "Attack a method, to prove a lower bound of its epsilon from its releases or its answers.",
    },
    "Keep account": {
        "ledger": "Show and set the account of a log: the budget its releases have used, and its limit.",
    },
    "Research": {
        "experiment": "Rerun a paper's table or figure on the logs of a folder, or resume a stopped run.",
    },
    "More": {
        "completion": "Write a script to stdout that lets a shell complete veilog's commands and options.",
    },
}
"""Help of each command, by groups, so that a list of all loads none."""
_MODULES = {
    "logs": ("info", "validate", "map", "convert"),
    "methods": ("methods",),
    "release": ("release",),
    "preview": ("twin",),
    "suggest": ("suggest",),
    "model": ("train", "sample", "inspect"),
    "report": ("report", "dossier"),
    "risk": ("risk",),
    "compare": ("compare",),
    "audit": ("audit",),
}
"""Module of each command that shares one, imported when the command is called."""
_PLACES = {name: f"{module}:{name}" for module, names in _MODULES.items() for name in names}
_PLACES |= {name: f"{name}:{name}" for names in _COMMANDS.values() for name in names if name not in _PLACES}
_PLACES["ledger"] = "ledger:app"
_QUIET, _OVERWRITE = "--quiet", "--overwrite"
_STATUS = ((BudgetError, 3), (EmptyReleaseError, 4), (OutputError, 5), (ParameterError, 2), (VeilogError, 1))
"""Exit status of each error; the first that fits counts."""
_KINDS: dict[type[BaseException], str] = {
    KeyboardInterrupt: "Interrupted",
    MemoryError: "MemoryError",
    CycloptsError: "UsageError",
}
"""Kinds of errors of other packages; for memory NumPy has kinds of its own."""
_MEMORY = (
    "The memory was not enough. Help: use a smaller log or a subset of its cases, or give the program more memory. "
    "The ledger, if there is one, has the budget of the queries until then."
)
_FOR_WHAT_IS_WRITTEN, _FOR_WHAT_IS_READ = (
    {"-o", "--output", "--out", "--output-file"},
    {"-i", "--input", "--input-file"},
)
"""Options of other programs for files, which are words without an option here."""
_MORE = (
    "With every command: --quiet prints errors, and what a release left out; --overwrite replaces files "
    "that are there, which is refused otherwise; --json FILE (or -) writes the result or the error as JSON."
)
_EXAMPLES = {
    "": ("info hospital.csv", "release hospital.csv out.xes -m evolve --epsilon 1 --activities @list.txt"),
    "info": ("info hospital.csv", "info export.csv --case Fallnummer --activity Schritt"),
    "risk": ("risk hospital.csv", "risk hospital.csv --size 1-6 --details"),
    "suggest": ("suggest hospital.csv --epsilon 1", "suggest hospital.csv --epsilon 1 --for prediction"),
    "map": ("map hospital.csv groups.csv",),
    "twin": (
        "twin --out twin.xes --cases 1000 --length 14 --activities 16",
        "twin hospital.csv --epsilon 0.05 --json sizes.json",
    ),
    "release": (
        "release hospital.csv out.xes -m evolve --epsilon 1 --activities @list.txt",
        "release hospital.csv out.xes -m travas --epsilon 1 --delta 1e-6",
        "release hospital.csv out.xes -m evolve --epsilon 1 --unit Patient --max-cases 2",
    ),
    "compare": ("compare hospital.csv out.xes", "compare hospital.csv out.xes --use-cases all"),
    "report": ("report out.xes page.html", "report out.xes mine.html --original hospital.csv"),
    "ledger": ("ledger set hospital.csv --epsilon 2", "ledger show hospital.csv"),
    "completion": ("completion bash > ~/.local/share/bash-completion/completions/veilog",),
}


def application(command: str = "", *, whole: bool = False) -> App:
    """Return the command, with examples of the one that is called.

    Without one, it can list all commands. ``whole`` imports all of its parts at once.
    """
    examples = "\n".join(f"  veilog {example}" for example in _EXAMPLES.get(command, ()))
    groups = {title: Group(title, sort_key=place) for place, title in enumerate(_COMMANDS)}
    app = App(
        name="veilog",
        help="Share event logs of a process without giving away the people in them.",
        version=__version__,
        version_flags=["--version"],
        console=SafeConsole(),
        help_format="plaintext",
        help_epilogue=f"Examples:\n{examples}\n\n{_MORE}" if examples else _MORE,
        result_action="return_value",
        suppress_keyboard_interrupt=False,
        default_parameter=Parameter(negative_iterable="", show_default=False),
        group_commands=groups["More"],
    )
    for title, commands in _COMMANDS.items():
        group = groups[title]
        for name, does in commands.items():
            if not whole:
                listed: dict[str, Any] = {} if command else {"help": does, "group": group}
                app.command(f"veilog.cli.{_PLACES[name]}", name=name, **listed)
                continue
            module, _, part = _PLACES[name].partition(":")
            found = getattr(importlib.import_module(f"veilog.cli.{module}"), part)
            if isinstance(found, App):
                found.group = (group,)
                app.command(found)
            else:
                app.command(found, group=group)
    return app


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit status.

    Without ``arguments`` it is this process's command, with which the process ends.
    """
    if arguments is None:
        open_closed()
    for stream in (sys.stdout, sys.stderr):  # characters that it cannot write fail no command
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    errors = SafeConsole(stderr=True, highlight=False)
    given = list(sys.argv[1:] if arguments is None else arguments)
    chosen = {word for word in given if word in (_QUIET, _OVERWRITE)}
    given = [word for word in given if word not in chosen]
    if arguments is None:  # further threads of small products of matrices wait for each other, at full load
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    app = application(_command_name(given).partition(" ")[0])
    before = CALL.set(Call(_command_name(given), _QUIET in chosen, _OVERWRITE in chosen))
    try:
        # A server ends by itself after a signal.
        ends = contextlib.nullcontext() if _command_name(given) == "serve" else like_ctrl_c(last=arguments is None)
        with ends, plain_warnings(), for_surface("command"):
            try:
                with remove_at_end():
                    return _run(app, given, errors, contextlib.nullcontext() if arguments is not None else _loading())
            except KeyboardInterrupt as error:  # after the command, or during the report
                return _report_interrupt(given, errors, error)
    finally:
        CALL.reset(before)


@contextlib.contextmanager
def _loading() -> Iterator[None]:
    """Load a command in this block, and leave it out of later searches for garbage."""
    gc.disable()
    try:
        with end_at_once():
            yield
    finally:
        gc.freeze()
        gc.enable()


def _run(app: App, given: Sequence[str], errors: SafeConsole, imports: AbstractContextManager[None]) -> int:
    """Run the command; report an error and return its status."""
    try:
        with imports:  # of the command, with all that it needs to compute
            command, bound, _ = app.parse_args(given, exit_on_error=False, print_error=False)
        check_formats(bound.arguments)
        check_places(bound.arguments)
        status = command(*bound.args, **bound.kwargs)
    except CycloptsError as error:
        message = _usage(error, given, app)
        errors.print(message, markup=False, soft_wrap=True)
        return _report_failure(given, 2, error, message)
    except VeilogError as error:
        error_line(errors, " ".join([hide_folder(str(error)), *map(str, CALL.get().done)]))
        return _report_failure(given, next(status for kind, status in _STATUS if isinstance(error, kind)), error)
    except KeyboardInterrupt as error:
        return _report_interrupt(given, errors, error)
    except MemoryError as error:
        message = " ".join([_MEMORY, *map(str, CALL.get().done)])
        error_line(errors, message)
        return _report_failure(given, 1, error, message)
    except BrokenPipeError:
        nowhere(sys.stdout)  # the reader of the output went away (a pager, head), which is no error
        return 0
    return status if isinstance(status, int) else 0


def _report_interrupt(given: Sequence[str], errors: SafeConsole, error: KeyboardInterrupt) -> int:
    """Report what a stopped command leaves and has spent, and return the status."""
    message = " ".join(map(str, [Message("interrupted-cleanly"), *CALL.get().done]))
    error_line(errors, message)
    return _report_failure(given, stopped_by(), error, message)


def _usage(error: CycloptsError, given: Sequence[str], app: App) -> str:
    """Return the error in the words of a command, with a pointer to its help."""
    said, command = str(error), _command_name(given)
    unknown = _unknown_option(error)
    if unknown == "-":
        said = "- stands for a log on standard input or output; here a file is needed."
    elif unknown and command and (instead := _missing_option_help(unknown, command, app)):
        said = f"There is no option {unknown}. {instead}"
    missing = error.argument if isinstance(error, MissingArgumentError) else None
    own = ("-", *(missing.names if missing is not None else ()))
    # For a mistyped option, cyclopts suggests the right one.
    slips = any(word.startswith("-") and word not in own for word in error.unused_tokens or ())
    if missing is not None and missing.parameter.name and not slips:
        by_name = missing.field_info.kind is missing.field_info.KEYWORD_ONLY
        name = missing.name if by_name else missing.name[2:].upper()
        example = f" For example: veilog {_EXAMPLES[command][0]}." if command in _EXAMPLES else ""
        said = f"{name} is missing.{example}"
        after = dict(itertools.pairwise(given)).get(name, "")
        if after.startswith("-") and not after.startswith(("--", "-m", "-p")):
            said = f"{name} takes a value, and one that begins with - is written {name}={after}."
    return f"{said}\nSee veilog {command} --help.".replace("  ", " ")


def _unknown_option(error: CycloptsError) -> str:
    """Return the unknown option, also in place of a file, or an empty text."""
    token = error.token if isinstance(error, UnknownOptionError) else None
    if isinstance(error, ValidationError) and error.argument is not None:
        token = error.argument.tokens[0]
    return "" if token is None else (token.keyword or token.value).partition("=")[0]


def _missing_option_help(option: str, command: str, app: App) -> str:
    """Return a hint if an option for a file, as in other programs, is a word here."""
    for word in command.split():
        app = app[word]
    arguments = app.assemble_argument_collection()
    words = [found.field_info.name for found in arguments if found.index is not None]
    written = [name for name in words if name in (*WRITTEN, "folder")][-1:]
    asked = written if option in _FOR_WHAT_IS_WRITTEN else words[:1] if option in _FOR_WHAT_IS_READ else []
    if asked:
        return f"{asked[0].upper()} is a word without one: veilog {command} {' '.join(words).upper()}."
    has_json = any("--json" in found.names for found in arguments)
    return "--json FILE writes the result to a file." if option in _FOR_WHAT_IS_WRITTEN and has_json else ""


def _command_name(given: Sequence[str]) -> str:
    """Return the command that was called: "release", or "ledger set"."""
    words = list(itertools.takewhile(lambda word: word.isidentifier(), given))
    return " ".join(words[: 2 if words[:1] == ["ledger"] else 1]) if words and words[0] in _PLACES else ""


def _report_failure(given: Sequence[str], status: int, error: BaseException, message: str = "") -> int:
    """Write the error as JSON, if requested, and return the status."""
    places = [word.partition("=")[2] for word in given if word.startswith("--json=")]
    after = [word for option, word in itertools.pairwise(given) if option == "--json"]
    places += [word for word in after if word == "-" or not word.startswith("-")]  # not the next option
    if not places or places[-1] in CALL.get().told:
        return status
    names = ("code", "problem", "advice", "path", "line", "column", "parameter", "account", "facts", "extra")
    facts = {
        name: hide_folder(value) if isinstance(value, str) else value
        for name in names
        if (value := getattr(error, name, None)) is not None
    }
    said = {
        "kind": next((word for kind, word in _KINDS.items() if isinstance(error, kind)), type(error).__name__),
        "status": status,
        "message": hide_folder(str(error) if isinstance(error, VeilogError) else message),
    }
    with contextlib.suppress(VeilogError):  # no place to write to, which the line on stderr reports
        if places[-1] != "-":
            check_named_once(places[-1], given)
        write_json({"error": said | facts, "about": about()}, places[-1])
    return status
