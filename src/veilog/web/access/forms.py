"""What a form sends: its fields, and the mark that makes sending it twice the same as sending it once."""

from __future__ import annotations

import hmac
import secrets
import time
from urllib.parse import parse_qsl

from starlette.requests import Request

from veilog.web.jobs.problems import Problem

__all__ = ["check_once", "fields_of", "new_once"]

_LARGEST = 1 << 20
_FIELDS = 5000
"""Of a log with hundreds of columns, each of which may be told."""
_OLDEST = 7 * 86400.0


async def fields_of(request: Request, largest: int = _LARGEST) -> dict[str, str]:
    """The fields of a form without files; what is sent several times under one name is joined by commas."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/x-www-form-urlencoded":
        raise Problem(400, "form-not-sent-forms")
    body = bytearray()
    async for chunk in request.stream():
        body.extend(chunk)
        if len(body) > largest:
            raise Problem(413, "form-far-larger-any")
    try:
        pairs = parse_qsl(bytes(body).decode("ascii", "replace"), keep_blank_values=True, max_num_fields=_FIELDS)
    except ValueError as error:
        raise Problem(400, "form-more-fields-any") from error
    fields: dict[str, str] = {}
    for name, value in pairs:
        fields[name] = f"{fields[name]},{value}" if name in fields else value
    return fields


def new_once(key: bytes, session: str) -> str:
    """The mark of a page's forms: made here, for this session, now."""
    text = f"{secrets.token_hex(16)}.{int(time.time()):x}"
    return f"{text}.{_signed(key, session, text)}"


def check_once(key: bytes, session: str, once: str, oldest: float = _OLDEST) -> str:
    """The mark that came back with a form, if it is one of ours, and not older than so many seconds."""
    text, _, signature = once.rpartition(".")
    right = hmac.compare_digest(_signed(key, session, text).encode(), signature.encode("utf-8", "replace"))
    if not right or time.time() - int(text.partition(".")[2], 16) > oldest:
        raise Problem(400, "form-too-old-not")
    return once


def _signed(key: bytes, session: str, text: str) -> str:
    return hmac.new(key, f"{session} {text}".encode("utf-8", "replace"), "sha256").hexdigest()
