"""Real variants replace the nearest synthetic ones, all of them at their counts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from veilog.logs.variants import Variants
from veilog.methods.evolve.real_variants import insert_real
from veilog.privacy.curator import Curator

SYNTHETIC = Variants.from_dict({("a", "b", "c"): 60, ("a", "c"): 30, ("x", "y"): 10})
some = st.dictionaries(st.lists(st.sampled_from("abc"), max_size=4).map(tuple), st.integers(1, 40), max_size=5)


def test_a_real_variant_takes_the_cases_of_its_nearest_synthetic_one() -> None:
    assert insert_real(SYNTHETIC, Variants.from_dict({("a", "b", "c", "d"): 40})).to_dict() == {
        ("a", "b", "c", "d"): 40,
        ("a", "b", "c"): 20,
        ("a", "c"): 30,
        ("x", "y"): 10,
    }


def test_a_variant_that_is_there_keeps_its_cases() -> None:
    assert insert_real(SYNTHETIC, Variants.from_dict({("x", "y"): 10})) == SYNTHETIC


@pytest.mark.nightly
@given(synthetic=some, real=some)
def test_real_variants_are_all_there_and_the_number_of_cases_stays(
    synthetic: dict[tuple[str, ...], int], real: dict[tuple[str, ...], int]
) -> None:
    together = insert_real(Variants.from_dict(synthetic), Variants.from_dict(real))
    counts = together.to_dict()
    assert all(counts[sequence] >= count for sequence, count in real.items())
    assert together.cases == max(sum(synthetic.values()), sum(real.values()))
    assert set(counts) <= {*synthetic, *real}


def test_what_partitions_returns_exists() -> None:
    log = Variants.from_dict({("a", "b"): 500, ("c",): 300, ("d",): 1})
    found = Curator(log).partitions(1, "1e-3")
    assert set(found.to_dict()) <= set(log.to_dict())
    assert set(found.to_dict()) <= set(insert_real(SYNTHETIC, found).to_dict())
