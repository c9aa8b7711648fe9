"""Forms come back as they were left, in every tab, and each is done once."""

import html
import re
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest
from web_owner import LAPLACE, brought, read_as, send, value_of
from web_serving import SMALL, Served, once_of, read_at_once, served, upload


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("forms") / "data") as found:
        yield found


@pytest.mark.slow
def test_the_form_comes_back_as_it_was_left(client: httpx.Client, log: str) -> None:
    assert value_of(client.get(f"{log}/release"), "epsilon") == "1"
    asked = {**LAPLACE, "unit": "person", "max_cases": "4"}
    assert send(client, f"{log}/release", f"{log}/jobs", **asked).status_code == 303
    back = client.get(f"{log}/release")  # what the button Back asks for, as nothing is kept
    assert (value_of(back, "epsilon"), value_of(back, "max_cases")) == ("0.1", "4")
    assert 'name="unit" value="person" checked' in back.text
    assert 'name="method" value="laplace"' in back.text
    exactly = client.get(f"{log}/release?method=evolve&epsilon=2")
    assert (value_of(exactly, "epsilon"), value_of(exactly, "max_cases")) == ("2", ""), "an address means what it says"


@pytest.mark.slow
def test_a_dry_run_in_one_tab_is_what_another_tab_opens_with(client: httpx.Client, log: str) -> None:
    client.post(f"{log}/plan", data={**LAPLACE, "epsilon": "0,3"}, headers={"hx-request": "true"})
    assert value_of(client.get(f"{log}/release"), "epsilon") == "0,3"
    with_other = client.get(f"{log}/exposure")
    assert with_other.status_code == 200


@pytest.mark.slow
def test_another_method_keeps_budget_people_and_its_own_parameters(client: httpx.Client, log: str) -> None:
    filled = {**LAPLACE, "epsilon": "0.3", "unit": "person", "max_cases": "2", "p_depth": "4"}
    answer = send(
        client, f"{log}/expert", f"{log}/expert", **{**filled, "method": "travas", "method_before": "laplace"}
    )
    assert answer.headers["location"] == f"{log}/expert"
    page = client.get(answer.headers["location"])
    assert '<option value="travas" selected>' in page.text and 'name="p_depth"' not in page.text
    assert (value_of(page, "epsilon"), value_of(page, "max_cases")) == ("0.3", "2")
    back = {"method": "laplace", "method_before": "travas", "epsilon": "0.3", "unit": "person", "max_cases": "2"}
    send(client, f"{log}/expert", f"{log}/expert", **back)
    page = client.get(f"{log}/expert")
    assert (value_of(page, "epsilon"), value_of(page, "p_depth")) == ("0.3", "4")


@pytest.mark.slow
def test_settings_lead_to_the_check_and_a_mistake_to_its_field(server: Served, client: httpx.Client, log: str) -> None:
    """A mistake is reported when the form is sent, with a link to its field."""
    page = client.get(f"{log}/release")
    assert 'id="problem"' not in page.text and 'role="alert"' not in page.text
    asked = {"method": "evolve", "epsilon": "1"}
    lacking = send(client, f"{log}/release", f"{log}/check", **asked)
    assert lacking.status_code == 400 and 'href="#labels-log"' in lacking.text
    assert 'data-wrong="labels-log"' in lacking.text and 'id="labels-log"' in lacking.text
    expert = send(client, f"{log}/release", f"{log}/check", **asked, labels="log", p_max_length="none")
    assert expert.status_code == 400 and f'href="{log}/expert#p_max_length"' in expert.text
    assert 'id="p_max_length"' in client.get(f"{log}/expert").text
    good = send(client, f"{log}/release", f"{log}/check", **asked, labels="log")
    assert good.headers["location"] == f"{log}/check"
    page = client.get(f"{log}/check")
    hidden = dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)">', page.text))
    once = hidden.pop("once")
    assert hidden == {**asked, "labels": "log"}, "what is read on the page is what is asked for"
    assert client.post(f"{log}/jobs", data={**hidden, "once": once}).status_code == 303


@pytest.mark.slow
def test_a_job_that_is_tried_again_with_changes_opens_with_all_that_it_asked(
    server: Served, client: httpx.Client, log: str
) -> None:
    """A job tried again opens with all that it asked for, however long that is.

    A cut address would lose the subset, and the release would be of all cases.
    """
    labels = "\n".join(f"activity {n}: {'x' * 40}" for n in range(100))
    asked = {**LAPLACE, "labels": "list", "activities": labels, "max_length": "9", "subset": "month=2024-01"}
    address = send(client, f"{log}/release", f"{log}/jobs", **asked).headers["location"]
    client.post(f"{log}/plan", data=LAPLACE, headers={"hx-request": "true"})  # the form is left with something else
    send(client, address, f"{address}/cancel")
    link = re.search(r'href="([^"]+/release\?of=[^"]+)"', client.get(address).text)
    assert link is not None
    page = client.get(html.unescape(link[1]))
    assert value_of(page, "subset") == "month=2024-01"
    assert labels in html.unescape(page.text)
    other = brought(server, client, SMALL + b"c9,come,2024-02-01\n", "other.csv")
    assert 'value="month=2024-01"' not in client.get(f"{other}/release?{link[1].partition('?')[2]}").text


