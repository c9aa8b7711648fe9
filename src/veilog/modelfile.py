"""One safe file for arrays and facts, of trained models and of checkpoints.

The layout is that of safetensors. First come 8 bytes with the length of the header (little-endian). The header is JSON
with type, shape and place of every array, and texts under ``__metadata__``. The arrays' bytes follow, one after the
other. So other programs can open a file too, and nothing in it can run. The texts are veilog's: ``veilog.kind``,
``veilog.version``, ``veilog.facts`` (JSON) and ``veilog.sha256``. The last is the digest of the whole file with 64
zeros in the digest's place.

Reading trusts nothing. Every length is compared with the size of the file before memory is taken for it. The digest
must be right, the header exactly the one that :func:`encoded` would write, and numbers finite. Equal content gives
equal bytes.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from veilog._files import Naming, atomic_target
from veilog._typing import AnyArray
from veilog.errors import InputError, VeilogError

VERSION = 1
LARGEST = 4 << 30
"""Bytes of the largest file that is read, far above any model that fits this method."""
_LARGEST_HEADER = 64 << 20
_MAGIC = b'{"__metadata__":{"veilog.facts":'
_UNSIGNED = "0" * 64
_TYPES = {"F64": "<f8", "I64": "<i8", "F32": "<f4", "I32": "<i4"}
_NAMES = {np.dtype(code): name for name, code in _TYPES.items()}


@dataclass(frozen=True, eq=False)
class Content:
    """Content of a file: kind (model, checkpoint), facts for JSON, and named arrays."""

    kind: str
    facts: Mapping[str, Any]
    arrays: Mapping[str, AnyArray]


class Damaged(VeilogError):
    """A file's content does not fit together; :func:`read` adds the file's name."""


def encoded(content: Content) -> bytes:
    """Return the bytes of the file."""
    arrays = {name: _plain(name, array) for name, array in content.arrays.items()}
    arrays = dict(sorted(arrays.items(), key=lambda item: (-item[1].itemsize, item[0])))  # so that all are aligned
    body = b"".join(array.tobytes() for array in arrays.values())
    unsigned = _header(content.kind, content.facts, arrays, _UNSIGNED)
    digest = hashlib.sha256(unsigned + body).hexdigest()
    return _header(content.kind, content.facts, arrays, digest) + body


def write(content: Content, path: str | Path, naming: Naming | None = None, *, overwrite: bool = True) -> None:
    """Write the file whole or not at all; a failure leaves nothing, or the old file.

    ``naming`` does the last rename, as in :func:`veilog._files.atomic_target`.
    """
    data = encoded(content)
    with atomic_target(path, naming, overwrite=overwrite) as file:
        file.write(data)


def is_model_file(path: Path) -> bool:
    """Return whether a file begins as those of models do."""
    with path.open("rb") as file:
        return file.read(8 + len(_MAGIC))[8:] == _MAGIC


def kind_of(path: str | Path) -> str | None:
    """Return the kind that a file declares; None if it is damaged or not veilog's."""
    try:
        data = _bytes(Path(path), "")
        metadata = _json(data[8 : 8 + int.from_bytes(data[:8], "little")], "header")["__metadata__"]
        return str(metadata["veilog.kind"])
    except (VeilogError, KeyError, TypeError):
        return None


def read(path: str | Path, kind: str) -> Content:
    """Return the content of a file of this kind; :class:`InputError` for any other."""
    data = _bytes(Path(path), kind)
    try:
        return _decode(data, kind)
    except Damaged as error:
        raise InputError(error.message, path=path) from None


def _bytes(path: Path, kind: str) -> bytes:
    try:
        if path.is_dir():
            raise InputError("model-file-is-directory", path=path, kind=kind)
        size = path.stat().st_size
        if not path.is_file():
            raise InputError("model-file-not-regular", path=path, kind=kind)
        if size > LARGEST:
            raise InputError("model-file-too-large", path=path, size=size, kind=kind)
        with path.open("rb") as file:
            start = file.read(8 + len(_MAGIC))
            # A file of another program is not read any further, however large it is.
            return start + file.read() if start[8:] == _MAGIC else start
    except FileNotFoundError:
        raise InputError("file-missing", path=path) from None
    except (OSError, ValueError) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
        raise InputError("file-not-readable", path=str(path), reason=reason) from None


