"""Limits of one browser: it cannot fill the disk, or the queue, of all others."""

from __future__ import annotations

import html
from pathlib import Path

import pytest
from refusals import sentence
from web_owner import brought, send
from web_serving import once_of, served, upload

from veilog._language import spoken
from veilog.cli import main
from veilog.cli.serve import _RANGES
from veilog.messages import Message

RELEASE = {"method": "laplace", "epsilon": "1", "labels": "log", "longest": "log", "p_depth": "3"}


@pytest.mark.slow
def test_a_browser_that_keeps_as_much_as_it_may_is_refused_more_and_told_what_to_do(tmp_path: Path) -> None:
    with served(tmp_path / "data", max_kept=2) as server, server.browser() as client, server.browser() as other:
        log = brought(server, client)
        assert send(client, f"{log}/release", f"{log}/jobs", **RELEASE).status_code == 303, "a release counts, too"
        before = len(server.files())
        refused = upload(client, b"case,activity,time\n1,a,2024-01-01\n")
        assert refused.status_code == 507 and "no longer needed" in refused.text
        assert len(server.files()) == before, "nothing of it is left"
        again = send(client, f"{log}/release", f"{log}/jobs", **{**RELEASE, "epsilon": "0.5"})
        assert again.status_code == 507
        made_up = client.post("/example", data={"once": once_of(client.get("/"))})
        assert made_up.status_code == 507
        assert brought(server, other), "nobody else is"
        german = client.post("/example", data={"once": once_of(client.get("/"))}, headers={"accept-language": "de"})
        with spoken("de"):
            assert html.escape(str(Message("enough-kept"))) in german.text
        assert send(client, "/", f"{log}/delete").status_code == 303
        assert brought(server, client), "there is room again"


@pytest.mark.slow
def test_what_came_to_nothing_does_not_count(tmp_path: Path) -> None:
    with served(tmp_path / "data", max_kept=2) as server, server.browser() as client:
        log = brought(server, client)
        job = str(send(client, f"{log}/release", f"{log}/jobs", **RELEASE).headers["location"])
        assert send(client, job, f"{job}/cancel").status_code == 303
        assert send(client, f"{log}/release", f"{log}/jobs", **{**RELEASE, "epsilon": "0.5"}).status_code == 303


@pytest.mark.slow
def test_a_browser_whose_jobs_wait_is_refused_more_and_loses_none(tmp_path: Path) -> None:
    with served(tmp_path / "data", max_waiting=1) as server, server.browser() as client, server.browser() as other:
        log = brought(server, client)
        assert upload(client, b"case,activity,time\n1,a,2024-01-01\n").status_code == 303, "one may wait"
        refused = upload(client, b"case,activity,time\n1,b,2024-01-01\n")
        assert refused.status_code == 429 and sentence("queue-full") in refused.text
        assert send(client, f"{log}/release", f"{log}/jobs", **RELEASE).status_code == 429
        assert send(client, log, f"{log}/read").status_code == 429
        record = next(found for found in server.store.every_log() if log.endswith(found.id))
        assert record.measured is not None, "how it was read before is still there"
        assert brought(server, other)


@pytest.mark.parametrize("option", ["--max-kept", "--max-waiting"])
def test_a_limit_of_nothing_is_none(capsys: pytest.CaptureFixture[str], option: str) -> None:
    assert main(["serve", option, "0"]) == 2
    name = option.removeprefix("--")
    least, most = _RANGES[name.replace("-", "_")]
    out_of_range = sentence("option-out-of-range", name=name, least=least, most=most, value=0)
    assert least == 1 and out_of_range in " ".join(capsys.readouterr().err.split())
