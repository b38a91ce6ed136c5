"""Dialect names: what are tools called in dialects that do not take their names?"""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.provider_names import check_taken_by_all, check_taken_with_the_name_of_a_server
from unitools.calls import ToolSpec
from unitools.dialects import NameCollision, RenderOptions, render
from unitools.dialects.tool_names import (
    LONGEST,
    NAMED,
    build_id_pattern,
    derive_dialect_name,
    derive_tool_name,
    map_dialect_names,
    restore_tool_id,
)

SEGMENT = st.from_regex(r"[a-z][a-z0-9_]{0,60}", fullmatch=True)
IDS = st.builds(lambda *parts: ".".join(parts), SEGMENT, SEGMENT, SEGMENT).filter(lambda each: len(each) <= 128)
# Few letters, so that one id often has the text of another.
MEETING_IDS = st.from_regex(r"[ab](_?[ab]){0,3}\.[ab](_?[ab]){0,3}\.[ab](_?[ab]){0,3}", fullmatch=True)
NOTHING = {"type": "object", "properties": {}}


def tool(name: str) -> ToolSpec:
    return ToolSpec(name, "Does it.", NOTHING)


@pytest.mark.req("CONN-3")
@given(st.text(max_size=200))
def test_every_name_becomes_one_that_all_providers_take(name: str) -> None:
    for dialect in NAMED:
        check_taken_by_all(derive_dialect_name(dialect, name))
    assert derive_dialect_name("xml", name) == name


@pytest.mark.req("CONN-3")
@given(IDS)
def test_every_id_of_a_hub_leaves_room_for_the_name_of_a_server(id: str) -> None:
    name = derive_tool_name(id)

    assert re.fullmatch(r"[a-z_][a-z0-9_]*", name), "which programs that a model writes can call too"
    assert len(name) <= LONGEST
    check_taken_with_the_name_of_a_server(name)


@pytest.mark.req("CONN-3")
@given(IDS)
def test_a_name_tells_its_id_or_what_ids_to_look_among(id: str) -> None:
    name, pattern = derive_tool_name(id), build_id_pattern(derive_tool_name(id))

    assert restore_tool_id(id) == id
    if pattern is None:
        assert restore_tool_id(name) == id
    else:
        assert restore_tool_id(name) is None
        assert re.search(pattern, id)


@pytest.mark.req("CONN-3")
@given(st.lists(MEETING_IDS | IDS, unique=True, max_size=20))
def test_no_two_ids_have_one_name(ids: list[str]) -> None:
    assert list(map_dialect_names("mcp", ids).values()) == ids


@pytest.mark.req("CONN-3")
@given(st.text(alphabet="ab_-.é1", max_size=60))
def test_a_name_that_is_none_leads_nowhere(name: str) -> None:
    id = restore_tool_id(name)

    assert id is None or id == name or derive_tool_name(id) == name


@pytest.mark.req("CONN-3")
@pytest.mark.parametrize(
    ("id", "name"),
    [
        ("commerce.pricing.get_quote", "commerce_pricing_get_quote"),
        # these two would be the same text; which of them has the digits does not depend on the other being there
        ("a.b.c_d", "a_b_c_d"),
        ("a.b_c.d", "a_b_c_d_01a9dac1"),
        # what looks like digits of a digest gets them, or it might be the name of another
        ("a.b.report_20261127", "a_b_report_20261127_17221359"),
        ("commerce.pricing." + "x" * 31, "commerce_pricing_" + "x" * 31),
        ("commerce.pricing." + "x" * 32, "x" * 32 + "_95cb3ef1"),
        ("shop.pricing." + "x" * 36, "x" * 36 + "_458c9055"),
        ("a.b." + "x" * 124, "x" * 39 + "_ec18bf95"),
    ],
)
def test_names_of_ids_stay_what_they_are(id: str, name: str) -> None:
    """Conversations, prompts and settings of clients hold them: another rule is a breaking change."""
    assert derive_tool_name(id) == name


@pytest.mark.req("CONN-3")
def test_a_name_may_be_as_long_as_providers_take_if_it_needs_no_change() -> None:
    assert derive_tool_name("x" * 64) == "x" * 64
    assert len(derive_tool_name("x" * 65)) <= LONGEST


@pytest.mark.req("CONN-3")
@given(st.lists(st.text(alphabet="ab._-: é查", min_size=1, max_size=80), unique=True, max_size=8))
def test_the_map_leads_back_and_does_not_depend_on_the_order(names: list[str]) -> None:
    for dialect in NAMED:
        there = map_dialect_names(dialect, names, on_collision="skip")
        assert all(derive_dialect_name(dialect, name) == said for said, name in there.items())
        assert map_dialect_names(dialect, names[::-1], on_collision="skip") == there


@pytest.mark.req("CONN-3", "UNI-4")
def test_a_tool_has_one_name_in_all_dialects() -> None:
    for name, said in [("Bank__transfer", "Bank__transfer"), ("acme.quotes.get", "acme_quotes_get"), ("1st", "_1st")]:
        assert {derive_dialect_name(dialect, name) for dialect in NAMED} == {said}


@pytest.mark.req("CONN-3")
def test_names_in_other_scripts_are_told_apart() -> None:
    names = ["查询", "转账", "余额"]

    assert list(map_dialect_names("openai", names).values()) == names


@pytest.mark.req("CONN-3")
def test_long_names_are_told_apart_by_their_ends() -> None:
    names = ["x" * 70 + "a", "x" * 70 + "b"]

    assert list(map_dialect_names("openai", names).values()) == names


@pytest.mark.req("CONN-3")
@pytest.mark.parametrize("dialect", NAMED)
def test_two_tools_with_one_name_are_an_error_that_names_both(dialect: str) -> None:
    with pytest.raises(NameCollision, match=r"'a\.b' and 'a_b' would both be 'a_b'"):
        render([tool("a.b"), tool("a_b")], dialect)


@pytest.mark.req("CONN-3")
def test_the_same_tool_twice_is_an_error() -> None:
    with pytest.raises(NameCollision):
        render([tool("a"), tool("a")], "mcp")


@pytest.mark.req("CONN-3", "UNI-4")
def test_of_two_tools_with_one_name_none_is_rendered_when_what_cannot_be_rendered_is_skipped() -> None:
    rendered = render([tool("a.b"), tool("c"), tool("a_b")], "openai", RenderOptions(on_unrenderable="skip"))

    assert rendered.names == {"c": "c"}
    assert [(each.tool, each.severity) for each in rendered.diagnostics if each.severity == "skipped"] == [
        ("a.b", "skipped"),
        ("a_b", "skipped"),
    ]
