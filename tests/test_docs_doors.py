"""The README as written: its second command, then its doors, in a new folder."""

import importlib.util
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
MOST_WORDS = 500
PATIENCE = 60.0


def blocks(text: str) -> list[tuple[str, str]]:
    return re.findall(r"^```(sh|python)\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def door(begins: str) -> list[tuple[str, str]]:
    """Return the blocks behind a door, a paragraph that begins with bold words."""
    _, found, after = README.partition(f"**{begins}")
    assert found
    return blocks(re.split(r"^(?:\*\*|## )", after, flags=re.MULTILINE)[0])


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return an environment with the README's programs and a browser that notes."""
    folder = tmp_path_factory.mktemp("bin")
    programs = {
        "veilog": f'exec "{sys.executable}" -m veilog "$@"',
        "python": f'exec "{sys.executable}" "$@"',
        "browser": f'echo "$1" >"{folder}/opened.part" && mv "{folder}/opened.part" "{folder}/opened"',
    }
    for name, does in programs.items():
        (folder / name).write_text(f"#!/bin/sh\n{does}\n")
        (folder / name).chmod(0o755)
    home = tmp_path_factory.mktemp("home")
    more = {"PATH": f"{folder}{os.pathsep}{os.environ['PATH']}", "BROWSER": f"{folder}/browser %s", "HOME": str(home)}
    more["PYTHONPATH"] = os.pathsep.join((str(ROOT / "src"), os.environ.get("PYTHONPATH", "")))
    return {**os.environ, **more, "XDG_DATA_HOME": str(home / "data"), "COLUMNS": "100"}


def walked(text: str, folder: Path, shell: dict[str, str]) -> str:
    done = subprocess.run(
        ["/bin/sh", "-e", "-c", text], cwd=folder, env=shell, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, shell: dict[str, str]) -> Path:
    """Return the folder of the second command; the first installs what is here."""
    made = tmp_path_factory.mktemp("new user")
    ((language, text),) = blocks(README.partition("## Two commands")[2].partition("\n## ")[0])
    install, try_it = text.strip().splitlines()
    assert (language, install) == ("sh", 'pip install ".[web]"')
    walked(try_it, made, shell)
    return made


def test_the_readme_is_short() -> None:
    assert len(README.split()) <= MOST_WORDS
    assert README.count("![") == 2, "one picture of what it does, one figure"
    assert len(re.findall(r"^- It does not", README, re.MULTILINE)) == 3


QUESTIONS = {
    "Which epsilon?": ("choose-epsilon.md", ("strong", "0.40", "1.02")),
    "Which method?": ("choose-a-method.md", ("evolve", "--as-published")),
    "May I send it abroad?": ("send-a-release.md", ("transfer", "dossier", "sha256sum")),
    "Are patients protected, or visits?": ("protect-patients.md", ("--unit Patient", "--max-cases")),
    "How do I use it from pm4py?": ("pm4py-and-pandas.md", ("pm4py.read_xes", "to_pandas()")),
    "What does the ledger do?": ("ledger.md", ("veilog ledger set", "budget")),
    "How do I release every night?": ("nightly-release.md", ("--since last", "cron", "systemd", "| 6 |", "docker")),
    "How is evolve's guarantee proven?": ("evolve.md", ("../proofs.md", "add up")),
    "How do I add a method?": ("add-a-method.md", ("check_method", "veilog.methods")),
    "What are the limits?": ("limits.md", ("5,000", "1,048,575", "5,000,000")),
}
"""Links of the README to one page each, and words of the page's answer."""


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_question_is_answered_by_the_page_that_the_readme_links(question: str) -> None:
    (target,) = re.findall(rf"\[{re.escape(question)}\]\(([^)]+)\)", README)
    name, _, anchor = target.partition("#")
    page, holds = QUESTIONS[question]
    assert name.rpartition("/")[2] == page
    text = (ROOT / name).read_text()
    if anchor:
        text = text.partition(f"\n## {anchor.capitalize()}\n")[2].partition("\n## ")[0]
    assert [piece for piece in holds if piece not in text] == []


@pytest.mark.slow
@pytest.mark.false_alarm(1e-9, "a release of 2,000 cases is noise alone if all its answers are: 1e-100 (Chernoff)")
def test_the_door_of_who_decides(folder: Path, shell: dict[str, str]) -> None:
    ((language, text),) = door("You decide")
    assert language == "sh"
    serve, dossier = text.strip().splitlines()
    page = opened(serve, folder, shell)
    assert "<h1" in page and "veilog" in page
    walked(dossier, folder, shell)
    assert "<h1" in (folder / "demo/dossier.html").read_text()


def opened(serve: str, folder: Path, shell: dict[str, str]) -> str:
    """Return the page that the browser gets when the command opens it."""
    httpx = pytest.importorskip("httpx")
    address = Path(shell["BROWSER"].partition(" ")[0]).with_name("opened")
    with server(serve, folder, shell) as running:
        until = time.monotonic() + PATIENCE
        while not address.exists():
            assert running.poll() is None, "it has ended"
            assert time.monotonic() < until
            time.sleep(0.05)

        class Browser(httpx.HTTPTransport):  # type: ignore[misc,name-defined]
            """Transport that takes names below localhost for this machine, as browsers do."""

            def handle_request(self, request: Any) -> Any:
                if request.url.host.endswith(".localhost"):
                    request.url = request.url.copy_with(host="127.0.0.1")
                return super().handle_request(request)

        with httpx.Client(follow_redirects=True, timeout=PATIENCE, transport=Browser()) as browser:
            answer = browser.get(address.read_text().strip())
            on = re.search(r"/enter\?code=[0-9a-f]+", answer.text)  # the page opens this address by itself
            answer = answer if on is None else browser.get(f"http://{answer.request.headers['host']}{on.group()}")
    assert answer.status_code == 200
    return str(answer.text)


class server:
    """Command that runs until Ctrl-C."""

    def __init__(self, command: str, folder: Path, shell: dict[str, str]) -> None:
        self._process = subprocess.Popen(
            ["/bin/sh", "-c", f"exec {command}"], cwd=folder, env=shell, stdout=subprocess.DEVNULL
        )

    def __enter__(self) -> subprocess.Popen[bytes]:
        return self._process

    def __exit__(self, *of: object) -> None:
        self._process.terminate()
        self._process.wait(PATIENCE)


@pytest.mark.nightly
@pytest.mark.false_alarm(1e-9, "a release of 2,000 cases is noise alone if all its answers are: 1e-100 (Chernoff)")
def test_the_door_of_who_analyses(folder: Path, shell: dict[str, str]) -> None:
    ((language, text),) = door("You analyse")
    assert language == "python"
    assert len(list(filter(None, text.splitlines()))) == 5, "lines of code, as the page announces"
    (folder / "five.py").write_text(text)
    said = walked("python five.py", folder, shell)
    assert "similarity" in said
    assert (folder / "demo/again.xes").stat().st_size > 0


@pytest.mark.nightly
@pytest.mark.false_alarm(1e-9, "a release of 2,000 cases is noise alone if all its answers are: 1e-100 (Chernoff)")
def test_the_door_of_who_builds(folder: Path, shell: dict[str, str]) -> None:
    ((language, text),) = door("You integrate")
    assert language == "sh"
    walked(text, folder, shell)
    assert (folder / "demo/third.xes").stat().st_size > 0
    command = text.splitlines()[0]
    for change, status in ((("--epsilon 1", "--epsilon -1"), 2), (("--method", "--methot"), 2)):
        other = folder / "other.xes"
        wrong = command.replace(*change).replace("demo/third.", "other.")
        done = subprocess.run(["/bin/sh", "-c", wrong], cwd=folder, env=shell, capture_output=True, check=False)
        assert (done.returncode, other.exists()) == (status, False), done.stderr


@pytest.fixture(scope="module")
def pictures() -> ModuleType:
    spec = importlib.util.spec_from_file_location("tools_pictures", ROOT / "tools" / "pictures.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.nightly
def test_the_picture_is_what_its_command_draws(pictures: ModuleType) -> None:
    assert pictures.drawn() == (ROOT / "docs/before-after.svg").read_text(encoding="utf-8"), "make pictures"


def test_the_screens_are_those_that_the_docs_show(pictures: ModuleType) -> None:
    pages = [page for page in (ROOT / "docs").rglob("*.md") if "_build" not in page.parts]
    shown = {name: page.name for page in pages for name in re.findall(r"!\[[^]]+\]\(([^)]+\.png)\)", page.read_text())}
    assert shown == pictures.SCREENS, "make screens"
    assert {path.name for path in (ROOT / "docs").glob("*.png")} == set(shown)
    for name in shown:
        picture = (ROOT / "docs" / name).read_bytes()
        assert picture.startswith(b"\x89PNG")
        assert len(picture) <= pictures.MOST_BYTES


@pytest.mark.nightly
def test_who_is_found_is_what_the_log_says(pictures: ModuleType, logs: Path) -> None:
    found = pictures.exposed(logs)
    assert pictures.why(found) == (ROOT / "docs/why.svg").read_text(encoding="utf-8"), "make pictures VEILOG_LOGS=..."
    assert f"\n{pictures.why_table(found)}\n" in (ROOT / "docs/why.md").read_text(encoding="utf-8")
