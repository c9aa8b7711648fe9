"""Columns have the decoder's probabilities, whatever their number."""

import numpy as np
import pytest

from veilog.methods.travag.draws import draw_by_logits


@pytest.mark.slow
@pytest.mark.parametrize("columns", [1, 2, 31, 32, 33, 64, 100])
def test_shares_of_draws_are_the_probabilities(columns: int) -> None:
    rng = np.random.default_rng(columns)
    logits = rng.normal(0, 2, columns).astype(np.float32)
    chances = np.exp(logits.astype(np.float64))
    chances /= chances.sum()
    n = 200_000
    counts = np.bincount(draw_by_logits(np.tile(logits, (n, 1)), rng), minlength=columns)
    assert counts.sum() == n
    assert len(counts) == columns
    assert (np.abs(counts - n * chances) <= 5 * np.sqrt(n * chances) + 5).all()


def test_each_row_is_drawn_by_its_own_probabilities() -> None:
    logits = np.full((70, 70), -200, np.float32)
    np.fill_diagonal(logits, 200)
    assert np.array_equal(draw_by_logits(logits, np.random.default_rng(1)), np.arange(70))


def test_columns_without_a_chance_are_not_drawn() -> None:
    logits = np.zeros((50_000, 40), np.float32)
    logits[:, ::2] = -1e4
    assert (draw_by_logits(logits, np.random.default_rng(1)) % 2 == 1).all()
