"""Other packs: do the manifests of the demonstrations beside the commerce pack agree with their code and with the hub's rules?"""

from __future__ import annotations

import importlib
import inspect
import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from registry.versions.manifest_checks import validate_document
from unitools import browser
from unitools.manifest import Manifest
from unitools.packages import find_shipped

ROOT = Path(__file__).parents[3]
TOOLS = ROOT / "tools"
MANIFESTS: dict[str, dict[str, Any]] = {
    path.stem: json.loads(path.read_text())
    for pack in ("text", "web")
    for path in sorted((TOOLS / pack / "manifests").glob("*.json"))
}


@pytest.mark.parametrize("tool_id", MANIFESTS)
def test_each_has_its_own_name_its_code_and_no_finding_but_what_a_reviewer_should_see(tool_id: str) -> None:
    document = MANIFESTS[tool_id]
    manifest = Manifest(document)

    assert manifest.id == tool_id
    assert find_shipped(manifest, [TOOLS]).name == manifest.package == tool_id.partition(".")[0]
    expected = ["capabilities.broad"] if manifest.capabilities.get("net") else []  # a browser for any page
    assert [finding.rule for finding in validate_document(document)] == expected


@pytest.mark.parametrize("tool_id", MANIFESTS)
def test_the_examples_are_valid_arguments(tool_id: str) -> None:
    schema = MANIFESTS[tool_id]["input_schema"]

    assert [list(Draft202012Validator(schema).iter_errors(example)) for example in schema["examples"]] == [
        [] for _ in schema["examples"]
    ]


def test_the_browser_tool_takes_exactly_the_arguments_of_its_schema() -> None:
    document = MANIFESTS["web.pages.render_png"]
    manifest = Manifest(document)
    parameters = inspect.signature(getattr(importlib.import_module(manifest.module), manifest.entry)).parameters

    assert {
        name: parameter.default for name, parameter in parameters.items() if parameter.default is not parameter.empty
    } == {
        name: schema["default"]
        for name, schema in document["input_schema"]["properties"].items()
        if "default" in schema
    }
    assert set(parameters) == set(document["input_schema"]["properties"])


@pytest.mark.req("TOOLS-3")
def test_a_browser_is_asked_for_with_its_hosts_a_consent_and_a_box_of_its_own() -> None:
    manifest = Manifest(MANIFESTS["web.pages.render_png"])

    assert (manifest.side_effect, manifest.image, manifest.isolation) == ("Browser", "browser", "single")
    assert manifest.domains == ["net", "browser", "tmp"]
    assert manifest.needs_consent


def test_what_tools_may_use_of_the_browser_is_said() -> None:
    assert sorted(browser.__all__) == ["go", "opened_page", "settle"]
