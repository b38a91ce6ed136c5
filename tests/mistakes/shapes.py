"""Examples for the shape of a manifest: what changes, where it is found, by which keyword of the schema."""

from __future__ import annotations

from typing import Any

from tests.mistakes.base import KEY, NET

ASKED = {"server": "https://a.example", "method": "GET", "path": "/"}
SHAPES: dict[str, tuple[dict[str, Any], str, str]] = {
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
    "neither a module nor a program": ({"implementation": {}}, "/implementation", "manifest.oneOf"),
    "a module and a program": (
        {"implementation": {"module": "a", "program": ["/bin/sh", "b"], "package": "a"}},
        "/implementation",
        "manifest.oneOf",
    ),
    "a program without a folder": (
        {"implementation": {"program": ["/usr/bin/node", "main.js"]}},
        "/implementation",
        "manifest.dependentRequired",
    ),
    "a program with an entry": (
        {"implementation": {"program": ["/usr/bin/node", "a.js"], "package": "a", "entry": "run"}},
        "/implementation",
        "manifest.dependentRequired",
    ),
    "a program without its path": (
        {"implementation": {"program": ["node", "main.js"], "package": "a"}},
        "/implementation/program/0",
        "manifest.pattern",
    ),
    **{
        f"an operation and {name} of {kind}": (
            {"implementation": {"kind": kind, "operation": ASKED, name: said, **more}},
            "/implementation",
            "manifest.oneOf",
        )
        for kind, name, said, more in (
            ("openapi", "module", "a", {}),
            ("openapi", "program", ["/bin/sh"], {"package": "a"}),
            ("openapi", "server", {"module": "a", "listing": "a"}, {}),
            ("mcp_stdio", "server", {"module": "a", "listing": "a"}, {}),
        )
    },
    "an image in capitals": (
        {"implementation": {"module": "a", "image": "X"}},
        "/implementation/image",
        "manifest.pattern",
    ),
    "a tag twice": ({"tags": ["a", "a"]}, "/tags", "manifest.uniqueItems"),
    "a secret in small letters": (NET | {"secrets": [KEY | {"name": "key"}]}, "/secrets/0/name", "manifest.pattern"),
    "the value of a secret": (NET | {"secrets": [KEY | {"value": "x"}]}, "/secrets/0", "manifest.additionalProperties"),
    "a secret without a word": (NET | {"secrets": [{"name": "KEY"}]}, "/secrets/0", "manifest.required"),
    "a kind of data in capitals": ({"data_classes": ["Health"]}, "/data_classes/0", "manifest.pattern"),
    "a dry run as text": ({"dry_run": "yes"}, "/dry_run", "manifest.type"),
    "a quote of something else": ({"quotes": ["weather"]}, "/quotes/0", "manifest.enum"),
    "an unknown action on files": (
        {"side_effect": "Filesystem", "capabilities": {"fs": [{"path": "/a", "actions": ["look"]}]}},
        "/capabilities/fs/0/actions/0",
        "manifest.enum",
    ),
    "a range of ports in words": (
        {"side_effect": "Network", "capabilities": {"net": [{"host": "a.example", "ports": ["all"]}]}},
        "/capabilities/net/0/ports/0",
        "manifest.pattern",
    ),
    "a method in small letters": (
        {"side_effect": "Network", "capabilities": {"net": [{"host": "a.example", "methods": ["get"]}]}},
        "/capabilities/net/0/methods/0",
        "manifest.enum",
    ),
    "a configuration without bounds": ({"config_schema": True}, "/config_schema", "manifest.type"),
    "a day that is none": (
        {"deprecations": [{"pointer": "", "since": "1.0.0", "advice": "x", "sunset": "2026-02-30"}]},
        "/deprecations/0/sunset",
        "manifest.format",
    ),
    "a successor that is no id": (
        {"deprecations": [{"pointer": "", "since": "1.0.0", "advice": "x", "successor": "shop"}]},
        "/deprecations/0/successor",
        "manifest.pattern",
    ),
}
