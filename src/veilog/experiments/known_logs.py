"""The public logs that the papers use: their names here, where they are published, and which are in a folder."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from veilog.errors import InputError
from veilog.logs import files
from veilog.logs.input.source import suffix_of

__all__ = ["LOGS", "KnownLog", "find", "missing"]


@dataclass(frozen=True)
class KnownLog:
    """A public log: what papers call it, its DOI, and the name of its published file if that differs."""

    title: str
    doi: str
    published_as: str = ""


LOGS = {
    "bpic2012": KnownLog("BPI Challenge 2012", "10.4121/uuid:3926db30-f712-4394-aebc-75976070e91f"),
    "bpic2013_incidents": KnownLog(
        "BPI Challenge 2013, incidents",
        "10.4121/uuid:500573e6-accc-4b0c-9576-aa5468b10cee",
        "BPI_Challenge_2013_incidents",
    ),
    "bpic2014": KnownLog("BPI Challenge 2014", "10.4121/uuid:c3e5d162-0cfd-4bb0-bd82-af5268819c35"),
    "bpic2015": KnownLog("BPI Challenge 2015", "10.4121/uuid:31a308ef-c844-48da-948c-305d167a0ec1"),
    "bpic2017": KnownLog("BPI Challenge 2017", "10.4121/uuid:5f3067df-f10b-45da-b98b-86ae4c7a310b"),
    "bpic2018": KnownLog("BPI Challenge 2018", "10.4121/uuid:3301445f-95e8-4ff0-98a4-901f1f204972"),
    "bpic2019": KnownLog("BPI Challenge 2019", "10.4121/uuid:d06aff4b-79f0-45e6-8ec8-e19730c248f1"),
    "bpic2020": KnownLog("BPI Challenge 2020", "10.4121/uuid:52fb97d4-4588-43c9-9d04-3604d4613b51"),
    "ccc19": KnownLog("Conformance Checking Challenge 2019", "10.4121/uuid:c923af09-ce93-44c3-ace0-c5508cf103ad"),
    "credit_requirement": KnownLog("Credit Requirement", "10.4121/uuid:453e8ad1-4df0-4511-a916-93f46a37a1b5"),
    "hospital_billing": KnownLog("Hospital Billing", "10.4121/uuid:76c46b83-c930-4798-a1c9-4be94dfeb741"),
    "receipt": KnownLog("CoSeLoG, receipt phase", "10.4121/uuid:a07386a5-7be3-4367-9535-70bc9e77dbe6"),
    "sepsis": KnownLog("Sepsis Cases", "10.4121/uuid:915d2bfb-7e84-49ad-a286-dc35f063a460", "Sepsis Cases - Event Log"),
    "traffic_fines": KnownLog(
        "Road Traffic Fine Management",
        "10.4121/uuid:270fd440-1057-4fb9-89a9-b699b47990f5",
        "Road_Traffic_Fine_Management_Process",
    ),
    "unrineweginfectie": KnownLog("Urineweginfectie (UWI-casus)", "10.4121/12826727.v1"),
}


def find(folder: Path) -> dict[str, Path]:
    """The logs of a folder by name: the known name where it is a known log, otherwise the file's without suffixes."""
    if not folder.is_dir():
        raise InputError(
            "There is no such folder.", path=folder, advice="Give the folder that has the logs, one file each."
        )
    found: dict[str, Path] = {}
    for path in sorted(folder.iterdir()):
        suffix = suffix_of(path)
        if suffix not in files.SUFFIXES or not path.is_file() or path.name.startswith("."):
            continue
        found.setdefault(_name(path.name[: -len(suffix)]), path)
    if not found:
        raise InputError(
            "The folder has no event logs.",
            path=folder,
            advice=f"Logs are files that end in {', '.join(files.SUFFIXES)}; the papers' are on doi.org, for example "
            f"sepsis at doi:{LOGS['sepsis'].doi}.",
        )
    return found


def _name(stem: str) -> str:
    plain = _plain(stem)
    for name, log in LOGS.items():
        if plain == _plain(name) or (log.published_as and plain == _plain(log.published_as)):
            return name
    return stem


def _plain(text: str) -> str:
    return re.sub(r"[^a-z0-9]", "", text.lower())


def missing(wanted: tuple[str, ...], found: dict[str, Path]) -> str | None:
    """A sentence that says which logs of a paper are not there and where they are published."""
    names = [f"{LOGS[name].title} ({name}, doi:{LOGS[name].doi})" for name in wanted if name not in found]
    return f"Logs of the paper that are not in the folder: {'; '.join(names)}." if names else None
