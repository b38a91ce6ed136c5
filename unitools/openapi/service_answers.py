"""Service answers: what the answer of a service to an operation says.

It is a stranger's, and is read up to limits, in the media types that were asked for. Standard library only: this runs in a box.
"""

from __future__ import annotations

import re
import zlib
from dataclasses import dataclass, field
from email.message import Message
from typing import TYPE_CHECKING, Any

from unitools.strict_json import JsonReader, JsonRefused

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

MAX_ANSWER_BYTES = 1024 * 1024
MAX_TEXT_BYTES = 64 * 1024  # of a text that stands in the result, where a longer one may be left as a file
MAX_ANSWER_DEPTH = 31  # a result has 32 levels, and the body is one below it
MAX_COMPRESSED_PARTS = 100
MAX_LINKS = 10
MAX_RETRY_AFTER_S = 24 * 3600
MAX_INT_CHARS = 20
NOT_MODIFIED = 304
_TEXTS = ("application/xml", "application/problem+xml", "application/yaml")
_MEDIA_TYPE = re.compile(r"[a-z0-9!#$&^_.+-]{1,60}/[a-z0-9!#$&^_.+-]{1,100}")
_ENDINGS = {
    "application/pdf": "pdf", "application/zip": "zip", "application/gzip": "gz", "image/png": "png", "image/jpeg": "jpg",
    "image/gif": "gif", "image/webp": "webp", "image/svg+xml": "svg", "text/csv": "csv", "text/html": "html", "text/xml": "xml",
    "application/xml": "xml", "audio/mpeg": "mp3", "audio/wav": "wav", "video/mp4": "mp4",
}  # fmt: skip
_CHARSETS = {"utf-8", "utf8", "us-ascii", "ascii", "iso-8859-1", "latin-1", "windows-1252", "cp1252", "iso-8859-15"}
_LINK = re.compile(r'<([^<>]{1,4000})>((?:\s*;\s*[a-z*]+\s*=\s*(?:"[^"]*"|[^",;\s]*))*)', re.IGNORECASE)
_REL = re.compile(r';\s*rel\s*=\s*(?:"([^"]*)"|([^",;\s]*))', re.IGNORECASE)
_LINKED = ("next", "prev", "first", "last")


class AnswerUnreadable(ValueError):
    """A service answered with something that is no answer of an operation. The message says what."""


