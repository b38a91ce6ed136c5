"""Bounds schema: the form of capability bounds as JSON Schema. :mod:`unitools.capabilities.wire` reads them."""

from __future__ import annotations

from typing import Any

from unitools.capabilities.nodes import MAX_HOST, MAX_PATH, MAX_RANGE
from unitools.capabilities.values import METHODS, PORTS, PROTOCOLS, SCHEMES
from unitools.capabilities.wire import ANY, BROWSER_ACTIONS, CEILINGS, FILE_ACTIONS, MAX_CEILING, MAX_RULES

PORT = {"type": "integer", "minimum": PORTS[0], "maximum": PORTS[1]}
PATH = {"type": "string", "format": "absolute-path", "maxLength": MAX_PATH}
HOST = {"type": "string", "format": "host-pattern", "maxLength": 2 * MAX_HOST}


def _object(needed: str, **properties: Any) -> dict[str, Any]:
    required = {"required": needed.split()} if needed else {}
    return {"type": "object", "additionalProperties": False, **required, "properties": properties}


def _list(items: dict[str, Any], *, least: int = 0) -> dict[str, Any]:
    return {"type": "array", "items": items, "maxItems": MAX_RULES} | ({"minItems": least} if least else {})


def _words(known: tuple[str, ...]) -> dict[str, Any]:
    return {"type": "array", "items": {"type": "string", "enum": sorted(known)}}


SPANS = _list({"anyOf": [PORT, {"type": "string", "format": "port-range"}]}, least=1)
BOUNDS_SCHEMA: dict[str, Any] = {
    "description": "What a call may reach at most, written as in a manifest. What is not named is denied; a ceiling that is not "
    "named has no bound.",
    **_object(
        "",
        fs=_list(
            _object(
                "path actions",
                path=PATH,
                actions=_words(FILE_ACTIONS),
                kind={"type": "string", "enum": ["tree", "file"], "default": "tree"},
            )
        ),
        net=_list(
            _object(
                "host",
                host=HOST,
                scheme={"type": "string", "enum": list(SCHEMES), "default": "https"},
                port=PORT,
                ports=SPANS,
                methods=_words(METHODS),
            )
            | {"not": {"required": ["port", "ports"]}}
        ),
        cidr=_list(
            _object(
                "cidr ports",
                cidr={"type": "string", "format": "address-range", "maxLength": MAX_RANGE},
                ports=SPANS,
                scheme={"type": "string", "enum": list(PROTOCOLS), "default": "tcp"},
            )
        ),
        browser={
            "nullable": True,
            "anyOf": [{"type": "boolean"}, _list(_object("host", host=HOST, actions=_words(BROWSER_ACTIONS)))],
            "description": "Every host and action, none, or these.",
        },
        proc=_list({"anyOf": [PATH, {"type": "string", "enum": [ANY]}]}),
        secrets=_list({"type": "string", "pattern": r"^(\*|[A-Za-z0-9][A-Za-z0-9_./:-]{0,119})$"}),
        tmp={
            "type": "integer",
            "nullable": True,
            "minimum": 0,
            "maximum": MAX_CEILING,
            "description": "Bytes of scratch space; null: no bound.",
        },
        limits=_object(
            "",
            **{name: {"type": "integer", "minimum": 0, "maximum": MAX_CEILING} for name in CEILINGS},
        ),
    ),
}
