"""Compare half of the pairs of a list and get the distances of all of them."""

import numpy as np
import pytest

from veilog.logs.edits import edit_matrix, edits_among


@pytest.mark.parametrize(("number", "longest"), [(0, 9), (1, 9), (40, 9), (600, 9), (300, 150)])
def test_distances_of_all_pairs_are_those_of_two_lists(number: int, longest: int) -> None:
    rng = np.random.default_rng(1)
    texts = ["".join(map(chr, rng.integers(0, 5, size))) for size in rng.integers(0, longest + 1, number)]
    found = edits_among(texts)
    assert np.array_equal(found, edit_matrix(texts, texts))
    assert found.dtype == edit_matrix(texts, texts).dtype
