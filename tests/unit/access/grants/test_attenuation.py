"""Attenuation: does what is handed on ever reach further than the grant that it came from, whatever is asked?"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from access.grants.attenuation import RequestedTerms, Terms, attenuate_terms, find_widenings, lasts_longer
from access.grants.conditions import list_unmet_conditions
from access.grants.matcher import missing_scopes
from tests.support.capability_reference import documents
from tests.unit.unitools.test_expressions import expressions, subjects
from unitools.capabilities import Capabilities
from unitools.expressions import Subject, Tag, TooEntangledError, all_of, any_of, find_tool_beyond, parse

NOW = datetime(2026, 11, 22, tzinfo=UTC)
texts = expressions.map(str).filter(lambda text: len(text) <= 500)
scopes = st.lists(
    st.fixed_dictionaries(
        {
            "resource": st.sampled_from(
                ["soul:", "soul:fs:/", "soul:fs:/a", "soul:fs:/a/b", "soul:fs:/ab", "soul:fs:/a/.."]
            ),
            "action": st.sampled_from(["read", "write", "*"]),
        }
    ),
    max_size=3,
)
conditions = st.lists(
    st.fixed_dictionaries(
        {
            "pointer": st.sampled_from(["/a", "/b/*"]),
            "op": st.sampled_from(["at_most", "at_least", "equals"]),
            "value": st.integers(0, 3),
        }
    ),
    max_size=3,
)
arguments = st.fixed_dictionaries({}, optional={"a": st.integers(0, 3), "b": st.lists(st.integers(0, 3), max_size=2)})
terms = st.builds(Terms, texts, st.none() | documents, st.none() | scopes, conditions)
asks = st.builds(RequestedTerms, st.none() | texts, st.none() | documents, st.none() | scopes, conditions)


def held(scopes: Any, asked: Any) -> bool:
    return not missing_scopes(scopes, asked)


@pytest.mark.req("TOOLS-32")
@pytest.mark.req("TOOLS-16")
@given(terms, asks, subjects, scopes, arguments)
def test_what_is_handed_on_reaches_no_further_than_what_it_came_from(
    whole: Terms, asked: RequestedTerms, tool: Subject, wanted: Any, said: Any
) -> None:
    if find_widenings(whole, asked):
        return
    part = attenuate_terms(whole, asked)

    assert parse(whole.tools).matches(tool) or not parse(part.tools).matches(tool)
    assert held(whole.scopes, wanted) or not held(part.scopes, wanted)
    assert not list_unmet_conditions(list(whole.conditions), said) or list_unmet_conditions(list(part.conditions), said)
    if whole.capabilities is not None:
        assert part.capabilities is not None
        assert Capabilities.from_json(part.capabilities) <= Capabilities.from_json(whole.capabilities)


@pytest.mark.req("TOOLS-15")
@given(terms, asks)
def test_each_attempt_to_widen_is_refused_and_said(whole: Terms, asked: RequestedTerms) -> None:
    places = {finding["pointer"].split("/")[1] for finding in find_widenings(whole, asked)}

    if asked.tools is not None:
        beyond = find_tool_beyond(parse(asked.tools), parse(whole.tools))
        assert ("tools" in places) == (beyond is not None)
    assert ("scopes" in places) == (asked.scopes is not None and not held(whole.scopes, asked.scopes))
    if asked.capabilities is not None and whole.capabilities is not None:
        bound, wanted = Capabilities.from_json(whole.capabilities), Capabilities.from_json(asked.capabilities)
        without_ceilings = wanted.replaced(ceilings={**bound.ceilings, **wanted.ceilings})
        assert ("capabilities" in places) == (not without_ceilings <= bound)
    assert "conditions" not in places  # they only add to what the grant asks already


@given(expressions, expressions, st.lists(subjects, max_size=5))
def test_a_tool_beyond_an_expression_is_found_exactly_when_there_is_one(
    part: Any, whole: Any, tools: list[Subject]
) -> None:
    found = find_tool_beyond(part, whole)

    if found is None:
        assert not [tool for tool in tools if part.matches(tool) and not whole.matches(tool)]
    else:
        assert part.matches(found)
        assert not whole.matches(found)
    assert find_tool_beyond(part & whole, whole) is None
    assert find_tool_beyond(part, part | whole) is None


@pytest.mark.parametrize(
    ("part", "whole"),
    [
        ("shop.prices.get", "shop.*"),
        ("shop.prices.*", "shop.* | tag:x"),
        ("shop.* & tag:x", "tag:x"),
        ("effect:Read", "~effect:Write"),
        ("safety:Low", "~safety:High"),
        ("*", "tag:x | ~tag:x"),
        ("shop.* & ~shop.prices.*", "~shop.prices.get"),
    ],
)
def test_a_narrower_expression_is_known_as_such_and_its_converse_is_not(part: str, whole: str) -> None:
    assert find_tool_beyond(parse(part), parse(whole)) is None
    if part != "*":
        assert find_tool_beyond(parse(whole), parse(part)) is not None


def test_what_takes_too_long_to_compare_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    holes, pigeons = range(6), range(7)
    housed = all_of(any_of(Tag(f"p{pigeon}-{hole}") for hole in holes) for pigeon in pigeons)
    pairs = [(hole, one, other) for hole in holes for one in pigeons for other in pigeons if one < other]
    crowded = any_of(Tag(f"p{one}-{hole}") & Tag(f"p{other}-{hole}") for hole, one, other in pairs)

    with pytest.raises(TooEntangledError):
        find_tool_beyond(housed, crowded)
    monkeypatch.setattr("unitools.expressions.containment.MAX_CHOICES", 1)
    assert [each["pointer"] for each in find_widenings(Terms("tag:x & tag:y"), RequestedTerms("tag:y & tag:x"))] == [
        "/tools"
    ]


def test_a_ceiling_that_is_not_named_stays_as_it_was_and_what_is_wider_is_said() -> None:
    whole = Terms("*", {"fs": [{"path": "/data", "actions": ["read"]}], "limits": {"timeout_ms": 100}})

    part = attenuate_terms(whole, RequestedTerms(capabilities={"fs": [{"path": "/data/in", "actions": ["read"]}]}))
    found = find_widenings(whole, RequestedTerms(tools=None, capabilities={"fs": [{"path": "/", "actions": ["read"]}]}))

    assert part.capabilities is not None
    assert part.capabilities["limits"] == {"timeout_ms": 100}
    assert found == [
        {
            "pointer": "/capabilities",
            "message": "The grant does not allow fs:read:/: only fs:read:/data.",
        }
    ]


def test_nothing_lasts_longer_than_for_ever() -> None:
    assert not lasts_longer(NOW, None)
    assert lasts_longer(None, NOW)
    assert lasts_longer(NOW + timedelta(seconds=1), NOW)
    assert not lasts_longer(NOW, NOW)


def test_a_condition_that_only_python_takes_for_one_of_the_grant_is_added() -> None:
    one, true = ({"pointer": "/n", "op": "equals", "value": value} for value in (1, True))

    assert list(attenuate_terms(Terms("*", conditions=[one]), RequestedTerms(conditions=[true, one])).conditions) == [
        one,
        true,
    ]
    assert (
        attenuate_terms(Terms("*", conditions=[one]), RequestedTerms(conditions=[true])).conditions[1]["value"] is True
    )
