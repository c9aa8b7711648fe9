"""What reading a log has noticed: one finding a rule, counted, with an example and its line, and a policy.

A reader never drops, merges or repairs anything without a finding. The policy of a rule says what happens to the
element concerned: ``fail`` (reading stops with an :class:`InputError`), ``drop`` (it is left out) or ``keep``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Literal

from veilog._plain import InJson, ToJson
from veilog.errors import InputError, ParameterError, meant

Policy = Literal["drop", "keep", "fail"]
Severity = Literal["error", "warning", "info"]


@dataclass(frozen=True)
class Rule:
    """One thing that can be wrong with a log: what it is, what may be done about it, what is done by default."""

    name: str
    what: str
    severity: Severity
    default: Policy
    policies: tuple[Policy, ...]
    advice: str


_RULES = (
    Rule("case-without-name", "a case has no name (concept:name)", "error", "fail", ("drop", "keep", "fail"),
         "'keep' names such a case by its position, 'drop' leaves the whole case out."),
    Rule("inexact-case-name", "a case is named by a floating-point number too large to be exact", "error", "fail",
         ("keep", "fail"), "Several names may have become one, and their cases one case. Read the column as text; "
         "pandas makes floats of whole numbers where one is missing. 'keep' takes the numbers as they are."),
    Rule("event-without-activity", "an event has no activity (concept:name)", "error", "fail", ("drop", "fail"),
         "'drop' leaves such events out."),
    Rule("missing-timestamp", "an event has no timestamp although others have one", "error", "fail",
         ("drop", "keep", "fail"), "'keep' keeps the event without a time, 'drop' leaves out all without one."),
    Rule("bad-timestamp", "a timestamp cannot be read", "error", "fail", ("drop", "keep", "fail"),
         "'keep' keeps the event without a time, 'drop' leaves the event out."),
    Rule("bad-value", "an attribute's value does not fit its type", "warning", "keep", ("drop", "keep", "fail"),
         "'keep' keeps the value as text in a column of its own, 'drop' leaves the attribute out."),
    Rule("case-attribute-differs", "a column called case:... has several values in one case", "warning", "drop",
         ("drop", "keep", "fail"), "It is an attribute of the case, which has one: 'drop' leaves it unknown there, "
         "'keep' takes the first. Rename the column if it is one of events."),
    Rule("duplicate-case-id", "several cases have the same name", "warning", "keep", ("drop", "keep", "fail"),
         "'keep' keeps them as separate cases, 'drop' keeps only the first."),
    Rule("empty-trace", "a case has no event", "info", "keep", ("drop", "keep", "fail"),
         "'keep' counts it as a case with the empty variant."),
    Rule("duplicate-attribute", "an element has two attributes with the same key", "warning", "keep",
         ("keep", "fail"), "The first one is used."),
    Rule("unordered-timestamps", "the events of a case are not in the order of their timestamps", "info", "keep",
         ("keep", "fail"), "The order of the file is kept, times are left as they are."),
    Rule("repeated-event", "an event stands in its case twice, alike in everything", "info", "keep", ("keep", "fail"),
         "Both count. Where an export has rows twice, remove them first: they make loops that nobody went."),
    Rule("days-only", "times are days, and a case has several events on one day", "info", "keep", ("keep", "fail"),
         "The order of the file is the order of events of one day. If the time of day is in another column, "
         "--timestamp 'DATE+TIME' takes both."),
    Rule("unlikely-time", "a timestamp is in the future, or before 1901", "warning", "keep", ("keep", "fail"),
         "It is taken as it is, and what lasts until it, or from it on, with it. Where such a time stands for none, "
         "as 9999-12-31 or 1900-01-01 do in many systems, leave it empty in the file."),
    Rule("no-timestamps", "no event has a timestamp", "info", "keep", ("keep", "fail"),
         "The order of the file is the order of events."),
    Rule("timestamp-without-zone", "a timestamp has no time zone", "info", "keep", ("keep", "fail"),
         "It is read as UTC."),
    Rule("mixed-time-zones", "timestamps have different offsets from UTC", "info", "keep", ("keep", "fail"),
         "All are converted to UTC; summer and winter time are harmless."),
    Rule("precision-lost", "a timestamp is finer than a microsecond", "info", "keep", ("keep", "fail"),
         "It is cut to microseconds."),
    Rule("not-utf8", "a value of a table is not UTF-8", "warning", "keep", ("keep", "fail"),
         "Such a value is read as Windows-1252; look at its letters beyond ASCII, or export the table in UTF-8."),
    Rule("event-index-missing", "a case has an event without a whole number in its column event:index", "warning",
         "keep", ("keep", "fail"), "The events of such a case are ordered by time, then by row."),
    Rule("lifecycle-transitions", "activities have several transitions, such as start and complete", "warning",
         "keep", ("keep", "fail"), "Every one counts as an event. --lifecycle complete keeps only those that are "
         "complete, --lifecycle intervals makes a start and its end one event; --classifier 'concept:name "
         "lifecycle:transition' tells them apart."),
    Rule("unpaired-transitions", "an event is a start without an end, or another transition", "warning", "drop",
         ("drop", "fail"), "Starts and ends are made one event; what is neither is left out."),
    Rule("title-lines", "lines stand before the header of a table", "info", "drop", ("drop", "fail"),
         "They are left out. --header LINE says where the header is, --header 0 that there is none."),
    Rule("date-and-time", "the date and the time of day are in two columns", "info", "keep", ("keep", "fail"),
         "Both together are the time of the event, a date alone its midnight. --timestamp NAME takes one column "
         "alone."),
    Rule("epoch-numbers", "timestamps are numbers", "info", "keep", ("keep", "fail"),
         "They are counted from the beginning of 1970 in UTC; how large they are tells the unit."),
    Rule("start-and-end", "each row has a start and an end", "info", "keep", ("keep", "fail"),
         "The end is the time of the event, the start stays as its attribute. --lifecycle start takes the starts as "
         "times, --lifecycle all makes two events of a row, start and complete, --lifecycle intervals keeps the start "
         "as a time, start_timestamp."),
    Rule("other-sheets", "a workbook has further sheets with data", "info", "drop", ("drop", "fail"),
         "They are not read. --sheet NAME chooses one."),
    Rule("event-without-object", "an event has no object of the type that is the case", "warning", "drop",
         ("drop", "fail"), "It belongs to no case and is left out. --object-type NAME chooses another type."),
    Rule("object-without-event", "an object of the type that is the case has no event", "info", "drop",
         ("drop", "fail"), "It is left out, so it is no case."),
    Rule("event-in-several-cases", "an event has several objects of the type that is the case", "warning", "keep",
         ("keep", "fail"), "It counts once in each of their cases (convergence), so activities seem to happen more "
         "often than they did, and whoever is in several cases is protected in one of them only."),
    Rule("events-of-other-objects", "a case has an activity several times, for different other objects", "info",
         "keep", ("keep", "fail"), "The flat log does not say which belong together (divergence): it looks as if the "
         "activity was repeated."),
    Rule("not-flat", "a part of an object-centric log has no place in a flat one", "warning", "drop",
         ("drop", "fail"), "It is left out."),
    Rule("unknown-element", "an element is not part of XES", "warning", "drop", ("drop", "fail"),
         "It is left out with everything inside it."),
    Rule("unknown-attribute", "an element has an XML attribute that is not part of XES", "info", "drop",
         ("drop", "fail"), "It is left out."),
    Rule("incomplete-attribute", "an attribute has no key or no value", "warning", "drop", ("drop", "fail"),
         "It is left out."),
    Rule("stray-text", "there is text between the elements, where XES has none", "warning", "drop", ("drop", "fail"),
         "It is left out."),
    Rule("unused-group-row", "a row of the list that groups activities names none of the log", "info", "keep",
         ("keep", "fail"), "Where the log writes the activity differently, it is in the group of all others."),
)  # fmt: skip

_THINGS = {
    "case-without-name": "case",
    "event-without-activity": "event",
    "missing-timestamp": "event",
    "bad-timestamp": "event",
    "bad-value": "value",
    "case-attribute-differs": "value",
    "duplicate-case-id": "case",
    "empty-trace": "case",
    "unpaired-transitions": "event",
    "title-lines": "line",
    "other-sheets": "sheet",
    "event-without-object": "event",
    "object-without-event": "object",
}
"""What a rule leaves out."""

DUPLICATES = (
    "duplicate-case-id=drop: of cases with one name only the first is read, so one case can take the place of another; "
    "with --on duplicate-case-id=keep (the default) they are separate cases."
)

RULES: Mapping[str, Rule] = {rule.name: rule for rule in _RULES}


@dataclass(frozen=True)
class Finding(ToJson):
    """How often a rule was met, one example, and the line of that example where there is one."""

    rule: str
    severity: Severity
    count: int
    example: str
    line: int | None
    policy: Policy
    of_this_log: Annotated[str, InJson(left_out="always")] = ""
    """What to do where the rule's advice does not fit this log."""

    @property
    def advice(self) -> str:
        return self.of_this_log or RULES[self.rule].advice

    @property
    def dropped_thing(self) -> str | None:
        """The kind of what was left out: an event, a case; None where nothing was."""
        return _THINGS.get(self.rule, "element") if self.policy == "drop" else None

    @property
    def dropped(self) -> str | None:
        """What was left out, in words: ``22 events dropped: missing-timestamp``."""
        thing = self.dropped_thing
        if thing is None:
            return None
        return f"{self.count:,} {thing if self.count == 1 else thing + 's'} dropped: {self.rule}"


