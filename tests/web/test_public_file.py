"""A release from a public file: read before any query, and declared by the owner."""

import html
import json
import re
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from web_serving import once_of, served, upload

from veilog.logs import files
from veilog.logs.synthetic.hospital import hospital
from veilog.messages import Message


def waited(holds: Callable[[], bool]) -> None:
    """Wait for the result of a worker."""
    until = time.monotonic() + 120
    while not holds():
        assert time.monotonic() < until
        time.sleep(0.2)


@pytest.mark.slow
def test_a_release_starts_from_something_public_that_was_read_before(tmp_path: Path) -> None:
    made_up = tmp_path / "ward.xes"
    files.write(hospital(200, seed=3), made_up)
    a, b, *_ = hospital(200, seed=3).variants.labels
    with served(tmp_path / "data", workers=1) as own, own.browser() as client:
        log = str(upload(client, made_up.read_bytes(), "ward.xes").headers["location"])
        waited(lambda: "data-person" in client.get(log).text)
        page = client.get(f"{log}/release")
        for name, content, state in (
            ("odd.bpmn", b"<no model", "failed"),
            ("other.txt", f"3,{a},{b}\n1,{a},zzz\n".encode(), "done"),
        ):
            answer = client.post(f"{log}/prior", data={"once": once_of(page)}, files={"file": (name, content)})
            assert answer.status_code == 303 and answer.headers["location"] == f"{log}/release#prior"
            waited(lambda state=state: f'data-prior="{state}"' in client.get(f"{log}/release").text)
            page = client.get(f"{log}/release")
            (job,) = re.findall(r'name="prior_file" value="(\w{32})"', page.text)
            form = {"method": "evolve", "epsilon": "1", "labels": "log", "prior_file": job}
            if state == "failed":
                assert str(own.settings.folder) not in page.text
                assert client.post(f"{log}/check", data=form).status_code == 400, "it was not read"
        assert 'data-shared="2"' in page.text
        assert client.post(f"{log}/check", data={**form, "prior_file": "0" * 32}).status_code == 400
        assert client.post(f"{log}/check", data={**form, "method": "laplace"}).status_code == 400
        waited(lambda: 'data-says="late"' not in client.get(f"{log}/check", params=form).text)
        check = client.get(f"{log}/check", params=form)
        assert 'data-says="prior"' in check.text and str(Message("prior-is-public")) in html.unescape(check.text)
        made = client.post(f"{log}/jobs", data={**form, "once": once_of(check)}).headers["location"]
        waited(lambda: own.store.jobs_of(log[-32:], "release")[0].state == "done")
        done = client.get(made).text
        assert re.search(r'data-check="prior-is-public"', done)
        names = ("certificate.json", "dossier.html", "recipient-report.html", "internal-report.html")
        for name in names:
            found = client.get(f"{made}/files/{name}").text
            assert found and str(own.settings.folder) not in found and job not in found
        certificate = json.loads(client.get(f"{made}/files/certificate.json").text)
        codes = [condition["code"] for condition in certificate["guarantee"]["conditions"]]
        assert "prior-is-public" in codes and certificate["parameters"]["prior"][0]["kind"] == "variants"
