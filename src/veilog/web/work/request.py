"""The form of a release: read once, into a plan."""

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
from veilog.releasing.refusals import protects_nobody
from veilog.releasing.request import OPTIONS, Option, ReleaseRequest, plan
from veilog.report.explorer import short
from veilog.web.jobs.records import JobRecord, JobRequest, LogRecord
from veilog.web.jobs.results import HOW_READ, LogMeasures, ReadLog, ReadPrior
from veilog.web.jobs.worker import Progress
from veilog.web.work.log_reader import LABEL

_OF_THE_COMMAND = ("as_published",)
"""Options of the command and Python alone: a method as its paper has it is there for comparison."""
FIELDS = (
    "method",
    *(name for option in OPTIONS.values() for name in option.in_form if name not in _OF_THE_COMMAND),
    "prior_file",
)
"""Fields of the form: ``p_`` precedes a parameter, ``d_`` an attribute's values."""
FURTHER = tuple(option for option in OPTIONS.values() if option.form is None)
"""Options without a field of their own in the layout of a page."""
IDENTIFYING, RELEASE = "identifying", "release"
"""Roles that a column may get when the log is brought."""

_FILES = ("rules_file",)
"""Parameters that name a file, not offered: in a browser it would be the server's."""
_LONGEST = 20_000
UNPROTECTED = "unprotected"
"""Word that the user types for a budget that protects no person in practice."""


def fields_in(form: Mapping[str, str]) -> dict[str, str]:
    """Return the fields of a form that are about the release."""
    return {name: value for name, value in form.items() if name in FIELDS or name.startswith(("p_", "d_"))}


def as_draft(form: Mapping[str, str], before: Mapping[str, str]) -> dict[str, str]:
    """Return the values of a form to keep; each method keeps its own parameters."""
    own = form.get("method", "")
    kept = {name: value for name, value in before.items() if "|" in name and not name.startswith(f"{own}|")}
    return kept | {(f"{own}|{name}" if name.startswith("p_") else name): value for name, value in form.items()}


def from_draft(draft: Mapping[str, str], method: str | None = None) -> dict[str, str]:
    """Return the fields of a form that were kept, for this method or the last one."""
    own = method or draft.get("method", "")
    fields = {name: value for name, value in draft.items() if "|" not in name}
    fields |= {name.partition("|")[2]: value for name, value in draft.items() if name.startswith(f"{own}|")}
    return {**fields, "method": own} if own else fields


def imported_settings(log: LogRecord) -> dict[str, str]:
    """Return the values that a form takes over from the page of the columns."""
    released = [name[3:] for name, value in log.columns.items() if name.startswith("is_") and value == RELEASE]
    released = [name for name in released if name != START and can_be_asked_for(name)]  # starts come with the times
    said = {"attributes": ",".join(released)} if released else {}
    found = log.measured
    person = log.columns.get("person", "" if found is None else found.person)
    if person:
        usual = next((str(unit.usual) for unit in found.units if unit.column == person), "") if found else ""
        said |= {"unit": person, "max_cases": log.columns.get("max_cases") or usual}
    return said


def complete_form(form: Mapping[str, str], cases: int) -> dict[str, str]:
    """Return a form with the proposed delta if it needs one and has none."""
    given = dict(form)
    names = _split_list(given.get("attributes", ""))
    needs = given.get("labels") == PRIVATELY or any(not given.get(f"d_{name}", "").strip() for name in names)
    method = METHODS.get(given.get("method", ""))
    if not given.get("delta", "").strip() and (needs or (method is not None and method.needs_delta)):
        given["delta"] = delta_for(cases)
    return given


def can_be_asked_for(name: str) -> bool:
    """Return True if a form that lists names can name this one, and only this one."""
    return _split_list(name) == (name,) and len(name.splitlines()) == 1


def delta_for(cases: int) -> str:
    """Return a delta so far below one over the cases that epsilon keeps its worth.

    It is one of a few fixed values, so it reveals next to nothing about the log.
    """
    return next((delta for delta in ("1e-6", "1e-9") if float(delta) * cases <= EXPOSED[0]), "1e-12")


def privacy_unit(columns: Mapping[str, str], unit: str | None) -> str | bool:
    """Return the column of persons, as measures take it.

    It is that of the release's ``unit``, or the one chosen when the log was brought. If no choice was made, True stands
    for the likely column. False stands for a choice of none.
    """
    told = "person" in columns or any(name.startswith("is_") for name in columns)
    return unit or columns.get("person") or not told


def plan_of(request: JobRequest) -> ReleaseRequest:
    """Return the plan of a job that releases."""
    assert request.plan is not None, "a release is asked for by a plan"
    return ReleaseRequest.from_json(request.plan)


def offers(method: Method) -> bool:
    """Return True if the pages offer this method: certified, with a summable budget."""
    return method.certified and method.takes_epsilon