@pytest.mark.slow
def test_the_same_release_within_an_hour_is_asked_about(server: Served, client: httpx.Client, log: str) -> None:
    first = send(client, f"{log}/release", f"{log}/jobs", **LAPLACE).headers["location"]
    second = send(client, f"{log}/release", f"{log}/jobs", **LAPLACE)
    assert second.status_code == 409
    assert 'name="again"' in second.text and f'href="{first}"' in second.text
    assert value_of(second, "epsilon") == "0.1"
    other = send(client, f"{log}/release", f"{log}/jobs", **{**LAPLACE, "epsilon": "0.2"})
    assert other.status_code == 303, "another budget is another release"
    again = send(client, f"{log}/release", f"{log}/jobs", **LAPLACE, again="yes")
    assert again.status_code == 303 and again.headers["location"] != first
    with server.store._write_transaction() as connection:
        connection.execute("UPDATE jobs SET created = created - 3700")
    assert send(client, f"{log}/release", f"{log}/jobs", **LAPLACE).status_code == 303, "an hour later it is meant"


@pytest.mark.slow
def test_the_same_release_from_several_tabs_at_once_is_made_once(
    server: Served, client: httpx.Client, log: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    first_time = server.store.first_time
    monkeypatch.setattr(server.store, "first_time", lambda *given: time.sleep(0.2) or first_time(*given))
    marks = [once_of(client.get(f"{log}/release")) for _ in range(6)]
    together = threading.Barrier(len(marks))

    def sent(mark: str) -> int:
        with server.stranger(cookie="; ".join(f"{name}={value}" for name, value in client.cookies.items())) as tab:
            together.wait()
            return tab.post(f"{log}/jobs", data={**LAPLACE, "once": mark}).status_code

    with ThreadPoolExecutor(len(marks)) as tabs:
        assert sorted(tabs.map(sent, marks)) == [303] + [409] * 5
    assert len(server.store.jobs_of(log.rpartition("/")[2], "release")) == 1, "each would be charged"


@pytest.mark.slow
def test_a_release_of_the_log_as_it_was_read_before_is_another_one(
    server: Served, client: httpx.Client, log: str
) -> None:
    """Other columns make another release; another column of persons does not."""
    first = send(client, f"{log}/release", f"{log}/jobs", **LAPLACE).headers["location"]
    send(client, log, f"{log}/columns", person="case")
    read_as(server, log, {"person": "case"})
    same = send(client, f"{log}/release", f"{log}/jobs", **LAPLACE)
    assert same.status_code == 409 and f'href="{first}"' in same.text
    send(client, log, f"{log}/columns", case="activity", activity="case")
    read_as(server, log, {"case": "activity", "activity": "case"})
    other = send(client, f"{log}/release", f"{log}/jobs", **LAPLACE)
    assert other.status_code == 303 and other.headers["location"] != first


@pytest.mark.slow
def test_a_cancelled_release_is_not_asked_about(client: httpx.Client, log: str) -> None:
    first = send(client, f"{log}/release", f"{log}/jobs", **LAPLACE).headers["location"]
    send(client, first, f"{first}/cancel")
    assert send(client, f"{log}/release", f"{log}/jobs", **LAPLACE).status_code == 303


@pytest.mark.slow
def test_what_columns_are_is_kept_and_only_another_person_is_read_again(
    server: Served, client: httpx.Client, log: str
) -> None:
    client.post(f"{log}/plan", data={**LAPLACE, "unit": "case", "attributes": "x"})
    said = {"person": "case:patient", "max_cases": "2", "is_ward": "release", "is_name": "identifying", "evil": "1"}
    answer = send(client, log, f"{log}/columns", **said)
    assert answer.headers["location"] == f"{log}/exposure"
    record = next(found for found in server.store.every_log() if log.endswith(found.id))
    assert record.columns == {name: value for name, value in said.items() if name != "evil"}
    assert record.measured is None, "who could be found is counted by the person"
    draft = server.store.draft(record.session, record.id)
    assert (draft["unit"], draft["max_cases"], draft["attributes"]) == ("case:patient", "2", "ward")
    assert draft["epsilon"] == "0.1"
    read_as(server, log, record.columns)
    send(client, log, f"{log}/columns", person="", max_cases="3", is_ward="identifying")
    record = next(found for found in server.store.every_log() if log.endswith(found.id))
    assert record.columns == {"person": "", "is_ward": "identifying"}, "that nobody has several cases was said, too"
    assert record.measured is not None, "people were counted without a column before, so nothing is read again"


@pytest.mark.slow
def test_a_reading_that_failed_can_be_asked_for_again(server: Served, client: httpx.Client) -> None:
    log = str(upload(client, SMALL).headers["location"])
    (job,) = [job.id for job in server.store.queued() if log.endswith(server.store.any_job(job.id)[0].log)]
    server.store.start(job)
    server.store.end(job, "running", "failed", None, "The server stopped while this ran.")
    assert f'action="{log}/read"' in client.get(log).text
    assert send(client, log, f"{log}/read").headers["location"] == log
    read_at_once(server, log)
    assert "6 cases" in client.get(log).text
