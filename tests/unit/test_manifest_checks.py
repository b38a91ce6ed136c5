"""Does each check of a manifest find its mistake, name the place, and say the fix?"""

from __future__ import annotations

import socket
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from registry.checks import MAX_SCHEMA_DEPTH, MAX_SCHEMA_NODES, compile_schema, findings_of
from tests.manifests import manifest
from unitools.manifest import Manifest, manifest_schema

OBJECT = {"type": "object"}


def nested(depth: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(depth):
        schema = {"type": "object", "properties": {"a": schema}}
    return schema


def test_a_manifest_that_is_right_has_no_findings() -> None:
    assert findings_of(manifest()) == []


def test_the_published_schema_is_valid_itself() -> None:
    Draft202012Validator.check_schema(manifest_schema())


MISTAKES: dict[str, tuple[dict[str, Any], str, str]] = {
    "no name": ({"display_name": None}, "", "manifest.required"),
    "an unknown field": ({"colour": "red"}, "", "manifest.additionalProperties"),
    "two segments": ({"id": "a.b"}, "/id", "manifest.pattern"),
    "a version of two numbers": ({"version": "1.0"}, "/version", "manifest.pattern"),
    "an unknown effect": ({"side_effect": "Magic"}, "/side_effect", "manifest.enum"),
    "a timeout as text": ({"timeout_ms": "5"}, "/timeout_ms", "manifest.type"),
    "a module with a path": ({"implementation": {"module": "../x"}}, "/implementation/module", "manifest.pattern"),
    "an entry that is private to Python": (
        {"implementation": {"module": "a", "entry": "a.b"}},
        "/implementation/entry",
        "manifest.pattern",
    ),
    "an invalid schema": ({"output_schema": {"type": "strnig"}}, "/output_schema/type", "schema.invalid"),
    "an invalid schema inside": (
        {"input_schema": OBJECT | {"properties": {"a/b": {"minimum": "1"}}}},
        "/input_schema/properties/a~1b/minimum",
        "schema.invalid",
    ),
    "another dialect": (
        {"output_schema": {"$schema": "http://json-schema.org/draft-07/schema#"}},
        "/output_schema/$schema",
        "schema.dialect",
    ),
    "another dialect inside": (
        {"output_schema": {"properties": {"a": {"$schema": "http://127.0.0.1:9/x"}}}},
        "/output_schema/properties/a/$schema",
        "schema.dialect",
    ),
    "a dialect that is no text": (
        {"input_schema": OBJECT | {"$schema": []}},
        "/input_schema/$schema",
        "schema.dialect",
    ),
    "a dialect with an address that is none": (
        {"input_schema": OBJECT | {"$schema": "http://[bad"}},
        "/input_schema/$schema",
        "schema.dialect",
    ),
    "a major version that no column holds": ({"version": "2147483648.0.0"}, "/version", "version.major"),
    "a remote reference": (
        {"output_schema": {"$ref": "https://example.org/x"}},
        "/output_schema/$ref",
        "schema.remote_ref",
    ),
    "a file reference": (
        {"output_schema": {"allOf": [{"$ref": "file:///etc/passwd"}]}},
        "/output_schema/allOf/0/$ref",
        "schema.remote_ref",
    ),
    "a pattern that can explode": (
        {"input_schema": OBJECT | {"properties": {"a": {"type": "string", "pattern": "(?=a)b"}}}},
        "/input_schema",
        "schema.unsupported",
    ),
    "too deep a schema": ({"output_schema": nested(MAX_SCHEMA_DEPTH)}, "/output_schema", "schema.depth"),
    "too large a schema": ({"output_schema": {"enum": list(range(MAX_SCHEMA_NODES))}}, "/output_schema", "schema.size"),
    "an input that is a list": ({"input_schema": {"type": "array"}}, "/input_schema/type", "schema.input_object"),
    "a path that leaves its tree": (
        {"side_effect": "Read", "capabilities": {"fs": [{"path": "/a/../b", "actions": ["read"]}]}},
        "/capabilities",
        "capabilities.invalid",
    ),
    "no effect but a network": (
        {"capabilities": {"net": [{"host": "example.org"}]}},
        "/capabilities/net",
        "effect.none_with_capability",
    ),
    "reading that writes": (
        {"side_effect": "Read", "capabilities": {"fs": [{"path": "/a", "actions": ["write"]}]}},
        "/side_effect",
        "effect.read_that_writes",
    ),
    "a network effect without a network": (
        {"side_effect": "Network"},
        "/capabilities/net",
        "effect.without_capability",
    ),
    "a writer outside the sandbox": (
        {"side_effect": "Write", "requires_sandbox": False, "idempotency": "keyed"},
        "/requires_sandbox",
        "effect.outside_sandbox",
    ),
    "a scope without its capability": (
        {"scopes": [{"resource": "soul:net:example.org", "action": "get"}]},
        "/scopes/0",
        "scopes.without_capability",
    ),
    "a price without freshness": ({"id": "shop.prices.get_quote"}, "/ttl_seconds", "ttl.missing"),
    "a text that hides something": ({"description": "Harmless\u202e text"}, "/description", "text.invisible"),
    "a hidden text in a schema": (
        {"input_schema": OBJECT | {"description": "a\u200bb"}},
        "/input_schema/description",
        "text.invisible",
    ),
    "dependencies": ({"dependencies": ["requests==2"]}, "/dependencies", "dependencies.unsupported"),
}


@pytest.mark.req("TOOLS-8")
@pytest.mark.parametrize("what", MISTAKES)
def test_a_mistake_is_found_with_its_pointer_and_its_fix(what: str) -> None:
    changes, pointer, rule = MISTAKES[what]

    found = findings_of(manifest(**changes))

    assert [(each.pointer, each.rule, each.severity) for each in found] == [(pointer, rule, "error")]
    assert found[0].message
    assert found[0].fix.endswith((".", "…."))


def test_every_kind_of_tool_that_is_named_like_a_price_says_how_long_it_is_fresh() -> None:
    for name in ("shop.stock.check", "shop.shipping.rates", "shop.travel.routes"):
        assert [each.rule for each in findings_of(manifest(id=name))] == ["ttl.missing"]
        assert findings_of(manifest(id=name, ttl_seconds=5)) == []


def test_a_writer_that_cannot_be_retried_is_a_warning_for_the_reviewer() -> None:
    found = findings_of(manifest(side_effect="Write"))

    assert [(each.rule, each.severity) for each in found] == [("write.not_keyed", "warning")]


def test_all_mistakes_are_named_at_once_errors_first() -> None:
    found = findings_of(manifest(side_effect="Write", requires_sandbox=False, input_schema={"type": "array"}))

    assert [each.rule for each in found] == ["schema.input_object", "effect.outside_sandbox", "write.not_keyed"]


@pytest.mark.parametrize("document", [None, [], "text", 5, {}])
def test_what_is_no_manifest_at_all_is_a_finding_too(document: Any) -> None:
    assert findings_of(document)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=5),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
        max_leaves=8,
    ).filter(lambda schema: schema is not None)
)
def test_no_schema_breaks_the_checks(schema: Any) -> None:
    for finding in findings_of(manifest(output_schema=schema)):
        assert finding.pointer.startswith("/output_schema")


