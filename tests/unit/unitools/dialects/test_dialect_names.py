"""What are tools called in dialects that do not take their names?"""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unitools.calls import ToolSpec
from unitools.dialects import NameCollision, RenderOptions, render
from unitools.dialects.tool_names import RULES, derive_dialect_name, map_dialect_names

pytestmark = pytest.mark.req("UNI-4")

TAKEN = {
    "openai": r"[A-Za-z0-9_-]{1,64}",
    "openai-responses": r"[A-Za-z0-9_-]{1,64}",
    "anthropic": r"[A-Za-z0-9_-]{1,64}",
    "gemini": r"[A-Za-z_][A-Za-z0-9_.-]{0,63}",
    "mcp": r"[A-Za-z0-9_.-]{1,128}",
}
NOTHING = {"type": "object", "properties": {}}


def tool(name: str) -> ToolSpec:
    return ToolSpec(name, "Does it.", NOTHING)


@given(st.text(min_size=1, max_size=200))
def test_every_name_becomes_one_that_the_dialect_takes(name: str) -> None:
    for dialect in RULES:
        assert re.fullmatch(TAKEN[dialect], derive_dialect_name(dialect, name))
    assert derive_dialect_name("xml", name) == name


@given(st.lists(st.text(alphabet="ab._-: é查", min_size=1, max_size=80), unique=True, max_size=8))
def test_the_map_leads_back_and_does_not_depend_on_the_order(names: list[str]) -> None:
    for dialect in RULES:
        there = map_dialect_names(dialect, names, on_collision="skip")
        assert all(derive_dialect_name(dialect, name) == said for said, name in there.items())
        assert map_dialect_names(dialect, names[::-1], on_collision="skip") == there


def test_a_name_that_is_taken_as_it_is_stays() -> None:
    assert (
        derive_dialect_name("mcp", "acme.quotes.get")
        == "acme.quotes.get"
        == derive_dialect_name("gemini", "acme.quotes.get")
    )
    assert derive_dialect_name("openai", "Bank__transfer") == "Bank__transfer"
    assert derive_dialect_name("openai", "acme.quotes.get") == "acme_quotes_get"


def test_names_in_other_scripts_are_told_apart() -> None:
    names = ["查询", "转账", "余额"]

    assert list(map_dialect_names("openai", names).values()) == names


def test_long_names_are_told_apart_by_their_ends() -> None:
    names = ["x" * 70 + "a", "x" * 70 + "b"]

    assert list(map_dialect_names("openai", names).values()) == names


@pytest.mark.parametrize("dialect", ["openai", "openai-responses", "anthropic"])
def test_two_tools_with_one_name_are_an_error_that_names_both(dialect: str) -> None:
    with pytest.raises(NameCollision, match=r"'a\.b' and 'a_b' would both be 'a_b'"):
        render([tool("a.b"), tool("a_b")], dialect)


def test_the_same_tool_twice_is_an_error() -> None:
    with pytest.raises(NameCollision):
        render([tool("a"), tool("a")], "mcp")


def test_of_two_tools_with_one_name_none_is_rendered_when_what_cannot_be_rendered_is_skipped() -> None:
    rendered = render([tool("a.b"), tool("c"), tool("a_b")], "openai", RenderOptions(on_unrenderable="skip"))

    assert rendered.names == {"c": "c"}
    assert [(each.tool, each.severity) for each in rendered.diagnostics if each.severity == "skipped"] == [
        ("a.b", "skipped"),
        ("a_b", "skipped"),
    ]
