"""Output schemas: JSON Schemas that callers send, checked before anything is held against them, and compiled once.

A caller's schema is input like any other: it may refer to other machines, never end, or hold a regular expression that takes hours.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from unitools.checks.findings import RULES
from unitools.checks.schemas import check_schema, compile_schema
from unitools.dialects.model_json import copy_json
from unitools.strict_json import JsonRefused

if TYPE_CHECKING:
    import jsonschema_rs

MAX_SCHEMA_BYTES = 256 * 1024
CACHED = 256


@dataclass(frozen=True, slots=True)
class SchemaMistake:
    message: str
    path: tuple[str, ...] = ()


def find_schema_mistake(schema: dict[str, Any]) -> SchemaMistake | None:
    """The first thing for which a schema cannot be used."""
    try:
        text = json.dumps(copy_json(schema), ensure_ascii=False)
    except JsonRefused as refusal:
        return SchemaMistake(f"A schema is JSON, but {refusal}")
    if len(text) > MAX_SCHEMA_BYTES:
        return SchemaMistake(f"A schema has at most {MAX_SCHEMA_BYTES} bytes.")
    return _check_text(text)


@lru_cache(CACHED)
def _check_text(text: str) -> SchemaMistake | None:
    finding = next((each for each in check_schema("", json.loads(text)) if each.severity == "error"), None)
    if finding is None:
        return None
    path = [part.replace("~1", "/").replace("~0", "~") for part in finding.pointer.split("/")[2:]]
    return SchemaMistake(RULES[finding.rule].asks, tuple(path))


def get_validator(schema: dict[str, Any]) -> jsonschema_rs.Validator:
    """The validator of a schema that :func:`find_schema_mistake` finds nothing wrong with."""
    return _compile_text(json.dumps(schema, ensure_ascii=False))


@lru_cache(CACHED)
def _compile_text(text: str) -> jsonschema_rs.Validator:
    return compile_schema(json.loads(text))
