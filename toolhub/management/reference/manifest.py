"""Manifest: what may stand in one, and what registration checks."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from registry.versions.manifest_checks import RULES
from toolhub.management.reference.markdown import format_code, format_page, format_table
from unitools.manifest import manifest_schema

if TYPE_CHECKING:
    from collections.abc import Iterator


def _constraints(node: dict[str, Any]) -> str:
    said = []
    if "enum" in node:
        said.append("one of " + ", ".join(format_code(value) for value in node["enum"]))
    if "const" in node:
        said.append(f"always {format_code(node['const'])}")
    if "pattern" in node:
        said.append(f"matches {format_code(node['pattern'])}")
    for low, high, unit in (
        ("minimum", "maximum", ""),
        ("minLength", "maxLength", " characters"),
        ("minItems", "maxItems", " items"),
    ):
        match node.get(low), node.get(high):
            case None, None:
                continue
            case None, most:
                said.append(f"at most {most}{unit}")
            case least, None:
                said.append(f"at least {least}{unit}")
            case least, most:
                said.append(f"{least} to {most}{unit}")
    if node.get("format"):
        said.append(f"a {node['format']}")
    if "items" in node and (each := _constraints(node["items"])):
        said.append(f"each {each}")
    return "; ".join(said)


def _fields(node: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, ...]]:
    for name, child in node.get("properties", {}).items():
        path = f"{prefix}{name}"
        needed = "yes" if name in node.get("required", []) else ""
        default = format_code(json.dumps(child["default"])) if "default" in child else ""
        text = ". ".join(part for part in (child.get("description", "").rstrip("."), _constraints(child)) if part)
        yield format_code(path), child.get("type", ""), needed, default, text
        yield from _fields(child, f"{path}.")
        yield from _fields(child.get("items", {}), f"{path}[].")


def _findings() -> Iterator[tuple[str, ...]]:
    for name, rule in sorted(RULES.items()):
        yield format_code(name), rule.severity, rule.asks, rule.fix


def manifest_page() -> str:
    return format_page(
        "Manifest",
        "unitools/manifest.schema.json, unitools/checks and registry/versions/manifest_checks.py",
        "One JSON document describes one version of a tool. Its shape is the JSON Schema 2020-12 in "
        "[manifest.schema.json](manifest.schema.json), which a running hub serves at `/api/v1/manifest-schema`. "
        "`tools/commerce/manifests/` holds complete examples.",
        "## Fields",
        format_table(("field", "type", "required", "default", "meaning"), _fields(manifest_schema())),
        "## What registration checks beside the shape",
        "An `error` refuses the manifest (`MANIFEST.INVALID`, with pointer, rule and fix for each finding); a `warning` "
        "goes along to the reviewer. `manifest.*` findings come from the schema above: `manifest.required`, "
        "`manifest.pattern` and so on, after its keywords.",
        format_table(("rule", "severity", "what it asks for", "fix"), _findings()),
    )
