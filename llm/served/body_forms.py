"""Body forms: the pieces of which the schemas of bodies in served formats are made, in the words of OpenAPI 3.0.

Which parameters there are, and what becomes of each, the tables say by which bodies are read; a parameter that is refused may have the
values that ask for nothing. Null always does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kernel.ids import id_pattern
from llm.messages import MAX_NAME
from llm.model_features import Treatment
from llm.requests import MAX_KEY, MAX_TOKENS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from llm.served.parameters import Parameter

Schema = dict[str, Any]
TEXT: Schema = {"type": "string"}
WORDS: Schema = {"type": "string", "minLength": 1}
HINT: Schema = {"type": "string", "minLength": 1, "maxLength": MAX_KEY}
FLAG: Schema = {"type": "boolean"}
NUMBER: Schema = {"type": "number"}
NAME: Schema = {"type": "string", "minLength": 1, "maxLength": MAX_NAME}
OBJECT: Schema = {"type": "object", "additionalProperties": {}}
COUNT: Schema = {"type": "integer", "minimum": 1, "maximum": MAX_TOKENS}
EFFORTS = ("auto", "none", "minimal", "low", "medium", "high", "xhigh", "max")
HUB: Schema = {"$ref": "#/components/schemas/ServedHub"}
PNG: Schema = {"type": "string", "format": "png-base64"}
PNG_URL: Schema = {"type": "string", "format": "picture-url", "description": "data:image/png;base64,… and other types."}
HELD: Schema = {"type": "string", "pattern": f"{id_pattern('art')}|{id_pattern('fil')}"}
STATE: Schema = {"type": "string", "format": "provider-state", "description": "As an answer had it."}


def one_of(*words: Any) -> Schema:
    kind = {bool: "boolean", int: "integer", str: "string"}[type(words[0])]
    return {"type": kind, "enum": list(words)}


def any_of(*forms: Schema) -> Schema:
    return {"anyOf": list(forms)}


def refer_to(component: str) -> Schema:
    return {"$ref": f"#/components/schemas/{component}"}


def list_of(items: Schema, *, least: int = 0) -> Schema:
    return {"type": "array", "items": items} | ({"minItems": least} if least else {})


def ignore_all(names: str) -> dict[str, Schema]:
    """Fields that may be anything, since nothing is read of them."""
    return {name: {} for name in names.split()}


def object_of(needed: str = "", **properties: Schema) -> Schema:
    required = {"required": needed.split()} if needed else {}
    optional = {
        name: said if name in needed.split() else {**said, "nullable": True} for name, said in properties.items()
    }
    return {"type": "object", "additionalProperties": False, **required, "properties": optional}


def _usual_values(parameter: Parameter) -> Schema | None:
    """The values that ask for nothing beyond what is done anyhow; None where there is none but null."""
    first = next(iter(parameter.usual), None)
    if isinstance(first, list):
        return {
            "type": "array",
            "items": TEXT if not first else one_of(*first),
            "minItems": len(first),
            "maxItems": len(first),
        }
    if isinstance(first, bool):  # makers of clients know no enumeration of one truth value
        return {"type": "boolean", "not": {"enum": [not first]}}
    return one_of(*parameter.usual) if isinstance(first, (int, str)) else None


def describe_body(table: Iterable[Parameter], needed: str, shapes: Mapping[str, Schema]) -> Schema:
    """A body of these parameters. ``shapes``: what those may be that are passed on."""
    properties: dict[str, Schema] = {}
    for each in table:
        shape = _usual_values(each) if each.treatment is Treatment.REFUSED else shapes.get(each.name, {})
        if shape is not None:
            properties[each.name] = shape if "$ref" in shape else {**shape, "description": each.meaning}
    return object_of(needed, **properties)


_SIDE: Schema = {"type": "integer", "minimum": 1, "maximum": 65_535}
_SIZE: Schema = {"type": "integer", "minimum": 1, "maximum": 32 * 1024 * 1024}
_HELD: tuple[Schema, ...] = (
    object_of(
        "type id media_type size_bytes width height",
        type=one_of("image_ref"),
        id=HELD,
        media_type={"type": "string", "pattern": "^image/[a-z0-9.+-]{1,60}$"},
        size_bytes=_SIZE,
        width=_SIDE,
        height=_SIDE,
    ),
    object_of(
        "type id media_type size_bytes seconds",
        type=one_of("audio_ref"),
        id=HELD,
        media_type={"type": "string", "pattern": "^audio/[a-z0-9.+-]{1,60}$"},
        size_bytes=_SIZE,
        seconds={"type": "number", "minimum": 0, "exclusiveMinimum": True, "maximum": 86_400},
    ),
    object_of(
        "type id media_type size_bytes",
        type=one_of("attachment_ref"),
        id=HELD,
        media_type={"type": "string", "pattern": "^[a-z]{1,40}/[a-z0-9.+-]{1,80}$"},
        size_bytes=_SIZE,
    ),
)
HELD_COMPONENTS = dict(zip(("ServedImageRef", "ServedAudioRef", "ServedAttachmentRef"), _HELD, strict=True))
HELD_FORMS = tuple(map(refer_to, HELD_COMPONENTS))
