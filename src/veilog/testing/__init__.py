"""Contracts of add-ons of other packages, to be run in their own tests."""

from veilog.testing.measures import check_measure
from veilog.testing.methods import check_method
from veilog.testing.readers import check_reader

__all__ = ["check_measure", "check_method", "check_reader"]
