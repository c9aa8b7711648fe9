"""Actions of an owner in a browser, and of workers meanwhile, by hand."""

import html
import re

import httpx
from web_serving import SMALL, Served, once_of, read_at_once, upload

from veilog.ledger.ledger import Ledger
from veilog.ledger.store import Data
from veilog.logs import files
from veilog.web.jobs.results import to_text
from veilog.web.work import read_log

LAPLACE = {"method": "laplace", "epsilon": "0.1", "labels": "log", "longest": "log"}


def brought(server: Served, client: httpx.Client, content: bytes = SMALL, name: str = "ward.csv") -> str:
    """Return the address of a log that has been read."""
    address = str(upload(client, content, name).headers["location"])
    read_at_once(server, address)
    return address


def send(client: httpx.Client, page: str, action: str, **fields: str) -> httpx.Response:
    return client.post(action, data={"once": once_of(client.get(page)), **fields})


def ledger_of(server: Served, log: str) -> Ledger:
    return Ledger.open(server.settings.ledger, create=True)


def data_of(server: Served, log: str) -> Data:
    (path,) = (server.settings.folder / log[1:]).iterdir()
    return files.read(path)


def read_as(server: Served, log: str, columns: dict[str, str]) -> None:
    """Act as the worker that reads this log anew with these columns."""
    queued = (server.store.any_job(job.id)[0] for job in server.store.queued())
    (job,) = [job.id for job in queued if job.kind == "read" and log.endswith(job.log)]
    (path,) = (server.settings.folder / log[1:]).iterdir()
    found = read_log(path, columns, lambda text, fraction: None)
    assert server.store.start(job) and found.measured is not None
    mark = found.measured.fingerprint
    assert server.store.end(job, "running", "done", to_text(found), None, mark)


def spend(server: Served, log: str, epsilon: int = 1, unit: str = "case") -> int:
    """Enter a release by hand, as a worker does that was cut off."""
    return ledger_of(server, log).reserve(data_of(server, log), "laplace", epsilon=epsilon, unit=unit).number


def text_of(answer: httpx.Response) -> str:
    return re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]+>", " ", answer.text)))


def value_of(page: httpx.Response, name: str) -> str:
    found = re.search(rf'<input [^>]*(?:id|name)="{name}"[^>]* value="([^"]*)"', page.text)
    assert found, name
    return html.unescape(found[1])
