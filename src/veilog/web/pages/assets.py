"""veilog's style, scripts and picture, which browsers keep until they change."""

from __future__ import annotations

import hashlib
import mimetypes
import os
from functools import lru_cache
from pathlib import Path
from urllib.parse import parse_qs

from starlette.responses import Response
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from veilog.report.page import SHARED

OWN = "/static/"
FOLDER = Path(__file__).parent / "static"
FOLDERS = (FOLDER, SHARED)
_FOR_EVER = "private, max-age=31536000, immutable"

# A system may map these suffixes to anything, and browsers run no script of another type.
for _suffix, _kind in ((".css", "text/css"), (".js", "text/javascript"), (".svg", "image/svg+xml")):
    mimetypes.add_type(_kind, _suffix)


@lru_cache
def _version(name: str) -> str:
    """Return a text that changes with every byte of the file."""
    return hashlib.sha256(
        next(path for folder in FOLDERS if (path := folder / name).exists()).read_bytes()
    ).hexdigest()[:16]


def address(name: str) -> str:
    """Return the content-hashed URL of a static file."""
    return f"{OWN}{name}?v={_version(name)}"


class OwnFiles(StaticFiles):
    """Static files: kept under a full address, checked each time under a bare name."""

    def __init__(self) -> None:
        super().__init__(directory=FOLDER)
        self.all_directories = list(FOLDERS)

    def file_response(
        self, full_path: str | os.PathLike[str], stat_result: os.stat_result, scope: Scope, status_code: int = 200
    ) -> Response:
        """Return the file with a header for how long a browser may keep it."""
        answer = super().file_response(full_path, stat_result, scope, status_code)
        asked = parse_qs(scope["query_string"].decode("ascii", "replace")).get("v")
        answer.headers["cache-control"] = _FOR_EVER if asked == [_version(Path(full_path).name)] else "no-cache"
        return answer
