"""The owner's pages: budgets, notes, logs of other browsers, and what is shared."""

import json
import re
import sqlite3
import time
import zipfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from fractions import Fraction
from io import BytesIO
from pathlib import Path
from types import SimpleNamespace

import httpx
import pytest
from ledger_tools import guarantee
from refusals import sentence
from web_logs import element, says
from web_owner import LAPLACE, brought, data_of, ledger_of, read_as, send, spend, text_of, value_of
from web_serving import SMALL, TOKEN, Served, enter, once_of, read_at_once, served, upload
from web_work import made

from veilog._plain import to_plain
from veilog.ledger.ledger import Ledger
from veilog.logs import files
from veilog.logs.synthetic.hospital import hospital
from veilog.releasing.run import release
from veilog.report.decision import owner_side
from veilog.report.dossier import dossier
from veilog.report.release_facts import facts_of_release
from veilog.web.access import access
from veilog.web.access.transfers import download_name
from veilog.web.jobs.results import to_text
from veilog.web.work.log_reader import log_of


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("owner") / "data") as found:
        yield found


@pytest.fixture(autouse=True)
def alone(server: Served) -> None:
    """Empty the ledger of all browsers, so that no test sees what another spent."""
    for log in server.store.every_log():
        server.store.delete_log(log.id)
    server.settings.ledger.unlink(missing_ok=True)


# The account.


@pytest.mark.slow
def test_a_budget_is_proposed_set_changed_and_taken_away(server: Served, client: httpx.Client, log: str) -> None:
    page = client.get(f"{log}/account")
    assert value_of(page, "epsilon") == "2"
    for given, kept in (("2", 2), ("0,5", 0.5)):
        assert (
            send(client, f"{log}/account", f"{log}/account/limit", epsilon=given).headers["location"]
            == f"{log}/account"
        )
        (account,) = ledger_of(server, log).show()
        assert account.budget is not None and float(account.budget[0]) == kept
    page = client.get(f"{log}/account")
    assert says(page.text) == {"left"} and re.findall(r"\d\.\d", element(page.text, "spent")) == ["0.5", "0.5"]
    assert '<meter class="budget"' in page.text
    refused = send(client, f"{log}/release", f"{log}/jobs", **{**LAPLACE, "epsilon": "0.7"})
    assert refused.status_code == 400
    assert f'href="{log}/account#limit"' in refused.text
    assert "veilog ledger" not in refused.text, "no advice for a terminal"
    assert server.store.jobs_of(log.rpartition("/")[2], "release") == [], "no job is made that can only fail"
    send(client, f"{log}/account", f"{log}/account/limit", none="yes")
    assert ledger_of(server, log).show()[0].budget is None
    for wrong in ({"epsilon": "many"}, {"epsilon": ""}, {"epsilon": "-1"}):
        assert send(client, f"{log}/account", f"{log}/account/limit", **wrong).status_code == 400


@pytest.mark.slow
def test_a_column_is_a_person_by_its_name_or_by_the_users_word(server: Served, client: httpx.Client) -> None:
    visits = "".join(
        f"{i},{step},2026-01-0{day},d{i // 2},p{i // 2}\n" for i in range(40) for day, step in ((1, "a"), (2, "b"))
    )
    log = brought(server, client, b"case,activity,time,Diagnosis,patient\n" + visits.encode())
    page = client.get(log).text
    assert "selected" in role(page, "patient", "person")
    assert "selected" not in role(page, "Diagnosis", "person"), "the user may know better"
    for place, offered in (("release", 'name="unit" value="{}"'), ("account", '<option value="{}"')):
        page = client.get(f"{log}/{place}").text
        assert offered.format("patient") in page and offered.format("Diagnosis") not in page
    chosen = {"person": "Diagnosis", "max_cases": "2"}
    send(client, log, f"{log}/columns", is_Diagnosis="person", max_cases="2")
    read_as(server, log, chosen)
    assert 'name="unit" value="Diagnosis" checked' in client.get(f"{log}/release").text
    assert '<option value="Diagnosis"' in client.get(f"{log}/account").text


def role(page: str, column: str, value: str) -> str:
    """Return the choice of a role in the head of a column."""
    chosen = re.search(rf'name="is_{column}".*?</select>', page, re.DOTALL)
    assert chosen, column
    (option,) = re.findall(rf'<option value="{value}"[^>]*>', chosen[0])
    return str(option)


