"""Artifact description: its type, its size, and what it looks like.

The tool's claim is held against the content. What does not fit is ``application/octet-stream``; what is text is text, whatever else it
could be run as. Summaries count and measure: they are facts, and hold no values.
"""

from __future__ import annotations

import csv
import io
import json
import re
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from invocations.artifacts.thumbnails import make_thumbnail

if TYPE_CHECKING:
    from invocations.sandbox.base import LeftArtifact

UNKNOWN, TEXT, JSON, CSV = "application/octet-stream", "text/plain", "application/json", "text/csv"
MAGIC: tuple[tuple[bytes, str], ...] = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"%PDF-", "application/pdf"),
    (b"ID3", "audio/mpeg"),
    (b"\xff\xfb", "audio/mpeg"),
    (b"\xff\xf3", "audio/mpeg"),
    (b"PK\x03\x04", "application/zip"),
    (b"\x1f\x8b", "application/gzip"),
)
RIFF = {b"WEBP": "image/webp", b"WAVE": "audio/wav"}  # what the bytes after the length say
IMAGES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
ZIPPED = re.compile(
    r"application/(?:zip|epub\+zip|vnd\.(?:openxmlformats-officedocument|oasis\.opendocument)\.[a-z.\-]+)"
)
TEXTUAL = re.compile(
    r"text/[a-z0-9.+\-]+|application/(?:[a-z0-9.\-]+\+)?(?:json|xml|yaml)|application/(?:x-ndjson|sql)|image/svg\+xml"
)
MAX_TYPE = 120
MAX_COUNTED = 1024 * 1024  # of a text: what is beyond is not looked at


@dataclass(frozen=True, slots=True)
class DescribedArtifact:
    """What will be kept, once the call has ended well."""

    name: str
    media_type: str
    content: bytes = field(repr=False)
    summary: dict[str, Any] = field(default_factory=dict)
    thumbnail: bytes = field(default=b"", repr=False)


def decode_text(content: bytes) -> str | None:
    """The content as text; None when it is none."""
    try:
        text = content.decode()
    except UnicodeDecodeError:
        return None
    return None if "\0" in text else text


def detect_media_type(content: bytes, claim: str) -> str:
    claim = claim.partition(";")[0].strip().lower()
    if len(claim) > MAX_TYPE:
        return UNKNOWN
    found = next((media_type for magic, media_type in MAGIC if content.startswith(magic)), "")
    if content[:4] == b"RIFF":
        found = RIFF.get(content[8:12], "")
    if found:
        fits = not claim or claim == found or (found == "application/zip" and ZIPPED.fullmatch(claim))
        return (claim or found) if fits else UNKNOWN
    text = decode_text(content)
    if text is None or (claim and not TEXTUAL.fullmatch(claim)):
        return UNKNOWN
    if claim == JSON or (not claim and text.lstrip()[:1] in ("{", "[")):
        return JSON if _json(text) is not None else TEXT
    return claim or TEXT


def _json(text: str) -> tuple[Any] | None:
    try:
        return (json.loads(text),)
    except (ValueError, RecursionError):
        return None


def summarize_content(content: bytes, media_type: str) -> dict[str, Any]:
    """Of a text: lines; of JSON what it is made of, of CSV how wide it is."""
    text = decode_text(content) if TEXTUAL.fullmatch(media_type) else None
    if text is None or len(content) > MAX_COUNTED:
        return {}
    summary: dict[str, Any] = {"lines": len(text.splitlines())}
    if media_type == JSON and (read := _json(text)) is not None:
        value = read[0]
        summary["json"] = "object" if isinstance(value, dict) else "array" if isinstance(value, list) else "value"
        if isinstance(value, dict | list):
            summary["entries"] = len(value)
    if media_type == CSV:
        with suppress(csv.Error):
            summary["columns"] = len(next(csv.reader(io.StringIO(text)), []))
    return summary


def describe_artifact(left: LeftArtifact) -> DescribedArtifact:
    """With a thumbnail if it is an image that can be read."""
    media_type = detect_media_type(left.content, left.claim)
    summary, thumbnail = summarize_content(left.content, media_type), b""
    if media_type in IMAGES and (small := make_thumbnail(left.content)) is not None:
        summary, thumbnail = {"width": small.width, "height": small.height}, small.png
    return DescribedArtifact(left.name, media_type, left.content, summary, thumbnail)


def replace_text(artifact: DescribedArtifact, text: str) -> DescribedArtifact:
    """The artifact with another text."""
    content = text.encode()
    return replace(artifact, content=content, summary=summarize_content(content, artifact.media_type))
