"""The work behind the pages: what worker processes do with a log, and the dry run that does without one."""

from veilog.web.work.planning import plan
from veilog.web.work.reading import read_log
from veilog.web.work.releasing import release_log, write_again

__all__ = ["plan", "read_log", "release_log", "write_again"]
