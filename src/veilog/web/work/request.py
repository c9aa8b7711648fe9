"""What somebody asks for in a form: read once, into a plan."""

from __future__ import annotations

import datetime
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

from veilog._language import gettext
from veilog.errors import ParameterError
from veilog.logs.eventlog import START
from veilog.logs.input.formats import known_suffixes
from veilog.messages import Message
from veilog.methods import METHODS, Method, Parameter, method_named
from veilog.privacy.account.budgets import parse_delta, parse_epsilon
from veilog.privacy.account.guarantee import EXPOSED
from veilog.privacy.domain import FROM_LOG, PRIVATELY, Domain, Values, Window
from veilog.releasing.prior import PublicPrior
from veilog.releasing.request import OPTIONS, Option, ReleaseRequest, plan, protects_nobody
from veilog.report.explorer import short
from veilog.web.jobs.records import JobRecord, JobRequest, LogRecord
from veilog.web.jobs.results import HOW_READ, LogMeasures, ReadLog, ReadPrior
from veilog.web.jobs.worker import Progress
from veilog.web.work.log_reader import LABEL

_OF_THE_COMMAND = ("as_published",)
"""What only the command and Python take: a method as its paper has it is there to be compared with."""
FIELDS = (
    "method",
    *(name for option in OPTIONS.values() for name in option.in_form if name not in _OF_THE_COMMAND),
    "prior_file",
)
"""The fields of the form; a parameter of a method is called ``p_`` and its name, what an attribute may hold ``d_``."""
FURTHER = tuple(option for option in OPTIONS.values() if option.form is None)
"""The options for which no page has laid out a field."""
IDENTIFYING, RELEASE = "identifying", "release"
"""What a column was said to be when the log was brought."""

_FILES = ("rules_file",)
"""Parameters that name a file: in a browser that would be one of the server's, so they are not offered."""
_LONGEST = 20_000
UNPROTECTED = "unprotected"
"""The word to be typed for a budget that protects nobody in practice."""


def fields_in(form: Mapping[str, str]) -> dict[str, str]:
    """Return what of a form is about the release."""
    return {name: value for name, value in form.items() if name in FIELDS or name.startswith(("p_", "d_"))}


def as_draft(form: Mapping[str, str], before: Mapping[str, str]) -> dict[str, str]:
    """Return what of a form is kept for the next look at it. Parameters are kept for each method by itself."""
    own = form.get("method", "")
    kept = {name: value for name, value in before.items() if "|" in name and not name.startswith(f"{own}|")}
    return kept | {(f"{own}|{name}" if name.startswith("p_") else name): value for name, value in form.items()}


def from_draft(draft: Mapping[str, str], method: str | None = None) -> dict[str, str]:
    """Return the fields of a form that were kept, for this method or the one that was chosen last."""
    own = method or draft.get("method", "")
    fields = {name: value for name, value in draft.items() if "|" not in name}
    fields |= {name.partition("|")[2]: value for name, value in draft.items() if name.startswith(f"{own}|")}
    return {**fields, "method": own} if own else fields


def said_at_import(log: LogRecord) -> dict[str, str]:
    """Return what a form takes over from the page on which the columns were told."""
    released = [name[3:] for name, value in log.columns.items() if name.startswith("is_") and value == RELEASE]
    released = [name for name in released if name != START and can_be_asked_for(name)]  # starts come with the times
    said = {"attributes": ",".join(released)} if released else {}
    found = log.measured
    person = log.columns.get("person", "" if found is None else found.person)
    if person:
        usual = next((str(unit.usual) for unit in found.units if unit.column == person), "") if found else ""
        said |= {"unit": person, "max_cases": log.columns.get("max_cases") or usual}
    return said


def completed(form: Mapping[str, str], cases: int) -> dict[str, str]:
    """Return a form with the delta that is proposed, where something in it needs one and none is given."""
    given = dict(form)
    names = _listed(given.get("attributes", ""))
    needs = given.get("labels") == PRIVATELY or any(not given.get(f"d_{name}", "").strip() for name in names)
    method = METHODS.get(given.get("method", ""))
    if not given.get("delta", "").strip() and (needs or (method is not None and method.needs_delta)):
        given["delta"] = delta_for(cases)
    return given


def can_be_asked_for(name: str) -> bool:
    """Return whether a form that lists names can name this one, and nothing else by it."""
    return _listed(name) == (name,) and len(name.splitlines()) == 1


def delta_for(cases: int) -> str:
    """A delta so far below one over the cases that it takes nothing off what epsilon is worth. Of a few fixed ones, so
    that it tells next to nothing about the log."""
    return next((delta for delta in ("1e-6", "1e-9") if float(delta) * cases <= EXPOSED[0]), "1e-12")


