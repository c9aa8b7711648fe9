"""Write down the size of an installation and the start times of its commands.

``python tools/installed.py`` installs this checkout, with nothing but its own dependencies, into an environment of its
own. This takes a minute.
"""

import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "results" / "performance.md"
BEGIN, END = "<!-- python tools/installed.py -->\n", "<!-- end -->"
SHOWN = 10
TURNS = 7
STARTS = {
    "`veilog --version`": ("-m", "veilog", "--version"),
    "`veilog --help`": ("-m", "veilog", "--help"),
    "`import veilog`": ("-c", "import veilog"),
    "an empty Python": ("-c", ""),
}


def size(place: Path) -> float:
    """Return the megabytes of a file, or of all files below a folder."""
    files = (
        [place] if place.is_file() else [path for path in place.rglob("*") if path.is_file() and not path.is_symlink()]
    )
    return sum(path.stat().st_size for path in files) / 1e6


def seconds(python: Path, arguments: tuple[str, ...]) -> float:
    """Return the median processor seconds of starts, after one that fills the caches.

    Other work on the machine hardly changes them.
    """
    found = []
    for _ in range(TURNS + 1):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([python, *arguments], check=True, capture_output=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        found.append(after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime)
    return statistics.median(found[1:])


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        python = Path(folder) / "bin" / "python"
        empty = size(Path(folder))
        subprocess.run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", ROOT], check=True)
        whole = size(Path(folder))
        (packages,) = (Path(folder) / "lib").glob("python3*/site-packages")
        sizes = sorted(((size(place), place.name) for place in packages.iterdir()), reverse=True)[:SHOWN]
        starts = {name: seconds(python, arguments) for name, arguments in STARTS.items()}
    lines = [
        "",
        f"`pip install .` into an empty environment of Python {sys.version_info.major}.{sys.version_info.minor}: "
        f"from {empty:.0f} MB to **{whole:.0f} MB**.",
        "",
        "| what | MB |",
        "|---|---|",
        *(f"| `{name}` | {megabytes:.0f} |" for megabytes, name in sizes),
        "",
        "| start | processor seconds, median |",
        "|---|---|",
        *(f"| {name} | {taken:.2f} |" for name, taken in starts.items()),
        "",
        "",
    ]
    before, _, after = PAGE.read_text().partition(BEGIN)
    PAGE.write_text(before + BEGIN + "\n".join(lines) + END + after.partition(END)[2])


if __name__ == "__main__":
    main()
