"""Argument tables: is every argument there to be read, and what was left out too?"""

from __future__ import annotations

from typing import Any

from invocations.approvals.argument_tables import MAX_ROWS, build_argument_table

SCHEMA = {
    "properties": {
        "lines": {"type": "array", "items": {"properties": {"sku": {"description": "Which goods."}, "note": {}}}},
        "city": {"title": "Where to"},
        "incoterm": {"default": "DDP"},
        "tags": {},
    }
}


def test_every_value_has_a_row_in_the_order_of_the_schema_and_unknown_ones_come_last() -> None:
    sent = {
        "more": {"x": None},
        "tags": ["a", "b"],
        "city": "Berlin",
        "lines": [{"sku": "A"}, {"sku": "B", "note": ""}],
    }

    table = build_argument_table(sent, SCHEMA)

    assert [(row.name, row.value, row.help) for row in table.given] == [
        ("lines › 1 › sku", "A", "Which goods."),
        ("lines › 2 › sku", "B", "Which goods."),
        ("lines › 2 › note", "", ""),
        ("city", "Berlin", "Where to"),
        ("tags", '["a", "b"]', ""),
        ("more › x", "null", ""),
    ]
    assert [(row.name, row.value) for row in table.missing] == [("lines › 1 › note", ""), ("incoterm", "DDP")]
    assert not table.has_more


def test_a_table_that_would_be_too_long_says_so() -> None:
    table = build_argument_table({str(n): n for n in range(MAX_ROWS + 1)}, None)

    assert (len(table.given), table.has_more) == (MAX_ROWS, True)


def test_what_was_left_out_is_said_of_a_call_without_arguments_too() -> None:
    table = build_argument_table({}, {"properties": {"notify": {"type": "boolean", "default": True}}})
    nested = build_argument_table(
        {"options": {}}, {"properties": {"options": {"properties": {"fast": {"default": 1}}}}}
    )

    assert (table.given, [(row.name, row.value) for row in table.missing]) == ([], [("notify", "true")])
    assert [(row.name, row.value) for row in nested.given] == [("options", "{}")]
    assert [(row.name, row.value) for row in nested.missing] == [("options › fast", "1")]


def test_much_that_was_left_out_hides_nothing_that_was_sent() -> None:
    options: dict[str, Any] = {"properties": {f"p{n}": {} for n in range(MAX_ROWS + 1)}}
    table = build_argument_table({"options": {"a": 1}, "iban": "DE1"}, {"properties": {"options": options, "iban": {}}})

    assert [row.name for row in table.given] == ["options › a", "iban"]
    assert (len(table.missing), table.has_more) == (MAX_ROWS, False)