@pytest.mark.slow
def test_a_budget_is_for_cases_or_for_persons(server: Served, client: httpx.Client, log: str) -> None:
    person = {**LAPLACE, "unit": "person", "max_cases": "2"}
    send(client, f"{log}/account", f"{log}/account/limit", epsilon="1", unit="case")
    refused = send(client, f"{log}/release", f"{log}/jobs", **person)
    assert refused.status_code == 400
    assert sentence("unit-not-of-budget", unit="case", unit_2="person") in text_of(refused)
    send(client, f"{log}/account", f"{log}/account/limit", epsilon="1", unit="person")
    assert '<option value="person" selected>' in client.get(f"{log}/account").text
    assert send(client, f"{log}/release", f"{log}/jobs", **person).status_code == 303
    wrong = send(client, f"{log}/account", f"{log}/account/limit", epsilon="1", unit="nobody")
    assert wrong.status_code == 400


@pytest.mark.slow
def test_the_account_has_every_release_with_what_it_cost_and_who_has_it(
    server: Served, client: httpx.Client, log: str
) -> None:
    job = send(client, f"{log}/release", f"{log}/jobs", **LAPLACE).headers["location"].rpartition("/")[2]
    ledger, data = ledger_of(server, log), data_of(server, log)
    kept, cut, failed = (ledger.reserve(data, "laplace", epsilon=1) for _ in range(3))
    failed.withdraw()
    server.store.start(job)
    server.store.enter(job, kept.number)
    server.store.end(job, "running", "done", to_text(made(files={"release.xes": 3})), None)
    page = client.get(f"{log}/account")
    assert "spent" in says(page.text) and "ε = 2 spent" in text_of(page)
    assert f'<a href="/jobs/{job}">Release {kept.number}: laplace</a>' in page.text
    assert f'href="/jobs/{job}/all.zip"' in page.text
    states = {cut.number: "reserved", failed.number: "withdrawn"}
    assert all(f'id="r{number}" data-state="{state}"' in page.text for number, state in states.items())
    note = {"entry": str(cut.number), "recipient": "<b>University</b>", "note": "thesis"}
    answer = send(client, f"{log}/account", f"{log}/account/note", **note)
    assert answer.headers["location"] == f"{log}/account#r{cut.number}"
    page = client.get(f"{log}/account").text
    assert 'value="&lt;b&gt;University&lt;/b&gt;"' in page and 'value="thesis"' in page
    unknown = send(client, f"{log}/account", f"{log}/account/note", entry="999", recipient="x")
    assert unknown.status_code == 400


@pytest.mark.slow
def test_a_release_is_shown_with_what_the_ledger_knows_now(server: Served, client: httpx.Client, log: str) -> None:
    """A release is shown with the ledger's present state, and other accounts open."""
    address = send(client, f"{log}/release", f"{log}/jobs", **LAPLACE).headers["location"]
    job, entry = address.rpartition("/")[2], spend(server, log)
    data = hospital(60, seed=1)
    told = facts_of_release(release(data, "evolve", epsilon=1, activities="log"))
    told = replace(told, guarantee=replace(told.guarantee, charges=()))
    kept = made(entry=entry, told=told, owner=owner_side(data, None), cases=60)
    server.store.start(job)
    server.store.end(job, "running", "done", to_text(kept), None)
    assert checked(client.get(address)) == "checked"
    other = brought(server, client, SMALL + b"c9,come,2024-02-01\n", "april.csv")
    spend(server, other)
    page = client.get(address)
    assert checked(page) == "checked" and "1 other account" in text_of(page)
    spend(server, log, 2)
    assert checked(client.get(address)) == "against"