def whose(columns: Mapping[str, str], unit: str | None) -> str | bool:
    """Return whose the cases are, as measures take it: the column of the ``unit`` that a release was made for, or what
    was said when the log was brought; True, the column that seems to tell, where nothing was."""
    told = "person" in columns or any(name.startswith("is_") for name in columns)
    return unit or columns.get("person") or not told


def plan_of(request: JobRequest) -> ReleaseRequest:
    """Return the plan of a job that releases."""
    assert request.plan is not None, "a release is asked for by a plan"
    return ReleaseRequest.from_json(request.plan)


def offers(method: Method) -> bool:
    """Return whether the pages release with this method: it has to be certified, and its budget to add up."""
    return method.certified and method.takes_epsilon


def offered(method: Method) -> tuple[Parameter, ...]:
    """The parameters of a method that can be given in a browser."""
    return tuple(parameter for parameter in method.parameters if parameter.name not in _FILES)


def asked_for(form: Mapping[str, Any]) -> ReleaseRequest:
    """Read a form; :class:`ParameterError` for what cannot be meant. Empty fields count as not given."""
    given = {str(name): str(value).strip() for name, value in form.items()}
    if any(len(value) > _LONGEST for value in given.values()):
        raise ParameterError("form-field-too-long")
    given = {name: value for name, value in given.items() if value}
    method = method_named(given.get("method", ""))
    parameters = _parameters(method, given)
    asked = {
        option.name: _read(option, given) for option in OPTIONS.values() if option.name in FIELDS and option.keyword
    }
    asked |= {
        "window": _window(given.get("window_start"), given.get("window_end")),
        "attributes": _listed(given.get("attributes", "")) or None,
        "activities": None,
        "domain": Domain(_labels(given), _longest(given), _values_of(given)),
        "allow_no_protection": _is_typed(given.get("allow_no_protection", "")),
    }
    _check(method, asked)
    return plan(method.name, **{**asked, **parameters})


def _read(option: Option, given: Mapping[str, str]) -> Any:
    """Return an option as its field of the form gives it."""
    text = given.get(option.name)
    if option.kind is bool:
        return text not in (None, "0", "false", "no")
    if option.kind is int:
        return _whole(given, option.name)
    value = _number(text) if option.python.startswith("Number") else text
    return option.default if value is None else value


def _parameters(method: Method, given: Mapping[str, str]) -> dict[str, str]:
    parameters = {name[2:]: value for name, value in given.items() if name.startswith("p_")}
    decimal = {parameter.name for parameter in method.parameters if parameter.kind is float}
    parameters |= {name: _number(parameters[name]) or "" for name in decimal & parameters.keys()}
    for name, value in parameters.items():
        if name in _FILES or (name == "query_parameters" and any(file in value for file in _FILES)):
            raise ParameterError("rules-file-in-form", parameter=name)
    method.parse(parameters)
    return parameters


def _check(method: Method, asked: Mapping[str, Any]) -> None:
    """Refuse, in the words of the form, what a plan would refuse in those of the command."""
    if not offers(method):
        raise ParameterError("form-method-not-certified", parameter="method", method=repr(method.name))
    epsilon = asked["epsilon"]
    if epsilon is None:
        advice = gettext("Smaller means more private; 0.1 to 1 are usual.")
        raise ParameterError("form-budget-missing", parameter="epsilon", advice=advice)
    if protects_nobody(parse_epsilon(epsilon), parse_delta(asked["delta"])) and not asked["allow_no_protection"]:
        raise ParameterError(
            "form-budget-without-protection",
            parameter="allow_no_protection",
            epsilon=epsilon,
            delta=asked["delta"],
            word=UNPROTECTED,
        )
    if asked["domain"].activities == PRIVATELY and parse_delta(asked["delta"]) == 0:
        raise ParameterError("form-labels-without-delta", parameter="delta")


def _number(text: str | None) -> str | None:
    """A decimal comma is a decimal point."""
    return text.replace(",", ".") if text is not None and text.count(",") == 1 and "." not in text else text


def _whole(given: Mapping[str, str], name: str) -> int | None:
    text = given.get(name)
    if text is None:
        return None
    if not (text.isascii() and text.isdecimal() and len(text) < 10):
        raise ParameterError("form-number-not-whole", parameter=name, name=name, text=repr(text[:40]))
    return int(text)


