"""Conformance: what a model says of a release and of its original, and the readers of such models."""

from veilog.measures.purposes.conformance.purpose import CONFORMANCE
from veilog.measures.purposes.conformance.reading import read_model

__all__ = ["CONFORMANCE", "read_model"]