@dataclass(frozen=True, slots=True)
class AnswerFile:
    """An answer that is left beside the result. ``media_type``: the service's word."""

    name: str
    media_type: str
    content: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class ServiceAnswer:
    """``body``: JSON, a text, or None. ``links``: URLs by their relation (next, prev, first, last). ``retry_after_s``: when
    the service wants to be asked again; None: it does not say. ``file``: what was answered in place of a body."""

    status: int
    body: Any = None
    links: dict[str, str] = field(default_factory=dict)
    retry_after_s: int | None = None
    file: AnswerFile | None = None

    @property
    def outcome(self) -> str:
        """``success`` (2xx, and 304: what was asked about is as it was), ``refused`` (4xx: the service's lawful no), ``redirected``
        (other 3xx), ``failed`` (all else)."""
        if self.status == NOT_MODIFIED:
            return "success"
        return {2: "success", 3: "redirected", 4: "refused"}.get(self.status // 100, "failed")

    @property
    def is_retryable(self) -> bool:
        return self.status in (429, 503)

    def to_result(self, left: dict[str, str] | None = None) -> dict[str, Any]:
        """As ``output_schema`` of the manifest has it. ``left``: the reference to the file, where it was left."""
        body = self.body if left is None else left
        return {"status": self.status, "body": body} | ({"links": self.links} if self.links else {})


def _read_whole(text: str) -> int:
    if len(text) > MAX_INT_CHARS:
        raise JsonRefused("huge_number")
    return int(text)


_ANSWERS = JsonReader(read_whole=_read_whole, takes_nul=False)


def read_answer(
    operation: Mapping[str, Any],
    status: int,
    headers: Sequence[tuple[str, str]],
    body: bytes,
    *,
    max_bytes: int = MAX_ANSWER_BYTES,
    most_file_bytes: int = 0,
) -> ServiceAnswer:
    """What a service answered. ``headers``: as they came, in any case; cookies among them are not kept. ``most_file_bytes``: of what
    is no JSON and no short text, and is left as a file where it is a success; 0: none may be left.

    Raises:
        AnswerUnreadable: too long, in no known charset, no JSON though it says so, or a page where data was asked for.
    """
    said: dict[str, str] = {}
    for name, text in headers:
        said.setdefault(name.lower(), text)
    links = dict(_read_links(text for name, text in headers if name.lower() == "link"))
    retry_after_s = _read_retry_after(said.get("retry-after", ""))
    if 300 <= status < 400:
        return ServiceAnswer(status, None, {}, retry_after_s)  # what it says belongs to the other address
    if status in (204, 205) or operation["method"] == "HEAD" or not body:
        return ServiceAnswer(status, None, links, retry_after_s)
    most_file_bytes = most_file_bytes if status < 300 else 0
    try:
        data = _decompress(said.get("content-encoding", ""), body, max(max_bytes, most_file_bytes))
        content = _read_body(operation, status, said.get("content-type", ""), data, max_bytes, most_file_bytes)
    except AnswerUnreadable:
        if status < 400:
            raise
        content = None  # the status says enough, in whatever words the page beside it is written
    if isinstance(content, AnswerFile):
        return ServiceAnswer(status, None, links, retry_after_s, content)
    return ServiceAnswer(status, content, links, retry_after_s)


def _decompress(encoding: str, body: bytes, max_bytes: int) -> bytes:
    """It was asked for as it is; some services compress all the same. Never more than the limit comes out."""
    kind = encoding.strip().lower()
    if kind in ("gzip", "x-gzip", "deflate"):
        try:
            body = _inflate(body, 31 if kind != "deflate" else 15, max_bytes)
        except zlib.error as error:
            raise AnswerUnreadable(f"The answer says that it is compressed ({kind}), and is not.") from error
    elif kind not in ("", "identity"):
        raise AnswerUnreadable(f"The answer is encoded as {kind[:40]!a}, which was not asked for.")
    return _check_size(body, max_bytes)


def _check_size(data: bytes, max_bytes: int) -> bytes:
    if len(data) > max_bytes:
        raise AnswerUnreadable(
            f"The answer has more than {max_bytes:,} bytes. Ask for less, for example a smaller page."
        )
    return data


def _inflate(data: bytes, window: int, max_bytes: int) -> bytes:
    """All that was compressed, in one part or in several behind each other; of more than the limit so much that it shows."""
    found = b""
    for _ in range(MAX_COMPRESSED_PARTS):
        opened = zlib.decompressobj(window)
        found += opened.decompress(data, max_bytes + 1 - len(found))
        if not opened.eof and len(found) <= max_bytes:
            raise AnswerUnreadable("The compressed answer ends too early.")
        data = opened.unused_data
        if not data or len(found) > max_bytes:
            return found
    raise AnswerUnreadable(f"The answer was compressed in more than {MAX_COMPRESSED_PARTS} parts.")


def _read_body(
    operation: Mapping[str, Any], status: int, content_type: str, data: bytes, max_bytes: int, most_file_bytes: int
) -> Any:
    message = Message()
    message["content-type"] = content_type or "application/json"
    kind = message.get_content_type()
    if kind == "application/json" or kind.endswith("+json"):
        try:
            return _ANSWERS.read(_check_size(data, max_bytes).removeprefix(b"\xef\xbb\xbf"), max_depth=MAX_ANSWER_DEPTH)
        except JsonRefused as error:
            if content_type:
                raise AnswerUnreadable(f"The answer cannot be read as JSON: {error}") from error
            kind = "text/plain"  # it did not say what it is
    accepted = operation.get("accept") or ["application/json"]
    if kind == "text/html" and kind not in accepted and status < 400:
        raise AnswerUnreadable("The service answered with a page in HTML, such as a login page, in place of data.")
    is_text = kind.startswith("text/") or kind in _TEXTS
    if is_text and (not most_file_bytes or len(data) <= MAX_TEXT_BYTES):
        try:
            return _read_text(_check_size(data, max_bytes), str(message.get_content_charset("utf-8")))
        except AnswerUnreadable:
            if not most_file_bytes:
                raise
    if not most_file_bytes:
        raise AnswerUnreadable(f"The answer is {kind[:60]!a}: neither JSON nor text.")
    kind = kind if _MEDIA_TYPE.fullmatch(kind) else ""
    return AnswerFile(f"answer.{_ENDINGS.get(kind, 'bin')}", kind, _check_size(data, most_file_bytes))


def _read_text(data: bytes, charset: str) -> str:
    if charset not in _CHARSETS:
        raise AnswerUnreadable(f"The answer is written in the charset {charset[:40]!a}, which is not read.")
    try:
        text = data.decode(charset)
    except UnicodeDecodeError as error:
        raise AnswerUnreadable(f"The answer is not written in {charset}, as it says.") from error
    if "\0" in text:
        raise AnswerUnreadable("The answer is no text: it holds a NUL character.")
    return text


def _read_links(values: Iterator[str]) -> Iterator[tuple[str, str]]:
    """Relations of a Link header (RFC 8288) by which pages are turned."""
    seen = 0
    for value in values:
        for found in _LINK.finditer(value[:16_384]):
            seen += 1
            if seen > MAX_LINKS:
                return
            rel = _REL.search(found[2])
            for name in (rel[1] or rel[2] or "").lower().split() if rel else ():
                if name in _LINKED:
                    yield name, found[1]


def _read_retry_after(text: str) -> int | None:
    """Seconds. A date is not read: clocks differ."""
    text = text.strip()
    return min(int(text), MAX_RETRY_AFTER_S) if text.isascii() and text.isdigit() and len(text) < 10 else None
