"""Priors of a release: their files, the guarantee's assumption, and unfit methods."""

import json
from pathlib import Path

import pytest
from refusals import refused

import veilog
from veilog.errors import InputError, ParameterError
from veilog.logs.synthetic.hospital import hospital
from veilog.logs.variants import Variants
from veilog.measures.use_cases.conformance import Acceptor
from veilog.mining.replay import workflow_net
from veilog.mining.tree import activity, choice, loop, parallel, sequence
from veilog.modelfile import Content, write
from veilog.releasing.prior import MOST_EVENTS, PublicPrior, played_out, variants_in
from veilog.releasing.request import ReleaseRequest, plan

LOG = hospital(200, seed=1)
OTHERS = hospital(200, seed=2)
TREE = sequence(
    activity("a"), choice(activity("b"), parallel(activity("c"), activity("d"))), loop(activity("e"), activity("f"))
)


def codes_of(release: veilog.Release) -> list[str]:
    return [condition.code for condition in release.guarantee.conditions]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "others.xes"
    veilog.write(OTHERS, path)
    return path


def test_a_file_is_public_by_the_owners_word_and_known_by_its_digest(file: Path) -> None:
    made = veilog.release(LOG, "evolve", epsilon=1, activities="log", prior=file, seed=1)
    assert "prior-is-public" in codes_of(made)
    (source,) = made.parameters["prior"]
    assert source["kind"] == "log"
    assert len(source["sha256"]) == 64
    assert str(file) not in json.dumps(made.to_json())


def test_a_proven_release_needs_no_word_and_a_seeded_one_does() -> None:
    for seed, public in ((None, False), (1, True)):
        earlier = veilog.release(OTHERS, "evolve", epsilon=1, activities="log", seed=seed, ledger=False)
        made = veilog.release(LOG, "evolve", epsilon=1, activities="log", prior=earlier, ledger=False)
        assert ("prior-is-public" in codes_of(made)) == public


def test_a_file_of_a_proven_release_in_the_ledger_needs_no_word(tmp_path: Path) -> None:
    """A file of a proven release in the ledger is no public prior; a changed one is.

    So is one for another ledger, and one of a release with a seed.
    """
    ledger, path = tmp_path / "ledger", tmp_path / "earlier.xes"
    earlier = veilog.release(OTHERS, "evolve", epsilon=1, activities="log", ledger=ledger)
    earlier.save(path)

    def released(prior: Path, ledger: Path) -> tuple[bool, str]:
        made = veilog.release(LOG, "evolve", epsilon=1, activities="log", prior=prior, ledger=ledger)
        return "prior-is-public" in codes_of(made), made.parameters["prior"][0]["kind"]

    assert released(path, ledger) == (False, "release")
    assert released(path, tmp_path / "another") == (True, "log")
    changed = tmp_path / "changed.xes"
    changed.write_bytes(path.read_bytes() + b"\n")
    assert released(changed, ledger) == (True, "log")
    seeded = tmp_path / "seeded.xes"
    veilog.release(OTHERS, "evolve", epsilon=1, activities="log", seed=1, ledger=ledger).save(seeded)
    assert released(seeded, ledger) == (True, "log")


def test_a_release_made_of_a_foreign_file_hands_its_condition_on(file: Path) -> None:
    """A release made of a foreign file passes its condition on to the next release."""
    first = veilog.release(LOG, "evolve", epsilon=1, activities="log", prior=file, ledger=False)
    second = veilog.release(LOG, "evolve", epsilon=1, activities="log", prior=first, ledger=False)
    assert "prior-is-public" in codes_of(second)


def test_a_request_with_a_prior_goes_through_json(file: Path) -> None:
    request = plan("evolve", epsilon=1, activities=["a"], prior=[file])
    again = ReleaseRequest.from_json(json.loads(json.dumps(request.to_json())))
    assert again.to_json() == request.to_json()
    assert f"--prior {file}" in request.command()


def test_other_methods_refuse_a_prior(file: Path) -> None:
    with refused(ParameterError, "method-without-prior"):
        plan("travas", epsilon=1, delta="1e-3", prior=file)
    with refused(ParameterError, "prior-map-without-prior"):
        plan("evolve", epsilon=1, prior_map=file)


def test_the_log_itself_is_noticed_before_anything_is_asked() -> None:
    request = plan("evolve", epsilon=1, activities="log", prior=LOG)
    assert "variants-in-prior" in [loss.code for loss in request.losses(LOG)]


def test_activities_of_a_prior_are_mapped(tmp_path: Path) -> None:
    names = tmp_path / "names.csv"
    names.write_text("activity,group\nEnter,Register\n")
    prior = PublicPrior.of(Variants.from_dict({("Enter", "Leave"): 3}), names)
    assert prior is not None
    assert prior.variants.to_dict() == {("Register", "Leave"): 3}


