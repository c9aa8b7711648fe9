"""Releases, comparisons, risks, ledgers and dossiers as JSON equal stored files.

``python tests/test_snapshots.py`` writes the files anew; the difference shows the effect of a change. The numbers are
of seeded releases of a small made-up log, rounded to nine digits. Seconds, dates and the numbers of versions are left
out.
"""

import hashlib
import json
import re
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import veilog
from veilog._plain import to_json
from veilog.experiments.fingerprints import SENSITIVE, small_log, trials
from veilog.methods import METHODS
from veilog.privacy.domain import ALL_FROM_LOG, Domain
from veilog.report.dossier import as_markdown, dossier

FOLDER = Path(__file__).parent / "snapshots"
LOG = small_log(150)
PUBLIC = Domain(LOG.variants.labels, 20)
KINDS: dict[str, dict[str, Any]] = {
    "times and attributes": {
        "delta": "1e-3",
        "times": "0.4",
        "window": "2024-01-01..2024-12-31",
        "attributes": ["ward", "age", SENSITIVE],
    },
    "persons": {"unit": "case:patient", "max_cases": 2},
    "a part": {"subset": "month=2024-03"},
    "activities found privately": {"activities": "privately", "domain": Domain(max_length=20), "delta": "1e-3"},
}
MOST = 20
NOTHING = 1e-12
"""Bound of rounding differences of equal numbers, which depend on the processor."""
CLOCKED = {"seconds", "date", "created", "created_at", "veilog_version", "version"}


def evolved(**asked: Any) -> veilog.Release:
    return veilog.release(LOG, "evolve", **{"epsilon": 1, "domain": PUBLIC, "seed": 1, **asked})


def of_method(name: str) -> dict[str, object]:
    """Return a method's releases of a small log, by default, in both modes."""
    found: dict[str, object] = {}
    for log, asked in trials(METHODS[name]):
        mode = "as published" if asked.get("as_published") else "certified"
        if mode not in found:
            options = {"domain": ALL_FROM_LOG, "seed": 1} | asked
            found[mode] = said_of(lambda log=log, options=options: veilog.release(log, name, **options).to_json())
    return found


def of_kinds() -> dict[str, object]:
    return {kind: said_of(lambda asked=asked: evolved(**asked).to_json()) for kind, asked in KINDS.items()}


def of_comparison() -> dict[str, object]:
    made = evolved(**KINDS["times and attributes"])
    return {"with times": veilog.compare(LOG, made).to_json(), "variants": veilog.compare(LOG, evolved()).to_json()}


def of_risk() -> dict[str, object]:
    return {"small log": to_json(veilog.risk(LOG, ["set", "sequence"], [1, 3]))}


def of_ledger() -> dict[str, object]:
    """Return a ledger with two unseeded releases, as it counts no seeded one."""
    with tempfile.TemporaryDirectory() as folder:
        ledger = veilog.Ledger.open(Path(folder) / "ledger", create=True)
        for epsilon in ("0.5", "0.25"):
            veilog.release(LOG, "travas", epsilon=epsilon, delta="1e-6", domain=PUBLIC, ledger=ledger)
        told = [account.to_json(guarantees=True) for account in ledger.show()]
    return {"two releases": without(told, "cases", "variants", "events")}


def without(value: Any, *names: str) -> Any:
    """Return the value without these keys: numbers that are drawn anew each time."""
    if isinstance(value, dict):
        return {name: without(part, *names) for name, part in value.items() if name not in names}
    return [without(part, *names) for part in value] if isinstance(value, list | tuple) else value


def of_dossier() -> dict[str, object]:
    made = evolved(**KINDS["times and attributes"])
    return {
        "for the recipient": undated(as_markdown(dossier(made))).splitlines(),
        "for the owner": undated(as_markdown(dossier(made, LOG))).splitlines(),
    }


def undated(text: str) -> str:
    """Return the text without the days on which it was written."""
    return re.sub(r"(written(?: on)?:? )\d{4}-\d\d-\d\d", r"\1...", text)


def said_of(make: Callable[[], object]) -> object:
    """Return the result of a function, or its refusal."""
    try:
        return make()
    except veilog.VeilogError as error:
        return {"refused": type(error).__name__, "parameter": getattr(error, "parameter", None)}


SUBJECTS: dict[str, Callable[[], dict[str, object]]] = {
    **{f"release {name}": (lambda name=name: of_method(name)) for name in METHODS},
    "release kinds": of_kinds,
    "comparison": of_comparison,
    "risk": of_risk,
    "ledger": of_ledger,
    "dossier": of_dossier,
}


def plain(value: Any) -> Any:
    """Return the value as in JSON, without changing parts; long lists end in a hash."""
    if isinstance(value, dict):
        return {str(name): plain(part) for name, part in value.items() if name not in CLOCKED}
    if isinstance(value, list | tuple):
        parts = [plain(part) for part in value]
        rest = hashlib.sha256(json.dumps(parts[MOST:]).encode()).hexdigest()[:12]
        return parts if len(parts) <= 2 * MOST else [*parts[:MOST], f"and {len(parts) - MOST} more: {rest}"]
    if isinstance(value, float):
        return 0.0 if abs(value) < NOTHING else float(f"{value:.9g}")
    if isinstance(value, str):
        return re.sub(r"\b\d{4}-\d\d-\d\dT[\d:.]+(Z|[+-]\d\d:\d\d)?|\b[0-9a-f]{16,}\b", "...", value)
    return value


def written(subject: str) -> str:
    return json.dumps(plain(SUBJECTS[subject]()), indent=1, ensure_ascii=False) + "\n"


def place(subject: str) -> Path:
    return FOLDER / f"{subject.replace(' ', '-')}.json"


@pytest.mark.slow(but=1)
@pytest.mark.parametrize("subject", SUBJECTS)
def test_it_says_what_it_said(subject: str) -> None:
    assert written(subject).splitlines() == place(subject).read_text().splitlines()


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for chosen in sys.argv[1:] or SUBJECTS:
        place(chosen).write_text(written(chosen))
