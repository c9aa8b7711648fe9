"""Every file that is no input file has its own error, and nothing is lost."""

from __future__ import annotations

import gzip
import random
import zipfile
from pathlib import Path

import pytest

import veilog.logs.input.source as streams
from veilog.errors import InputError
from veilog.logs.input.source import consumed_fraction, open_input

CONTENT = random.Random(1).randbytes(300_000) + b"<log/>" * 200_000


def _refusal(path: Path, **options: int | None) -> InputError:
    with pytest.raises(InputError) as caught, open_input(path, **options) as stream:
        while stream.read(1 << 16):
            pass
    assert caught.value.path == str(path)
    return caught.value


def _file(folder: Path, name: str, content: bytes) -> Path:
    path = folder / name
    path.write_bytes(content)
    return path


@pytest.mark.parametrize("name", ["a.xes", "a.xes.gz", "a"])
def test_gzip_is_told_by_its_bytes_not_by_its_name(tmp_path: Path, name: str) -> None:
    with open_input(_file(tmp_path, name, gzip.compress(CONTENT))) as stream:
        assert stream.read() == CONTENT


def test_plain_files_come_as_they_are(tmp_path: Path) -> None:
    with open_input(_file(tmp_path, "a.xes", CONTENT)) as stream:
        assert stream.read(10) == CONTENT[:10]
        assert stream.read() == CONTENT[10:]
    with open_input(_file(tmp_path, "empty.xes", b"")) as stream:
        assert stream.read() == b""


def test_several_members_and_zero_padding_are_one_stream(tmp_path: Path) -> None:
    data = gzip.compress(CONTENT) + gzip.compress(b"") + b"\0" * 200_000 + gzip.compress(b"end") + b"\0" * 7
    with open_input(_file(tmp_path, "a.gz", data)) as stream:
        assert stream.read() == CONTENT + b"end"


def test_missing_directory_and_misnamed(tmp_path: Path) -> None:
    assert "no such file" in _refusal(tmp_path / "none.xes").problem
    assert "directory" in _refusal(tmp_path).problem
    assert _refusal(_file(tmp_path, "a.xes.gz", b"<log/>")).code == "gzip-not-compressed"
    assert "empty" in _refusal(_file(tmp_path, "b.xes.gz", b"")).problem
    assert "cannot be read" in _refusal(_file(tmp_path, "c", b"") / "below").problem


@pytest.mark.nightly
def test_every_truncation_of_a_gzip_is_noticed(tmp_path: Path) -> None:
    data = gzip.compress(b"<log>" + bytes(range(256)) + b"</log>")
    for size in range(2, len(data)):
        assert "truncated" in _refusal(_file(tmp_path, "a.gz", data[:size])).problem


def test_corruption_and_appendages_are_noticed(tmp_path: Path) -> None:
    data = bytearray(gzip.compress(CONTENT))
    data[-6] ^= 1  # the checksum
    assert "corrupt" in _refusal(_file(tmp_path, "a.gz", bytes(data))).problem
    data[len(data) // 2] ^= 0xFF
    _refusal(_file(tmp_path, "a.gz", bytes(data)))
    for extra in (b"x", b"\0x", b"\x1f", b"<trace/>"):
        assert "followed by" in _refusal(_file(tmp_path, "a.gz", gzip.compress(b"a") + extra)).problem


def test_the_limit_holds_and_can_be_raised(tmp_path: Path) -> None:
    path = _file(tmp_path, "a.gz", gzip.compress(CONTENT))
    refused = _refusal(path, limit=len(CONTENT) - 1)
    assert str(len(CONTENT) - 1) in refused.problem
    assert refused.advice is not None and "limit" in refused.advice
    for limit in (len(CONTENT), None):
        with open_input(path, limit=limit) as stream:
            assert stream.read() == CONTENT


def test_a_bomb_is_refused_by_its_ratio(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "_RATIO_FROM", 1 << 20)
    path = _file(tmp_path, "a.gz", gzip.compress(bytes(3 << 20)))
    assert "bombs" in _refusal(path).problem
    with open_input(path, limit=4 << 20) as stream:
        assert len(stream.read()) == 3 << 20


@pytest.mark.parametrize("pack", [gzip.compress, bytes])
def test_progress_runs_from_zero_to_one(tmp_path: Path, pack: type[bytes]) -> None:
    with open_input(_file(tmp_path, "a", pack(CONTENT))) as stream:
        seen = [consumed_fraction(stream)]
        while stream.read(100_000):
            seen.append(consumed_fraction(stream))
    assert seen == sorted(seen)
    assert 0 <= seen[0] < 1
    assert seen[-1] == 1.0


def _zip(folder: Path, content: bytes = CONTENT, name: str = "a.xes.zip") -> Path:
    with zipfile.ZipFile(folder / name, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("folder/", b"")
        archive.writestr("folder/a.xes", content)
    return folder / name


def test_the_one_file_in_a_zip_comes_out_of_it(tmp_path: Path) -> None:
    with open_input(_zip(tmp_path)) as stream:
        assert consumed_fraction(stream) < 0.9
        assert stream.read() == CONTENT
        assert consumed_fraction(stream) == 1
    with open_input(_zip(tmp_path, gzip.compress(CONTENT))) as stream:
        assert stream.read() == CONTENT


@pytest.mark.parametrize("place", [0.3, 0.6])
def test_a_damaged_zip_is_refused(tmp_path: Path, place: float) -> None:
    path = _zip(tmp_path)
    raw = bytearray(path.read_bytes())
    at = int(len(raw) * place)
    raw[at : at + 40] = bytes(40)
    path.write_bytes(raw)
    assert _refusal(path).code == "zip-damaged"
    path.write_bytes(raw[:at])
    assert _refusal(path).code == "zip-not-readable"


def test_a_zip_without_a_file_or_with_an_encrypted_one_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("__MACOSX/._a", b"x")
    assert _refusal(path).code == "zip-without-file"
    raw = bytearray(_zip(tmp_path, name="b.zip").read_bytes())
    raw[raw.rfind(b"PK\x01\x02") + 8] |= 1
    assert "is encrypted" in str(_refusal(_file(tmp_path, "c.zip", bytes(raw))))


def test_a_zip_is_bounded_as_gzip_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = _zip(tmp_path, bytes(3 << 20))
    message = _refusal(path, limit=1000).message
    assert (message.code, message.values["limit"]) == ("file-unpacked-too-large", 1000)
    monkeypatch.setattr(streams, "_RATIO_FROM", 1 << 20)
    assert "as bombs do" in str(_refusal(path))
    with open_input(path, limit=None) as stream:
        assert len(stream.read()) == 3 << 20
