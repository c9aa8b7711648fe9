"""A log's own words cannot steer the terminal they are shown on."""

import io
from pathlib import Path

import openly
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.table import Table

import veilog
from veilog.cli import main
from veilog.cli.shared.terminal import SafeConsole

HOSTILE = "\x1b[2J\x1b]0;owned\x07\x9b31mred\r\x08\x7f"


def shown(what: object, *, colours: bool) -> str:
    file = io.StringIO()
    SafeConsole(file=file, width=200, force_terminal=colours, color_system="standard" if colours else None).print(what)
    return file.getvalue()


def controls(text: str) -> list[str]:
    return [c for c in text if c not in "\n\t" and (ord(c) < 32 or 0x7F <= ord(c) < 0xA0)]


def test_controls_in_a_cell_are_shown_not_obeyed() -> None:
    table = Table("activity")
    table.add_row(HOSTILE)
    text = shown(table, colours=False)
    assert not controls(text)
    assert "␛[2J␛]0;owned" in text


def test_colours_of_our_own_still_work() -> None:
    assert "\x1b[1mbold\x1b[0m" in shown("[bold]bold[/]", colours=True)


@pytest.mark.slow
@given(st.text())
def test_no_text_reaches_the_terminal_as_a_control(text: str) -> None:
    table = Table("activity")
    table.add_row(text.replace("[", ""))
    assert not controls(shown(table, colours=False))


def test_a_command_shows_an_activity_that_is_an_escape_sequence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = veilog.Variants.from_dict({(HOSTILE, "b"): 30, ("b",): 20})
    openly.release(log, "travas", epsilon=5, delta="0.01", seed=1).save(tmp_path / "hostile.parquet")
    assert main(["info", str(tmp_path / "hostile.parquet")]) == 0
    assert main(["compare", str(tmp_path / "hostile.parquet"), str(tmp_path / "hostile.parquet")]) == 0
    assert main(["info", str(tmp_path / f"{HOSTILE}.csv".replace("\0", ""))]) == 1
    said = capsys.readouterr()
    assert not controls(said.out) and not controls(said.err)
