"""Expressions: does an expression name the tools that it reads like, and does its text say exactly what it is?"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.manifests import manifest
from unitools.expressions import (
    DOMAINS,
    EFFECTS,
    MAX_LENGTH,
    MAX_NESTING,
    SAFETY_CLASSES,
    And,
    Domain,
    Effect,
    Everything,
    Exact,
    Expression,
    ExpressionError,
    Not,
    Or,
    Prefix,
    Safety,
    Subject,
    Tag,
    all_of,
    any_of,
    build_subject,
    compute_specificity,
    from_json,
    parse,
    parse_cached,
)
from unitools.manifest import Manifest

QUOTE = Subject("commerce.pricing.quote", frozenset({"pricing", "beta"}), "Read", "Low", frozenset({"net"}))
MAIL = Subject("office.mail.send", frozenset({"mail"}), "Network", "High", frozenset({"net", "tmp"}))

words = st.sampled_from(["a", "b", "shop", "x_1"])
tags = st.from_regex(r"\A[a-z0-9][a-z0-9_-]{0,8}\Z")
atoms: st.SearchStrategy[Expression] = st.one_of(
    st.just(Everything()),
    st.builds(lambda a, b, c: Exact(f"{a}.{b}.{c}"), words, words, words),
    st.builds(Prefix, words),
    st.builds(lambda a, b: Prefix(f"{a}.{b}"), words, words),
    st.builds(Tag, tags),
    st.sampled_from(EFFECTS).map(Effect),
    st.sampled_from(SAFETY_CLASSES).map(Safety),
    st.sampled_from(DOMAINS).map(Domain),
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
subjects = st.builds(
    Subject,
    st.builds(lambda a, b, c: f"{a}.{b}.{c}", words, words, words),
    st.frozensets(tags, max_size=3),
    st.sampled_from(EFFECTS),
    st.sampled_from(SAFETY_CLASSES),
    st.frozensets(st.sampled_from(DOMAINS)),
)

NAMES = {
    "*": (True, True),
    "commerce.pricing.quote": (True, False),
    "commerce.pricing.quotes": (False, False),
    "commerce.*": (True, False),
    "comm.*": (False, False),
    "office.mail.*": (False, True),
    "office.ma.*": (False, False),
    "tag:beta": (True, False),
    "effect:Network": (False, True),
    "safety:High": (False, True),
    "domain:net": (True, True),
    "domain:tmp": (False, True),
    "~tag:beta": (False, True),
    "domain:net & ~safety:High": (True, False),
    "tag:beta | tag:mail": (True, True),
    "tag:none | tag:mail & safety:Low": (False, False),
    "(tag:none | tag:mail) & safety:High": (False, True),
    "~(tag:beta | tag:mail)": (False, False),
    "~ ~ tag:beta": (True, False),
}


@pytest.mark.req("UNI-3")
@pytest.mark.parametrize("text", NAMES)
def test_an_expression_names_the_tools_that_it_reads_like(text: str) -> None:
    assert (parse(text).matches(QUOTE), parse(text).matches(MAIL)) == NAMES[text]


WRITTEN = {
    "a.b.c&a.*": "a.* & a.b.c",
    " tag:x|tag:x ": "tag:x",
    "~~*": "*",
    "~(a.*)": "~a.*",
    "(tag:z | tag:a) | tag:m": "tag:a | tag:m | tag:z",
    "tag:b & tag:a | *": "* | tag:a & tag:b",
    "((tag:a | tag:b)) & c.*": "c.* & (tag:a | tag:b)",
    "~(tag:a & tag:b)": "~(tag:a & tag:b)",
    "effect:read & safety:LOW": "effect:Read & safety:Low",
}


@pytest.mark.parametrize("text", WRITTEN)
def test_a_text_has_one_canonical_form(text: str) -> None:
    assert str(parse(text)) == WRITTEN[text]


MISTAKES = {
    "": (0, "at the end"),
    "  ": (2, "at the end"),
    "a.b": (0, "three segments"),
    "pricing": (0, "three segments"),
    "a.b.c.d": (0, "three segments"),
    "a.b.c.*": (0, "no prefix"),
    ".*": (0, "no prefix"),
    "Commerce.*": (0, "no prefix"),
    "tag:": (0, "no tag"),
    "tag:Big": (0, "no tag"),
    "effect:Magic": (0, "Use one of: None, Read"),
    "safety:None": (0, "Low, Medium, High"),
    "domain:disk": (0, "fs, net"),
    "colour:red": (0, "colour: is unknown"),
    "a.* &": (5, "at the end"),
    "a.* & | b.*": (6, "before |"),
    "a.* b.*": (4, "no & or |"),
    "a.* (b.*)": (4, "no & or |"),
    "(a.*": (0, "not closed"),
    "a.*)": (3, "closes nothing"),
    "tag:x & ()": (9, "before )"),
    "a.* ; b.*": (4, "means nothing"),
    "a.* \0": (4, "means nothing"),
    "價格.*": (0, "means nothing"),
    "a.*" + " " * MAX_LENGTH: (MAX_LENGTH, "at most 500"),
    "~" * (MAX_NESTING + 2) + "*": (MAX_NESTING + 1, "nested more than"),
    "(" * 400: (MAX_NESTING + 1, "nested more than"),
}


@pytest.mark.parametrize("text", MISTAKES)
def test_what_is_no_expression_is_refused_with_its_place_and_a_sentence(text: str) -> None:
    position, part = MISTAKES[text]

    with pytest.raises(ExpressionError) as refused:
        parse(text)

    assert refused.value.position == position
    assert part in str(refused.value)
    assert str(refused.value).startswith(f"At character {position + 1}: ")
    assert str(refused.value).endswith((".", "…."))


def test_the_deepest_nesting_that_is_allowed_is_read() -> None:
    assert parse("~" * MAX_NESTING + "*") == Everything()
    assert parse("(" * MAX_NESTING + "a.*" + ")" * MAX_NESTING) == Prefix("a")


@given(expressions)
def test_the_text_of_an_expression_is_that_expression(expression: Expression) -> None:
    text = str(expression)

    if len(text) <= MAX_LENGTH:
        assert parse(text) == expression
        assert hash(parse(text)) == hash(expression)


@given(expressions)
def test_the_json_of_an_expression_is_that_expression(expression: Expression) -> None:
    assert from_json(expression.to_json()) == expression


@given(st.text(alphabet="ab.*:&|~() tag", max_size=40))
def test_any_text_is_an_expression_or_is_refused_by_name(text: str) -> None:
    try:
        found = parse(text)
    except ExpressionError as refused:
        assert 0 <= refused.position <= len(text)
    else:
        assert parse(str(found)) == found


@given(expressions, expressions, subjects)
def test_the_operators_are_those_of_sets(a: Expression, b: Expression, subject: Subject) -> None:
    assert (a & b).matches(subject) == (a.matches(subject) and b.matches(subject))
    assert (a | b).matches(subject) == (a.matches(subject) or b.matches(subject))
    assert (~a).matches(subject) != a.matches(subject)
    assert ~~a == a
    assert a & b == b & a
    assert a | a == a


@given(expressions, expressions, expressions)
def test_brackets_between_equal_operators_say_nothing(a: Expression, b: Expression, c: Expression) -> None:
    assert (a & b) & c == a & (b & c)
    assert (a | b) | c == a | (b | c)


@pytest.mark.parametrize(
    "data", [None, [], {}, "tag:x", {"tag": 5}, {"all": []}, {"id": "a"}, {"tag": "x", "id": "a.b.c"}, {"not": None}]
)
def test_json_that_is_no_expression_is_refused(data: object) -> None:
    with pytest.raises(ValueError, match=r"no part of|no tool id"):
        from_json(data)


def test_json_of_any_depth_is_refused_and_not_followed() -> None:
    data: object = {"tag": "x"}
    for _ in range(5000):
        data = {"not": data}

    with pytest.raises(ValueError, match="nested more than"):
        from_json(data)


def test_nothing_is_not_an_expression() -> None:
    for build in (all_of, any_of):
        with pytest.raises(ValueError, match="at least one part"):
            build([])


def test_the_narrower_expression_is_the_more_specific_one() -> None:
    ordered = [
        "*",
        "~tag:x",
        "tag:x",
        "tag:x & effect:Read",
        "a.*",
        "a.* & tag:x",
        "a.b.*",
        "a.b.* & tag:x",
        "a.b.c",
        "a.b.c & tag:x",
    ]
    values = [compute_specificity(parse(text)) for text in ordered]

    assert values == sorted(set(values))
    assert compute_specificity(parse("a.b.c | *")) == compute_specificity(parse("*"))
    assert (
        compute_specificity(parse("effect:Read"))
        == compute_specificity(parse("safety:Low"))
        == compute_specificity(parse("domain:net"))
    )


@given(expressions, expressions)
def test_an_intersection_is_as_specific_as_its_parts_and_a_union_never_more(a: Expression, b: Expression) -> None:
    if not isinstance(a & b, Or) and not isinstance(a | b, And):
        assert compute_specificity(a | b) <= max(compute_specificity(a), compute_specificity(b))
        assert compute_specificity(a & b) >= min(compute_specificity(a), compute_specificity(b))


def test_what_is_remembered_is_the_same_value() -> None:
    assert parse_cached("tag:x & a.*") is parse_cached("tag:x & a.*")
    assert isinstance(parse_cached("~tag:x"), Not)


def test_a_manifest_is_a_subject() -> None:
    document = manifest(
        tags=["sample", "slow"],
        side_effect="Network",
        safety_class="Medium",
        capabilities={"net": [{"host": "example.org"}], "tmp": 0, "browser": False},
    )

    assert build_subject(Manifest(document)) == Subject(
        "sample.tools.echo", frozenset({"sample", "slow"}), "Network", "Medium", frozenset({"net"})
    )
