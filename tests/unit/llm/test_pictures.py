"""Pictures: is a picture in a request what its bytes are, and as large as they say?"""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import pytest
from PIL import Image

from kernel.problems import SchemaInvalid, TooLarge
from llm import pictures
from llm.messages import ImageRef
from llm.pictures import NO_DATA_URL, NO_PICTURE, NOT_BASE64, Measures, measure_picture, read_data_url, read_picture
from tests.support.drawn_pictures import draw, to_base64, to_data_url

if TYPE_CHECKING:
    from collections.abc import Callable


def with_metadata() -> bytes:
    """A JPEG with a long segment before its measures, and more marks before a marker than needed."""
    content = draw("JPEG")
    return content[:2] + b"\xff\xff\xe1\x13\x88" + b"\0" * 4998 + content[2:]


@pytest.mark.req("LLM-2")
@pytest.mark.parametrize(
    ("make", "media_type"),
    [
        (lambda: draw("PNG"), "image/png"),
        (lambda: draw("GIF"), "image/gif"),
        (lambda: draw("JPEG"), "image/jpeg"),
        (lambda: draw("JPEG", progressive=True), "image/jpeg"),
        (with_metadata, "image/jpeg"),
        (lambda: draw("WEBP"), "image/webp"),
        (lambda: draw("WEBP", lossless=True), "image/webp"),
        (lambda: draw("WEBP", exif=b"Exif\0\0MM\0*\0\0\0\x08\0\0\0\0\0\0"), "image/webp"),
    ],
)
def test_type_and_measures_are_those_of_the_bytes(make: Callable[[], bytes], media_type: str) -> None:
    content = make()

    assert Image.open(io.BytesIO(content)).size == (33, 21)  # by a reader that nobody here wrote
    assert measure_picture(content) == Measures(media_type, 33, 21)


@pytest.mark.req("LLM-2")
@pytest.mark.parametrize("kind", ["PNG", "GIF", "JPEG", "WEBP"])
def test_what_is_cut_before_its_measures_is_no_picture(kind: str) -> None:
    content = draw(kind)

    found = {measure_picture(content[:size]) for size in range(len(content))}

    assert len(found - {None}) == 1
    assert measure_picture(content[:8]) is None


@pytest.mark.req("LLM-2")
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("data:image/png;base64,AAAA", NO_PICTURE),
        ("data:image/svg+xml;base64," + to_base64(b"<svg/>"), NO_PICTURE),
        ("data:image/png;base64,A A", NOT_BASE64),
        ("data:image/png,AAAA", NO_DATA_URL),
        ("https://10.0.0.1/picture.png", NO_DATA_URL),
        (to_data_url(draw("JPEG")), "By its bytes it is image/jpeg."),
        (to_data_url(draw("PNG", 1)[:16] + b"\0" * 20), NO_PICTURE),
    ],
)
def test_what_is_no_picture_or_another_one_is_refused_with_its_place(text: str, message: str) -> None:
    with pytest.raises(SchemaInvalid) as refused:
        read_data_url(text, "/messages/0")

    assert refused.value.details["findings"] == [{"pointer": "/messages/0", "message": message}]


@pytest.mark.req("LLM-2")
@pytest.mark.parametrize("claim", ["image/jpeg", "image/jpg", "IMAGE/JPEG", ""])
def test_a_type_may_be_left_out_or_go_by_an_older_name(claim: str) -> None:
    content = draw("JPEG")

    assert read_picture(to_base64(content), "", claim=claim).content == content


@pytest.mark.req("LLM-2")
def test_a_picture_that_is_too_large_is_refused_before_it_is_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pictures, "MAX_PICTURE_BYTES", 300)

    with pytest.raises(TooLarge):
        read_data_url("data:image/png;base64," + "!" * 405, "/x")


@pytest.mark.req("LLM-2")
def test_a_conversation_names_it_by_its_digest_and_its_content_is_in_no_text_of_it() -> None:
    content = draw("PNG")
    picture = read_data_url(to_data_url(content), "/x")

    assert ImageRef(**picture.to_segment()).id == picture.id
    assert repr(content) not in repr(picture)
