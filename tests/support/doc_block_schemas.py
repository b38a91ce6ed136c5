"""Schemas of code blocks: what does a block of data in the docs have to be valid against? Its own fields say it."""

from __future__ import annotations

import json
import re
from functools import cache
from typing import TYPE_CHECKING, Any

import jsonschema

from access.policies.language import validate_policy
from registry.versions.manifest_checks import validate_document
from tests.support.doc_blocks import ROOT, value_of
from tests.support.manifests import manifest

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.doc_blocks import Block


@cache
def configuration() -> jsonschema.protocols.Validator:
    return jsonschema.Draft202012Validator(json.loads((ROOT / "docs/reference/configuration.schema.json").read_text()))


def _filled(value: Any) -> Any:
    """Hashes that a page leaves out are some hash."""
    return json.loads(re.sub("sha256:…", "sha256:" + "0" * 64, json.dumps(value, ensure_ascii=False)))


def _is_manifest(value: Any) -> None:
    wrong = [each for each in validate_document(_filled(value)) if each.severity == "error"]
    assert wrong == []


def _is_part_of_manifest(value: Any) -> None:
    given = dict(value)
    if given.get("capabilities", {}).get("net"):
        given.setdefault("side_effect", "Network")
    _is_manifest(manifest(**_filled(given)))


def _is_policy(value: Any) -> None:
    assert [each for each in validate_policy(value) if each.severity == "error"] == []


def _is_rule(value: Any) -> None:
    _is_policy({"format": 1, "rules": [value]})


def _is_configuration(value: Any) -> None:
    configuration().validate(value)


def _is_answer(value: Any) -> None:
    assert set(value) <= {"ok", "data", "warnings", "error", "ttl_seconds", "evidence", "call", "status"}


def _is_part_of_configuration(value: Any) -> None:
    _is_configuration({"format": 1, "tenant": "acme", **value})


# The first whose fields the value has, judges it; what has none of these is only read.
KINDS: list[tuple[set[str], Callable[[Any], None]]] = [
    ({"id", "input_schema"}, _is_manifest),
    ({"rules"}, _is_policy),
    ({"effect", "when"}, _is_rule),
    ({"format", "tenant"}, _is_configuration),
    ({"members"}, _is_part_of_configuration),
    ({"ok", "data"}, _is_answer),
    ({"capabilities"}, _is_part_of_manifest),
    ({"dependencies"}, _is_part_of_manifest),
    ({"implementation"}, _is_part_of_manifest),
]


def check_means(block: Block) -> None:
    value = value_of(block)
    if isinstance(value, dict):
        for fields, check in KINDS:
            if fields <= set(value):
                check(value)
                return
