"""Draw the README's first picture: a log before, its release after, and the verdict.

    python tools/pictures.py [FILE]     by default docs/before-after.svg

The log is that of ``veilog demo``. The release is drawn with a seed, so that everybody gets the same picture; what is
said of the protection is that of a release without one.
"""

from __future__ import annotations

import sys
from fractions import Fraction
from pathlib import Path

import veilog
from veilog import demo
from veilog._svg import element, picture
from veilog.logs.simulate import ACTIVITIES, hospital
from veilog.logs.variants import Variants
from veilog.privacy.account.figures import up
from veilog.releasing.meaning import meaning_of

TARGET = Path(__file__).resolve().parents[1] / "docs" / "before-after.svg"
WIDTH, HEIGHT = 860, 330
LEFT, RIGHT, VERDICT = 20, 318, 616
ROWS, STEP, BOX = 6, 26, 20
SHORT = {"Registration": "Re", "Triage": "Tr", "Consultation": "Co", "Discharge": "Di", "Blood test": "Bl"}
SHORT |= {"Urine test": "Ur", "ECG": "EC", "X-ray": "XR", "CT scan": "CT", "Medication": "Me", "Admission": "Ad"}
SHORT |= {"Ward round": "Wa", "Surgery": "Su", "Intensive care": "IC", "Transfer": "Tf", "Death": "De"}
COLOURS = (
    "#2f6690",
    "#5a8ab0",
    "#b06a3b",
    "#4f8a4b",
    "#8e4a8c",
    "#7a5230",
    "#16807a",
    "#5c6770",
    "#b08a1e",
    "#c0392b",
    "#3d2c8d",
)
STYLE = (
    "text{font:12px system-ui,-apple-system,'Segoe UI',Helvetica,Arial,sans-serif;fill:#222}"
    ".h{font-size:15px;font-weight:600}.s{fill:#555;font-size:11px}.n{text-anchor:end}"
    ".b{fill:#fff;font-size:10px;text-anchor:middle}.v{font-size:22px;font-weight:600;fill:#1d7a3e}"
)


def text(x: float, y: float, said: str, kind: str = "") -> str:
    return element("text", said, x=float(x), y=float(y), class_=kind)


def frequent(variants: Variants) -> list[tuple[int, tuple[str, ...]]]:
    """The variants by their cases, the most frequent first."""
    return sorted(((count, path) for path, count in variants.to_dict().items()), key=lambda pair: (-pair[0], pair[1]))


def column(x: int, title: str, below: str, rows: list[tuple[int, tuple[str, ...]]], last: str) -> list[str]:
    """The most frequent variants with their cases, an activity a box, and what is said of the rest."""
    out = [text(x, 44, title, "h"), text(x, 62, below, "s")]
    for place, (count, path) in enumerate(rows):
        y = 80 + place * STEP
        out.append(text(x + 34, y + 14, f"{count:,}", "n"))
        for step, activity in enumerate(path):
            left = x + 44 + step * (BOX + 3)
            colour = COLOURS[ACTIVITIES.index(activity) % len(COLOURS)]
            out.append(element("rect", x=left, y=y, width=BOX, height=BOX, rx=3, fill=colour))
            out.append(text(left + BOX / 2, y + 14, SHORT[activity], "b"))
    return [*out, text(x, 80 + ROWS * STEP + 18, last, "s")]


def drawn() -> str:
    log = hospital(demo.CASES, seed=1).variants
    plan = veilog.plan(demo.METHOD, epsilon=demo.EPSILON, activities=ACTIVITIES)
    made = veilog.release(log, demo.METHOD, epsilon=demo.EPSILON, activities=ACTIVITIES, seed=1).variants
    before, after = frequent(log), frequent(made)
    alone = sum(count == 1 for count, _ in before)
    known = log.to_dict()
    real = sum(count for path, count in made.to_dict().items() if path in known) / made.cases
    similarity = veilog.compare(log, made, models=False).relative_log_similarity
    guess = meaning_of(plan.cost)
    right = up(float((1 + Fraction(guess.advantage)) / 2) * 100, 2) if guess else "100"
    shown = {activity for _, path in (*before[:ROWS], *after[:ROWS]) for activity in path}
    legend = " · ".join(f"{SHORT[activity]} {activity}" for activity in ACTIVITIES if activity in shown)
    sides = [
        *column(LEFT, "Your log", f"{log.cases:,} patients, {len(before):,} paths", before[:ROWS],
                f"… {alone:,} patients have a path of their own: a part" ),
        text(LEFT, 80 + ROWS * STEP + 33, "of it may tell the rest, with names or without", "s"),
        *column(RIGHT, "The release", f"{made.cases:,} made-up cases, {len(after):,} paths", after[:ROWS],
                "… an ordinary log, of people who do not exist;"),
        text(RIGHT, 80 + ROWS * STEP + 33, f"{real:.0%} of them take a path that really occurs", "s"),
        text(VERDICT, 44, "The verdict", "h"),
        text(VERDICT, 62, f"{demo.METHOD}, ε = {demo.EPSILON} for each patient, derived", "s"),
        text(VERDICT, 106, f"Protection: {plan.cost.strength}", "v"),
        text(VERDICT, 134, "Was this patient in the log? A coin is"),
        text(VERDICT, 151, "right in 50 of 100 tries; whoever reads"),
        text(VERDICT, 168, f"the release, in at most {right}."),
        text(VERDICT, 206, f"Similarity to the log: {similarity:.2f} of 1"),
        element("rect", x=VERDICT, y=214, width=224, height=8, rx=4, fill="#e3e6ea"),
        element("rect", x=VERDICT, y=214, width=round(224 * similarity), height=8, rx=4, fill="#1d7a3e"),
    ]  # fmt: skip
    lines = [
        element("title", "A log before, its release after, and the verdict", id="t"),
        element("style", STYLE),
        element("rect", width=WIDTH, height=HEIGHT, fill="#fff"),
        *(element("line", x1=x - 18, x2=x - 18, y1=30, y2=HEIGHT - 50, stroke="#d5d9de") for x in (RIGHT, VERDICT)),
        *sides,
        text(LEFT, HEIGHT - 16, f"Cases by path. {legend}", "s"),
    ]
    return picture(lines, WIDTH, HEIGHT, role="img", aria_labelledby="t")


def main() -> int:
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else TARGET
    target.write_text(drawn(), encoding="utf-8")
    print(f"drawn: {target}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