@pytest.mark.slow
def test_who_confirmed_what_is_in_the_dossier_and_in_the_account(
    server: Served, client: httpx.Client, log: str
) -> None:
    address = send(client, f"{log}/release", f"{log}/jobs", **LAPLACE).headers["location"]
    job, entry = address.rpartition("/")[2], spend(server, log)
    data = hospital(60, seed=1)
    released = release(data, "evolve", epsilon=1, activities="log")
    told = facts_of_release(released)
    told = replace(told, guarantee=replace(told.guarantee, charges=()))
    folder = server.settings.folder / "jobs" / job
    folder.mkdir()
    (folder / "dossier.json").write_text(json.dumps(to_plain(dossier(released))))
    server.store.start(job)
    server.store.enter(job, entry)
    kept = made(entry=entry, told=told, owner=owner_side(data, None), cases=60)
    server.store.end(job, "running", "done", to_text(kept), None)
    assert send(client, address, f"{address}/sign", name=" ", ok_unit="yes").status_code == 400
    with server.browser() as other:
        assert other.post(f"{address}/sign", data={"once": once_of(other.get("/")), "name": "x"}).status_code == 404
    given = {"name": "Dr. <b>Meier</b>", "recipient": "University", "ok_unit": "yes", "ok_other": "yes"}
    assert send(client, address, f"{address}/sign", **given).headers["location"] == address
    page = client.get(address).text
    assert 'data-signed="activities-from-log unit"' in page, "what was stated in the settings is under it, too"
    assert 'id="ok_recipient"' not in page and "Dr. &lt;b&gt;Meier" in page
    text = (folder / "dossier.html").read_text()
    assert text.count("Dr. &lt;b&gt;Meier") == 2 and text.count('<span class="box">✓</span>') == 2
    assert server.store.notes(server.store.jobs_of(log[-32:], "release")[0].session)[entry][0] == "University"
    assert "University" in client.get("/").text


def checked(page: httpx.Response) -> str:
    """Return the state of a release's check of other releases of the same data."""
    (state,) = re.findall(r'<li class="([\w-]+)" data-check="other-releases">', page.text)
    return str(state)


@pytest.mark.slow
def test_the_page_of_a_budget_writes_numbers_as_its_language_does(
    server: Served, client: httpx.Client, log: str
) -> None:
    send(client, f"{log}/account", f"{log}/account/limit", epsilon="3")
    spend(server, log, 2)
    assert ">66.7 %</meter>" in client.get(f"{log}/account").text
    german = client.get(f"{log}/account", headers={"accept-language": "de"}).text
    assert re.search(r">66,7.%</meter>", german), "a browser that draws no meter shows this"
    assert 'value="66.7"' in german, "and one that does reads this"


@pytest.mark.slow
def test_a_release_of_another_log_on_the_account_is_found_from_both(
    server: Served, client: httpx.Client, log: str
) -> None:
    job = send(client, f"{log}/release", f"{log}/jobs", **LAPLACE).headers["location"].rpartition("/")[2]
    entry = spend(server, log)
    server.store.start(job)
    server.store.enter(job, entry)
    server.store.end(job, "running", "done", to_text(made(entry=entry)), None)
    again = brought(server, client, SMALL, "again.csv")
    page = client.get(f"{again}/account")
    assert f'<a href="/jobs/{job}">Release {entry}' in page.text
    assert "Compare release" not in page.text, "there is one only"
    send(client, "/", f"/jobs/{job}/delete")
    assert "/jobs/" not in element(client.get(f"{again}/account").text, f"r{entry}")


@pytest.mark.slow
def test_a_ledger_that_others_share_is_said_to_be_so(tmp_path: Path) -> None:
    """A shared ledger is called so, and counts releases of all browsers and commands."""
    place = tmp_path / "shared.ledger"
    with served(tmp_path / "data", ledger=place) as shared, shared.browser() as mine, shared.browser() as theirs:
        log, same = brought(shared, mine), brought(shared, theirs)
        job = send(mine, f"{log}/release", f"{log}/jobs", **LAPLACE).headers["location"].rpartition("/")[2]
        entry = Ledger.open(place, create=True).reserve(data_of(shared, log), "laplace", epsilon=1).number
        shared.store.start(job)
        shared.store.enter(job, entry)
        shared.store.end(job, "running", "done", to_text(made(entry=entry)), None)
        assert "/jobs/" not in element(theirs.get(f"{same}/account").text, f"r{entry}")
        assert f'href="/jobs/{job}"' in mine.get(f"{log}/account").text


