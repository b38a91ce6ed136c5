"""Embedded schemas: forms that the hub keeps as JSON Schema, as components of the OpenAPI document.

OpenAPI 3.0 has a dialect of its own: no ``const``, no list of types, and definitions live among the components.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from access.grants.conditions import CONDITION_FORMS
from access.grants.services import SCOPE_SCHEMA
from access.issuers.jwks import KEY_FORMS
from access.policies.language import MAX_NOT, document_schema
from access.redaction.obligations import obligations_schema
from invocations.serializers import WITHOUT_PURPOSE
from llm.served.body_forms import HINT
from llm.served.body_schemas import describe_bodies
from llm.served.openai_chat import OF_ENVELOPE
from unitools.capabilities.bounds_schema import BOUNDS_SCHEMA

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

TYPES = {bool: "boolean", int: "integer", str: "string"}
EMBEDDED: dict[str, Callable[[], dict[str, Any]]] = {
    "PolicyDocument": document_schema,
    "CapabilityBounds": lambda: BOUNDS_SCHEMA,
    "GrantScope": lambda: SCOPE_SCHEMA,
}
# Parts of a policy that say themselves what they may be.
OF_POLICY = {"capabilities": "CapabilityBounds", "obligations": "PolicyObligation"}


def _list_obligation_forms() -> tuple[dict[str, Any], ...]:
    """What may stand beside what depends on the action, and on whether it names a place."""
    said = obligations_schema()["items"]["properties"]

    def build(needed: str, *others: str, actions: tuple[str, ...]) -> dict[str, Any]:
        named = {name: said[name] for name in (*needed.split(), "on_failure", *others)}
        action = {"type": "string", "enum": list(actions), "description": said["action"]["description"]}
        return {
            "type": "object",
            "additionalProperties": False,
            "required": ["action", *needed.split()],
            "properties": {"action": action, **named},
        }

    changes = ("mask", "redact")
    return (
        build("pointer", "optional", actions=changes),
        build("detector", actions=changes),
        build("", "pointer", "optional", "text", actions=("watermark",)),
    )


def _nest_not(levels: int) -> dict[str, Any]:
    """A negation within so many others."""
    inner: dict[str, Any] = {"required": ["not"]}
    return inner | {"properties": {"not": _nest_not(levels - 1)}} if levels > 1 else inner


# Those of which each is one of several forms.
FORMS: dict[str, tuple[dict[str, Any], ...]] = {
    "GrantCondition": CONDITION_FORMS,
    "PolicyObligation": _list_obligation_forms(),
    "PublicJsonWebKey": KEY_FORMS,
}


def embed_schemas() -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, build in EMBEDDED.items():
        schema = dict(build())
        definitions = schema.pop("$defs", {})
        for each in ("$schema", "title"):  # the title would be another name for the same
            schema.pop(each, None)
        found[name] = _translate(schema, name)
        for each, said in definitions.items():
            found |= _list_forms(_name(name, each), said, name)
    for name, forms in FORMS.items():
        found |= _list_named(name, forms, name)
    _complete_policy(found)
    return found | describe_bodies()


def describe_hub_part(schemas: Mapping[str, Any]) -> dict[str, Any]:
    """The object ``hub`` in served bodies: some fields of the envelope of a call, and some of what a model is asked."""
    envelope = schemas["Invoke"]["properties"]
    of_request: dict[str, Any] = {
        "allow_sensitive": {"type": "boolean"},
        "cache_hint": HINT,
        "strict_parameters": {"type": "boolean"},
    }
    return {
        "type": "object",
        "additionalProperties": False,
        "properties": of_request | {name: envelope[name] for name in OF_ENVELOPE},
        "not": WITHOUT_PURPOSE,
    }


def _complete_policy(found: dict[str, Any]) -> None:
    """What a policy's own document leaves to the parts of it, and how deep a condition may be."""
    for name, said in found.items():
        if not name.startswith("PolicyDocument"):
            continue
        properties = said.get("properties", {})
        for part, component in OF_POLICY.items():
            target = properties.get(part, {})
            target = target.get("items", target)
            if target:
                target.clear()
                target["$ref"] = f"#/components/schemas/{component}"
        if "not" in properties:
            said["not"] = _nest_not(MAX_NOT + 1)


def _list_named(name: str, forms: Iterable[dict[str, Any]], owner: str) -> dict[str, Any]:
    named = {f"{name}{number}": _translate(form, owner) for number, form in enumerate(forms, 1)}
    return {name: {"oneOf": [{"$ref": f"#/components/schemas/{form}"} for form in named]}} | named


def _list_forms(name: str, said: dict[str, Any], owner: str) -> dict[str, Any]:
    """A definition; where it depends on conditions, one of forms, a component each, which makers of clients can name."""
    branches = [each for each in said.get("allOf", []) if "if" in each]
    if not branches:
        return {name: _translate(said, owner)}
    return _list_named(name, (_branch(said, each) for each in branches), owner)


def _name(owner: str, definition: str) -> str:
    return f"{owner}{definition.title().replace('_', '')}"


def _translate(said: Any, owner: str) -> Any:
    if isinstance(said, list):
        return [_translate(each, owner) for each in said]
    if not isinstance(said, dict):
        return said
    found: dict[str, Any] = {}
    for key, value in said.items():
        if key == "$ref":
            found[key] = f"#/components/schemas/{_name(owner, value.rpartition('/')[2])}"
        elif key == "const":
            found |= {"enum": [value], "type": TYPES[type(value)]}
        elif key == "properties":  # whose keys are names, also `const` and the like
            found[key] = {name: {} if each is True else _translate(each, owner) for name, each in value.items()}
        else:
            found[key] = _translate(value, owner)
    return found


def _branch(whole: dict[str, Any], branch: dict[str, Any]) -> dict[str, Any]:
    """What holds under one of several conditions, each of which names all that there may be then."""
    then = branch["then"]
    chosen = {name: whole["properties"][name] if each is True else each for name, each in then["properties"].items()}
    required = [*whole["required"], *then.get("required", [])]
    form = {
        "type": "object",
        "required": required,
        "properties": chosen | branch["if"]["properties"],
        "additionalProperties": False,
    }
    # One of several must be there: makers of clients would take `anyOf` for forms of their own.
    return form | ({"not": {"not": {"anyOf": then["anyOf"]}}} if "anyOf" in then else {})
