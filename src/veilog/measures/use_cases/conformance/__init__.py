"""Conformance: what a model says of a release and of its original, and the readers of such models."""

from veilog.measures.use_cases.conformance.model_files import read_model
from veilog.measures.use_cases.conformance.use_case import CONFORMANCE

__all__ = ["CONFORMANCE", "read_model"]