@pytest.mark.slow
def test_what_a_failed_job_cost_is_said(server: Served, client: httpx.Client, log: str) -> None:
    ledger, data = ledger_of(server, log), data_of(server, log)
    for end, price in (("reserved", "reserved"), ("withdrawn", "withdrawn"), (None, "nothing")):
        fields = {**LAPLACE, "again": "yes", "lower": "yes"}
        address = send(client, f"{log}/release", f"{log}/jobs", **fields).headers["location"]
        job = address.rpartition("/")[2]
        server.store.start(job)
        if end is not None:
            reservation = ledger.reserve(data, "laplace", epsilon=1)
            server.store.enter(job, reservation.number)
            if end == "withdrawn":
                reservation.withdraw()
        server.store.end(job, "running", "failed", None, "The system ended this job.")
        (said,) = re.findall(rf'<p data-price="{price}"><b>(.*?)</b>', client.get(address).text)
        assert ("ε = 1" in said) == (end == "reserved")


@pytest.mark.slow
def test_a_file_read_anew_keeps_its_account(server: Served, client: httpx.Client) -> None:
    content = SMALL + b"c0,odd,\n"
    log = str(upload(client, content, "odd.csv").headers["location"])
    read_as(server, log, {"on_missing-timestamp": "drop"})
    assert says(client.get(f"{log}/account").text) == {"nothing"}
    (path,) = (server.settings.folder / log[1:]).iterdir()
    text = path.read_text().replace("c0,odd,\n", "")
    path.with_suffix(".other.csv").write_text(text)
    dropped = files.read(path.with_suffix(".other.csv"))
    path.with_suffix(".other.csv").unlink()
    ledger_of(server, log).reserve(dropped, "laplace", epsilon=1)
    assert "ε = 1 spent" in text_of(client.get(f"{log}/account"))
    send(client, log, f"{log}/columns", case="case", activity="activity", timestamp="time")
    read_as(server, log, {"on_missing-timestamp": "drop", "activity": "case", "case": "activity"})
    assert "ε = 1 spent" in text_of(client.get(f"{log}/account")), "other columns, the same people"
    again = str(upload(client, content, "renamed.csv").headers["location"])
    read_as(server, again, {"on_missing-timestamp": "drop", "activity": "case", "case": "activity"})
    plan = client.get(f"{again}/check", params=LAPLACE)
    assert "other-case" in says(plan.text) and "case, activity" in text_of(plan), "brought twice, the same people"


@pytest.mark.slow
def test_another_column_of_cases_is_another_kind_of_case(server: Served, client: httpx.Client) -> None:
    """Another column of cases is another kind of case, which does not add up."""
    content = SMALL + b"c0,odd,\n"
    log = str(upload(client, content, "odd.csv").headers["location"])
    swapped = {"on_missing-timestamp": "drop", "activity": "case", "case": "activity"}
    (path,) = (server.settings.folder / log[1:]).iterdir()
    logs = [
        log_of(path, columns, lambda text, fraction: None) for columns in ({"on_missing-timestamp": "drop"}, swapped)
    ]
    read_as(server, log, {"on_missing-timestamp": "drop"})
    ledger = ledger_of(server, log)
    ledger.reserve(logs[0].variants, "laplace", epsilon=1)
    send(client, log, f"{log}/columns", case="case", activity="activity", timestamp="time")
    read_as(server, log, swapped)
    plan = client.get(f"{log}/check", params=LAPLACE)
    assert "other-case" in says(plan.text) and "case, activity" in text_of(plan)
    assert "1.1" not in text_of(plan) and 'data-together="none in practice"' in plan.text
    ledger.enter(logs[1].variants, account=1)
    ledger.reserve(logs[1].variants, "laplace", epsilon=2)
    page = client.get(f"{log}/account").text
    assert "several-units" in says(page) and sums(page) == [("case", "1"), ("activity", "2")]
    assert "ε = 3" not in page
    send(client, f"{log}/account", f"{log}/account/limit", epsilon="9", unit="case")
    refused = send(client, f"{log}/release", f"{log}/jobs", **LAPLACE)
    assert refused.status_code == 400
    assert sentence("account-case-kind-differs", listed="'case' and 'activity'", kind="activity") in text_of(refused)
    assert "--case" not in refused.text


def sums(page: str) -> list[tuple[str, str]]:
    """Return the sums of an account by unit, or by kind of case."""
    return re.findall(r'data-sum="([^"]+)">[^<]*ε = ([\d.]+)', page)