def offered_parameters(method: Method) -> tuple[Parameter, ...]:
    """Return the parameters of a method that a browser can give."""
    return tuple(parameter for parameter in method.parameters if parameter.name not in _FILES)


def requested_options(form: Mapping[str, Any]) -> ReleaseRequest:
    """Return the plan of a form; :class:`ParameterError` for an error in it.

    Empty fields count as not given.
    """
    given = {str(name): str(value).strip() for name, value in form.items()}
    if any(len(value) > _LONGEST for value in given.values()):
        raise ParameterError("form-field-too-long")
    given = {name: value for name, value in given.items() if value}
    method = method_named(given.get("method", ""))
    parameters = _parameters(method, given)
    asked = {
        option.name: _parse_option(option, given)
        for option in OPTIONS.values()
        if option.name in FIELDS and option.keyword
    }
    asked |= {
        "window": _window(given.get("window_start"), given.get("window_end")),
        "attributes": _split_list(given.get("attributes", "")) or None,
        "activities": None,
        "domain": Domain(_labels(given), _longest(given), _values_of(given)),
        "allow_no_protection": _is_typed(given.get("allow_no_protection", "")),
    }
    _check(method, asked)
    return plan(method.name, **{**asked, **parameters})


def _parse_option(option: Option, given: Mapping[str, str]) -> Any:
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
    """Refuse, in the words of the form, what a plan would refuse in the command's."""
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
    """Return a number with a decimal point for a decimal comma."""
    return text.replace(",", ".") if text is not None and text.count(",") == 1 and "." not in text else text


def _whole(given: Mapping[str, str], name: str) -> int | None:
    text = given.get(name)
    if text is None:
        return None
    if not (text.isascii() and text.isdecimal() and len(text) < 10):
        raise ParameterError("form-number-not-whole", parameter=name, name=name, text=repr(text[:40]))
    return int(text)


def _labels(given: Mapping[str, str]) -> tuple[str, ...] | Literal["log", "privately"] | None:
    """Return the choice of labels; a list counts only if it, or nothing, is chosen."""
    text = given.get("activities", "")
    said = given.get("labels", text if text in (FROM_LOG, PRIVATELY) else "list")
    if said == FROM_LOG:
        return FROM_LOG
    if said == PRIVATELY:
        return PRIVATELY
    if said != "list":
        raise ParameterError("form-labels-choice-unknown", parameter="labels")
    return _split_list(text) if text else None


def _values_of(given: Mapping[str, str]) -> dict[str, Values]:
    """Return the values that the form declares for its attributes."""
    names = _split_list(given.get("attributes", ""))
    return {name: _domain(given[f"d_{name}"]) for name in names if f"d_{name}" in given}


def _domain(text: str) -> Values:
    low, dots, high = text.partition("..")
    if dots and "\n" not in text:
        try:
            return float(_number(low) or ""), float(_number(high) or "")
        except ValueError:
            pass  # a value that has dots in it
    return _split_list(text)


def _longest(given: Mapping[str, str]) -> int | Literal["log"] | None:
    """Return the declared length; it precedes the log's, which is a condition."""
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


def _split_list(text: str) -> tuple[str, ...]:
    """Return the names of a text: one a line, or in one line between commas."""
    lines = text.splitlines() if "\n" in text else text.split(",")
    return tuple(name.strip() for name in lines if name.strip())


# Something public about the process ----------------------------------------------------------------------------------


FIELD = "prior_file"
"""Field of the form that names the job which read the file."""
ENDINGS = (*known_suffixes(), ".bpmn", ".pnml", ".txt")
KEPT = 3
"""Number of files kept for a log: a waiting job may need an older one."""
_LABELS = 5_000


def file_of(out: Path) -> Path:
    """Return the file that a job has in its folder."""
    return next(out.glob("prior.*"), out / "prior")


def read_prior(out: Path, progress: Progress) -> ReadPrior:
    """Read the file in the folder of a job; a file that is no log raises."""
    progress(gettext("The file is being read."), None)
    found = PublicPrior.of(file_of(out))
    assert found is not None, "there is a file"
    variants = found.variants
    return ReadPrior(variants.cases, len(variants), tuple(short(label, LABEL) for label in variants.labels[:_LABELS]))


def shared_activities(prior: ReadPrior, log: LogMeasures) -> int:
    """Return the number of a log's shown activities that the file has, too."""
    return len(set(log.labels) & set(prior.labels))


def plan_from(plan: dict[str, object], prior: JobRecord | None, jobs: Path) -> dict[str, object]:
    """Return a plan as JSON with the file that it starts from."""
    return plan if prior is None else {**plan, "prior": [str(file_of(jobs / prior.id))]}


def check_prior(chosen: str, prior: JobRecord | None, method: Method, log: LogRecord) -> None:
    """Refuse a file that was not read, is another log's, or is useless to the method."""
    if chosen and (prior is None or prior.log != log.id or not isinstance(prior.result, ReadPrior)):
        raise ParameterError("prior-not-read", parameter=FIELD)
    if prior is not None and not method.takes_prior:
        able = ", ".join(name for name, one in METHODS.items() if one.takes_prior)
        raise ParameterError("method-without-prior", parameter=FIELD, name=method.name, able=able)


