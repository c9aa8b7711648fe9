"""Files go by suffix, are written whole or not, and are refused before any work."""

import contextlib
import gc
import gzip
import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from refusals import refused

from veilog._files import Naming, atomic_target, check_writable
from veilog.errors import InputError, OutputError
from veilog.logs import files
from veilog.logs.eventlog import EventLog
from veilog.logs.input.loader import roles_of
from veilog.logs.input.roles import Roles
from veilog.logs.input.source import Source
from veilog.logs.synthetic.hospital import hospital

FORMATS = [".xes", ".xes.gz", ".csv", ".csv.gz", ".tsv", ".tsv.gz", ".parquet"]


def columns_of(given: object) -> Roles | None:
    return roles_of(Source(given))


@pytest.fixture(scope="module")
def log() -> EventLog:
    return hospital(60, 3)


@pytest.mark.slow
@pytest.mark.parametrize("suffix", FORMATS)
def test_what_is_written_is_read_again(tmp_path: Path, log: EventLog, suffix: str) -> None:
    path = tmp_path / f"log{suffix}"
    files.write(log, path)
    again = files.read(path)
    assert again.variants == log.variants
    assert again.statistics == log.statistics
    assert files.read_variants(path) == log.variants
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize("suffix", FORMATS)
def test_writing_twice_gives_the_same_bytes(tmp_path: Path, log: EventLog, suffix: str) -> None:
    first, second = tmp_path / f"first{suffix}", tmp_path / f"second{suffix}"
    files.write(log, first)
    os.utime(first, (1, 1))
    files.write(log, second)
    assert first.read_bytes() == second.read_bytes()


def test_gzip_carries_neither_time_nor_name(tmp_path: Path, log: EventLog) -> None:
    files.write(log, tmp_path / "log.csv.gz")
    header = (tmp_path / "log.csv.gz").read_bytes()[:10]
    assert header[3] == 0, "no file name"
    assert header[4:8] == b"\0\0\0\0", "no time"


@pytest.mark.parametrize("name", ["log.txt", "log", ".csv", "log.gz", "log.csv.br"])
def test_an_unknown_suffix_is_refused_naming_the_known_ones(tmp_path: Path, log: EventLog, name: str) -> None:
    (tmp_path / name).write_text("case,activity,time\n1,a,2024-01-01\n")
    for attempt in (files.read, files.validate, files.read_variants, columns_of):
        with refused(InputError, "format-not-in-name", "format-unknown"):
            attempt(tmp_path / name)
    with refused(OutputError, "file-suffix-unknown"):
        files.write(log, tmp_path / name)
    assert (tmp_path / name).read_text().startswith("case"), "nothing was overwritten"


def test_the_suffix_may_be_in_capitals(tmp_path: Path, log: EventLog) -> None:
    files.write(log, tmp_path / "LOG.CSV.GZ")
    assert gzip.decompress((tmp_path / "LOG.CSV.GZ").read_bytes()).startswith(b'"case:concept:name"')
    assert files.read(tmp_path / "LOG.CSV.GZ").variants == log.variants


@pytest.mark.parametrize("attempt", [files.read, files.validate, files.read_variants])
def test_a_directory_or_a_missing_file_is_no_log(tmp_path: Path, attempt) -> None:
    (tmp_path / "folder.csv").mkdir()
    with refused(InputError, "folder-without-file", "log-is-directory"):
        attempt(tmp_path / "folder.csv")
    with refused(InputError, "file-missing"):
        attempt(tmp_path / "missing.parquet")
    with refused(InputError, "pattern-without-file"):
        files.read_variants(tmp_path / "missing-*.parquet")
    with pytest.raises(InputError):
        attempt(str(tmp_path / "nul\0.csv"))


@pytest.mark.parametrize("source", [None, 5, b"log.csv", ["log.csv"]])
def test_something_else_is_no_source(source: object) -> None:
    with refused(InputError, "log-not-given"):
        files.read(source)  # type: ignore[arg-type]


@pytest.mark.parametrize("failure", [KeyboardInterrupt, SystemExit, MemoryError, ZeroDivisionError])
def test_an_interrupted_write_leaves_nothing(tmp_path: Path, failure: type[BaseException]) -> None:
    def interrupted() -> None:
        with atomic_target(tmp_path / "out.csv") as file:
            file.write(b"half")
            file.flush()
            assert len(list(tmp_path.iterdir())) == 1, "the temporary file lies beside the target"
            raise failure

    with pytest.raises(failure):
        interrupted()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("suffix", FORMATS)