def test_a_model_counts_as_all_logs_together() -> None:
    logs = Variants.from_dict({("a",): 30_000})
    prior = PublicPrior.of([logs])
    assert prior is not None
    assert prior.variants.cases == 30_000


def test_cases_that_are_played_out_are_allowed_by_the_model() -> None:
    net = workflow_net(TREE)
    found = played_out(net)
    assert found.cases > 1000
    assert Acceptor(net).verdicts(found).conforming.all()
    assert found.lengths.max() <= MOST_EVENTS + 1
    assert found == played_out(net)


def test_a_text_file_has_a_variant_on_each_line(tmp_path: Path) -> None:
    path = tmp_path / "variants.txt"
    path.write_text('3, a, b\na, b\n\n"b, c", a\n')
    assert variants_in(path).to_dict() == {("a", "b"): 4, ("b, c", "a"): 1}


@pytest.mark.parametrize(("content", "code"), [(None, "prior-not-readable"), (b"\xff\xfe\xff", "prior-not-text")])
def test_files_that_cannot_be_used_are_refused(tmp_path: Path, content: bytes | None, code: str) -> None:
    path = tmp_path / "variants.txt"
    if content is not None:
        path.write_bytes(content)
    with refused(InputError, code):
        PublicPrior.of(path)


def test_an_empty_prior_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "variants.txt"
    path.write_text("")
    with refused(ParameterError, "prior-empty"):
        PublicPrior.of(path)


def test_a_preview_releases_half_of_a_prior_from_its_other_half() -> None:
    request = plan("evolve", epsilon=1, activities=LOG.variants.labels, prior=OTHERS)
    found = request.expected(cases=500, length=14, twins=1)
    assert found.like_prior
    assert found.message.values["rest"].code == "expected-like-prior"
    assert (
        found.similarity.mean
        > plan("evolve", epsilon=1, activities="log")
        .expected(cases=500, length=14, activities=16, twins=1)
        .similarity.mean
    )


def test_halves_have_all_cases_of_a_prior_and_the_activities_that_are_declared() -> None:
    prior = PublicPrior.of(Variants.from_dict({("a", "x"): 40, ("b",): 60, ("x",): 9}))
    assert prior is not None
    found = prior.halves(500, ("a", "b"), seed=1)
    assert found is not None
    drawn, rest = found
    assert drawn.cases == 500
    assert {*drawn.labels} == {*rest.variants.labels} == {"a", "b"}
    assert 0 < rest.variants.cases < 100
    assert prior.halves(500, ("c",), seed=1) is None


def test_a_suggestion_with_a_prior_asks_for_the_number_of_cases_and_starts_from_it() -> None:
    found = veilog.suggest(LOG, epsilon=1, prior=OTHERS, activities=LOG.variants.labels, seed=1)
    assert [charge.question for charge in found.guarantee.charges] == ["count"]
    assert (found.method, found.reason.code) == ("evolve", "suggested-from-prior")
    assert found.plan(activities="log").prior is found.prior
    assert found.expected is not None and found.expected.like_prior


def test_the_arguments_of_a_suggestion_name_the_prior(file: Path, tmp_path: Path) -> None:
    names = tmp_path / "names.csv"
    names.write_text("activity,group\nEnter,Register\n")
    found = veilog.suggest(LOG, epsilon=1, prior=file, prior_map=names, seed=1)
    assert found.arguments().endswith(f" --prior {file} --prior-map {names}")


def test_a_trained_model_is_refused_and_what_is_drawn_from_it_is_a_prior(tmp_path: Path) -> None:
    path = tmp_path / "trained.model"
    write(Content("model", {}, {}), path)
    with refused(ParameterError, "prior-is-trained-model"):
        PublicPrior.of(path)


def test_a_log_is_held_with_its_events_where_times_are_asked_for(file: Path, tmp_path: Path) -> None:
    names = tmp_path / "names.csv"
    names.write_text("activity,group\nTriage,Sorting\n")
    for timed in (False, True):
        prior = PublicPrior.of([file, OTHERS], names, events=timed)
        assert prior is not None
        assert len(prior.logs) == 2 * timed
        for log in prior.logs:
            assert log.events.num_rows == OTHERS.events.num_rows
            assert "Sorting" in log.activity_codes[0]
            assert "Triage" not in log.activity_codes[0]
        assert prior.variants.cases == 400


def test_times_that_only_carry_the_order_are_no_prior(tmp_path: Path) -> None:
    path = tmp_path / "earlier.xes"
    earlier = veilog.release(OTHERS, "evolve", epsilon=1, activities="log", seed=1, ledger=False)
    earlier.save(path)
    timed = veilog.release(OTHERS, "evolve", epsilon=1, activities="log", times=0.4, seed=1, ledger=False)
    for given, logs in ((path, 0), (earlier, 0), (OTHERS.variants, 0), (timed, 1)):
        prior = PublicPrior.of(given, events=True)
        assert prior is not None
        assert sum(not log.artificial_times for log in prior.logs) == logs, "others may have attributes"