# The roles of a log's columns when it is brought, and which of them may be released ----------------------------------


ROLES = ("case", "activity", "timestamp")
"""Roles of the columns of a table."""
PERSON = "person"


def is_reading_option(name: str) -> bool:
    """Return True if the field of this name is about how a log is read."""
    return name in HOW_READ or name.startswith("on_")


def columns_said(fields: Mapping[str, str], log: LogRecord) -> dict[str, str]:
    """Return a form's choices of columns: reading, persons, and columns to release.

    Each column has its own field with its role (``is_`` and its name). If two claim the role of the case, the new one
    gets it.
    """
    said = {name[3:]: value for name, value in fields.items() if name.startswith("is_") and value}
    found = {name: value for name, value in fields.items() if value and is_reading_option(name)}
    taken = _role_columns(log)
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
    return {name: value for name, value in log.columns.items() if not is_reading_option(name)} | found


def _role_columns(log: LogRecord) -> Mapping[str, str]:
    """Return the columns that have the roles now."""
    read = None if log.reading is None else log.reading.result
    columns = read.columns if isinstance(read, ReadLog) else None
    return {} if columns is None else columns.taken


def _unit(name: str, log: LogRecord) -> str:
    """Return a column's name in releases, if it may identify the person of a case."""
    units = () if log.measured is None else log.measured.units
    own = name.removeprefix("case:")
    return next((unit.column for unit in units if unit.column.removeprefix("case:") == own), "")


_NAMING = "attribute_names"
"""Setting of methods that names attributes to release."""


def may_leave(name: str, log: LogRecord) -> bool:
    """Return True if a column may be released by the roles chosen for the log.

    A column that identifies persons may not. If columns have roles, only those chosen for release may. Starts come with
    the times.
    """
    said = log.columns.get(f"is_{name}")
    if said == IDENTIFYING or name.removeprefix("case:") == _person(log):
        return False
    return said == RELEASE or name == START or not _was_told(log)


def _was_told(log: LogRecord) -> bool:
    """Return True if the log's columns have roles, or its persons were chosen."""
    return "person" in log.columns or any(key.startswith("is_") for key in log.columns)


def _person(log: LogRecord) -> str:
    """Return the log's name of the column that identifies persons."""
    return log.columns.get("person", "").removeprefix("case:")


def _refuse_to_leave(name: str, log: LogRecord, parameter: str) -> None:
    if may_leave(name, log):
        return
    left_out = log.columns.get(f"is_{name}") != IDENTIFYING and name.removeprefix("case:") != _person(log)
    raise ParameterError("attribute-left-out" if left_out else "attribute-identifying", parameter=parameter, name=name)


def refuse_attributes(planned: ReleaseRequest, log: LogRecord) -> None:
    """Refuse attributes that the log lacks, or that its roles do not let be released.

    This includes those of a subset or of a method's settings.
    """
    measured = log.measured
    known = None if measured is None else {*measured.case_attributes, *measured.event_attributes}
    subset = planned.subset
    if subset is not None and not subset.of_time:
        rule = subset.rule.removeprefix("case:")
        if known is not None and rule not in known and f"is_{rule}" not in log.columns:
            raise ParameterError(
                "subset-without-rule", parameter="subset", name=rule, near=_similar_attribute(rule, known)
            )
        _refuse_to_leave(rule, log, "subset")
    for name, parameter in _requested_attributes(planned, log):
        own = name.removeprefix("case:")
        if known is None or own in known or f"is_{own}" in log.columns:
            _refuse_to_leave(own, log, parameter)
        if known is not None and own not in known:
            raise ParameterError(
                "attribute-not-in-log", parameter=parameter, name=name, near=_similar_attribute(own, known)
            )
        values = planned.declared.values_of(name)
        if measured is not None and own in measured.without_numbers and values and isinstance(values[0], float):
            raise ParameterError("attribute-values-without-range", parameter=f"d_{name}", name=repr(name))


def _requested_attributes(planned: ReleaseRequest, log: LogRecord) -> Iterator[tuple[str, str]]:
    """Yield the attributes that would be released, each with its parameter."""
    for name in (*planned.wanted.attributes, *([START] if planned.wanted.processing else [])):
        yield name, "attributes"
    names = str(getattr(planned.settings, _NAMING, None) or "").split(",")
    yield from ((name.strip(), _NAMING) for name in names if name.strip())


def _similar_attribute(name: str, known: Collection[str]) -> Message | str:
    """Return a message on an attribute that differs in upper and lower case alone."""
    near = next((other for other in sorted(known) if other.casefold() == name.casefold()), None)
    return "" if near is None else Message("attribute-near", name=near)
