"""MCP argument headers: which arguments does a call say in headers, as their server has marked them?"""

from __future__ import annotations

from typing import Any

import pytest

from unitools.mcp_argument_headers import MarkUnfit, find_argument_headers, list_argument_headers

REGION = {"type": "string", "x-mcp-header": "Region"}


def schema(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


@pytest.mark.req("SVC-6")
def test_marked_arguments_are_said_wherever_names_alone_lead_to_them() -> None:
    marked = find_argument_headers(
        schema(region=REGION, deep=schema(limit={"type": "integer", "x-mcp-header": "Limit"}))
    )
    given = {"region": "west", "deep": {"limit": 3.0}, "other": "unsaid"}

    assert dict(list_argument_headers(marked, given)) == {"Mcp-Param-Region": "west", "Mcp-Param-Limit": "3"}


@pytest.mark.req("SVC-6")
@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("", ""),
        ("us west 1", "us west 1"),
        (" west", "=?base64?IHdlc3Q=?="),
        ("a\nb", "=?base64?YQpi?="),
        ("=?base64?YQ==?=", "=?base64?PT9iYXNlNjQ/WVE9PT89?="),
        (True, "true"),
        (False, "false"),
        (-7, "-7"),
    ],
)
def test_a_value_is_written_so_that_the_server_reads_the_same(value: object, said: str) -> None:
    marked = find_argument_headers(schema(region=REGION))

    assert list_argument_headers(marked, {"region": value}) == [("Mcp-Param-Region", said)]


@pytest.mark.req("SVC-6")
@pytest.mark.parametrize("given", [{}, {"region": None}, {"region": ["west"]}])
def test_what_is_not_there_is_not_said(given: dict[str, Any]) -> None:
    assert list_argument_headers(find_argument_headers(schema(region=REGION)), given) == []


@pytest.mark.req("SVC-6")
def test_a_name_and_a_value_that_look_like_a_mark_are_none() -> None:
    looks = schema(
        **{"x-mcp-header": {"type": "object"}}, region={"type": "string", "default": REGION, "enum": [REGION]}
    )

    assert find_argument_headers(looks) == []


@pytest.mark.req("SVC-6")
@pytest.mark.parametrize(
    "unfit",
    [
        schema(region={"type": "number", "x-mcp-header": "Region"}),
        schema(region={"x-mcp-header": "Region"}),
        schema(region={"type": "object", "x-mcp-header": "Region"}),
        schema(region={"type": ["string", "integer"], "x-mcp-header": "Region"}),
        schema(region={"type": "string", "x-mcp-header": ""}),
        schema(region={"type": "string", "x-mcp-header": "Re\r\ngion"}),
        schema(region={"type": "string", "x-mcp-header": "Re:gion"}),
        schema(region={"type": "string", "x-mcp-header": 7}),
        schema(region=REGION, other={"type": "string", "x-mcp-header": "rEGION"}),
        schema(regions={"type": "array", "items": REGION}),
        schema(region={"oneOf": [REGION]}),
        schema(region={"$ref": "#/$defs/region"}) | {"$defs": {"region": REGION}},
        schema() | {"additionalProperties": REGION},
        schema() | {"x-mcp-header": "All"},
    ],
)
def test_a_mark_that_mcp_has_not_so_is_refused(unfit: dict[str, Any]) -> None:
    with pytest.raises(MarkUnfit):
        find_argument_headers(unfit)
