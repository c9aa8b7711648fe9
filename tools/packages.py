"""Check the packages of ``make wheel`` as an index would, and a bit more.

    python tools/packages.py dist

One wheel and one sdist of the version in the source; their metadata keep the standard; the files are the right ones.
"""

from __future__ import annotations

import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

from packaging.metadata import Metadata
from trove_classifiers import classifiers

ROOT = Path(__file__).resolve().parents[1]
NEEDED = (
    "README.md",
    "LICENSE",
    "CHANGELOG.md",
    "CITATION.cff",
    "pyproject.toml",
    "src/veilog/py.typed",
    "tests/conftest.py",
)
"""Files of an sdist that let a user build, test and cite it alone."""


def metadata_of(raw: bytes) -> Metadata:
    """Return the metadata of a package; an ExceptionGroup lists all errors in them."""
    found = Metadata.from_email(raw, validate=True)
    if unknown := set(found.classifiers or ()) - classifiers:
        raise ValueError(f"no classifiers of the index: {', '.join(sorted(unknown))}")
    if not (found.description or "").strip() or found.description_content_type != "text/markdown":
        raise ValueError("the description is missing, or it is not said to be Markdown")
    for name in ("summary", "license_expression", "license_files", "requires_python"):
        if not getattr(found, name):
            raise ValueError(f"the metadata lack {name}")
    return found


def of_wheel(path: Path) -> Metadata:
    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
        (place,) = (name for name in names if name.endswith(".dist-info/METADATA"))
        found = metadata_of(archive.read(place))
        info = place.rpartition("/")[0]
        strange = [name for name in names if not name.startswith(("veilog/", f"{info}/"))]
        missing = {"veilog/py.typed", *(f"{info}/licenses/{name}" for name in found.license_files or ())} - set(names)
    if strange or missing:
        raise ValueError(f"{path.name}: files too many {strange}, files too few {sorted(missing)}")
    return found


def of_sdist(path: Path) -> Metadata:
    with tarfile.open(path) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
        (place,) = (name for name in archive.getnames() if name.endswith("/PKG-INFO") and name.count("/") == 1)
        file = archive.extractfile(place)
        found = metadata_of(file.read() if file else b"")
    tracked = set(
        subprocess.run(["git", "ls-files"], cwd=ROOT, check=True, capture_output=True, text=True).stdout.splitlines()
    )
    strange, missing = names - tracked - {"PKG-INFO"}, set(NEEDED) - names
    if strange or missing:
        raise ValueError(f"{path.name}: files not of git {sorted(strange)}, files too few {sorted(missing)}")
    return found


def main() -> int:
    folder = Path(sys.argv[1])
    wheels, sdists = sorted(folder.glob("*.whl")), sorted(folder.glob("*.tar.gz"))
    if len(wheels) != 1 or len(sdists) != 1:
        print(
            f"{folder} has {len(wheels)} wheels and {len(sdists)} sdists, and should have one of each", file=sys.stderr
        )
        return 1
    try:
        ours, theirs = of_wheel(wheels[0]), of_sdist(sdists[0])
    except (ValueError, ExceptionGroup) as error:
        for problem in getattr(error, "exceptions", (error,)):
            print(problem, file=sys.stderr)
        return 1
    version = (ROOT / "src/veilog/_version.py").read_text().split('"')[1]
    if ours.as_rfc822().as_string() != theirs.as_rfc822().as_string() or str(ours.version) != version:
        print(f"wheel {ours.version}, sdist {theirs.version}, source {version}: not the same", file=sys.stderr)
        return 1
    print(f"{wheels[0].name} and {sdists[0].name}: as they should be")
    return 0


if __name__ == "__main__":
    sys.exit(main())
