"""Artifact descriptions: what a call has left is called what it is, whatever the tool claims, and measured without telling what
is in it.
"""

from __future__ import annotations

import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from invocations.artifacts.description import UNKNOWN, describe_artifact, detect_media_type, summarize_content
from invocations.artifacts.thumbnails import make_thumbnail
from invocations.sandbox.base import LeftArtifact

PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 20
ZIP = b"PK\x03\x04" + b"\0" * 20
SHEET = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"


def image(kind: str, size: tuple[int, int] = (400, 300), mode: str = "RGB") -> bytes:
    made = io.BytesIO()
    Image.effect_noise(size, 40).convert(mode).save(made, kind)
    return made.getvalue()


def bomb() -> bytes:
    """81 million points in a few kilobytes."""
    made = io.BytesIO()
    Image.new("1", (9000, 9000)).save(made, "PNG")
    return made.getvalue()


@pytest.mark.req("TOOLS-32")
@pytest.mark.parametrize(
    ("content", "claim", "found"),
    [
        (PNG, "image/png", "image/png"),
        (PNG, "", "image/png"),
        (PNG, "text/html", UNKNOWN),
        (PNG, "image/jpeg", UNKNOWN),
        (b"<svg onload=alert(1)>", "image/png", UNKNOWN),
        (b"RIFF\0\0\0\0WEBPVP8 ", "image/webp", "image/webp"),
        (b"RIFF\0\0\0\0WAVEfmt ", "audio/wav", "audio/wav"),
        (ZIP, SHEET, SHEET),
        (ZIP, "text/csv", UNKNOWN),
        (b"%PDF-1.7", "application/pdf", "application/pdf"),
        (b"a,b\n1,2", "text/csv", "text/csv"),
        (b"a,b\n1,2", "Text/CSV; charset=utf-8", "text/csv"),
        (b'{"a": 1}', "", "application/json"),
        (b"{not json", "", "text/plain"),
        (b"{not json", "application/json", "text/plain"),
        (b"\xff\xfe\0", "text/plain", UNKNOWN),
        (b"\xff\xfe\0", "", UNKNOWN),
        (b"hello", "image/png", UNKNOWN),
        (b"hello", "text/" + "x" * 200, UNKNOWN),
        (b"", "", "text/plain"),
    ],
)  # fmt: skip
def test_a_claim_counts_where_the_content_bears_it_out(content: bytes, claim: str, found: str) -> None:
    assert detect_media_type(content, claim) == found


@pytest.mark.req("TOOLS-32")
@given(st.binary(max_size=60), st.text(max_size=20))
def test_any_content_has_a_type_and_a_summary(content: bytes, claim: str) -> None:
    media_type = detect_media_type(content, claim)

    assert len(media_type) <= 120
    assert all(
        isinstance(each, int) or each in ("object", "array", "value")
        for each in summarize_content(content, media_type).values()
    )


@pytest.mark.req("TOOLS-32")
@pytest.mark.parametrize(
    ("content", "media_type", "summary"),
    [
        (b"one\ntwo\n", "text/plain", {"lines": 2}),
        (b"name,mail\nJohn,john@example.com\n", "text/csv", {"lines": 2, "columns": 2}),
        (json.dumps([1, 2, 3]).encode(), "application/json", {"lines": 1, "json": "array", "entries": 3}),
        (json.dumps({"a": 1}).encode(), "application/json", {"lines": 1, "json": "object", "entries": 1}),
        (b"12", "application/json", {"lines": 1, "json": "value"}),
        (PNG, "image/png", {}),
        (b"x" * 2_000_000, "text/plain", {}),
    ],
)
def test_a_summary_counts_and_tells_nothing(content: bytes, media_type: str, summary: dict[str, object]) -> None:
    assert summarize_content(content, media_type) == summary


@pytest.mark.req("TOOLS-32")
@pytest.mark.parametrize(
    ("kind", "mode"), [("PNG", "RGB"), ("PNG", "P"), ("JPEG", "RGB"), ("JPEG", "L"), ("GIF", "P"), ("WEBP", "RGB")]
)
def test_an_image_is_measured_and_made_small(kind: str, mode: str) -> None:
    found = describe_artifact(LeftArtifact("x", "", image(kind, mode=mode)))

    assert found.summary == {"width": 400, "height": 300}
    with Image.open(io.BytesIO(found.thumbnail)) as small:
        assert (small.format, max(small.size)) == ("PNG", 256)


@pytest.mark.req("TOOLS-32")
def test_what_was_written_beside_the_pixels_is_not_in_the_thumbnail() -> None:
    made = io.BytesIO()
    exif = Image.Exif()
    exif[0x010E] = "taken at home"
    Image.effect_noise((300, 300), 40).convert("RGB").save(made, "JPEG", exif=exif, comment=b"taken at home")

    small = make_thumbnail(made.getvalue())

    assert small is not None
    assert b"taken at home" not in small.png


@pytest.mark.req("TOOLS-32")
@pytest.mark.parametrize(
    "content",
    [
        PNG,
        image("PNG")[:200],
        b"\xff\xd8\xff\xe0" + b"\0" * 50,
        bomb(),
        b"GIF89a" + b"\xff" * 400,
        image("TIFF"),
    ],
)
def test_an_image_that_cannot_be_read_or_is_a_bomb_has_no_thumbnail(content: bytes) -> None:
    assert make_thumbnail(content) is None
