"""Which column of a table is the case, the activity and the timestamp: given, pm4py's, or guessed from its name."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from veilog.errors import InputError
from veilog.logs.eventlog import ACTIVITY, CASE, TIMESTAMP

__all__ = ["Found", "Roles", "guess_roles"]

Found = Literal["given", "pm4py", "guessed"]


@dataclass(frozen=True)
class Roles:
    """The columns for case, activity and timestamp, and how each was found."""

    case: str
    activity: str
    timestamp: str
    case_found: Found = "given"
    activity_found: Found = "given"
    timestamp_found: Found = "given"

    @property
    def guessed(self) -> bool:
        """Whether any column was chosen by its name alone."""
        return "guessed" in (self.case_found, self.activity_found, self.timestamp_found)

    def __str__(self) -> str:
        return (
            f"case {self.case!r} ({self.case_found}), activity {self.activity!r} ({self.activity_found}), "
            f"timestamp {self.timestamp!r} ({self.timestamp_found})"
        )


# Names without case, spaces and signs; the first row with a match decides, two matches in it are ambiguous.
_CASE = (
    "caseid casenumber caseno casenr casekey caseidentifier fallid fallnummer fallnr zaakid zaaknummer zaaknr",
    "case trace traceid fall zaak dossier dossiernummer processinstance processinstanceid",
    "patientid patientnumber patientnr patientnummer patient visitid encounterid stayid hadmid admissionid "
    "incidentid srnumber ticketid orderid applicationid",
)
_ACTIVITY = (
    "activity activityname aktivitat aktivitaet activiteit activiteitnaam",
    "event eventname task taskname taak ereignis vorgang tatigkeit taetigkeit gebeurtenis handeling",
    "eventtype activityid activitycode action step schritt stap operation",
)
_TIMESTAMP = (
    "timestamp zeitstempel tijdstempel tijdstip eventtimestamp eventtime",
    "completetimestamp completetime completiontime endtimestamp endtime enddate endzeit eindtijd einddatum",
    "starttimestamp starttime startdate startzeit starttijd startdatum",
    "time datetime date zeitpunkt zeit datum tijd",
)


def guess_roles(
    columns: Sequence[str], *, case: str | None = None, activity: str | None = None, timestamp: str | None = None
) -> Roles:
    """The roles of these columns: those given, else pm4py's names, else common names in English, German and Dutch.

    Of several time columns the completion counts, as in pm4py. Raises :class:`InputError` that lists the columns when
    a role is missing or two columns have equally good names.
    """
    repeated = sorted({name for name in columns if columns.count(name) > 1})
    if repeated:
        raise InputError(f"Two columns are called {repeated[0]!r}.", advice="Rename one of them.")
    case_, case_found = _find("case", columns, case, CASE, _CASE)
    activity_, activity_found = _find("activity", columns, activity, ACTIVITY, _ACTIVITY)
    timestamp_, timestamp_found = _find("timestamp", columns, timestamp, TIMESTAMP, _TIMESTAMP)
    if len({case_, activity_, timestamp_}) < 3:
        raise InputError(
            f"Case {case_!r}, activity {activity_!r} and timestamp {timestamp_!r} must be three columns.",
            advice=_say(columns),
        )
    return Roles(case_, activity_, timestamp_, case_found, activity_found, timestamp_found)


def _find(
    role: str, columns: Sequence[str], given: str | None, standard: str, tiers: tuple[str, ...]
) -> tuple[str, Found]:
    if given is not None:
        if given not in columns:
            raise InputError(f"There is no column {given!r} for the {role}.", advice=_say(columns))
        return given, "given"
    if standard in columns:
        return standard, "pm4py"
    plain = {name: _plain(name) for name in columns}
    for tier in (_plain(standard), *tiers):
        matches = [name for name in columns if plain[name] in tier.split()]
        if len(matches) > 1:
            raise InputError(
                f"Several columns could be the {role}: {', '.join(map(repr, matches))}.", advice=_say(columns)
            )
        if matches:
            return matches[0], "guessed"
    raise InputError(f"No column looks like the {role}.", advice=_say(columns))


def _plain(name: str) -> str:
    letters = unicodedata.normalize("NFKD", name.casefold())
    return "".join(letter for letter in letters if letter.isalnum())


def _say(columns: Sequence[str]) -> str:
    shown = [repr(name if len(name) <= 60 else name[:57] + "...") for name in columns[:30]]
    more = f" and {len(columns) - 30} more" if len(columns) > 30 else ""
    return f"Say which with --case NAME --activity NAME --timestamp NAME. Columns: {', '.join(shown)}{more}."
