"""Findings while a log is read: rule, count, example with its line, and policy.

A reader never drops, merges or repairs anything without a finding. The policy of a rule decides about the element
concerned: ``fail`` (reading stops with an :class:`InputError`), ``drop`` (it is left out) or ``keep``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Literal

from veilog._plain import InJson, ToJson
from veilog.errors import InputError, ParameterError, meant
from veilog.messages import Message, as_text

Policy = Literal["drop", "keep", "fail"]
Severity = Literal["error", "warning", "info"]


@dataclass(frozen=True)
class Rule:
    """One possible fault of a log: its name, its severity and the possible policies."""

    name: str
    severity: Severity
    default: Policy
    policies: tuple[Policy, ...]
    thing: str = "element"
    """Kind of the elements that it drops, if any."""

    @property
    def message(self) -> Message:
        return Message(f"finding-{self.name}")

    @property
    def what(self) -> str:
        return str(self.message)

    @property
    def advice(self) -> str:
        return self.message.advice


_RULES = (
    Rule("case-without-name", "warning", "keep", ("drop", "keep", "fail"), "case"),
    Rule("inexact-case-name", "error", "fail", ("keep", "fail")),
    Rule("event-without-activity", "warning", "drop", ("drop", "fail"), "event"),
    Rule("missing-timestamp", "error", "fail", ("drop", "keep", "fail"), "event"),
    Rule("one-time-missing", "error", "fail", ("drop", "keep", "fail"), "event"),
    Rule("bad-timestamp", "error", "fail", ("drop", "keep", "fail"), "event"),
    Rule("bad-value", "warning", "keep", ("drop", "keep", "fail"), "value"),
    Rule("case-attribute-differs", "warning", "drop", ("drop", "keep", "fail"), "value"),
    Rule("duplicate-case-id", "warning", "keep", ("drop", "keep", "fail"), "case"),
    Rule("empty-trace", "info", "keep", ("drop", "keep", "fail"), "case"),
    Rule("duplicate-attribute", "warning", "keep", ("keep", "fail")),
    Rule("unordered-timestamps", "info", "keep", ("keep", "fail")),
    Rule("repeated-event", "info", "keep", ("drop", "keep", "fail"), "event"),
    Rule("days-only", "info", "keep", ("keep", "fail")),
    Rule("unlikely-time", "warning", "keep", ("keep", "fail")),
    Rule("no-timestamps", "info", "keep", ("keep", "fail")),
    Rule("timestamp-without-zone", "info", "keep", ("keep", "fail")),
    Rule("mixed-time-zones", "info", "keep", ("keep", "fail")),
    Rule("precision-lost", "info", "keep", ("keep", "fail")),
    Rule("not-utf8", "warning", "keep", ("keep", "fail")),
    Rule("event-index-missing", "warning", "keep", ("keep", "fail")),
    Rule("lifecycle-transitions", "warning", "keep", ("keep", "fail")),
    Rule("unpaired-transitions", "warning", "drop", ("drop", "fail"), "event"),
    Rule("title-lines", "info", "drop", ("drop", "fail"), "line"),
    Rule("date-and-time", "info", "keep", ("keep", "fail")),
    Rule("epoch-numbers", "info", "keep", ("keep", "fail")),
    Rule("start-and-end", "info", "keep", ("keep", "fail")),
    Rule("other-sheets", "info", "drop", ("drop", "fail"), "sheet"),
    Rule("event-without-object", "warning", "drop", ("drop", "fail"), "event"),
    Rule("object-without-event", "info", "drop", ("drop", "fail"), "object"),
    Rule("event-in-several-cases", "warning", "keep", ("keep", "fail")),
    Rule("events-of-other-objects", "info", "keep", ("keep", "fail")),
    Rule("not-flat", "warning", "drop", ("drop", "fail")),
    Rule("unknown-element", "warning", "drop", ("drop", "fail")),
    Rule("unknown-attribute", "info", "drop", ("drop", "fail")),
    Rule("incomplete-attribute", "warning", "drop", ("drop", "fail")),
    Rule("stray-text", "warning", "drop", ("drop", "fail")),
    Rule("unused-group-row", "info", "keep", ("keep", "fail")),
)  # fmt: skip

DUPLICATES = Message("read-together-duplicates")

RULES: Mapping[str, Rule] = {rule.name: rule for rule in _RULES}


@dataclass(frozen=True, slots=True)
class Note:
    """An observation while reading, before any policy is applied."""

    rule: str
    example: str | Message
    line: int | None = None
    count: int = 1


@dataclass(frozen=True)
class Finding(ToJson):
    """Number of times that a rule was met, with an example and its line, if known."""

    rule: str
    severity: Severity
    count: int
    example: Annotated[str | Message, InJson(as_=as_text)]
    line: int | None
    policy: Policy
    of_this_log: Annotated[Message | None, InJson(left_out="always")] = None
    """Advice where that of the rule does not fit this log."""

    @property
    def advice(self) -> str:
        return str(self.of_this_log or RULES[self.rule].advice)

    @property
    def dropped_thing(self) -> str | None:
        """Return the kind of the dropped elements, such as event or case; None for none."""
        return RULES[self.rule].thing if self.policy == "drop" else None

    @property
    def dropped(self) -> str | None:
        """Return the dropped elements in words: ``22 events dropped: missing-timestamp``."""
        thing = self.dropped_thing
        if thing is None:
            return None
        return f"{self.count:,} {thing if self.count == 1 else thing + 's'} dropped: {self.rule}"


@dataclass
class Findings:
    """Collector of findings while a log is read, which applies the policies.

    ``Findings({"bad-timestamp": "drop"}, path)`` overrides the default policy of a rule. ``collect_all`` turns ``fail``
    into a finding, for ``validate``, which lists them all.
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
        """Return the findings so far, for :meth:`restore`."""
        return dict(self._found)

    def restore(self, found: dict[str, Finding]) -> None:
        self._found = dict(found)

    def policy(self, rule: str) -> Policy:
        return self.policies.get(rule, RULES[rule].default)

    def note_zones(self, *, told: bool, missing: bool) -> None:
        """Note that there are times with a zone, and times without one."""
        self._zones |= {zone for zone, there in ((True, told), (False, missing)) if there}

    @property
    def zones(self) -> Literal["told", "missing", "partly"] | None:
        """Return whether all, none or some of the times have a zone; None if unknown."""
        if len(self._zones) == 2:
            return "partly"
        return None if not self._zones else "told" if True in self._zones else "missing"

    def read_together(self) -> tuple[Message, ...]:
        """Return the rules that read all cases at once, by the policies alone."""
        return (DUPLICATES,) if self.policy("duplicate-case-id") == "drop" else ()

    def add(
        self,
        rule: str,
        example: str | Message,
        *,
        line: int | None = None,
        count: int = 1,
        advice: Message | None = None,
    ) -> Policy:
        """Note ``count`` occurrences of a rule and return its policy.

        ``advice`` replaces that of the rule where this does not fit the log. A policy of ``fail`` raises. Under
        ``collect_all`` it is noted instead, and ``drop`` (where the rule allows it, else ``keep``) returned.
        """
        if count < 1:
            raise ValueError("a finding is something that was found")
        policy = self.policy(rule)
        if policy == "fail" and not self.collect_all:
            others = [p for p in RULES[rule].policies if p != "fail"]
            raise InputError(
                "finding-with-advice" if advice else "finding-with-example",
                path=self.path,
                line=line,
                what=RULES[rule].message,
                example=example,
                help=advice,
                rule=rule,
                names="|".join(others),
            )
        found = self._found.get(rule) or Finding(rule, RULES[rule].severity, 0, example, line, policy)
        if line is not None and (found.line is None or line < found.line):
            found = replace(found, example=example, line=line)
        self._found[rule] = replace(found, count=found.count + count, of_this_log=advice or found.of_this_log)
        if policy == "fail":
            return "drop" if "drop" in RULES[rule].policies else "keep"
        return policy

    def add_all(self, notes: Iterable[Note]) -> None:
        """Add these notes, in this order."""
        for note in notes:
            self.add(note.rule, note.example, line=note.line, count=note.count)

    def result(self) -> tuple[Finding, ...]:
        """Return the findings so far: errors, then warnings, then information, by name."""
        rank = {"error": 0, "warning": 1, "info": 2}
        return tuple(sorted(self._found.values(), key=lambda f: (rank[f.severity], f.rule)))