def test_ctrl_c_in_the_middle_of_writing_a_log_leaves_the_old_file(
    tmp_path: Path, log: EventLog, suffix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / f"log{suffix}"
    path.write_bytes(b"old")

    class Interrupted:
        """A file that is stopped by the user after its first bytes."""

        def __init__(self, file) -> None:
            self._file = file

        def __getattr__(self, name: str):
            return getattr(self._file, name)

        def write(self, data) -> int:
            self._file.write(bytes(data)[:10])
            raise KeyboardInterrupt

    original = atomic_target

    def wrapped(target, naming=None, *, overwrite=True):
        manager = original(target, naming, overwrite=overwrite)
        enter = manager.__enter__

        class Manager:
            def __enter__(self):
                return Interrupted(enter())

            def __exit__(self, *error):
                return manager.__exit__(*error)

        return Manager()

    monkeypatch.setattr(files, "atomic_target", wrapped)
    with pytest.raises(KeyboardInterrupt):
        files.write(log, path, overwrite=True)
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]
    assert path.read_bytes() == b"old"


@pytest.mark.slow
@pytest.mark.parametrize("room", [0, 5, 20, 2_000])
def test_a_disk_that_fills_up_under_a_compressed_file_is_told_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, room: int
) -> None:
    """Also when Python tidies up after it."""
    original = atomic_target

    @contextlib.contextmanager
    def small(target: Path, naming: Naming | None = None, *, overwrite: bool = True) -> Iterator[object]:
        with original(target, naming, overwrite=overwrite) as file:

            class Small:
                def write(self, data: bytes) -> int:
                    if file.tell() + len(data) > room:
                        raise OSError(28, "No space left on device")
                    return file.write(data)

                def __getattr__(self, name: str) -> object:
                    return getattr(file, name)

            yield Small()

    untold: list[object] = []
    monkeypatch.setattr(files, "atomic_target", small)
    monkeypatch.setattr(sys, "unraisablehook", untold.append)
    with refused(OutputError, "file-not-writable"):
        files.write(hospital(300, seed=1), tmp_path / "out.csv.gz")
    gc.collect()
    assert list(tmp_path.iterdir()) == []
    assert untold == []


