"""Provider schemas: does what stands in for providers refuse the schemas that the real ones refuse?"""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.provider_schemas import check_declaration_taken_by_gemini, check_parameters_taken_by_all

FINE: dict[str, Any] = {"type": "object", "properties": {"a": {"type": "array", "items": {"type": "string"}}}}


@pytest.mark.parametrize(
    "schema",
    [
        {},
        {"type": "string"},
        FINE | {"anyOf": [{"required": ["a"]}]},
        {"type": "object", "properties": {"a": {"type": "array"}}},
        {"type": "object", "properties": {"a": {"anyOf": [{"type": "array"}]}}},
        {"type": "object", "properties": {"a b": {"type": "string"}}},
    ],
)
def test_a_schema_that_a_chat_api_refuses_is_refused(schema: dict[str, Any]) -> None:
    check_parameters_taken_by_all("fine", FINE)

    with pytest.raises(AssertionError):
        check_parameters_taken_by_all("odd", schema)


def test_geminis_own_form_has_no_keyword_of_others() -> None:
    own = {"type": "OBJECT", "properties": {"a": {"type": "STRING", "max_length": 3}}}
    check_declaration_taken_by_gemini({"name": "fine", "parameters": own})
    check_declaration_taken_by_gemini({"name": "fine", "parametersJsonSchema": FINE | {"$schema": "x"}})

    with pytest.raises(AssertionError):
        check_declaration_taken_by_gemini({"name": "odd", "parameters": own | {"$schema": "x"}})
