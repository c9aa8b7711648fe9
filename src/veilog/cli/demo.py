"""The command demo: the main steps once on a synthetic log, kept in a folder."""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from rich.console import RenderableType
from rich.text import Text

from veilog import report
from veilog.cli.shared.log_input import Output
from veilog.cli.shared.options import Json
from veilog.cli.shared.paths import check_all_absent
from veilog.cli.shared.releases import release_brief
from veilog.cli.shared.tables import variants_table
from veilog.errors import OutputError
from veilog.logs import files
from veilog.logs.synthetic import hospital
from veilog.measures import compare
from veilog.releasing.request import plan
from veilog.releasing.run import run_plan

CASES = 2000
METHOD, EPSILON = "evolve", "1"
WRITTEN = ("hospital.xes", "activities.txt", "release.xes", "internal-report.html", "recipient-report.html")
"""Names of the files that it writes."""


def demo(
    folder: Annotated[Path, Parameter(help="Where the sample log and its release go.")] = Path("demo"),
    *,
    json: Json = None,
) -> None:
    """Run the main steps once on a synthetic hospital log: read, release, compare."""
    out = Output(json)
    check_all_absent(folder / name for name in WRITTEN)
    out.json(run_demo(folder, out.show))


def run_demo(folder: Path, show: Callable[[RenderableType], None]) -> dict[str, object]:
    """Make the sample log, release it, compare both; return the command's JSON."""
    started = time.perf_counter()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError("folder-not-made", path=folder, reason=error.strerror) from error
    original_path, activities_path, release_path, internal, recipient = (folder / name for name in WRITTEN)

    made = hospital.hospital(CASES, seed=1)
    files.write(made, original_path, overwrite=True)
    # A real hospital has this list from its documentation; this one comes from the public generator.
    activities_path.write_text("\n".join(hospital.ACTIVITIES) + "\n", encoding="utf-8")
    show(Text(f"1. A synthetic hospital log of {CASES:,} patients, written to {original_path}", style="bold"))
    original = files.read(original_path)
    show(variants_table(original.variants, 3))

    show(Text(f"\n2. Released with {METHOD} at epsilon {EPSILON}", style="bold"))
    # Synthetic patients need no account.
    released = run_plan(plan(METHOD, epsilon=EPSILON, activities=hospital.ACTIVITIES), original)
    released.save(release_path, overwrite=True)
    result = compare(original, files.read(release_path))
    report.write(released, internal, original, comparison=result, overwrite=True)
    report.write(released, recipient, overwrite=True)
    written = [str(release_path), f"{recipient} (for the recipient)", f"{internal} (confidential)"]
    show(release_brief(released, written, result))
    show(variants_table(released.variants, 3))

    seconds = time.perf_counter() - started
    show(Text(f"\nDone in {seconds:.1f} s. Open the pages in a browser. The same by hand:", style="bold"))
    log, out = shlex.quote(str(original_path)), shlex.quote(str(folder / "by-hand.xes"))
    show(f"  veilog info {log}")
    budget = f"--method {METHOD} --epsilon {EPSILON} --activities {shlex.quote(f'@{activities_path}')}"
    show(f"  veilog release {log} {out} {budget}")
    show(f"  veilog compare {log} {out}")
    return {
        "original": str(original_path),
        "activities": str(activities_path),
        "release": str(release_path),
        "info": original.statistics.to_json(),
        "released": released.to_json(),
        "compared": result.to_json(),
        "reports": {"internal": str(internal), "recipient": str(recipient)},
        "seconds": seconds,
    }
