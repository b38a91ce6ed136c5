"""Base64 bytes: how ``bytes`` travel in JSON, as a parameter and as a result.

The text is base64 of the usual alphabet (RFC 4648, 4), and the schema says so by ``contentEncoding``. Read is the alphabet of URLs
too, and a text whose padding was left out: models write all of these. What stands inside a class of the author's is left to the class.
"""

from __future__ import annotations

import base64
import binascii
import types
import typing
from typing import Annotated, Any

from pydantic import AfterValidator, PlainSerializer, WithJsonSchema
from pydantic_core import PydanticCustomError

_URL_ALPHABET = bytes.maketrans(b"-_", b"+/")


def encode_bytes(value: bytes) -> str:
    return base64.b64encode(value).decode("ascii")


def decode_bytes(text: bytes) -> bytes:
    try:
        plain = text.rstrip(b"=").translate(_URL_ALPHABET)
        return base64.b64decode(plain + b"=" * (-len(plain) % 4), validate=True)
    except binascii.Error:
        raise PydanticCustomError("base64", "Input should be base64") from None


_SAID = WithJsonSchema({"type": "string", "contentEncoding": "base64"})
_WRITTEN = PlainSerializer(encode_bytes, when_used="json")
_TAKEN = Annotated[bytes, AfterValidator(decode_bytes), _WRITTEN, _SAID]
_GIVEN = Annotated[bytes, _WRITTEN, _SAID]


def take_base64(annotation: Any) -> Any:
    """The annotation of a parameter: a model writes base64, and the tool gets bytes."""
    return _replace(annotation, _TAKEN)


def give_base64(annotation: Any) -> Any:
    """The annotation of a result: the tool returns bytes, and a model reads base64."""
    return _replace(annotation, _GIVEN)


def _replace(annotation: Any, other: Any) -> Any:
    """With ``other`` in place of each ``bytes``; itself where there is none."""
    if annotation is bytes:
        return other
    origin, inside = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is None or origin is typing.Literal or not inside:
        return annotation
    if origin is Annotated:
        held = _replace(inside[0], other)
        return annotation if held is inside[0] else Annotated[(held, *inside[1:])]
    replaced = tuple(_replace(each, other) for each in inside)
    if all(new is old for new, old in zip(replaced, inside, strict=True)):
        return annotation
    if origin is types.UnionType:
        return typing.Union[replaced]  # noqa: UP007  made while it runs
    generic: Any = origin
    return generic[replaced] if isinstance(origin, type) else annotation.copy_with(replaced)
