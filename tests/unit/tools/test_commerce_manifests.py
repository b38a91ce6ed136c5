"""Commerce manifests: do the seven manifests, the code and the data that ship agree with each other?"""

from __future__ import annotations

import importlib
import inspect
import json
import subprocess
import sys
import zipfile
from typing import TYPE_CHECKING, Any

import pytest
from jsonschema import Draft202012Validator

from commerce import tables, taxation
from unitools import runtime

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.unit.tools.conftest import Ask

TOOLS = [
    "commerce.checkout.compute_total",
    "commerce.checkout.create_draft_order",
    "commerce.compliance.check_item",
    "commerce.knowledge.search",
    "commerce.pricing.get_realtime_quote",
    "commerce.shipping.quote_options",
    "commerce.tax.estimate_duties_and_taxes",
]
CODES = {error.code for error in runtime.DomainError.__subclasses__()}
Manifests = dict[str, dict[str, Any]]
Examples = dict[str, list[dict[str, Any]]]


def _objects(schema: Any, pointer: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Every schema inside ``schema`` that describes an object by its properties."""
    if isinstance(schema, dict):
        if "properties" in schema and isinstance(schema["properties"], dict):
            yield pointer, schema
        for key, part in schema.items():
            if key not in ("examples", "default"):
                yield from _objects(part, f"{pointer}/{key}")
    elif isinstance(schema, list):
        for index, part in enumerate(schema):
            yield from _objects(part, f"{pointer}/{index}")


@pytest.mark.req("SPEC-8")
def test_the_pack_holds_the_seven_tools_of_the_specification(manifests: Manifests) -> None:
    assert sorted(manifests) == TOOLS
    assert all(manifest["id"] == tool_id for tool_id, manifest in manifests.items())


@pytest.mark.req("SPEC-8")
@pytest.mark.parametrize("tool_id", TOOLS)
def test_a_manifest_is_valid_against_the_published_schema(tool_id: str, manifests: Manifests, root: Path) -> None:
    schema = json.loads((root / "unitools" / "manifest.schema.json").read_text("utf-8"))

    assert [error.message for error in Draft202012Validator(schema).iter_errors(manifests[tool_id])] == []


@pytest.mark.parametrize("tool_id", TOOLS)
@pytest.mark.parametrize("side", ["input_schema", "output_schema"])
def test_a_tool_s_schema_is_valid_2020_12_and_closed(tool_id: str, side: str, manifests: Manifests) -> None:
    schema = manifests[tool_id][side]

    Draft202012Validator.check_schema(schema)
    assert schema["type"] == "object"
    assert [pointer for pointer, part in _objects(schema) if part.get("additionalProperties") is not False] == []


@pytest.mark.parametrize("tool_id", TOOLS)
def test_every_member_of_an_output_is_always_there(tool_id: str, manifests: Manifests) -> None:
    for pointer, part in _objects(manifests[tool_id]["output_schema"]):
        assert set(part["required"]) == set(part["properties"]), pointer


@pytest.mark.parametrize("tool_id", TOOLS)
def test_the_entry_function_takes_exactly_the_arguments_of_the_input_schema(tool_id: str, manifests: Manifests) -> None:
    manifest = manifests[tool_id]
    implementation = manifest["implementation"]
    entry = getattr(importlib.import_module(implementation["module"]), implementation["entry"])
    parameters = inspect.signature(entry).parameters

    assert set(parameters) == set(manifest["input_schema"]["properties"])
    for name, schema in manifest["input_schema"]["properties"].items():
        if name in manifest["input_schema"]["required"]:
            assert parameters[name].default is inspect.Parameter.empty
        else:
            assert parameters[name].default == schema.get("default")


@pytest.mark.req("SPEC-5")
@pytest.mark.parametrize("tool_id", TOOLS)
def test_every_tool_has_a_freshness_window_and_the_least_capabilities(tool_id: str, manifests: Manifests) -> None:
    manifest = manifests[tool_id]

    assert manifest["ttl_seconds"] > 0
    assert manifest["capabilities"] == {}
    assert manifest["requires_sandbox"] is True
    assert manifest["dependencies"] == []


@pytest.mark.req("SPEC-2", "SPEC-8")
def test_only_the_draft_order_writes_and_it_needs_consent_and_a_key(manifests: Manifests) -> None:
    draft = manifests["commerce.checkout.create_draft_order"]

    assert (draft["side_effect"], draft["safety_class"], draft["idempotency"]) == ("Write", "Medium", "keyed")
    assert draft["consent"]["required"] is True
    assert {manifests[tool_id]["side_effect"] for tool_id in TOOLS if tool_id != draft["id"]} == {"Read"}


@pytest.mark.req("SPEC-6")
@pytest.mark.parametrize("tool_id", TOOLS)
def test_every_shipped_example_ends_as_it_says(tool_id: str, examples: Examples, ask: Ask) -> None:
    assert any(example["expect"] == "ok" for example in examples[tool_id])
    for example in examples[tool_id]:
        try:
            ask(tool_id, example["arguments"], dry_run=example.get("dry_run", False))
            ended = "ok"
        except runtime.DomainError as error:
            ended = error.code
            assert error.code in CODES
            assert error.message.endswith((".", "?"))
            json.dumps(error.details, allow_nan=False)
        assert ended == example["expect"], example["title"]


@pytest.mark.parametrize("tool_id", TOOLS)
def test_the_examples_in_an_input_schema_succeed(tool_id: str, manifests: Manifests, ask: Ask) -> None:
    for arguments in manifests[tool_id]["input_schema"]["examples"]:
        ask(tool_id, arguments)


@pytest.mark.req("SPEC-7", "SPEC-8")
@pytest.mark.parametrize("tool_id", TOOLS)
def test_an_answer_names_its_sources_with_their_versions(tool_id: str, examples: Examples, ask: Ask) -> None:
    report = ask(tool_id, examples[tool_id][0]["arguments"]).report

    assert report.sources
    assert all(source.name and source.version for source in report.sources)
    assert len(set(report.sources)) == len(report.sources)


@pytest.mark.req("SPEC-5")
@pytest.mark.parametrize("tool_id", TOOLS)
def test_the_same_call_at_the_same_time_gives_the_same_answer(tool_id: str, examples: Examples, ask: Ask) -> None:
    arguments = examples[tool_id][0]["arguments"]

    assert ask(tool_id, arguments).value == ask(tool_id, arguments).value


def test_every_country_with_delivery_has_tax_rules_and_an_exchange_rate() -> None:
    delivered = set(tables.read(tables.ADDRESSES)["countries"])
    rates = tables.read(tables.EXCHANGE_RATES)["per_usd"]

    assert delivered == set(tables.read(tables.TAX_RULES)["countries"])
    for country in delivered:
        rules = taxation.rules_of(country)
        assert rules is not None
        assert rules["currency"] in rates


def test_the_pack_runs_from_a_zip_with_the_standard_library_alone(
    tmp_path: Path, pack: Path, root: Path, examples: Examples, manifests: Manifests
) -> None:
    archive = tmp_path / "commerce.zip"
    with zipfile.ZipFile(archive, "w") as target:
        for path in sorted(pack.rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                target.write(path, path.relative_to(pack.parent))
        for name in ("__init__.py", "runtime.py"):
            target.write(root / "unitools" / name, f"unitools/{name}")
    jobs = [[manifests[tool_id]["implementation"], examples[tool_id][0]["arguments"]] for tool_id in TOOLS]
    program = """
import importlib, json, sys
sys.path.insert(0, sys.argv[1])
from unitools import runtime
for place, arguments in json.load(sys.stdin):
    with runtime.running(runtime.Call()):
        getattr(importlib.import_module(place["module"]), place["entry"])(**arguments)
    assert importlib.import_module(place["module"]).__file__.startswith(sys.argv[1])
print("done")
"""

    result = subprocess.run(
        [sys.executable, "-I", "-S", "-c", program, str(archive)],
        input=json.dumps(jobs), capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip

    assert (result.stdout.strip(), result.stderr) == ("done", "")
