"""Rendered corpus: does every function of the corpus become what the provider's own types take?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import mcp.types
import pytest
from anthropic.types import ToolParam
from google.genai import types as genai
from openai.types.chat import ChatCompletionToolParam
from openai.types.responses import FunctionToolParam
from pydantic import ConfigDict, TypeAdapter

from tests.support.bfcl_corpus import DOTTED, FUNCTIONS, functions
from unitools.dialects import RenderOptions, render
from unitools.dialects.tool_names import NAMED, derive_dialect_name

if TYPE_CHECKING:
    from collections.abc import Callable


def closed(judge: Any) -> Callable[[Any], Any]:
    """The type's own validation, which by itself lets unknown keys of a TypedDict pass."""
    adapter = TypeAdapter(judge)
    known = judge.__required_keys__ | judge.__optional_keys__

    def check(value: Any) -> Any:
        assert set(value) <= known
        return adapter.validate_python(value)

    return check


class GeminiTool(genai.Tool):
    model_config = ConfigDict(extra="forbid")


JUDGES: dict[str, Callable[[Any], Any]] = {
    "openai": closed(ChatCompletionToolParam),
    "openai-responses": closed(FunctionToolParam),
    "anthropic": closed(ToolParam),
    "gemini": GeminiTool.model_validate,
    "mcp": mcp.types.Tool.model_validate,
}


@pytest.mark.req("UNI-4", "TOOLS-12")
@pytest.mark.parametrize("dialect", JUDGES)
def test_every_function_of_the_corpus_is_taken_by_the_providers_own_types(dialect: str) -> None:
    told = dotted = 0

    for tool in functions():
        rendered = render([tool], dialect)
        for each in rendered.payload:
            JUDGES[dialect](each)
        told += len(rendered.payload)
        assert rendered.names == {derive_dialect_name(dialect, tool.name): tool.name}
        dotted += "." in tool.name

    assert (told, dotted) == (FUNCTIONS, DOTTED)


@pytest.mark.req("UNI-4")
def test_every_function_of_the_corpus_is_told_in_a_prompt_and_in_a_document() -> None:
    for tool in functions():
        assert f'"name": "{tool.name}"' in render([tool], "xml").payload
        assert f"## `{tool.name}`" in render([tool], "markdown").payload


@pytest.mark.req("UNI-4")
@pytest.mark.parametrize("dialect", NAMED)
def test_names_of_the_corpus_are_told_apart_in_one_rendering(dialect: str) -> None:
    tools = list({tool.name: tool for tool in functions()}.values())
    # The corpus has nine pairs such as `math.gcd` and `math_gcd`; neither is called by the other's name.
    rendered = render(tools, dialect, RenderOptions(on_unrenderable="skip"))
    skipped = {each.tool for each in rendered.diagnostics if each.severity == "skipped"}

    assert {"math.gcd", "math_gcd"} <= skipped
    assert len(skipped) == 18
    assert set(rendered.names.values()) | skipped == {tool.name for tool in tools}
    assert not skipped & set(rendered.names.values())
    assert all(derive_dialect_name(dialect, name) == said for said, name in rendered.names.items())
    assert list(rendered.names.values()) == [tool.name for tool in tools if tool.name not in skipped]


@pytest.mark.req("UNI-4")
@pytest.mark.parametrize(
    ("dialect", "broken"),
    [
        ("openai", {"type": "function", "function": {"description": "no name"}}),
        ("openai-responses", {"type": "function", "name": "a", "parameters": {}}),
        ("anthropic", {"name": "a", "input_schema": "none"}),
        ("gemini", {"functionDeclarations": [{"name": "a", "parameters": {"type": "OBJECT", "oneOf": []}}]}),
        ("mcp", {"name": "a"}),
    ],
)
def test_the_judges_refuse_what_is_wrong(dialect: str, broken: dict[str, Any]) -> None:
    with pytest.raises((ValueError, AssertionError)):
        JUDGES[dialect](broken)