def _labels(given: Mapping[str, str]) -> tuple[str, ...] | Literal["log", "privately"] | None:
    """What was said of the labels: which of the three choices, and the list only where none or that one is taken."""
    text = given.get("activities", "")
    said = given.get("labels", text if text in (FROM_LOG, PRIVATELY) else "list")
    if said == FROM_LOG:
        return FROM_LOG
    if said == PRIVATELY:
        return PRIVATELY
    if said != "list":
        raise ParameterError("form-labels-choice-unknown", parameter="labels")
    return _listed(text) if text else None


def _values_of(given: Mapping[str, str]) -> dict[str, Values]:
    """The values that may be known of the attributes that are asked for."""
    names = _listed(given.get("attributes", ""))
    return {name: _domain(given[f"d_{name}"]) for name in names if f"d_{name}" in given}


def _domain(text: str) -> Values:
    low, dots, high = text.partition("..")
    if dots and "\n" not in text:
        try:
            return float(_number(low) or ""), float(_number(high) or "")
        except ValueError:
            pass  # a value that has dots in it
    return _listed(text)


def _longest(given: Mapping[str, str]) -> int | Literal["log"] | None:
    """A number that was declared counts more than that of the log, because it is no condition of the guarantee."""
    if given.get("max_length", FROM_LOG) == FROM_LOG:
        return FROM_LOG if FROM_LOG in (given.get("longest"), given.get("max_length")) else None
    return _whole(given, "max_length")


def _is_typed(text: str) -> bool:
    if text and text.lower() != UNPROTECTED:
        raise ParameterError("form-protection-word-missing", parameter="allow_no_protection", word=UNPROTECTED)
    return bool(text)


def _window(start: str | None, end: str | None) -> Window | None:
    if start is None and end is None:
        return None
    try:
        first, last = (datetime.datetime.fromisoformat(text or "") for text in (start, end))
    except ValueError:
        raise ParameterError("form-window-incomplete", parameter="window") from None
    return first, last


def _listed(text: str) -> tuple[str, ...]:
    """One on each line, or with commas between them where there is one line."""
    lines = text.splitlines() if "\n" in text else text.split(",")
    return tuple(name.strip() for name in lines if name.strip())


# Something public about the process ----------------------------------------------------------------------------------

# Something public about the process: a file from which a release starts, read by a worker before anything is asked.


FIELD = "prior_file"
"""The field of a form that names the job which read the file."""
ENDINGS = (*known_suffixes(), ".bpmn", ".pnml", ".txt")
KEPT = 3
"""Files that are kept for a log: a job that waits may need an older one."""
_LABELS = 5_000


def file_of(out: Path) -> Path:
    """Return the file that a job has in its folder."""
    return next(out.glob("prior.*"), out / "prior")


def read_prior(out: Path, progress: Progress) -> ReadPrior:
    """Read the file in the folder of a job; it may be no log at all, which raises."""
    progress(gettext("The file is being read."), None)
    found = PublicPrior.of(file_of(out))
    assert found is not None, "there is a file"
    variants = found.variants
    return ReadPrior(variants.cases, len(variants), tuple(short(label, LABEL) for label in variants.labels[:_LABELS]))


def shared(prior: ReadPrior, log: LogMeasures) -> int:
    """Return how many of the activities that a page shows of a log are in the file, too."""
    return len(set(log.labels) & set(prior.labels))


def plan_from(plan: dict[str, object], prior: JobRecord | None, jobs: Path) -> dict[str, object]:
    """Return a plan as JSON with the file that it starts from."""
    return plan if prior is None else {**plan, "prior": [str(file_of(jobs / prior.id))]}


def check_prior(chosen: str, prior: JobRecord | None, method: Method, log: LogRecord) -> None:
    """Refuse a file that was not read, that is of another log, or that the method has no use for."""
    if chosen and (prior is None or prior.log != log.id or not isinstance(prior.result, ReadPrior)):
        raise ParameterError("prior-not-read", parameter=FIELD)
    if prior is not None and not method.takes_prior:
        able = ", ".join(name for name, one in METHODS.items() if one.takes_prior)
        raise ParameterError("method-without-prior", parameter=FIELD, name=method.name, able=able)


# What an owner says of the columns of a log when it is brought, and what of it may be released by that ---------------

# What an owner says of the columns of a log when it is brought, and what of it may be released by that.


ROLES = ("case", "activity", "timestamp")
"""What one column of a table is."""
PERSON = "person"


def of_reading(name: str) -> bool:
    """Return whether what a form says under this name is about how a log is read."""
    return name in HOW_READ or name.startswith("on_")


