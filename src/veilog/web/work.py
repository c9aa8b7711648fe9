"""The work behind the pages: what worker processes do with a log, and the dry run that does without one."""

from veilog.web.work_planning import plan
from veilog.web.work_reading import read_log
from veilog.web.work_releasing import release_log, write_again

__all__ = ["plan", "read_log", "release_log", "write_again"]