def _plain(name: str, array: AnyArray) -> AnyArray:
    """Return an array in a type of files, little-endian, by rows, if all is finite."""
    dtype = array.dtype.newbyteorder("<")
    if dtype not in _NAMES:
        raise Damaged("model-array-type-unknown", name=name, kind=str(array.dtype))
    if dtype.kind == "f" and not np.isfinite(array).all():
        raise Damaged("model-array-not-finite", name=name)
    return np.ascontiguousarray(array, dtype=dtype)


def _header(kind: str, facts: Mapping[str, Any], arrays: Mapping[str, AnyArray], digest: str) -> bytes:
    metadata = {
        "veilog.facts": _text(facts),
        "veilog.kind": kind,
        "veilog.sha256": digest,
        "veilog.version": str(VERSION),
    }
    header: dict[str, Any] = {"__metadata__": metadata}
    place = 0
    for name, array in arrays.items():
        end = place + array.nbytes
        header[name] = {
            "dtype": _NAMES[array.dtype],
            "shape": list(array.shape),
            "data_offsets": [place, end],
        }
        place = end
    text = _text(header, in_order=True).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text


def _text(value: Any, *, in_order: bool = False) -> str:
    return json.dumps(value, ensure_ascii=True, allow_nan=False, sort_keys=not in_order, separators=(",", ":"))


def _decode(data: bytes, kind: str) -> Content:
    if data[8 : 8 + len(_MAGIC)] != _MAGIC:
        raise Damaged("model-file-foreign" if data else "model-file-empty", kind=kind)
    length = int.from_bytes(data[:8], "little")
    if length > min(len(data) - 8, _LARGEST_HEADER):
        raise Damaged("model-file-truncated")
    header = _json(data[8 : 8 + length], "header")
    metadata = header.pop("__metadata__", None)
    if not isinstance(metadata, dict) or not all(isinstance(text, str) for text in metadata.values()):
        _raise_damaged()
    version = metadata.get("veilog.version", "")
    if version.isascii() and version.isdigit() and len(version) < 6 and int(version) > VERSION:
        raise Damaged("model-file-too-new", version=version, known=VERSION)
    if metadata.keys() != {"veilog.facts", "veilog.kind", "veilog.sha256", "veilog.version"}:
        _raise_damaged()
    body = memoryview(data)[8 + length :]
    arrays = _arrays(header, body)
    facts = _json(metadata["veilog.facts"].encode(), "facts")
    found = metadata["veilog.kind"]
    if _header(found, facts, arrays, metadata["veilog.sha256"]) != data[: 8 + length]:
        _raise_damaged()
    digest = hashlib.sha256(_header(found, facts, arrays, _UNSIGNED))
    digest.update(body)
    if digest.hexdigest() != metadata["veilog.sha256"]:
        _raise_damaged()
    if found != kind:
        raise Damaged("model-file-of-other-kind", found=found, kind=kind)
    for name, array in arrays.items():
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            raise Damaged("model-array-not-finite", name=name)
    return Content(found, facts, arrays)


def _arrays(header: Mapping[str, Any], body: memoryview) -> dict[str, AnyArray]:
    """Return the arrays as views of a file; they fill it in the order of the header."""
    arrays: dict[str, AnyArray] = {}
    place = 0
    for name, entry in header.items():
        if not isinstance(entry, dict) or entry.get("dtype") not in _TYPES:
            _raise_damaged()
        dtype = np.dtype(_TYPES[entry["dtype"]])
        shape = entry.get("shape")
        if not isinstance(shape, list) or len(shape) > 4 or not all(type(n) is int and 0 <= n < 2**40 for n in shape):
            _raise_damaged()
        end = place + math.prod(shape) * dtype.itemsize
        if entry.get("data_offsets") != [place, end] or end > len(body):
            _raise_damaged()
        arrays[name] = np.frombuffer(body[place:end], dtype=dtype).reshape(shape)
        place = end
    if place != len(body):
        _raise_damaged()
    return arrays


def _json(text: bytes, what: str) -> dict[str, Any]:
    try:
        value = json.loads(text.decode("utf-8"), parse_constant=_refuse)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise Damaged("model-file-unreadable", what=what)
    return value


def _refuse(text: str) -> NoReturn:
    raise ValueError(text)


def _raise_damaged() -> NoReturn:
    raise Damaged("model-file-damaged")
