"""Media tokens: are pictures and sounds estimated by the formulas of their providers, and never below what those count?"""

from __future__ import annotations

import pytest

from invocations.model_calls.media_tokens import OF_A_FILE, estimate_media
from invocations.model_calls.token_counts import estimate_request, estimate_texts
from kernel.ids import encode, new_id
from llm.messages import AttachmentRef, AudioRef, ImageRef, UserMessage
from llm.requests import ChatRequest


def picture(width: int, height: int) -> ImageRef:
    return ImageRef(id=encode("art", new_id()), media_type="image/png", size_bytes=1000, width=width, height=height)


def sound(seconds: float) -> AudioRef:
    return AudioRef(id=encode("art", new_id()), media_type="audio/wav", size_bytes=1000, seconds=seconds)


# What the providers' own pages give as examples, and who counts them.
@pytest.mark.req("LLM-7")
@pytest.mark.parametrize(
    ("kind", "model", "width", "height", "counted"),
    [
        ("openai", "gpt-4o", 1024, 1024, 765),
        ("openai", "gpt-4o", 2048, 4096, 1105),
        ("openai_responses", "gpt-4.1-nano", 1800, 2400, 3572),
        ("openai", "gpt-4o-mini", 1024, 1024, 2833 + 5667 * 4),
        ("openai", "gpt-5", 1024, 1024, 70 + 140 * 4),
        ("openai", "o1", 1024, 1024, 75 + 150 * 4),
        ("openai", "gpt-5-nano", 1800, 2400, 2304),
        ("openai", "gpt-5.5", 3840, 2160, 9792),
        ("openai_responses", "gpt-6-astra", 4032, 3024, 14_364),
        ("openai_responses", "gpt-6-astra", 1024, 1024, 1229),
        ("anthropic", "claude-opus-5-5", 256, 256, 100),
        ("anthropic", "claude-opus-5-5", 1920, 1080, 2691),
        ("anthropic", "claude-opus-5-5", 4032, 3024, 3928),
        ("gemini", "gemini-3.8-flash", 1280, 720, 1101),
        ("openai_compatible", "qwen2-vl", 2560, 1440, 92 * 52),
        ("anthropic", "claude-sonnet-4-5", 1000, 1000, 1334),
        ("anthropic", "claude-sonnet-4-5", 1092, 1092, 1590),
        ("gemini", "gemini-2.5-flash", 300, 300, 258),
        ("gemini", "gemini-2.5-flash", 960, 540, 258 * 6),
        ("gemini", "gemini-3-pro", 300, 300, 1120),
    ],
)
def test_a_picture_is_estimated_at_no_less_than_its_provider_counts(
    kind: str, model: str, width: int, height: int, counted: int
) -> None:
    assert counted <= estimate_media(picture(width, height), kind=kind, model=model) <= 5 * counted


@pytest.mark.req("LLM-7")
def test_a_small_picture_takes_less_than_a_large_one_up_to_what_a_provider_takes_at_most() -> None:
    small, large, huge = (
        estimate_media(picture(side, side), kind="anthropic", model="claude") for side in (64, 1024, 20_000)
    )
    assert small < large < huge < 5_000


@pytest.mark.req("LLM-7")
def test_of_a_kind_that_is_not_known_the_most_of_all_is_taken() -> None:
    one = picture(3000, 3000)
    known = [estimate_media(one, kind=kind, model="x") for kind in ("openai", "anthropic", "gemini")]
    assert estimate_media(one, kind="openai_compatible", model="x") >= max(known)


@pytest.mark.req("LLM-7")
def test_a_picture_is_never_the_reason_that_a_request_does_not_fit() -> None:
    request = ChatRequest(model="main", messages=(UserMessage((picture(8000, 8000),)),))

    assert estimate_request(request) > 50_000
    assert estimate_texts(request) < 100


@pytest.mark.req("LLM-7")
@pytest.mark.parametrize(("kind", "tokens"), [("openai", 25), ("gemini", 80), ("openai_compatible", 80)])
def test_a_sound_is_estimated_by_its_seconds(kind: str, tokens: int) -> None:
    assert estimate_media(sound(2.5), kind=kind, model="x") == tokens


@pytest.mark.req("LLM-7")
def test_another_file_is_estimated_at_a_flat_figure() -> None:
    file = AttachmentRef(id=encode("art", new_id()), media_type="application/pdf", size_bytes=10_000)
    assert estimate_media(file, kind="openai", model="x") == OF_A_FILE
