"""Short sequences without tables of states give the same values as with them."""

from collections.abc import Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from veilog import Variants
from veilog.measures.disclosure import measure as disclosure
from veilog.measures.disclosure import measure as disclosure_short

LOG = st.dictionaries(
    st.lists(st.sampled_from("abcd"), max_size=7).map(tuple), st.integers(1, 4), min_size=1, max_size=25
).map(Variants.from_dict)


@pytest.mark.slow
@given(LOG, st.sampled_from([None, {"a": 3.0}, {"a": 0.0}]))
@settings(max_examples=60, deadline=None)
def test_without_tables_it_is_the_same(log: Variants, weights: Mapping[str, float] | None) -> None:
    given_weights = None if weights is None or log.labels[:1] != ("a",) or len(log.labels) < 2 else weights
    usual = disclosure.risk(log, "sequence", (1, 2, 3), weights=given_weights)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(disclosure, "TABLE_BYTES", 0)
        patch.setattr(disclosure_short, "_CELLS", 100)
        short = disclosure.risk(log, "sequence", (1, 2, 3), weights=given_weights)
    for one, other in zip(usual, short, strict=True):
        assert other.exact
        assert (one.candidates, one.unique, one.worst_case) == (other.candidates, other.unique, other.worst_case)
        if one.case_disclosure is None:
            assert one.reason == other.reason
            continue
        for name in ("case_disclosure", "trace_disclosure", "worst_trace"):
            assert getattr(one, name) == pytest.approx(getattr(other, name), rel=1e-9, abs=1e-12)


def test_beyond_the_limit_it_is_estimated(monkeypatch: pytest.MonkeyPatch) -> None:
    log = Variants.from_dict({("a", "b", "c"): 3, ("b", "a"): 2, ("c",): 1})
    monkeypatch.setattr(disclosure, "TABLE_BYTES", 0)
    assert disclosure.risk(log, "sequence", 2)[0].exact
    assert not disclosure.risk(log, "sequence", 2, work_limit=1)[0].exact