WRITING = """
import sys
from veilog._files import atomic_target
with atomic_target(sys.argv[1]) as file:
    file.write(b"half")
    file.flush()
    print(flush=True)
    sys.stdin.read()
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="nothing tells there whether somebody writes a file")
def test_what_a_killed_process_left_is_gone_after_the_next_write_and_what_another_one_writes_is_not(
    tmp_path: Path,
) -> None:
    def writing(name: str) -> subprocess.Popen[bytes]:
        call = [sys.executable, "-c", WRITING, str(tmp_path / name)]
        process = subprocess.Popen(call, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert process.stdout is not None and process.stdout.readline()
        return process

    with writing("killed.csv") as killed:
        killed.kill()
    with atomic_target(tmp_path / "out.csv"):
        pass
    assert len(list(tmp_path.glob(".veilog-*.part"))) == 1, "not so soon: another machine may write it"
    with writing("slow.csv") as slow:
        for part in tmp_path.glob(".veilog-*.part"):
            os.utime(part, (0, 0))
        with atomic_target(tmp_path / "out.csv") as file:
            file.write(b"whole")
        assert len(list(tmp_path.glob(".veilog-*.part"))) == 1, "the one that is being written"
        slow.communicate()
    assert slow.returncode == 0
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"slow.csv": b"half", "out.csv": b"whole"}


@pytest.mark.slow
def test_many_that_write_into_a_folder_at_once_remove_nothing_of_each_other(tmp_path: Path) -> None:
    def written(place: int) -> None:
        for again in range(40):
            with atomic_target(tmp_path / f"{place % 3}.csv") as file:
                file.write(str(again).encode())

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(written, range(6)))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["0.csv", "1.csv", "2.csv"]


def test_a_full_disk_is_an_output_error_that_names_the_file(tmp_path: Path) -> None:
    def full() -> None:
        with atomic_target(tmp_path / "out.csv"):
            raise OSError(28, "No space left on device")

    with refused(OutputError, "file-not-writable") as caught:
        full()
    assert str(caught.value.path).endswith("out.csv")
    assert list(tmp_path.iterdir()) == []


def test_unwritable_targets_are_refused_before_any_work(tmp_path: Path, log: EventLog) -> None:
    (tmp_path / "folder.csv").mkdir()
    (tmp_path / "file").write_text("x")
    for name, reason in (
        ("folder.csv", "file-is-directory"),
        ("missing/out.csv", "folder-not-there"),
        ("file/out.csv", "folder-not-there"),
        ("x" * 300 + ".csv", "file-not-writable"),
        ("nul\0.csv", "file-not-writable"),
    ):
        for attempt in (check_writable, files.check_target, lambda path: files.write(log, path)):
            with refused(OutputError, reason):
                attempt(f"{tmp_path}/{name}")
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["file", "folder.csv"]


@pytest.mark.skipif(sys.platform == "win32" or os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_without_permission_is_refused(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(OutputError, match="Permission"):
            check_writable(tmp_path / "out.csv")
    finally:
        tmp_path.chmod(0o700)


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX permissions")
def test_a_rewritten_file_keeps_its_permissions_and_a_link_its_target(tmp_path: Path, log: EventLog) -> None:
    path, link = tmp_path / "real.csv", tmp_path / "link.csv"
    path.write_text("old")
    path.chmod(0o640)
    link.symlink_to(path)
    files.write(log, link, overwrite=True)
    assert link.is_symlink()
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert files.read(path).variants == log.variants


def test_several_files_count_as_one_table_in_the_order_of_their_names(tmp_path: Path) -> None:
    (tmp_path / "log-1.csv").write_text("case,activity,time\n1,a,2024-01-01\n2,a,2024-01-01\n")
    (tmp_path / "log-2.csv").write_text("case;activity;time\n1;b;2024-01-01\n2;c;2023-12-31\n")
    assert files.read_variants(tmp_path / "log-*.csv").to_dict() == {("a", "b"): 1, ("c", "a"): 1}
    pq.write_table(pa.table({"case": ["1"], "activity": ["z"], "time": ["2024-01-02"]}), tmp_path / "log-3.parquet")
    with refused(InputError, "files-formats-differ"):
        files.read_variants(tmp_path / "log-*")


@pytest.mark.slow
def test_a_file_name_with_pattern_signs_is_a_name_when_it_exists(tmp_path: Path, log: EventLog) -> None:
    for suffix in (".csv", ".parquet"):
        path = tmp_path / f"log [1]*{suffix}"
        files.write(log, path)
        assert files.read_variants(path) == log.variants


def test_roles_are_shown_before_reading(tmp_path: Path, log: EventLog) -> None:
    (tmp_path / "log.csv").write_text("Patient,Event,Date\n1,a,2024-01-01\n")
    roles = columns_of(tmp_path / "log.csv")
    assert roles is not None and roles.guessed
    assert str(roles) == "case 'Patient' (guessed), activity 'Event' (guessed), timestamp 'Date' (guessed)"
    files.write(log, tmp_path / "log.xes")
    assert columns_of(tmp_path / "log.xes") is None
    assert not columns_of(log.to_arrow()).guessed  # type: ignore[union-attr]


def test_validate_reports_everything_that_reading_stops_at(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("case,activity,time\n1,a,2024-01-01\n,b,2024-01-01\n1,,2024-01-02\n1,c,never\n1,d,\n1,e,soon\n")
    with refused(InputError, "finding-with-example", rule="bad-timestamp"):
        files.read(path)
    found = {finding.rule: (finding.count, finding.line) for finding in files.validate(path)}
    assert found == {
        "case-without-name": (1, 3),
        "event-without-activity": (1, 4),
        "bad-timestamp": (2, 5),
        "missing-timestamp": (1, 6),
        "timestamp-without-zone": (3, None),
    }


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no such device here")
def test_a_device_is_called_that_whatever_its_name_ends_in() -> None:
    log = hospital(3, seed=1)
    with refused(OutputError, "file-is-device") as caught:
        files.write(log, "/dev/full")
    assert caught.value.advice
