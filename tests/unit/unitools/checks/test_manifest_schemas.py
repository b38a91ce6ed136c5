"""Manifest schemas: are embedded schemas bounded in size, closed in themselves and safe to hold calls against?"""

from __future__ import annotations

import re
import socket
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.mistakes.base import OBJECT, doubling
from tests.support.manifests import manifest
from unitools.checks import MAX_EXPANSIONS, check_manifest, compile_schema, count_expansions
from unitools.checks.patterns import MAX_SIZE, find_refusal_reason, measure_pattern
from unitools.checks.schema_walk import find_reference_loop, walk_subschemas

RECURSIVE: dict[str, dict[str, Any]] = {
    "a tree": {"type": "object", "properties": {"children": {"type": "array", "items": {"$ref": "#"}}}},
    "a list": {"$ref": "#/$defs/n", "$defs": {"n": {"properties": {"next": {"$ref": "#/$defs/n"}}}}},
    "by anchor": {"$anchor": "top", "properties": {"a": {"anyOf": [{"type": "null"}, {"$ref": "#top"}]}}},
    "two that hold each other": {
        "$ref": "#/$defs/a",
        "$defs": {"a": {"properties": {"b": {"$ref": "#/$defs/b"}}}, "b": {"$ref": "#/$defs/a"}},
    },
}


@pytest.mark.parametrize("what", RECURSIVE)
def test_a_schema_may_come_back_to_itself_with_a_part_of_the_value(what: str) -> None:
    schema = RECURSIVE[what]

    assert check_manifest(manifest(output_schema=schema)) == []
    assert find_reference_loop(schema) is None
    assert count_expansions(schema) < MAX_EXPANSIONS


def test_definitions_that_multiply_are_counted_and_no_further_than_needed() -> None:
    assert count_expansions(doubling(5)) < 1000
    assert count_expansions(doubling(500)) == MAX_EXPANSIONS + 1


def test_anchors_multiply_as_pointers_do() -> None:
    schema = doubling(40)
    text = re.sub(r"#/\$defs/(d\d+)", r"#\1", repr(schema))
    named = eval(text)
    for name, definition in named["$defs"].items():
        definition["$anchor"] = name

    assert [each.rule for each in check_manifest(manifest(input_schema=named))] == ["schema.expansion"]


def test_what_looks_like_a_keyword_in_data_is_none() -> None:
    data = {"$ref": "https://example.org/x", "$id": "urn:x", "pattern": "(", "properties": {"a": {"$dynamicRef": "#x"}}}
    schema = {"enum": [data], "const": data, "default": data, "examples": [data]}

    assert check_manifest(manifest(output_schema=schema)) == []
    assert len(list(walk_subschemas(schema))) == 1


def test_a_property_may_have_the_name_of_a_keyword() -> None:
    names = {name: {"type": "string"} for name in ("$schema", "$ref", "$id", "$dynamicRef", "pattern", "default")}

    assert check_manifest(manifest(input_schema=OBJECT | {"properties": names})) == []


def test_the_first_kind_of_mistake_ends_the_look_at_a_schema_and_each_schema_has_its_own() -> None:
    wrong = OBJECT | {"properties": {"a": {"$ref": "urn:x"}, "b": {"$ref": "urn:y"}, "c": {"type": "nothing"}}}

    found = check_manifest(manifest(input_schema=wrong, output_schema={"type": "nothing"}))

    assert [(each.pointer, each.rule) for each in found] == [
        ("/input_schema/properties/a/$ref", "schema.remote_ref"),
        ("/input_schema/properties/b/$ref", "schema.remote_ref"),
        ("/output_schema/type", "schema.invalid"),
    ]


# Regular expressions.

SIZES = {
    "": 0,
    "^abc$": 3,
    "a{3}": 3,
    "a{2,5}": 5,
    "a{2,}": 2,
    "[a-z]{4}": 4,
    r"[\]{3}]{4}": 4,
    "[]a]{4}": 4,
    r"\p{L}{5}": 5,
    r"\{3}": 3,
    "(ab){3}": 6,
    "(?:ab){3}": 6,
    "(?<name>ab){3}": 6,
    "(?i)ab": 2,
    "((a{10}){10}){10}": 1000,
    "(a|bc){4}": 12,
    "(ab)+c*": 3,
    "a{99999999999999}": 10**9,
    "x{y}": 4,
}


@pytest.mark.parametrize("pattern", SIZES)
def test_the_size_of_a_pattern_is_what_it_is_written_out(pattern: str) -> None:
    assert measure_pattern(pattern) == SIZES[pattern]


@pytest.mark.parametrize("pattern", ["^[A-Z0-9][A-Z0-9-]{2,31}$", r"^\d{4}-\d{2}-\d{2}$", r"\p{Han}+", "^(a+)+$", ""])
def test_ordinary_patterns_are_taken(pattern: str) -> None:
    assert find_refusal_reason(pattern) == ""
    assert check_manifest(manifest(output_schema={"pattern": pattern})) == []


@pytest.mark.parametrize(
    "pattern", ["(?=a)", "(?<!a)b", r"(a)\1", r"(?<n>a)\k<n>", "(", "a{2,1}", "x{501}", "((x{9}){9}){9}", "x" * 1001]
)
def test_other_patterns_are_refused_with_a_sentence(pattern: str) -> None:
    assert find_refusal_reason(pattern).startswith(("The pattern ", "With its repetitions "))


@given(st.text(alphabet="ab(){}[]\\|?*+^$,:=!<>0123456789pxk", max_size=30))
def test_any_pattern_has_a_size_and_one_that_is_taken_is_small(pattern: str) -> None:
    assert measure_pattern(pattern) >= 0
    if not find_refusal_reason(pattern):
        assert measure_pattern(pattern) <= MAX_SIZE
        compile_schema({"pattern": pattern})


def test_a_hostile_pattern_takes_no_time_on_a_call() -> None:
    validator = compile_schema({"type": "string", "pattern": "^(a+)+$"})

    assert not validator.is_valid("a" * 50_000 + "b")


# The hub asks nobody.


def test_a_schema_makes_the_hub_ask_nobody() -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        listener.settimeout(0.2)
        address = f"http://127.0.0.1:{listener.getsockname()[1]}/x"
        asking: list[dict[str, Any]] = [
            {"properties": {"a": {"$schema": address}}},
            {"$defs": {"a": {"$id": "urn:a", "$schema": address}}},
            {"$ref": address},
            {"enum": [{"$ref": address}]},
            {"$id": address, "$ref": "other"},
            {"unknown": {"$ref": address}},
        ]
        for schema in asking:
            check_manifest(manifest(output_schema=schema, config_schema=schema))
        for schema in asking[:2]:
            compile_schema(schema)
        with pytest.raises(ValueError, match="not present"):
            compile_schema({"$ref": address})

        with pytest.raises(TimeoutError):
            listener.accept()


# Versions.


@pytest.mark.parametrize("version", ["0.0.1", "1.0.0", "10.20.30", "1.0.0-alpha.1", "1.0.0+build.5", "1.0.0-rc.1+x"])
def test_a_version_is_semver(version: str) -> None:
    assert check_manifest(manifest(version=version)) == []


@pytest.mark.parametrize(
    "version",
    ["1", "1.0", "v1.0.0", "01.0.0", "1.0.0.0", "1.0.0-", "1.0.0+", "1.0.0 ", "1.0.0\n", "-1.0.0", "1.0.0-a..b"],
)
def test_what_is_not_semver_is_refused(version: str) -> None:
    assert [each.rule for each in check_manifest(manifest(version=version))] == ["manifest.pattern"]
