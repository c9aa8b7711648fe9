"""How alike two logs are: variants compared by an optimal transport of edit distances."""

from veilog.measures.similarity.difference import LogDifference, absolute_log_difference
from veilog.measures.similarity.measure import Similarity, relative_log_similarity

__all__ = ["LogDifference", "Similarity", "absolute_log_difference", "relative_log_similarity"]
