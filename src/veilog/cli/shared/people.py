"""Options for the persons of a log's cases."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from cyclopts import Parameter

from veilog.errors import ParameterError
from veilog.logs.eventlog import EventLog
from veilog.logs.variants import Variants
from veilog.measures.persons import column_of
from veilog.privacy.persons import columns_of_persons


@Parameter(name="*")
@dataclass(frozen=True)
class Whose:
    """The choice of a column for persons, or of none."""

    person: Annotated[
        str | None,
        Parameter(help="Column that identifies people; by default the one that seems to (see veilog info)."),
    ] = None
    no_person: Annotated[bool, Parameter(negative="", help="Treat each case as a separate person.")] = False

    def asked(self) -> str | bool:
        """Return the choice as use cases and halves take it."""
        if self.person is not None and self.no_person:
            raise ParameterError("person-options-contradict", parameter="person")
        return not self.no_person if self.person is None else self.person

    def column(self, log: EventLog | Variants) -> str | None:
        """Return the person column of this log; refuse one that it does not have."""
        asked = self.asked()
        if isinstance(asked, str):
            if isinstance(log, Variants):
                raise ParameterError("person-without-events", parameter="person")
            columns_of_persons(log, asked, "person")
        return column_of(log, asked)

    def check(self, original: EventLog | Variants | None) -> None:
        """Refuse a column that the original lacks, and options without an original."""
        if original is not None:
            self.column(original)
        elif self.asked() is not True:
            raise ParameterError("person-without-original", parameter="person")


SEEMING = Whose()
