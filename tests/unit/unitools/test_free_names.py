"""Free names: do expressions about free names obey the laws of sets, and survive being written and read?"""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unitools.expressions import (
    Exact,
    Expression,
    ExpressionError,
    Subject,
    Tag,
    all_of,
    any_of,
    find_tool_beyond,
    from_json,
    parse,
)
from unitools.expressions.name_atoms import Name, Prefix

names = st.sampled_from(["Bank__transfer", "Bank__balance", "quote.get", "quote.put", "Bank", "x-1"])
tags = st.sampled_from(["finance", "internal", "read"])
atoms: st.SearchStrategy[Expression] = st.one_of(
    st.builds(Name, names),
    st.builds(Prefix, st.sampled_from(["Bank__", "quote.", "q", "Bank"])),
    st.builds(Tag, tags),
)
expressions = st.recursive(
    atoms,
    lambda inner: st.one_of(
        inner.map(lambda each: ~each),
        st.lists(inner, min_size=1, max_size=3).map(all_of),
        st.lists(inner, min_size=1, max_size=3).map(any_of),
    ),
    max_leaves=8,
)
tools = st.builds(lambda name, tags: Subject("", frozenset(tags), name=name), names, st.sets(tags))


@pytest.mark.req("UNI-3")
@given(expressions, expressions, expressions, tools)
def test_the_laws_of_sets_hold(a: Expression, b: Expression, c: Expression, tool: Subject) -> None:
    def same(left: Expression, right: Expression) -> bool:
        return left.matches(tool) is right.matches(tool)

    assert same(~(a & b), ~a | ~b)
    assert same(~(a | b), ~a & ~b)
    assert same(a & (b | c), a & b | a & c)
    assert same(a | b & c, (a | b) & (a | c))
    assert ~~a == a
    assert a & b == b & a
    assert a | (b | c) == (a | b) | c
    assert hash(a & b & a) == hash(b & a)


@pytest.mark.req("UNI-3")
@given(expressions)
def test_what_is_written_is_read_as_the_same(expression: Expression) -> None:
    if len(str(expression)) <= 500:
        assert parse(str(expression), names=True) == expression
    assert from_json(json.loads(json.dumps(expression.to_json())), names=True) == expression


@pytest.mark.req("UNI-3")
def test_a_prefix_is_matched_letter_by_letter() -> None:
    assert Prefix("Bank__").matches(Subject("", name="Bank__transfer"))
    assert not Prefix("Bank__").matches(Subject("", name="Banker"))
    assert str(Prefix("crm.")) == "name:crm.*"


@pytest.mark.req("UNI-3")
@pytest.mark.parametrize("ask", [lambda a, b: a and b, lambda a, b: a or b, lambda a, _: not a])
def test_words_in_place_of_operators_are_refused(ask: object) -> None:
    with pytest.raises(TypeError, match="neither true nor false"):
        ask(Tag("a"), Tag("b"))  # type: ignore[operator]


@pytest.mark.req("UNI-3")
def test_an_expression_is_combined_with_expressions_only() -> None:
    with pytest.raises(TypeError):
        Tag("a") & "b"  # type: ignore[operator]
    with pytest.raises(TypeError):
        Tag("a") | None  # type: ignore[operator]


def test_a_hub_refuses_free_names_with_a_sentence() -> None:
    with pytest.raises(ExpressionError, match="Here tools are named by their ids") as caught:
        parse("tag:a & name:Bank__*")
    assert caught.value.position == 8
    with pytest.raises(ValueError, match="Here tools are named by their ids"):
        from_json({"not": {"name_prefix": "Bank__"}})
    with pytest.raises(TypeError, match=r"name:quote\.get says nothing about tools of a hub"):
        find_tool_beyond(Name("quote.get"), Exact("a.b.c"))


@pytest.mark.parametrize("wrong", ["", "a b", "*", ".a", "-a", "x" * 129, "Bänk", "a\n"])
def test_a_wrong_name_is_refused(wrong: str) -> None:
    with pytest.raises(ValueError, match="name of a tool"):
        Name(wrong)
    with pytest.raises(ValueError, match="name of a tool"):
        Prefix(wrong)
