"""Similarity of two logs: an optimal transport of variants by edit distances."""

from veilog.measures.similarity.difference import LogDifference, absolute_log_difference
from veilog.measures.similarity.measure import Similarity, relative_log_similarity

__all__ = ["LogDifference", "Similarity", "absolute_log_difference", "relative_log_similarity"]
