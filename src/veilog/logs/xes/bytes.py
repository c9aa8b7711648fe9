"""The bytes of an XES file, checked: expat reads every byte first, so what comes out of here is well-formed XML.

Two sources give the same text to the scanner. :class:`Fast` passes the bytes through and only blanks comments and
processing instructions. :class:`Plain` writes the document anew from expat's events; it serves what the fast one
leaves alone (:class:`Unusual`): other encodings than UTF-8, a document type, CDATA, prefixed element names. Entities
and external references are refused by both, so nothing is ever fetched or blown up.
"""

from __future__ import annotations

import re
from typing import Any, Protocol
from xml.parsers import expat

from veilog.errors import InputError
from veilog.logs.input.streams import MAX_VALUE
from veilog.logs.xes.text import Unusual

__all__ = ["ByteSource", "CheckedParser", "Fast", "Plain", "count_lines", "too_long"]

_TRUNCATED = {
    expat.errors.codes[expat.errors.XML_ERROR_NO_ELEMENTS],
    expat.errors.codes[expat.errors.XML_ERROR_UNCLOSED_TOKEN],
    expat.errors.codes[expat.errors.XML_ERROR_PARTIAL_CHAR],
    expat.errors.codes[expat.errors.XML_ERROR_UNCLOSED_CDATA_SECTION],
}
_DECLARATION = 256
"""Bytes at the beginning in which it is."""
_NO_ENTITIES = "Entities can hide bombs and reach other files; write the text itself instead."


_MISSPELLED = re.compile(
    rb"""\A((?:\xef\xbb\xbf)?<\?xml\s[^<>]*?)(\sencoding\s*=\s*(?:"utf_?8"|'utf_?8'))(?=[\s?])""", re.IGNORECASE
)
"""What some programs call UTF-8 in a declaration, of which expat then knows the letters of ASCII alone."""


class ByteSource(Protocol):
    """Checks the next bytes of a file and gives the text that the scanner may see; raises on the first fault."""

    def feed(self, data: bytes) -> bytes: ...

    def finish(self) -> bytes:
        """After the last byte: raises unless the document is complete."""


def count_lines(data: bytes) -> int:
    """Ends of lines in ``data``: a line feed, or a carriage return without one."""
    newlines = data.count(b"\n")
    return newlines if b"\r" not in data else newlines + data.count(b"\r") - data.count(b"\r\n")


def too_long(path: str, line: int, column: int | None = None) -> InputError:
    """The refusal of what may be a bomb."""
    return InputError("tag-attributes-comment-text", path=path, line=line, column=column, max_value=MAX_VALUE >> 20)


