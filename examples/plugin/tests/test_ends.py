"""The method keeps the contract of veilog's methods."""

from veilog.testing import check_method
from veilog_ends import ENDS


def test_the_contract() -> None:
    check_method(ENDS)
