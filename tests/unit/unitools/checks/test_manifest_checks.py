"""Manifest checks: does each rule about a manifest find its mistake, name the place, say the fix, and leave alone what is right?

The table of ``tests/mistakes`` has an example for every rule; a rule without one fails here.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from access.policies.clauses import LEVELS
from kernel.version import HUB_VERSION
from registry.versions.manifest_checks import RULES, validate_document
from tests.mistakes import MISTAKES, SHAPES, Mistake
from tests.mistakes.base import BROWSER, PROGRAM
from tests.support.manifests import manifest
from unitools.changes.fields import ISOLATION_LEVELS
from unitools.manifest import Manifest, manifest_schema

ROOT = Path(__file__).resolve().parents[4]
COMMERCE = sorted((ROOT / "tools" / "commerce" / "manifests").glob("*.json"))
BY_NAME = {f"{rule}: {mistake.what}": (rule, mistake) for rule, mistakes in MISTAKES.items() for mistake in mistakes}


def test_a_manifest_that_is_right_has_no_findings() -> None:
    assert validate_document(manifest()) == []


@pytest.mark.parametrize("path", COMMERCE, ids=lambda path: path.stem)
def test_the_tools_that_ship_have_no_findings(path: Path) -> None:
    assert validate_document(json.loads(path.read_text())) == []


def test_the_published_schema_is_valid_itself() -> None:
    Draft202012Validator.check_schema(manifest_schema())


def test_the_hub_knows_its_own_version() -> None:
    assert f'\nversion = "{HUB_VERSION}"\n' in (ROOT / "pyproject.toml").read_text()


# Every rule.


def test_every_rule_has_an_example() -> None:
    assert set(MISTAKES) == set(RULES)


@pytest.mark.req("TOOLS-8")
@pytest.mark.parametrize("name", BY_NAME)
def test_a_mistake_is_found_with_its_pointer_and_its_fix(name: str) -> None:
    rule, mistake = BY_NAME[name]

    found = [each for each in validate_document(manifest(**mistake.wrong)) if each.rule == rule]

    assert [(each.pointer, each.severity) for each in found] == [(mistake.pointer, RULES[rule].severity)]
    assert found[0].message.endswith((".", "…")), found[0].message
    assert found[0].fix.endswith((".", "…."))


@pytest.mark.parametrize("name", BY_NAME)
def test_what_is_mended_is_not_found_again(name: str) -> None:
    rule, mistake = BY_NAME[name]

    found = validate_document(manifest(**mistake.right))

    assert [each for each in found if each.rule == rule or each.severity == "error"] == []


@pytest.mark.req("SPEC-5")
@pytest.mark.parametrize("what", ["price", "stock", "route"])
def test_what_is_quoted_is_never_without_a_time(what: str) -> None:
    assert [each.rule for each in validate_document(manifest(quotes=[what]))] == ["ttl.missing"]
    assert validate_document(manifest(quotes=[what], ttl_seconds=60)) == []


def test_a_rule_says_what_it_asks_for_and_how_to_mend_it() -> None:
    for rule in RULES.values():
        assert rule.asks.endswith("."), rule.id
        assert rule.fix.endswith((".", "…", "….")), rule.id
        assert rule.severity in ("error", "warning")


@pytest.mark.req("TOOLS-8")
@pytest.mark.parametrize("what", SHAPES)
def test_a_wrong_shape_is_found_with_its_pointer_and_its_fix(what: str) -> None:
    changes, pointer, rule = SHAPES[what]

    found = validate_document(manifest(**changes))

    assert [(each.pointer, each.rule, each.severity) for each in found] == [(pointer, rule, "error")]
    assert found[0].message
    assert found[0].fix.endswith((".", "…."))


def test_all_mistakes_are_named_at_once_errors_first() -> None:
    found = validate_document(manifest(side_effect="Write", requires_sandbox=False, input_schema={"type": "array"}))

    assert [each.rule for each in found] == [
        "schema.input_object",
        "effect.outside_sandbox",
        "write.not_keyed",
        "safety.low_but_grave",
    ]
    assert [each.severity for each in found] == ["error", "error", "warning", "warning"]


READERS = {
    "/concurrency": ".serial_key",
    "/consent/scope": ".consent_scope",
    "/limits/concurrency": ".max_concurrency",
    "/isolate_by": ".isolated_by_agent",
    "/isolation": "manifest.isolation",
    "/limits/idle_ms": 'limit("idle_ms")',
    "/provider_compat/models": "manifest.models",
}


def test_what_a_manifest_may_say_is_acted_on() -> None:
    packages = ("access", "registry", "invocations", "toolhub")
    code = "\n".join(
        path.read_text()
        for package in packages
        for path in (ROOT / package).rglob("*.py")
        if "checks" not in path.parts
    )

    assert [place for place, reader in READERS.items() if reader not in code] == []


def test_a_manifest_a_policy_and_a_comparison_name_the_same_levels_in_one_order() -> None:
    assert tuple(manifest_schema()["properties"]["isolation"]["enum"]) == LEVELS == ISOLATION_LEVELS


# Whatever comes.

json_values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
fields = st.sampled_from(sorted(manifest_schema()["properties"]))
keywords = st.sampled_from(
    [
        "$ref",
        "$id",
        "$schema",
        "$defs",
        "$anchor",
        "$dynamicRef",
        "type",
        "properties",
        "items",
        "allOf",
        "not",
        "pattern",
        "patternProperties",
        "enum",
        "const",
        "default",
        "examples",
        "dependentSchemas",
        "additionalProperties",
        "required",
    ]
)
references = st.sampled_from(
    ["#", "#/$defs/a", "#a", "#/allOf/0", "#/properties/a", "#/%24defs/a", "http://x/", "#/~", "a"]
)
schema_like: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-3, 3)
    | references
    | st.sampled_from(["object", "string", "(", "a{9}", "a"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(keywords | st.just("a"), inner, max_size=4),
    max_leaves=12,
)


@pytest.mark.parametrize("document", [None, [], "text", 5, {}, float("nan"), {5: 5}, {"id": {1, 2}}, ("a",), b"x"])
def test_what_is_no_manifest_at_all_is_a_finding_too(document: Any) -> None:
    assert validate_document(document)


@given(json_values)
def test_no_document_breaks_the_checks(document: Any) -> None:
    assert validate_document(document)


@given(st.dictionaries(fields, json_values, max_size=4))
def test_no_field_breaks_the_checks(changes: dict[str, Any]) -> None:
    for finding in validate_document(manifest() | changes):
        assert finding.pointer == "" or finding.pointer.split("/")[1].replace("~1", "/").replace("~0", "~")


@given(json_values.filter(lambda schema: schema is not None))
def test_no_value_as_a_schema_breaks_the_checks(schema: Any) -> None:
    for finding in validate_document(manifest(output_schema=schema)):
        assert finding.pointer.startswith("/output_schema")


@given(schema_like.filter(lambda schema: schema is not None))
def test_no_schema_breaks_the_checks(schema: Any) -> None:
    for finding in validate_document(manifest(output_schema=schema, config_schema=schema)):
        assert finding.pointer.startswith(("/output_schema", "/config_schema"))


def test_mistakes_of_two_rules_can_come_together() -> None:
    several = list(BY_NAME.values())
    for one, other in zip(several, several[7:] + several[:7], strict=True):
        for finding in validate_document(manifest(**(one[1].wrong | other[1].wrong))):
            assert finding.rule in RULES or finding.rule.startswith("manifest.")


# The view.


def test_a_view_fills_in_the_defaults_of_the_schema() -> None:
    view = Manifest(manifest(tags=None, timeout_ms=None))

    assert (view.tags, view.timeout_ms, view.safety_class, view.idempotency) == ([], 10000, "Low", "none")
    assert (view.limit("max_bytes_in"), view.consent_validity_s, view.is_async) == (262144, 86400, False)
    assert (view.secrets, view.data_classes, view.quotes, view.config_schema) == ([], [], [], None)
    assert (view.consent_scope, view.honours_dry_run, view.max_concurrency, view.platform) == (
        "period",
        False,
        None,
        "",
    )
    assert Manifest(manifest(implementation={"module": "a"})).entry == "run"
    assert Manifest(manifest(version="12.3.4")).major == 12


@pytest.mark.req("TOOLS-2", "TOOLS-3", "TOOLS-4", "TOOLS-5", "TOOLS-6")
def test_a_view_says_what_the_document_says() -> None:
    view = Manifest(
        manifest(
            capabilities={"net": [{"host": "a.example"}], "tmp": 5, "browser": False},
            secrets=[{"name": "KEY", "description": "A key."}, {"name": "B", "description": "B.", "required": False}],
            limits={"concurrency": 3},
            provider_compat={"models": ["a:b"], "platform": ">=0.1"},
            consent={"scope": "once"},
            deprecations=[{"pointer": "", "since": "1.0.0", "advice": "Use b."}],
        )
    )

    assert view.domains == ["net", "tmp"]
    assert [(each["name"], each["required"]) for each in view.secrets] == [("KEY", True), ("B", False)]
    assert (view.max_concurrency, view.models, view.platform, view.consent_scope) == (
        3,
        ["a:b"],
        ">=0.1",
        "once",
    )
    assert view.deprecations[0]["advice"] == "Use b."
    serial = Manifest(manifest(concurrency="serial"))  # its calls wait for each other, and are not refused
    assert (serial.is_serial, serial.max_concurrency) == (True, None)


def test_mistakes_are_examples_of_one_thing() -> None:
    assert all(isinstance(each, Mistake) and each.wrong != each.right for _, each in BY_NAME.values())


@pytest.mark.parametrize("changes", [PROGRAM, BROWSER], ids=["a program", "a browser"])
@pytest.mark.parametrize(
    ("asked", "level"), [(None, "single"), ("shared", "single"), ("single", "single"), ("cold", "cold")]
)
def test_a_program_and_a_browser_never_share_a_box(changes: dict[str, Any], asked: str | None, level: str) -> None:
    assert Manifest(manifest(**changes, isolation=asked)).isolation == level


@pytest.mark.parametrize(
    ("changes", "image"),
    [
        ({}, "python"),
        (BROWSER, "browser"),
        (PROGRAM, "node"),
        (BROWSER | {"implementation": {"module": "sample.tools", "image": "firefox"}}, "firefox"),
    ],
)
def test_a_tool_runs_in_the_image_that_it_names_or_the_usual_one(changes: dict[str, Any], image: str) -> None:
    assert Manifest(manifest(**changes)).image == image