@pytest.mark.slow
def test_costs_for_cases_and_for_persons_are_not_added_up(server: Served, client: httpx.Client, log: str) -> None:
    spend(server, log, 1)
    person = {**LAPLACE, "unit": "person", "max_cases": "2"}
    told = client.get(f"{log}/check", params=person)
    assert "other-unit" in says(told.text) and "1.1" not in text_of(told)
    spend(server, log, 2, unit="person")
    page = client.get(f"{log}/account").text
    assert "several-units" in says(page) and sums(page) == [("case", "1"), ("person", "2")]


@pytest.mark.slow
def test_releases_that_the_ledger_lost_are_missed(server: Served, client: httpx.Client, log: str) -> None:
    job = send(client, f"{log}/release", f"{log}/jobs", **LAPLACE).headers["location"].rpartition("/")[2]
    server.store.start(job)
    server.store.enter(job, 1)
    server.store.end(job, "running", "done", to_text(made()), None)
    assert missed(client.get(f"{log}/account").text) == ["1"]
    plan = client.get(f"{log}/check", params=LAPLACE).text
    assert missed(plan) == ["1"] and "no-release" not in says(plan)
    with server.store._write_transaction() as connection:
        connection.execute("UPDATE jobs SET finished = finished - 60")
    assert spend(server, log) == 1, "the number that the one had that is missing"
    page = client.get(f"{log}/account")
    assert missed(page.text) == ["1"]
    assert f'href="/jobs/{job}' not in page.text, "that one is of another job"


def missed(page: str) -> list[str]:
    """Return how many releases of a page the ledger does not have."""
    return re.findall(r'data-says="lost">(?:<b>)?\D*(\d+)', page)


@pytest.mark.slow
def test_a_failed_attempt_is_no_release(server: Served, client: httpx.Client, log: str) -> None:
    ledger_of(server, log).reserve(data_of(server, log), "laplace", epsilon=1).withdraw()
    plan = client.get(f"{log}/check", params=LAPLACE)
    assert "no-release" in says(plan.text) and "0 releases" not in text_of(plan)


@pytest.mark.slow
def test_a_log_is_put_on_the_account_of_the_same_people(server: Served, client: httpx.Client, log: str) -> None:
    spend(server, log, 1)
    grown = brought(server, client, SMALL + b"c9,come,2024-02-01\n", "grown.csv")
    number = ledger_of(server, log).show()[0].number
    assert f'<option value="{number}">' in client.get(f"{grown}/account").text
    answer = send(client, f"{grown}/account", f"{grown}/account/join", account=str(number))
    assert answer.status_code == 303
    assert "ε = 1 spent" in text_of(client.get(f"{grown}/account"))
    assert send(client, f"{grown}/account", f"{grown}/account/join", account="77").status_code == 400


@pytest.mark.slow
def test_another_log_is_let_spend_where_one_has_a_budget(server: Served, client: httpx.Client, log: str) -> None:
    send(client, f"{log}/account", f"{log}/account/limit", epsilon="2")
    other = brought(server, client, SMALL + b"c9,come,2024-02-01\n", "other.csv")
    plan = client.get(f"{other}/check", params=LAPLACE)
    assert "beside-budget" in says(plan.text), "one case more is no silent way around a budget"
    assert send(client, f"{other}/release", f"{other}/jobs", **LAPLACE).status_code == 303


@pytest.mark.slow
def test_a_release_that_takes_the_sum_to_a_lower_level_is_ticked(
    server: Served, client: httpx.Client, log: str
) -> None:
    spend(server, log)
    asked = {**LAPLACE, "epsilon": "1.5"}
    plan = client.get(f"{log}/check", params=asked)
    assert "falls" in says(plan.text)
    answer = send(client, f"{log}/release", f"{log}/jobs", **asked)
    assert answer.status_code == 409 and 'name="lower"' in answer.text
    assert server.store.jobs_of(log.rpartition("/")[2], "release") == [], "nothing was asked"
    assert send(client, f"{log}/release", f"{log}/jobs", **asked, lower="yes").status_code == 303
    again = send(client, f"{log}/release", f"{log}/jobs", **asked, lower="yes")
    assert (
        again.status_code == 409 and 'name="again"' in again.text and 'name="lower" value="yes" checked' in again.text
    )
    assert send(client, f"{log}/release", f"{log}/jobs", **asked, lower="yes", again="yes").status_code == 303


