"""Contracts that what other packages add to veilog must keep, to be run in their own tests."""

from veilog.testing.methods import check_method

__all__ = ["check_method"]
