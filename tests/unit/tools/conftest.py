"""Fixtures of commerce tools: how do the tests call a commerce tool as the hub does: by its manifest, with both schemas checked?"""

from __future__ import annotations

import importlib
import json
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

import pytest
from jsonschema import Draft202012Validator

from unitools import runtime

ROOT = Path(__file__).parents[3]
PACK = ROOT / "tools" / "commerce"

WEDNESDAY = datetime(2026, 11, 18, 10, 0, tzinfo=UTC)


@dataclass(frozen=True)
class Answer:
    """What a tool returned, and what it said beside it."""

    value: dict[str, Any]
    report: runtime.Report


class Ask(Protocol):
    """Call a tool by its id; ``call`` overrides fields of the call's context."""

    def __call__(self, tool_id: str, arguments: dict[str, Any], **call: Any) -> Answer: ...


@pytest.fixture(scope="session")
def manifests() -> dict[str, dict[str, Any]]:
    return {path.stem: json.loads(path.read_text("utf-8")) for path in sorted((PACK / "manifests").glob("*.json"))}


@pytest.fixture(scope="session")
def examples() -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = json.loads((PACK / "examples.json").read_text("utf-8"))
    return found


@pytest.fixture(scope="session")
def ask(manifests: dict[str, dict[str, Any]]) -> Ask:
    validators = {
        (tool_id, side): Draft202012Validator(manifest[side], format_checker=Draft202012Validator.FORMAT_CHECKER)
        for tool_id, manifest in manifests.items()
        for side in ("input_schema", "output_schema")
    }

    def ask_tool(tool_id: str, arguments: dict[str, Any], **call: Any) -> Answer:
        validators[tool_id, "input_schema"].validate(arguments)
        implementation = manifests[tool_id]["implementation"]
        entry = getattr(importlib.import_module(implementation["module"]), implementation["entry"])
        fields: dict[str, Any] = {"call_id": "inv_1", "started_at": WEDNESDAY} | call
        context = runtime.Call(**fields)
        with runtime.running(context) as report:
            value = json.loads(json.dumps(entry(**arguments), allow_nan=False))
        validators[tool_id, "output_schema"].validate(value)
        return Answer(value, report)

    return ask_tool


@pytest.fixture(scope="session")
def pack() -> Path:
    return PACK


@pytest.fixture(scope="session")
def root() -> Path:
    return ROOT
