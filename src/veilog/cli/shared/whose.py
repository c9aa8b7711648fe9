"""The options by which the owner of a log says whose its cases are."""

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
    """Whose the cases are."""

    person: Annotated[
        str | None,
        Parameter(help="Column that tells whose a case is; by default the one that seems to, see veilog info."),
    ] = None
    no_person: Annotated[bool, Parameter(negative="", help="Take each case for somebody's own.")] = False

    def asked(self) -> str | bool:
        """As purposes and halves take it."""
        if self.person is not None and self.no_person:
            raise ParameterError("--person and --no-person say opposite things.", parameter="person")
        return not self.no_person if self.person is None else self.person

    def column(self, log: EventLog | Variants) -> str | None:
        """The column of this log; refuses one that it does not have."""
        asked = self.asked()
        if isinstance(asked, str):
            if isinstance(log, Variants):
                raise ParameterError(
                    "--person needs the events themselves, and only the variants were read.",
                    parameter="person",
                    advice="Give the log as a file, without --engine or --memory-limit.",
                )
            columns_of_persons(log, asked, "person")
        return column_of(log, asked)

    def check(self, original: EventLog | Variants | None) -> None:
        """Refuse a column that the original does not have, and what is said of an original that is not there."""
        if original is not None:
            self.column(original)
        elif self.asked() is not True:
            raise ParameterError(
                "--person and --no-person say whose the cases of the original are, and none is given.",
                parameter="person",
                advice="Add --original LOG, or leave them away.",
            )


SEEMING = Whose()
