"""Model profiles: which driver serves which model?"""

from __future__ import annotations

import pytest

from unitools.calls import ToolSpec
from unitools.dialects import (
    DRIVERS,
    AmbiguousModel,
    ModelProfile,
    UnknownDialect,
    find_driver,
    render,
)
from unitools.dialects.drivers import OpenAIDriver, XMLDriver

SERVED = {
    "openai": [
        *(
            "gpt-4o",
            "gpt-4o-mini-2024-07-18",
            "gpt-4.1",
            "gpt-4-turbo",
            "gpt-3.5-turbo",
            "gpt-5",
            "gpt-5.1-mini",
            "o3",
            "o4-mini",
            "o1",
        ),
        *("openai/gpt-4o", "azure/my-gpt-4o", "ft:gpt-4o-mini-2024-07-18:acme::x", "gpt-oss-120b", "openai:gpt-5"),
        *(
            "llama-3.3-70b-instruct",
            "meta-llama/Llama-4-Scout",
            "qwen3:8b",
            "mistral-large-latest",
            "deepseek-chat",
            "grok-4",
        ),
    ],
    "openai-responses": ["o3-pro", "gpt-5-pro", "gpt-5-codex", "o4-mini-deep-research", "openai-responses:gpt-5"],
    "anthropic": [
        *("claude-sonnet-4-5", "claude-3-5-haiku-latest", "claude-opus-4-1-20250805", "claude-sonnet"),
        *("us.anthropic.claude-sonnet-4-20250514-v1:0", "anthropic/claude-3.7-sonnet", "claude-haiku-4-5@20251001"),
    ],
    "gemini": ["gemini-2.5-pro", "models/gemini-1.5-flash", "google/gemini-3-pro", "gemini:tuned-model-7"],
    "xml": [
        *(
            "claude-2.1",
            "claude-instant-1.2",
            "o1-mini",
            "gpt-3.5-turbo-instruct",
            "text-davinci-003",
            "llama-2-70b-chat",
        ),
        *("gemma-2-9b-it", "google/gemma:7b", "phi-3-mini", "smollm2-135m", "xml:gpt-4o"),
    ],
}


@pytest.mark.req("UNI-4")
@pytest.mark.parametrize(("name", "dialect"), [(name, dialect) for dialect, names in SERVED.items() for name in names])
def test_the_name_of_a_model_tells_its_driver(name: str, dialect: str) -> None:
    profile = ModelProfile.from_name(name)

    assert find_driver(name).dialect == dialect
    assert profile.known
    assert profile.capability == ("TEXT" if dialect == "xml" and not name.startswith("xml:") else "FC_NATIVE")


@pytest.mark.req("UNI-4")
@pytest.mark.parametrize("dialect", [driver.dialect for driver in DRIVERS])
def test_a_dialect_is_served_by_its_driver(dialect: str) -> None:
    assert find_driver(dialect).dialect == dialect


@pytest.mark.req("UNI-4")
def test_every_score_is_between_0_and_100_and_one_driver_wins() -> None:
    for name in [name for names in SERVED.values() for name in names]:
        scores = sorted(driver.can_handle(ModelProfile.from_name(name)) for driver in DRIVERS)
        assert 0 <= scores[0] <= scores[-2] < scores[-1] <= 100


@pytest.mark.req("UNI-4")
def test_an_unknown_model_is_served_as_openai_chat_and_the_rendering_says_so() -> None:
    rendered = render([ToolSpec("a", "A", {"type": "object"})], "house-model-7")

    assert rendered.dialect == "openai"
    assert "'house-model-7' is not known" in rendered.diagnostics[0].message


@pytest.mark.req("UNI-4")
def test_a_model_is_served_in_text_where_its_own_driver_is_missing() -> None:
    assert find_driver("claude-sonnet-4-5", [OpenAIDriver(), XMLDriver()]).dialect == "xml"


@pytest.mark.req("UNI-4")
def test_a_tie_and_a_model_that_nobody_serves_are_errors() -> None:
    with pytest.raises(AmbiguousModel, match="name a dialect"):
        find_driver("gpt-4o", [OpenAIDriver(), OpenAIDriver()])
    with pytest.raises(UnknownDialect, match="there are openai"):
        find_driver("claude-sonnet-4-5", [OpenAIDriver()])
