"""The main job once, on a made-up log, with everything it did said and left in a folder."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from rich.console import RenderableType
from rich.text import Text

from veilog import display, report
from veilog.errors import OutputError
from veilog.logs import files, simulate
from veilog.measures import compare
from veilog.releasing.release import release

__all__ = ["run_demo"]

CASES = 2000
METHOD, EPSILON = "evolve", "1"


def run_demo(folder: Path, show: Callable[[RenderableType], None]) -> dict[str, object]:
    """Make the sample log, release it, compare both; returns what the command writes as JSON."""
    started = time.perf_counter()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"The folder cannot be made: {error.strerror}.", path=folder) from error
    original_path, release_path = folder / "hospital.xes", folder / "release.xes"
    activities_path = folder / "activities.txt"

    made = simulate.hospital(CASES, seed=1)
    files.write(made, original_path)
    # A real hospital has this list from its documentation; this one's is as public as the program that made it up.
    activities_path.write_text("\n".join(simulate.ACTIVITIES) + "\n", encoding="utf-8")
    show(Text(f"1. A made-up hospital log of {CASES:,} patients, written to {original_path}", style="bold"))
    original = files.read(original_path)
    show(display.info_table(original.statistics, str(original_path)))
    show(display.variants_table(original.variants))

    show(Text(f"\n2. Released with {METHOD} at epsilon {EPSILON}", style="bold"))
    show(f"Its public activities are declared, in {activities_path}.")
    released = release(original, METHOD, epsilon=EPSILON, activities=simulate.ACTIVITIES)
    released.save(release_path)
    show(display.release_view(released, str(release_path)))

    show(Text("\n3. What the release kept of the original (for the owner of the log only)", style="bold"))
    result = compare(original, files.read(release_path))
    show(display.comparison_table(result))

    inside, outside = folder / "inside.html", folder / "outside.html"
    report.write(released, inside, original, comparison=result)
    report.write(released, outside)
    show(Text("\n4. Reports about the release, to open in a browser", style="bold"))
    show(f"  {inside}: with exact numbers of the original, for its owner only")
    show(f"  {outside}: without them, for the recipients of the release")

    seconds = time.perf_counter() - started
    show(Text(f"\nDone in {seconds:.1f} s. The same by hand:", style="bold"))
    show(f"  veilog info {original_path}")
    budget = f"--method {METHOD} --epsilon {EPSILON} --activities @{activities_path}"
    show(f"  veilog release {original_path} {release_path} {budget}")
    show(f"  veilog compare {original_path} {release_path}")
    return {
        "original": str(original_path),
        "activities": str(activities_path),
        "release": str(release_path),
        "info": original.statistics.to_json(),
        "released": released.to_json(),
        "compared": result.to_json(),
        "reports": {"inside": str(inside), "outside": str(outside)},
        "seconds": seconds,
    }
