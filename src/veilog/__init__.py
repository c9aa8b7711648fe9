"""veilog: share event logs of a process without giving away the people in them."""

from veilog._version import __version__

__all__ = ["__version__"]