def columns_said(fields: Mapping[str, str], log: LogRecord) -> dict[str, str]:
    """Return what a form says of the columns: how the log is read, whose a case is, and which of them may leave.

    Each column says itself what it is (``is_`` and its name). Where two say that they are the case, it is the one that
    was not before.
    """
    said = {name[3:]: value for name, value in fields.items() if name.startswith("is_") and value}
    found = {name: value for name, value in fields.items() if value and of_reading(name)}
    taken = _taken(log)
    for role in ROLES:
        named = [name for name, value in said.items() if value == role]
        chosen = next((name for name in named if name != taken.get(role)), "")
        if chosen or (named and log.columns.get(role)):
            found[role] = chosen or named[0]
    asked = log.measured is not None and any(name.startswith("is_") for name in fields)
    if PERSON in fields or asked:
        found[PERSON] = fields.get(PERSON) or next(
            (u for n, value in said.items() if value == PERSON and (u := _unit(n, log))), ""
        )
        if found[PERSON] and fields.get("max_cases"):
            found["max_cases"] = fields["max_cases"]
        meant = (*ROLES, PERSON)
        return found | {f"is_{name}": value for name, value in said.items() if value not in meant}
    return {name: value for name, value in log.columns.items() if not of_reading(name)} | found


def _taken(log: LogRecord) -> Mapping[str, str]:
    """The columns that were taken for the roles."""
    read = None if log.reading is None else log.reading.result
    columns = read.columns if isinstance(read, ReadLog) else None
    return {} if columns is None else columns.taken


def _unit(name: str, log: LogRecord) -> str:
    """The column as releases name it, where it may say whose a case is."""
    units = () if log.measured is None else log.measured.units
    own = name.removeprefix("case:")
    return next((unit.column for unit in units if unit.column.removeprefix("case:") == own), "")


_NAMING = "attribute_names"
"""The setting of methods that names attributes which leave."""


def may_leave(name: str, log: LogRecord) -> bool:
    """Return whether a column may be released by what was said when the log was brought: nothing of one that tells
    people apart, and, where columns were told, only of those of which it was said. Starts come with the times."""
    said = log.columns.get(f"is_{name}")
    if said == IDENTIFYING or name.removeprefix("case:") == _person(log):
        return False
    return said == RELEASE or name == START or not _was_told(log)


def _was_told(log: LogRecord) -> bool:
    """Whether it was said what columns are; who said that all are left out said whose the cases are, or nobody's."""
    return "person" in log.columns or any(key.startswith("is_") for key in log.columns)


def _person(log: LogRecord) -> str:
    """The column that tells persons apart, as the log calls it."""
    return log.columns.get("person", "").removeprefix("case:")


def _refuse_to_leave(name: str, log: LogRecord, parameter: str) -> None:
    if may_leave(name, log):
        return
    left_out = log.columns.get(f"is_{name}") != IDENTIFYING and name.removeprefix("case:") != _person(log)
    raise ParameterError("attribute-left-out" if left_out else "attribute-identifying", parameter=parameter, name=name)


def refuse_attributes(planned: ReleaseRequest, log: LogRecord) -> None:
    """Refuse attributes that the log does not have, and those, also of a subset or of a method's settings, that may not
    be released by what was said when it was brought."""
    measured = log.measured
    known = None if measured is None else {*measured.case_attributes, *measured.event_attributes}
    subset = planned.subset
    if subset is not None and not subset.of_time:
        rule = subset.rule.removeprefix("case:")
        if known is not None and rule not in known and f"is_{rule}" not in log.columns:
            raise ParameterError("subset-without-rule", parameter="subset", name=rule, near=_near(rule, known))
        _refuse_to_leave(rule, log, "subset")
    for name, parameter in _asked_for(planned, log):
        own = name.removeprefix("case:")
        if known is None or own in known or f"is_{own}" in log.columns:
            _refuse_to_leave(own, log, parameter)
        if known is not None and own not in known:
            raise ParameterError("attribute-not-in-log", parameter=parameter, name=name, near=_near(own, known))
        values = planned.declared.values_of(name)
        if measured is not None and own in measured.without_numbers and values and isinstance(values[0], float):
            raise ParameterError("attribute-values-without-range", parameter=f"d_{name}", name=repr(name))


def _asked_for(planned: ReleaseRequest, log: LogRecord) -> Iterator[tuple[str, str]]:
    """The attributes that would be released, each with the parameter that names it."""
    for name in (*planned.wanted.attributes, *([START] if planned.wanted.processing else [])):
        yield name, "attributes"
    names = str(getattr(planned.settings, _NAMING, None) or "").split(",")
    yield from ((name.strip(), _NAMING) for name in names if name.strip())


def _near(name: str, known: Collection[str]) -> Message | str:
    """That there is an attribute whose name differs by its letters' case alone, where there is one."""
    near = next((other for other in sorted(known) if other.casefold() == name.casefold()), None)
    return "" if near is None else Message("attribute-near", name=near)
