"""What can be stated about a release: what the program checked, and what only a person can confirm.

A tick is a check. Each code of a statement that the program ticks names the function that verifies it, and nothing else
can be ticked. Everything that a person alone can know (where a list of activities comes from, whether there are other
releases, who receives it) is to be confirmed, whatever the program knows beside it. No statement is a permission: who
answers for the data decides.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Literal, get_args

from veilog.messages import Message
from veilog.privacy.account.guarantee import Code, Condition, Guarantee, Strength
from veilog.privacy.domain import FROM_LOG, PRIVATELY, Domain

State = Literal["checked", "to-confirm", "against"]
Activities = Literal["declared", "log", "privately", "none"]
"""How the names of activities became public: by a list, by the owner's word about the log, found with noise, or not at
all, because no name leaves the log but by an answer with noise."""
Verified = Literal["guarantee-derived", "activities-with-noise", "cases-bounded", "other-releases"]
Asked = Literal["activities-declared", "unit", "releases-elsewhere", "recipient", "file-unchanged", "other-releases"]
CheckCode = Code | Verified | Asked

VERIFIED_BY: Mapping[str, str] = {
    "guarantee-derived": "veilog.privacy.account.account:ChargeAccount.guarantee",
    "activities-with-noise": "veilog.releasing.checks:activities_of",
    "cases-bounded": "veilog.privacy.unit:bounded",
    "other-releases": "veilog.report.words:said_of_others",
}
"""The function that verifies what is ticked, by its code. There is no tick without one."""

VERDICTS: Mapping[str, tuple[str, str]] = {
    "level": (
        "the protection level: strong, good, moderate, weak or none",
        "veilog.privacy.account.guessing_advantage:worth",
    ),
    "level_holds_up_to_cases": (
        "the largest log for which that level holds",
        "veilog.privacy.account.guarantee:largest_log",
    ),
    "status": ("proven, or none with its reasons", "veilog.privacy.account.account:ChargeAccount.guarantee"),
    "statements": ("what holds in place of a guarantee: checked on the release", "veilog.methods.method:Groups"),
    "verdict": ("how close a release is to the original", "veilog.measures:verdict_of"),
    "use_cases": ("what a release is good for", "veilog.measures.use_cases:UseCase"),
    "more": ("whether an attack gains by the release", "veilog.measures.singling_out.measure:SinglingOut"),
}
"""What the program judges beside these, where its JSON or its pages say it, and what decides it."""


class Unverified(AssertionError):
    """Something was to be ticked that no function verifies."""


@dataclass(frozen=True)
class Check:
    """One statement about a release, and what is known about it."""

    code: CheckCode
    state: State
    """"checked": the program verified it; "to-confirm": a person has to; "against": it seems not to hold."""
    asks: Message
    why: Message | None = None

    def __post_init__(self) -> None:
        if self.state == "checked" and self.code not in VERIFIED_BY:
            raise Unverified(f"nothing verifies {self.code!r}")


def activities_of(declared: Domain, needed: Iterable[str]) -> Activities:
    """Return how the names of activities became public in a release that needs these public facts."""
    if declared.activities == PRIVATELY:
        return "privately"
    if declared.activities == FROM_LOG:
        return "log"
    return "none" if declared.activities is None and "activities" not in needed else "declared"


def checks_of(g: Guarantee, activities: Activities | None, *, from_file: bool = False) -> tuple[Check, ...]:
    """Return what can be stated about a release from itself alone; nothing where there is no guarantee.

    Args:
        g: its guarantee.
        activities: how the names of its activities became public; None where that is not known.
        from_file: whether the guarantee was read from a file.

    """
    if not g.proven:
        return ()
    derived = _check("file-unchanged", "to-confirm") if from_file else _check("guarantee-derived", "checked")
    checks = [derived, *_activities(g, activities), *map(_condition, g.conditions), *_unit(g, bounded=not from_file)]
    return (*checks, _check("releases-elsewhere", "to-confirm"), _recipient(g.strength))


def json_of_checks(g: Guarantee, activities: Activities | None) -> dict[str, list[dict[str, str]]]:
    """Return two lists for a release that was just made, in English: what was checked, and what is to be confirmed."""
    lists: dict[str, list[dict[str, str]]] = {"checked": [], "to_confirm": []}
    for check in checks_of(g, activities):
        text = " ".join(message.english for message in (check.asks, check.why) if message is not None)
        lists["checked" if check.state == "checked" else "to_confirm"].append({"code": check.code, "text": text})
    return lists


def _check(code: CheckCode, state: State) -> Check:
    """A check whose two sentences follow from its code alone."""
    return Check(code, state, Message(f"check-{code}"), Message(f"check-{code}-why"))


def _activities(g: Guarantee, activities: Activities | None) -> list[Check]:
    if any(condition.code == "activities-from-log" for condition in g.conditions):
        return []
    if activities in ("privately", "none"):
        return [_check("activities-with-noise", "checked")]
    check = _check("activities-declared", "to-confirm")
    return [check if activities else replace(check, why=Message("check-activities-unknown-why"))]


def _condition(condition: Condition) -> Check:
    why = "check-owner-said-why" if condition.said_by == "owner" else "check-nothing-checked-why"
    code = f"check-{condition.code}" if condition.code in get_args(Code) else "check-of-another-package"
    return Check(condition.code, "to-confirm", Message(code), Message(why, condition=condition.text))


def _unit(g: Guarantee, *, bounded: bool) -> list[Check]:
    if g.unit == "case":
        return [Check("unit", "to-confirm", Message("check-unit-case"))]
    checks = [Check("unit", "to-confirm", Message("check-unit"), Message("check-unit-why", neighbours=g.neighbours))]
    if bounded and all(condition.code != "cases-per-person-bounded" for condition in g.conditions):
        checks.insert(0, _check("cases-bounded", "checked"))
    return checks


def _recipient(level: Strength) -> Check:
    """Return what has to be known of who receives a release at this protection level."""
    known = {"moderate": "moderate", "strong": "good", "good": "good"}.get(level, "weak")
    asks, why = (Message(f"check-recipient-{known}{part}") for part in ("", "-why"))
    return Check("recipient", "to-confirm", asks, why)
