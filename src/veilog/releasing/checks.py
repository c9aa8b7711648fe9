"""What can be stated about a release: what the program checked, and what only a person can confirm.

A tick is a check. Each code of a statement that the program ticks names the function that verifies it, and nothing else
can be ticked. Everything that a person alone can know (where a list of activities comes from, whether there are other
releases, who receives it) is to be confirmed, whatever the program knows beside it. No statement is a permission: who
answers for the data decides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from veilog._language import ENGLISH, gettext, gettext_noop, spoken
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
    "level": ("the protection level: strong, good, moderate, weak or none", "veilog.privacy.account.guessing:worth"),
    "level_holds_up_to_cases": (
        "the largest log for which that level holds",
        "veilog.privacy.account.guarantee:largest_log",
    ),
    "status": ("proven, or none with its reasons", "veilog.privacy.account.account:ChargeAccount.guarantee"),
    "statements": ("what holds in place of a guarantee: checked on the release", "veilog.methods.method:Groups"),
    "verdict": ("how close a release is to the original", "veilog.measures:verdict_of"),
    "purposes": ("what a release is good for", "veilog.measures.purposes:Purpose"),
    "more": ("whether an attack gains by the release", "veilog.measures.singling_out.measure:SinglingOut"),
}
"""What the program judges beside these, where its JSON or its pages say it, and what decides it."""

_ASKS: Mapping[Code, str] = {
    "activities-from-log": gettext_noop(
        "The names of all activities of the log are no secret, also of those that occur once."
    ),
    "length-from-log": gettext_noop("How many events the longest case has is no secret."),
    "window-from-log": gettext_noop("The days on which the first and the last case start are no secret."),
    "columns-from-log": gettext_noop("Which attributes there are, and their types, is no secret."),
    "activities-mapped": gettext_noop("The list that groups the activities is public, and was not made from the log."),
    "nobody-has-more": gettext_noop("No person has more cases than was said."),
    "unnamed-are-single": gettext_noop("Nobody has several cases of those that name no person, or one beside others."),
    "cases-keep-their-part": gettext_noop("No case is released in two parts, also where the log grows."),
    "units-keep-their-names": gettext_noop("Every case or person has one name in all exports, and no other has it."),
    "one-run": gettext_noop("No copy of the training's checkpoint was resumed beside it."),
    "columns-read-together": gettext_noop("No case changed how the others were read."),
    "method-of-another-package": gettext_noop(
        "The package of the method releases nothing but what follows from the answers to its questions."
    ),
}


class Unverified(AssertionError):
    """Something was to be ticked that no function verifies."""


@dataclass(frozen=True)
class Check:
    """One statement about a release, and what is known about it."""

    code: CheckCode
    state: State
    """"checked": the program verified it; "to-confirm": a person has to; "against": it seems not to hold."""
    asks: str
    why: str

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


def checks_of(
    g: Guarantee, activities: Activities | None, *, from_file: bool = False, say: Callable[[Message], str] = str
) -> tuple[Check, ...]:
    """Return what can be stated about a release from itself alone; nothing where there is no guarantee.

    Args:
        g: its guarantee.
        activities: how the names of its activities became public; None where that is not known.
        from_file: whether the guarantee was read from a file.
        say: turns a sentence of the kernel into the language that is spoken.

    """
    if not g.proven:
        return ()
    checks = [_derived(from_file), *_activities(g, activities), *(_condition(c, say) for c in g.conditions)]
    checks += _unit(g, say, bounded=not from_file)
    return (*checks, _elsewhere(), _recipient(g.strength))


def in_json(checks: Iterable[Check]) -> dict[str, list[dict[str, str]]]:
    """Return two lists: what was checked, and what is to be confirmed."""
    lists: dict[str, list[dict[str, str]]] = {"checked": [], "to_confirm": []}
    for check in checks:
        text = f"{check.asks} {check.why}".strip()
        lists["checked" if check.state == "checked" else "to_confirm"].append({"code": check.code, "text": text})
    return lists


def json_of_checks(g: Guarantee, activities: Activities | None) -> dict[str, list[dict[str, str]]]:
    """Return the lists for a release that was just made, in English, as all JSON is."""
    with spoken(ENGLISH):
        return in_json(checks_of(g, activities))


def _derived(from_file: bool) -> Check:
    if from_file:
        return Check(
            "file-unchanged",
            "to-confirm",
            gettext("The file is as it was written."),
            gettext(
                "The guarantee is what the file states; nobody derived it again. Compare its SHA-256 with the owner's."
            ),
        )
    return Check(
        "guarantee-derived",
        "checked",
        gettext("The guarantee was derived from every question that the method asked of the log."),
        gettext("It does not depend on who reads the release, what they know, or what they compute."),
    )


def _activities(g: Guarantee, activities: Activities | None) -> list[Check]:
    if any(condition.code == "activities-from-log" for condition in g.conditions):
        return []
    if activities in ("privately", "none"):
        why = gettext("Each name in the release came out of the log by an answer with noise.")
        return [
            Check(
                "activities-with-noise", "checked", gettext("The log gave no name of an activity without noise."), why
            )
        ]
    return [
        Check(
            "activities-declared",
            "to-confirm",
            gettext("The list of activities was made without looking at the log."),
            gettext("It was declared. Only the person who made it knows where it comes from.")
            if activities is not None
            else gettext("If they were declared, only the person who made the list knows where it comes from."),
        )
    ]


def _condition(condition: Condition, say: Callable[[Message], str]) -> Check:
    asks = gettext(_ASKS.get(condition.code, gettext_noop("What the guarantee takes for granted holds.")))
    text = say(condition.text).rstrip(".")
    if condition.said_by == "owner":
        why = gettext("{condition} (the owner said so).", condition=text)
    else:
        why = gettext("{condition} (nothing checked it).", condition=text)
    return Check(condition.code, "to-confirm", asks, why)


def _unit(g: Guarantee, say: Callable[[Message], str], *, bounded: bool) -> list[Check]:
    if g.unit == "case":
        return [
            Check(
                "unit", "to-confirm", gettext("A case is what has to be protected, and not a person with several."), ""
            )
        ]
    asks = gettext("The column that tells persons names each person in one way.")
    checks = [Check("unit", "to-confirm", asks, say(g.neighbours) + ".")]
    if bounded and all(condition.code != "nobody-has-more" for condition in g.conditions):
        why = gettext("Of persons with more cases, some were drawn at random before anything was asked.")
        checks.insert(
            0, Check("cases-bounded", "checked", gettext("No person counts with more cases than was said."), why)
        )
    return checks


def _elsewhere() -> Check:
    """Return that other releases of the same data add up, which no program can rule out."""
    return Check(
        "releases-elsewhere",
        "to-confirm",
        gettext("No other release of these data was made elsewhere."),
        gettext("The ε of all releases of the same data add up."),
    )


def _recipient(level: Strength) -> Check:
    """Return what has to be known of who receives a release at this protection level."""
    if level == "moderate":
        asks = gettext("The recipients are known, and have agreed not to look for people in it.")
        why = gettext("At this level a determined reader may become surer of something about one of them.")
    elif level in ("strong", "good"):
        asks = gettext("There is a purpose and a legal basis for giving it to this recipient.")
        why = gettext("The person who answers for the data decides that.")
    else:
        asks = gettext("The recipients could be given the original log, under the same rules.")
        why = gettext("At this level it is to be treated as data about people.")
    return Check("recipient", "to-confirm", asks, why)
