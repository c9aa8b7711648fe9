"""The method keeps the contract of veilog's methods."""

from veilog_ends import ENDS

from veilog.testing import check_method


def test_the_contract() -> None:
    check_method(ENDS)
