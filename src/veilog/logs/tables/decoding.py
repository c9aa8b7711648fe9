"""Text in unknown encodings: found out from a file's first bytes, and where these say nothing, value by value."""

from __future__ import annotations

import codecs
import re
from pathlib import Path

from veilog.errors import InputError

__all__ = ["ENDS", "FALLBACK", "VALUE", "as_utf8", "decoded"]

FALLBACK = "cp1252"
"""What a value is that is no UTF-8."""


def decoded(sample: bytes, path: Path) -> tuple[str, str]:
    """Return the encoding that the first bytes of a file say, and their text."""
    for mark, encoding in (
        (codecs.BOM_UTF8, "utf-8"),
        (codecs.BOM_UTF16_LE, "utf-16"),
        (codecs.BOM_UTF16_BE, "utf-16"),
    ):
        if sample.startswith(mark) and encoding != "utf-8":
            return encoding, codecs.getincrementaldecoder(encoding)("replace").decode(sample)
    if b"\0" in sample:
        raise InputError("not-text-file", path=path)
    if sample.removeprefix(codecs.BOM_UTF8).lstrip()[:5] in (b"<?xml", b"<log ", b"<log>"):
        raise InputError("xml-not-table", path=path)
    text = VALUE.sub(lambda match: as_utf8(match[0], "replace")[0], sample.removeprefix(codecs.BOM_UTF8))
    return "utf-8", text.decode("utf-8", "replace")


VALUE = re.compile(rb"""(?<![^,;\t|\r\n"])[^,;\t|\r\n"\x80-\xff]*[\x80-\xff][^,;\t|\r\n"]*""")
"""What stands between delimiters, quotes and ends of lines, and is not all ASCII. Any delimiter ends it, not only the
one of the file: what matters is that it lies within one value."""
ENDS = (b",", b";", b"\t", b"|", b"\r", b"\n", b'"')


def as_utf8(value: bytes, errors: str = "strict") -> tuple[bytes, bool]:
    """Return a value in UTF-8, and whether it was in Windows-1252 before."""
    try:
        value.decode("utf-8")
    except UnicodeDecodeError:
        return value.decode(FALLBACK, errors).encode("utf-8"), True
    return value, False
