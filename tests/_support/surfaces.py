"""What an error says to whoever types commands."""

from veilog.errors import VeilogError
from veilog.messages import said_to


def in_command(error: VeilogError) -> str:
    with said_to("command"):
        return str(error)