class CheckedParser:
    """An expat parser whose faults are InputErrors."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.parser = expat.ParserCreate()
        self.encoding: str | None = None
        self.parser.XmlDeclHandler = self._declared
        self.parser.StartDoctypeDeclHandler = self._doctype
        self.parser.EntityDeclHandler = self._entity
        self.parser.ExternalEntityRefHandler = self._external
        self._fed = 0

    def parse(self, data: bytes, *, final: bool) -> None:
        if not self._fed:  # without a name it is UTF-8; all else stays in its place
            head = _MISSPELLED.sub(lambda found: found[1] + b" " * len(found[2]), data[:_DECLARATION], count=1)
            data = head + data[_DECLARATION:]
        self._fed += len(data)
        if final and not self._fed:
            raise InputError("file-empty", path=self.path)
        try:
            self.parser.Parse(data, final)
        except expat.ExpatError as error:
            raise self._fault(error, final=final) from None
        except (LookupError, ValueError):
            raise InputError("encoding-file-declares-not", path=self.path, line=1, encoding=self.encoding) from None
        # Where the parser waits for the end of a tag or a comment, it is at that one's beginning.
        if 0 <= self.parser.CurrentByteIndex < self._fed - MAX_VALUE:
            raise too_long(self.path, self.parser.CurrentLineNumber, self.parser.CurrentColumnNumber + 1)

    def _fault(self, error: expat.ExpatError, *, final: bool) -> InputError:
        reason = expat.ErrorString(error.code)
        advice = None
        if final and error.code in _TRUNCATED:
            problem = f"The XML ends too early, the file is truncated ({reason})."
            advice = "Fetch or export the file again."
        else:
            problem = f"This is not well-formed XML: {reason}."
            if error.code == expat.errors.codes[expat.errors.XML_ERROR_INVALID_TOKEN]:
                declared = self.encoding or "UTF-8, as none is declared"
                advice = f"If the text looks right, it may not be in the declared encoding ({declared})."
        return InputError(problem, path=self.path, line=error.lineno, column=error.offset + 1, advice=advice)

    def refuse(self, problem: str, advice: str | None = None) -> InputError:
        parser = self.parser
        return InputError(
            problem, path=self.path, line=parser.CurrentLineNumber, column=parser.CurrentColumnNumber + 1, advice=advice
        )

    def _declared(self, version: str, encoding: str | None, standalone: int) -> None:
        self.encoding = encoding

    def _doctype(self, name: str, system: str | None, public: str | None, internal: int) -> None:
        if system is not None or public is not None:
            raise self.refuse(f"The file refers to an external document type ({system}), which is refused.")

    def _entity(self, name: str, *_: Any) -> None:
        raise self.refuse(f"The file declares an entity ({name}), which is refused.", _NO_ENTITIES)

    def _external(self, context: str, base: Any, system: Any, public: Any) -> int:
        raise self.refuse(f"The file refers to something outside itself ({system or public}), which is refused.")


_SPECIAL = re.compile(rb"<!--.*?-->|<\?.*?\?>", re.DOTALL)


class Fast:
    """Passes UTF-8 through; comments and processing instructions become the line ends they held."""

    def __init__(self, path: str) -> None:
        self._checked = CheckedParser(path)
        parser = self._checked.parser
        parser.StartDoctypeDeclHandler = self._unusual
        parser.StartCdataSectionHandler = self._unusual
        self._held = b""
        self._begun = False

    def feed(self, data: bytes) -> bytes:
        if not self._begun and data:
            if b"\0" in data[:4] or data[:2] in (b"\xfe\xff", b"\xff\xfe"):
                raise Unusual
            self._begun = True
            self._checked.parse(data, final=False)
            data = data.removeprefix(b"\xef\xbb\xbf")
        else:
            self._checked.parse(data, final=False)
        if (self._checked.encoding or "utf-8").lower() not in ("utf-8", "utf8", "us-ascii", "ascii"):
            raise Unusual
        if self._held:
            data, self._held = self._held + data, b""
        # Looking for the single characters first is many times faster than for the pairs.
        if (b"!" in data or b"?" in data) and (b"<!" in data or b"<?" in data):
            data = _SPECIAL.sub(lambda m: b"\n" * count_lines(m.group()), data)
            open_at = min((i for i in (data.find(b"<!"), data.find(b"<?")) if i >= 0), default=len(data))
            data, self._held = data[:open_at], data[open_at:]
        if data.endswith(b"<"):  # perhaps the start of the next one
            data, self._held = data[:-1], data[-1:]
        return data

    def finish(self) -> bytes:
        self._checked.parse(b"", final=True)
        if self._held:
            raise Unusual
        return b""

    def open_part(self) -> None:
        """Go on in the middle of a log, before a trace."""
        self._begun = True
        self._checked.parse(b"<log>", final=False)

    def close_part(self) -> None:
        """Stop in the middle of a log, before a trace."""
        if (self._checked.encoding or "utf-8").lower() not in ("utf-8", "utf8"):
            raise Unusual  # the next part could not know about it
        self._checked.parse(b"</log>", final=False)

    def _unusual(self, *_: Any) -> None:
        raise Unusual


_ESCAPES = {"&": "&amp;", "<": "&lt;", '"': "&quot;", "\n": "&#10;", "\r": "&#13;", "\t": "&#9;"}
_ESCAPED = re.compile('[&<"\n\r\t]')


class Plain:
    """Writes the document anew in the form that the scanner knows, line by line where it was."""

    def __init__(self, path: str) -> None:
        self._checked = CheckedParser(path)
        parser = self._checked.parser
        parser.ordered_attributes = True
        parser.buffer_text = True
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._text
        self._out: list[str] = []
        self._line = 1
        self._scopes: list[dict[str, str]] = [{}]
        self._root_uri: str | None = None

    def feed(self, data: bytes) -> bytes:
        self._checked.parse(data, final=False)
        return self._take()

    def finish(self) -> bytes:
        self._checked.parse(b"", final=True)
        return self._take()

    def _take(self) -> bytes:
        text = "".join(self._out)
        self._out.clear()
        return text.encode("utf-8")

    def _start(self, name: str, attributes: list[str]) -> None:
        line = self._checked.parser.CurrentLineNumber
        if line > self._line:
            self._out.append("\n" * (line - self._line))
            self._line = line
        pairs = list(zip(attributes[::2], attributes[1::2], strict=True))
        scope = self._scopes[-1]
        declared = {key[6:]: value for key, value in pairs if key.startswith("xmlns:")}
        if declared:
            scope = {**scope, **declared}
        if len(self._scopes) == 1:
            self._root_uri = scope.get(name.partition(":")[0]) if ":" in name else None
        self._scopes.append(scope)
        written = "".join(f' {key}="{_ESCAPED.sub(lambda m: _ESCAPES[m.group()], value)}"' for key, value in pairs)
        self._out.append(f"<{self._local(name, scope)}{written}>")

    def _end(self, name: str) -> None:
        self._out.append(f"</{self._local(name, self._scopes.pop())}>")

    def _text(self, text: str) -> None:
        if stray := text.strip(" \t\r\n"):
            self._out.append(stray.replace("&", "&amp;").replace("<", "&lt;").replace("\n", " "))

    def _local(self, name: str, scope: dict[str, str]) -> str:
        """The name without its prefix where that stands for XES (the root's namespace counts as that)."""
        prefix, colon, local = name.partition(":")
        if not colon:
            return name
        uri = scope.get(prefix)
        if uri is None:
            raise self._checked.refuse(f"The prefix of <{name}> is not declared.")
        return local if uri == self._root_uri or "xes-standard" in uri else name
