"""Errors as a user of the command sees them."""

from veilog.errors import VeilogError
from veilog.messages import said_to


def in_command(error: VeilogError) -> str:
    with said_to("command"):
        return str(error)
