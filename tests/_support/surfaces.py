"""Errors as a user of the command sees them."""

from veilog.errors import VeilogError
from veilog.messages import for_surface


def in_command(error: VeilogError) -> str:
    with for_surface("command"):
        return str(error)