@pytest.mark.slow
def test_releases_that_are_not_counted_are_listed_and_counted(server: Served, client: httpx.Client, log: str) -> None:
    ledger_of(server, log).note_uncounted(data_of(server, log), "laplace", guarantee(Fraction(1, 2)))
    assert 'data-uncounted="1"' in client.get("/").text
    page = client.get(f"{log}/account")
    assert "1 release" in element(page.text, "uncounted-title") and "ε = 0 spent" in text_of(page)
    assert send(client, f"{log}/account", f"{log}/account/count").status_code == 303
    assert "ε = 0.5 spent" in text_of(client.get(f"{log}/account"))


@pytest.mark.slow
def test_the_first_page_has_the_sum_of_each_log_and_no_level_of_a_release(
    server: Served, client: httpx.Client, log: str
) -> None:
    spend(server, log)
    spend(server, log)
    page = client.get("/")
    assert 'data-releases="2" data-strength="moderate"' in page.text and "ε = 2 spent" in text_of(page)
    assert page.text.count("data-strength=") == 1


@pytest.mark.nightly
def test_nobody_waits_for_the_ledger_of_another(server: Served, client: httpx.Client, log: str) -> None:
    spend(server, log)
    book = sqlite3.connect(ledger_of(server, log).path, isolation_level=None)
    book.execute("BEGIN EXCLUSIVE")
    mark = once_of(client.get("/"))
    with server.browser() as other, ThreadPoolExecutor(1) as waiting:
        answer = waiting.submit(client.post, f"{log}/account/limit", data={"epsilon": "5", "once": mark})
        time.sleep(0.3)
        assert other.get("/").status_code == 200
        assert not answer.done()
        book.execute("ROLLBACK")
        assert answer.result().status_code == 303
    book.close()


# All that is stored.


def granted(client: httpx.Client) -> str:
    """Return the address of the list of everything, after the token is typed."""
    return str(send(client, "/stored", "/stored", token=TOKEN).headers["location"])


