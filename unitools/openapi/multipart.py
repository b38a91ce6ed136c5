"""Multipart bodies: a form whose parts are texts, JSON and files (RFC 7578).

What a part is called is the document's word, and what a file is called a stranger's: in the head of a part each stays within its
quotes. Where a part ends its boundary says, which stands in no part; no part says how long it is. Standard library only: this runs
in a box.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

try:
    from _blake2 import blake2s  # the module behind hashlib, without loading OpenSSL
except ImportError:  # pragma: no cover - another Python implementation
    from hashlib import blake2s

if TYPE_CHECKING:
    from collections.abc import Sequence

MULTIPART = "multipart/form-data"
UNKNOWN = "application/octet-stream"
MEDIA_TYPE = re.compile(r"[a-z0-9!#$&^_.+-]{1,60}/[a-z0-9!#$&^_.+-]{1,100}")
_DIGEST_BYTES = 24
# As browsers write them, and the backslash too, which some services take for an escape: nothing in a name ends it, or its line.
_WITHIN_QUOTES = {each: f"%{each:02X}" for each in (*range(0x20), ord('"'), ord("\\"), 0x7F)} | {
    each: "".join(f"%{byte:02X}" for byte in chr(each).encode()) for each in (0x85, 0x2028, 0x2029)
}


@dataclass(frozen=True, slots=True)
class FormPart:
    """``media_type``: empty where nothing is said of it, which means a text. ``filename``: None where it is no file. ``headers``: that
    the part has beside, whose names are tokens and whose values stay on their line."""

    name: str
    content: bytes = field(repr=False)
    media_type: str = ""
    filename: str | None = None
    headers: tuple[tuple[str, str], ...] = ()


def write_multipart(parts: Sequence[FormPart]) -> tuple[str, bytes]:
    """The media type, with its boundary, and the body. The same parts give the same bytes."""
    written = [_write_head(each) + each.content for each in parts]
    boundary = _choose_boundary(written)
    line = b"--" + boundary.encode()
    body = b"".join(line + b"\r\n" + each + b"\r\n" for each in written)
    return f"{MULTIPART}; boundary={boundary}", body + line + b"--\r\n"


def _write_head(part: FormPart) -> bytes:
    said = f'Content-Disposition: form-data; name="{_quote(part.name)}"'
    if part.filename is not None:
        said += f'; filename="{_quote(part.filename)}"'
    lines = [said]
    if part.media_type:
        lines.append(f"Content-Type: {part.media_type if MEDIA_TYPE.fullmatch(part.media_type) else UNKNOWN}")
    lines += [f"{name}: {value}" for name, value in part.headers]
    return "\r\n".join([*lines, "", ""]).encode("utf-8", "replace")


def _quote(text: str) -> str:
    return text.translate(_WITHIN_QUOTES)


def _choose_boundary(written: Sequence[bytes]) -> str:
    """A digest of the parts, which none of them can hold; and looked for in them all the same."""
    state = blake2s(digest_size=_DIGEST_BYTES)
    for each in written:
        state.update(b"%d:" % len(each))
        state.update(each)
    while True:
        boundary = f"toolhub-{state.hexdigest()}"
        if not any(boundary.encode() in each for each in written):
            return boundary
        state.update(b"again")