@dataclass
class Findings:
    """Collects findings while a log is read, and applies the policies.

    ``Findings({"bad-timestamp": "drop"}, path)`` overrides the default policy of a rule. ``collect_all`` turns ``fail``
    into a finding, for ``validate``, which wants to see them all.
    """

    policies: Mapping[str, Policy] = field(default_factory=dict)
    path: str | None = None
    collect_all: bool = False
    _zones: set[bool] = field(default_factory=set)
    _found: dict[str, Finding] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not isinstance(self.policies, Mapping):
            raise ParameterError("policies-not-mapping", parameter="policies", policies=self.policies)
        for name, policy in self.policies.items():
            if name not in RULES:
                raise ParameterError(
                    "rule-unknown", parameter=name, name=name, meant=meant(name, RULES), names=", ".join(sorted(RULES))
                )
            if policy not in RULES[name].policies:
                raise ParameterError(
                    "rule-policy-not-allowed",
                    parameter=name,
                    name=name,
                    policy=policy,
                    meant=meant(policy, RULES[name].policies),
                    names=", ".join(RULES[name].policies),
                )

    def copy(self) -> dict[str, Finding]:
        """What was found so far, to come back to with :meth:`restore`."""
        return dict(self._found)

    def restore(self, found: dict[str, Finding]) -> None:
        self._found = dict(found)

    def policy(self, rule: str) -> Policy:
        return self.policies.get(rule, RULES[rule].default)

    def note_zones(self, *, told: bool, missing: bool) -> None:
        """Note whether there are times with a zone, and such without one."""
        self._zones |= {zone for zone, there in ((True, told), (False, missing)) if there}

    @property
    def zones(self) -> Literal["told", "missing", "partly"] | None:
        """Whether times have a zone: all, none, or some of them; None where nobody noted it."""
        if len(self._zones) == 2:
            return "partly"
        return None if not self._zones else "told" if True in self._zones else "missing"

    def read_together(self) -> tuple[str, ...]:
        """Return the rules that read all cases at once, as the owner has set them: whatever the log holds, the same."""
        return (DUPLICATES,) if self.policy("duplicate-case-id") == "drop" else ()

    def add(self, rule: str, example: str, *, line: int | None = None, count: int = 1, advice: str = "") -> Policy:
        """Note ``count`` occurrences of a rule and say what is to be done; raises if the policy is ``fail``. ``advice``
        stands for that of the rule where this does not fit the log.

        Under ``collect_all`` a failing rule is noted and ``drop`` (where the rule allows it, else ``keep``) returned.
        """
        if count < 1:
            raise ValueError("a finding is something that was found")
        policy = self.policy(rule)
        if policy == "fail" and not self.collect_all:
            what = RULES[rule].what
            others = [p for p in RULES[rule].policies if p != "fail"]
            raise InputError(
                "finding-with-example",
                path=self.path,
                line=line,
                upper=what[0].upper(),
                what=what[1:],
                example=example,
                help=advice or RULES[rule].advice,
                rule=rule,
                names="|".join(others),
            )
        known = self._found.get(rule)
        if known is None:
            self._found[rule] = Finding(rule, RULES[rule].severity, count, example, line, policy, advice)
        else:
            earlier = known.line is None or (line is not None and line < known.line)
            self._found[rule] = Finding(
                rule,
                known.severity,
                known.count + count,
                example if earlier and line is not None else known.example,
                line if earlier and line is not None else known.line,
                policy,
                advice or known.of_this_log,
            )
        if policy == "fail":
            return "drop" if "drop" in RULES[rule].policies else "keep"
        return policy

    def result(self) -> tuple[Finding, ...]:
        """The findings so far: errors first, then warnings, then remarks; by name within."""
        rank = {"error": 0, "warning": 1, "info": 2}
        return tuple(sorted(self._found.values(), key=lambda f: (rank[f.severity], f.rule)))