def test_the_list_of_all_is_open_for_a_while_only(
    server: Served, client: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The list of all is open for a while only, as its address stays in the history."""
    place = granted(client)
    assert client.get(place).status_code == 200
    monkeypatch.setattr(access, "time", SimpleNamespace(time=lambda: time.time() + 3600))
    assert client.get(place).status_code == 400
    taken = send(client, "/", f"/stored/{'a' * 32}/take", grant=place.partition("grant=")[2])
    assert taken.status_code == 400


@pytest.mark.slow
def test_who_listed_all_before_a_server_was_shared_takes_nothing_afterwards(tmp_path: Path) -> None:
    with served(tmp_path / "data") as own, own.browser() as first, own.browser() as second:
        log = brought(own, first)
        grant, cookies = granted(second).partition("grant=")[2], httpx.Cookies(second.cookies)
    with served(tmp_path / "data", lasting_token=True) as shared, shared.stranger() as second:
        second.cookies.update(cookies)
        assert enter(second, TOKEN).status_code == 303
        assert send(second, "/", f"/stored{log[5:]}/take", grant=grant).status_code == 403
        assert second.get(log).status_code == 404


@pytest.mark.slow
def test_a_new_browser_finds_and_deletes_what_another_left(server: Served) -> None:
    with server.browser() as first, server.browser() as second:
        log = brought(server, first, SMALL, "the-neighbours.csv")
        spend(server, log, 1)
        assert "the-neighbours" not in second.get("/stored").text
        assert send(second, "/stored", "/stored", token="0" * 32).status_code == 403
        answer = send(second, "/stored", "/stored", token=f" {TOKEN} ")
        place = answer.headers["location"]
        page = second.get(place)
        assert "the-neighbours.csv" in page.text and "of another browser" in page.text and TOKEN not in page.text
        assert re.search(r"\d+ (second|minute)s? old", page.text)
        assert first.get(place).status_code == 400, "the list is for who typed the token, not for who has its address"
        grant = place.partition("grant=")[2]
        assert send(second, "/stored", f"/stored{log[5:]}/take", grant="x").status_code == 400
        assert second.get(log).status_code == 404
        assert send(second, "/stored", f"/stored{log[5:]}/take", grant=grant).status_code == 303
        assert second.get(log).status_code == 200 and first.get(log).status_code == 404
        assert "ε = 1 spent" in text_of(second.get(f"{log}/account")), "with its account"
        anew = brought(server, second, SMALL, "once more.csv")
        assert "ε = 1 spent" in text_of(second.get(f"{anew}/account")), "and so has the same file brought again"
        assert send(second, "/stored", f"/stored{log[5:]}/delete", grant=grant).status_code == 303
        assert not (server.settings.folder / log[1:]).exists()


@pytest.mark.slow
def test_a_shared_server_lists_nobodys_logs(tmp_path_factory: pytest.TempPathFactory) -> None:
    with served(tmp_path_factory.mktemp("shared") / "data", lasting_token=True) as shared, shared.browser() as client:
        assert send(client, "/", "/stored", token=TOKEN).status_code == 403
        assert "/stored" not in client.get("/").text


def test_a_browser_can_leave(server: Served) -> None:
    with server.browser() as client:
        send(client, "/stored", "/leave")
        assert client.get("/").status_code == 403
        assert enter(client, TOKEN).status_code == 303
        assert client.get("/").status_code == 200


# Downloads.


@pytest.mark.slow
def test_one_file_has_all_that_may_be_given_away(server: Served, client: httpx.Client) -> None:
    log = brought(server, client, SMALL, "Nótaufnahme Süd 'x'/../é.csv")
    address = send(client, f"{log}/release", f"{log}/jobs", **LAPLACE).headers["location"]
    job = address.rpartition("/")[2]
    folder = server.settings.folder / "jobs" / job
    folder.mkdir()
    for name in ("release.xes", "dossier.html", "certificate.json", "internal-report.html", "result.json"):
        (folder / name).write_text(name * 1000)
    assert client.get(f"{address}/all.zip").status_code == 404, "nothing of what is not done"
    server.store.start(job)
    server.store.end(job, "running", "done", to_text(made()), None)
    answer = client.get(f"{address}/all.zip")
    archive = zipfile.ZipFile(BytesIO(answer.content))
    assert archive.testzip() is None
    names = archive.namelist()
    day = r"-\d{4}-\d\d-\d\d-eps0\.1"
    whole = (rf"certificate{day}\.json", rf"dossier{day}\.html", rf"release{day}\.xes")
    assert all(re.fullmatch(*pair) for pair in zip(whole, sorted(names), strict=True)), "nothing of the log's own name"
    alone = client.get(f"{address}/files/release.xes").headers["content-disposition"]
    assert re.fullmatch(rf'attachment; filename="release{day}\.xes"', alone)
    assert "sandbox" in answer.headers["content-security-policy"]
    shown = answer.headers["content-disposition"]
    assert re.fullmatch(rf'attachment; filename="release{day}\.zip"', shown)


@pytest.mark.parametrize("epsilon", ['1";\r\n', "../1", "1\u202e", " 1 "])
def test_names_of_downloads_are_safe_whatever_was_typed(epsilon: str) -> None:
    name = download_name(1e9, epsilon, "release.xes")
    assert re.fullmatch(r"release-2001-09-\d\d-eps1\.xes", name)
    assert download_name(1e9, None, "release-models.xes") == download_name(1e9, "x", "release-models.xes")


@pytest.mark.nightly
def test_an_example_can_be_tried(server: Served) -> None:
    with server.browser() as client:
        log = str(send(client, "/", "/example").headers["location"])
        read_at_once(server, log)
        page = client.get(log)
        assert "500 cases" in page.text and "made-up-hospital.xes" in page.text
        assert list((server.settings.folder / "incoming").iterdir()) == []
        assert 'action="/example"' not in client.get("/").text, "not where somebody has a log"
        other = send(client, "/", "/example")
        assert other.headers["location"] != log
        spend(server, log)
        read_at_once(server, str(other.headers["location"]))
        assert "ε = 1 spent" in text_of(client.get(f"{other.headers['location']}/account")), "one example, one account"


@pytest.mark.slow
def test_a_ledger_that_is_damaged_is_told_without_its_place(server: Served) -> None:
    with server.browser() as client:
        log = brought(server, client)
        spend(server, log)
        ledger = ledger_of(server, log)
        ledger.path.write_bytes(b"garbage" * 1000)
        for answer in (client.get(f"{log}/account"), client.get(f"{log}/check", params=LAPLACE)):
            assert answer.status_code == 200
            assert "ledger" in answer.text and str(server.settings.folder) not in answer.text