def test_a_hostile_pattern_takes_no_time_on_a_call() -> None:
    validator = compile_schema({"type": "string", "pattern": "^(a+)+$"})

    assert not validator.is_valid("a" * 50_000 + "b")


def test_a_schema_makes_the_hub_ask_nobody() -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        listener.settimeout(0.2)
        address = f"http://127.0.0.1:{listener.getsockname()[1]}/x"
        for schema in (
            {"properties": {"a": {"$schema": address}}},
            {"$defs": {"a": {"$id": "urn:a", "$schema": address}}},
        ):
            compile_schema(schema)
        with pytest.raises(ValueError, match="not present"):
            compile_schema({"$ref": address})

        with pytest.raises(TimeoutError):
            listener.accept()


def test_a_property_may_be_called_schema() -> None:
    schema = OBJECT | {"properties": {"$schema": {"type": "string"}}}

    assert findings_of(manifest(input_schema=schema)) == []


@pytest.mark.parametrize("version", ["0.0.1", "1.0.0", "10.20.30", "1.0.0-alpha.1", "1.0.0+build.5", "1.0.0-rc.1+x"])
def test_a_version_is_semver(version: str) -> None:
    assert findings_of(manifest(version=version)) == []


@pytest.mark.parametrize(
    "version",
    ["1", "1.0", "v1.0.0", "01.0.0", "1.0.0.0", "1.0.0-", "1.0.0+", "1.0.0 ", "1.0.0\n", "-1.0.0", "1.0.0-a..b"],
)
def test_what_is_not_semver_is_refused(version: str) -> None:
    assert [each.rule for each in findings_of(manifest(version=version))] == ["manifest.pattern"]


def test_a_view_fills_in_the_defaults_of_the_schema() -> None:
    view = Manifest(manifest(tags=None, timeout_ms=None))

    assert (view.tags, view.timeout_ms, view.safety_class, view.idempotency) == ([], 10000, "Low", "none")
    assert (view.limit("max_bytes_in"), view.consent_validity_s, view.is_async) == (262144, 86400, False)
    assert Manifest(manifest(implementation={"module": "a"})).entry == "run"
    assert Manifest(manifest(version="12.3.4")).major == 12
