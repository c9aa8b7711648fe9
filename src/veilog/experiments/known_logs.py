"""The public logs that the papers use: how they are recognised, where they are published, which are in a folder.

A paper may use a part of a published log: the complete events, say. Such a log has a name of its own.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from veilog.errors import InputError, VeilogError
from veilog.logs import files
from veilog.logs.eventlog import LIFECYCLE, EventLog
from veilog.logs.input.reader import SUFFIXES
from veilog.logs.input.source import suffix_of
from veilog.logs.variants import Variants

Counts = tuple[int, int, int, int]
"""Cases, events, activities and variants."""


@dataclass(frozen=True)
class KnownLog:
    """A public log: its title, its DOI, the names of its published files, and its counts as papers print them."""

    title: str
    doi: str
    files: tuple[str, ...] = ()
    counts: Counts | None = None
    of: str = ""
    """The published log that this one is a part of."""
    events: tuple[str, str] | None = None
    """The attribute of the events that are kept, and its value."""


_COSELOG = "10.4121/uuid:26aba40d-8b2d-435b-b5af-6d4bfbd7a270"
_COSELOG_COUNTS: tuple[Counts, ...] = (
    (937, 38943, 380, 916),
    (645, 33373, 376, 644),
    (1087, 44801, 369, 1032),
    (787, 34803, 330, 781),
    (892, 43872, 349, 879),
)
LOGS = {
    "bpic2011": KnownLog(
        "BPI Challenge 2011, hospital log",
        "10.4121/uuid:d9769f3d-0ab0-4fb8-803b-0d1120ffcf54",
        ("Hospital_log", "BPI_Challenge_2011"),
        (1143, 150291, 624, 981),
    ),
    "bpic2012": KnownLog(
        "BPI Challenge 2012",
        "10.4121/uuid:3926db30-f712-4394-aebc-75976070e91f",
        ("BPI_Challenge_2012", "financial_log"),
        (13087, 262200, 24, 4366),
    ),
    "bpic2012_complete": KnownLog(
        "BPI Challenge 2012, complete events",
        "10.4121/uuid:3926db30-f712-4394-aebc-75976070e91f",
        counts=(13087, 164506, 23, 4336),
        of="bpic2012",
        events=(LIFECYCLE, "complete"),
    ),
    "bpic2013_incidents": KnownLog(
        "BPI Challenge 2013, incidents",
        "10.4121/uuid:500573e6-accc-4b0c-9576-aa5468b10cee",
        ("BPI_Challenge_2013_incidents", "bpi_challenge_2013"),
        (7554, 65533, 4, 1511),
    ),
    "bpic2014": KnownLog(
        "BPI Challenge 2014, activities of incidents",
        "10.4121/uuid:c3e5d162-0cfd-4bb0-bd82-af5268819c35",
        ("Detail_Incident_Activity", "BPI_Challenge_2014"),
        (46616, 466737, 39, 22632),
    ),
    "bpic2015": KnownLog(
        "BPI Challenge 2015, municipality 1",
        "10.4121/uuid:a0addfda-2044-4541-a450-fdcc9fe16d17",
        ("BPIC15_1", "bpic2015_1"),
        (1199, 52217, 398, 1170),
    ),
    "bpic2017": KnownLog(
        "BPI Challenge 2017",
        "10.4121/uuid:5f3067df-f10b-45da-b98b-86ae4c7a310b",
        ("BPI_Challenge_2017",),
        (31509, 1202267, 26, 15930),
    ),
    "bpic2017_app": KnownLog(
        "BPI Challenge 2017, application events",
        "10.4121/uuid:5f3067df-f10b-45da-b98b-86ae4c7a310b",
        counts=(31509, 239595, 10, 102),
        of="bpic2017",
        events=("EventOrigin", "application"),
    ),
    "bpic2017_complete": KnownLog(
        "BPI Challenge 2017, complete events",
        "10.4121/uuid:5f3067df-f10b-45da-b98b-86ae4c7a310b",
        of="bpic2017",
        events=(LIFECYCLE, "complete"),
    ),
    "bpic2018": KnownLog(
        "BPI Challenge 2018",
        "10.4121/uuid:3301445f-95e8-4ff0-98a4-901f1f204972",
        ("BPI_Challenge_2018",),
        (43809, 2514266, 41, 28457),
    ),
    "bpic2019": KnownLog(
        "BPI Challenge 2019",
        "10.4121/uuid:d06aff4b-79f0-45e6-8ec8-e19730c248f1",
        ("BPI_Challenge_2019",),
        (251734, 1595923, 42, 11973),
    ),
    "bpic2020": KnownLog(
        "BPI Challenge 2020, travel permits",
        "10.4121/uuid:ea03d361-a7cd-4f5e-83d8-5fbdf0362550",
        ("PermitLog", "bpic2020_permit"),
        (7065, 86581, 51, 1478),
    ),
    "ccc19": KnownLog(
        "Conformance Checking Challenge 2019",
        "10.4121/uuid:c923af09-ce93-44c3-ace0-c5508cf103ad",
        ("CCC19 - Log XES",),
        (20, 1394, 29, 20),
    ),
    "ccc19_complete": KnownLog(
        "Conformance Checking Challenge 2019, complete events",
        "10.4121/uuid:c923af09-ce93-44c3-ace0-c5508cf103ad",
        counts=(20, 697, 29, 20),
        of="ccc19",
        events=(LIFECYCLE, "complete"),
    ),
    **{
        f"coselog_wabo_{i}": KnownLog(
            f"CoSeLoG WABO {i}", _COSELOG, (f"CoSeLoG WABO {i}", f"WABO{i}"), _COSELOG_COUNTS[i - 1]
        )
        for i in range(1, 6)
    },
    "credit_requirement": KnownLog(
        "Credit Requirement",
        "10.4121/uuid:453e8ad1-4df0-4511-a916-93f46a37a1b5",
        ("CreditRequirement",),
        (10035, 150525, 8, 1),
    ),
    "hospital_billing": KnownLog(
        "Hospital Billing",
        "10.4121/uuid:76c46b83-c930-4798-a1c9-4be94dfeb741",
        ("Hospital Billing - Event Log",),
        (100000, 451359, 18, 1020),
    ),
    "receipt": KnownLog(
        "CoSeLoG, receipt phase",
        "10.4121/uuid:a07386a5-7be3-4367-9535-70bc9e77dbe6",
        ("Receipt phase of an environmental permit application process (WABO), CoSeLoG project",),
        (1434, 8577, 27, 116),
    ),
    "sepsis": KnownLog(
        "Sepsis Cases",
        "10.4121/uuid:915d2bfb-7e84-49ad-a286-dc35f063a460",
        ("Sepsis Cases - Event Log", "Sepsis Cases"),
        (1050, 15214, 16, 846),
    ),
    "traffic_fines": KnownLog(
        "Road Traffic Fine Management",
        "10.4121/uuid:270fd440-1057-4fb9-89a9-b699b47990f5",
        ("Road_Traffic_Fine_Management_Process",),
        (150370, 561470, 11, 231),
    ),
    "unrineweginfectie": KnownLog(
        "Urineweginfectie (UWI-casus)", "10.4121/12826727.v1", ("Unrineweginfectie",), (1650, 6973, 10, 50)
    ),
}


def find(folder: Path, wanted: Sequence[str] = ()) -> dict[str, Path]:
    """Return the logs of a folder by name: a known log by its file's name, any other by that name without suffixes.

    A log that is ``wanted`` and has no file of its name is also looked for by its counts of cases, events, activities
    and variants, in files whose names say nothing; these are read for it. A part of a log is found where that log is.
    """
    if not folder.is_dir():
        raise InputError("experiment-folder-missing", path=folder)
    found: dict[str, Path] = {}
    for path in sorted(folder.iterdir()):
        suffix = suffix_of(path)
        if suffix not in SUFFIXES or not path.is_file() or path.name.startswith("."):
            continue
        found.setdefault(_name(path.name[: -len(suffix)]), path)
    if not found:
        raise InputError(
            "experiment-folder-without-logs", path=folder, names=", ".join(SUFFIXES), doi=LOGS["sepsis"].doi
        )
    wanted = [*wanted, *(LOGS[name].of for name in wanted if LOGS[name].of)]
    by_counts = {LOGS[name].counts: name for name in wanted if name not in found and LOGS[name].counts}
    for stem in [stem for stem in found if by_counts and stem not in LOGS]:
        name = by_counts.pop(_counts(found[stem]), None)
        if name is not None:
            found[name] = found.pop(stem)
    return found | {name: found[LOGS[name].of] for name in wanted if name not in found and LOGS[name].of in found}


def part_of(name: str, log: EventLog) -> EventLog:
    """Return the events of a log that belong to the log of this name: all of them, unless it is a part of another."""
    known = LOGS.get(name)
    if known is None or known.events is None or known.events[0] not in log.events.column_names:
        return log
    column, value = known.events
    texts = pc.utf8_lower(log.events.column(column).cast(pa.string()))
    left = replace(log, events=log.events.filter(pc.fill_null(pc.equal(texts, value), False)))
    return left.only(np.flatnonzero(np.diff(left.offsets)))


def _name(stem: str) -> str:
    plain = _plain(stem)
    for name, log in LOGS.items():
        if plain in map(_plain, (name, *log.files)):
            return name
    return stem


def _counts(path: Path) -> Counts | None:
    """The counts of a log; None of a file that cannot be read without being told how."""
    try:
        variants: Variants = files.read(path).variants
    except VeilogError:
        return None
    return variants.cases, variants.events, len(variants.labels), len(variants)


def _plain(text: str) -> str:
    return re.sub(r"[^a-z0-9]", "", text.lower())


def missing(wanted: Sequence[str], found: dict[str, Path]) -> str | None:
    """Return a sentence that says which logs of a paper are not there and where they are published."""
    names = [f"{LOGS[name].title} ({name}, doi:{LOGS[name].doi})" for name in wanted if name not in found]
    return f"Logs of the paper that are not in the folder: {'; '.join(names)}." if names else None
