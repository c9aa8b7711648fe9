"""Values of XES are read in bulk, and each as if it stood alone, in any company."""

import math
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from veilog.logs.xes.columns import convert
from veilog.logs.xes.values import parse_date, parse_dates, parse_scalar, unescape

_YEARS = ("0000", "0001", "0999", "1582", "1900", "2000", "2023", "2024", "2262", "2263", "9999")
_FRACTIONS = ("", ".0", ".123", ".123456", ".1234567", ".123456789", ".000000001", ".1234567891", ".", ",123")
_ZONES = ("", "Z", "z", "+01:00", "+0100", "+01", "-00:00", "-23:59", "+24:00", "+14:60", " +01:00", "+1:00")
dates = st.builds(
    "{}{}-{}-{}{}{}:{}:{}{}{}{}".format,
    st.sampled_from(["", "", "", "", " ", "&#32;", "x"]),
    st.sampled_from(_YEARS),
    st.sampled_from(["01", "02", "12", "00", "13"]),
    st.sampled_from(["01", "28", "29", "30", "31", "00", "32"]),
    st.sampled_from(["T", "T", "t", " "]),
    st.sampled_from(["00", "12", "23", "24"]),
    st.sampled_from(["00", "59", "60"]),
    st.sampled_from(["00", "59", "60"]),
    st.sampled_from(_FRACTIONS),
    st.sampled_from(_ZONES),
    st.sampled_from(["", "", "", "", " ", "&#10;", "x", "0", "\u00a0"]),
)
whole = st.one_of(
    st.integers(-(10**19), 10**19).map(str),
    st.sampled_from(["-0", "007", "+5", " 5", "1.0", "", "1e3", "\u0663", "&#49;", "9223372036854775808"]),
)
fractions = st.one_of(
    st.floats().map(repr),
    st.from_regex(r"-?[0-9]{1,30}(\.[0-9]{1,30})?([eE][+-]?[0-9]{1,3})?", fullmatch=True),
    st.sampled_from(["INF", "-INF", "NaN", "nan", ".5", "5.", "+1.5", "0x1", "1_0", "", "&#49;.5"]),
)


@pytest.mark.slow
@given(st.lists(dates, min_size=1, max_size=40))
@example(["2024-01-01T00:00:00Z", "2024-01-01T24:00:00Z", "2024-02-30T00:00:00Z", "2024-01-01T00:00:60Z"])
@example(["2024-01-01T00:00:00+01:00", "2024-01-01T00:00:00-01:00", "2024-01-01T00:00:00 01:00"])
@example(["9999-12-31T23:59:59-00:01", "0001-01-01T00:00:00+00:01", "9999-12-31T23:59:59+00:01"])
def test_dates_in_bulk_are_those_that_each_is_alone(texts: list[str]) -> None:
    raw = [text.encode() for text in texts]
    found = parse_dates(pa.array(raw, pa.binary()))
    for i, each in enumerate(raw):
        told = (int(found.us[i]), int(found.zones[i]), bool(found.lost[i])) if found.ok[i] else None
        assert told == parse_date(unescape(each)), texts[i]


def together(kind: str, texts: Sequence[str]) -> list[Any]:
    """Return each of these values beside the others; None where it is bad."""
    found = convert(kind, pa.array([text.encode() for text in texts], pa.binary()))
    values = iter(found.values.to_pylist())
    return [next(values) if found.good is None or found.good[i] else None for i in range(len(texts))]


@pytest.mark.nightly(but=1)
@pytest.mark.parametrize(("kind", "values"), [("int", whole), ("float", fractions)])
@given(data=st.data())
def test_numbers_in_bulk_are_those_that_each_is_alone(kind: str, values: st.SearchStrategy[str], data: Any) -> None:
    """Arrow reads them where all are of a plain form, and there are many."""
    texts = [*data.draw(st.lists(values, min_size=1, max_size=20)), *(str(i) for i in range(30))]
    plain = [text for text in texts if text.removeprefix("-").replace(".", "").isdecimal()]
    for some in (texts, plain):
        for text, value in zip(some, together(kind, some), strict=True):
            alone, bad = parse_scalar(kind, unescape(text.encode()))
            assert (value is None) == bad, text
            assert bad or value == alone or (math.isnan(value) and math.isnan(alone)), text
