"""The program's own style, scripts and picture: read once, and kept by browsers for as long as they stay the same."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

__all__ = ["FOLDER", "OWN", "address", "own_file"]

OWN = "/static/"
FOLDER = Path(__file__).parent / "static"
_KINDS = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml", ".txt": "text/plain"}
_FOR_EVER = "private, max-age=31536000, immutable"


@dataclass(frozen=True)
class _Own:
    """A file of ours; ``version`` is another as soon as a byte of it is."""

    content: bytes
    kind: str
    version: str


@lru_cache(maxsize=1)
def _files() -> Mapping[str, _Own]:
    found = {path.name: path.read_bytes() for path in FOLDER.iterdir() if path.suffix in _KINDS}
    return {
        name: _Own(content, _KINDS[Path(name).suffix], hashlib.sha256(content).hexdigest()[:16])
        for name, content in found.items()
    }


def address(name: str) -> str:
    """Where pages find a file of ours: an address that no other content will ever have."""
    return f"{OWN}{name}?v={_files()[name].version}"


async def own_file(request: Request) -> Response:
    """Under its address a file need not be asked for a second time; under its name alone, it may change."""
    file = _files().get(request.path_params["name"])
    if file is None:
        raise HTTPException(404)
    tag = f'"{file.version}"'
    asked = request.query_params.get("v") == file.version
    headers = {"etag": tag, "cache-control": _FOR_EVER if asked else "no-cache"}
    if tag in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    return Response(file.content, headers=headers, media_type=file.kind)
