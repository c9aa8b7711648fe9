"""XML documents as elements whose names have no namespaces; a document that declares a type of its own is refused."""

from __future__ import annotations

from pathlib import Path
from xml.etree.ElementTree import Element, TreeBuilder
from xml.parsers import expat

from veilog.errors import InputError


def parsed(path: Path, content: bytes) -> Element:
    """Return the root of a document; an :class:`InputError` names the line where it is broken.

    Entities that a document declares can blow a few bytes up to gigabytes, and no model needs them.
    """
    builder = TreeBuilder()
    parser = expat.ParserCreate(namespace_separator="}")

    def refused(*_: object) -> None:
        raise InputError("xml-document-type-declared", path=path)

    parser.StartDoctypeDeclHandler = refused
    parser.StartElementHandler = lambda name, given: builder.start(
        _local(name), {_local(key): value for key, value in given.items()}
    )
    parser.EndElementHandler = lambda name: builder.end(_local(name))
    parser.CharacterDataHandler = builder.data
    try:
        parser.Parse(content, True)
    except expat.ExpatError as error:
        why = expat.errors.messages[error.code]
        raise InputError("xml-not-well-formed", path=path, line=error.lineno, why=why) from error
    return builder.close()


def _local(name: str) -> str:
    return name.rpartition("}")[2]


def texts(element: Element, *names: str) -> str | None:
    """Return the text of a descendant of these names, one in the other; None where there is none."""
    found = element.find("/".join(names))
    return None if found is None else (found.text or "").strip()
