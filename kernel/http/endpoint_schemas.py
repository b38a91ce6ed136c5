"""Endpoint schemas: what the OpenAPI document says of an endpoint, as strictly as the endpoint is.

Read from its serializers, so that a rule has one place: which query parameters there are and what a cursor looks like, that an unknown
field is refused, that a text holds no NUL character and, where it may not be blank, something else than blanks.
"""

from __future__ import annotations

from typing import Any

from drf_spectacular.openapi import AutoSchema
from drf_spectacular.plumbing import get_doc
from drf_spectacular.utils import PolymorphicProxySerializer
from rest_framework import serializers

from kernel.http.base_serializers import LinkSerializer, PageSerializer, QuerySerializer, StrictSerializer
from kernel.ids import id_pattern

ANY_TEXT = r"^[^\u0000]*$"
IF_MATCH = "With `If-Match`, only while the ETag of a GET still holds."
NOT_EMPTY = r"^[^\u0000]+$"
MORE_SPACES = r"\u001c-\u001f\u0085"  # what is stripped is more than patterns call a space
NOT_BLANK = rf"^[^\u0000]*[^\s\u0000{MORE_SPACES}][^\u0000]*$"


class EndpointSchema(AutoSchema):
    """Describes an :class:`~kernel.http.endpoints.Endpoint`."""

    def get_description(self) -> str:  # type: ignore[override]
        """That of the class where the method has none; never what the base says of itself."""
        method = getattr(self.view, self.method.lower())
        said = get_doc(method) or vars(type(self.view)).get("__doc__") or ""
        return (
            f"{said} {IF_MATCH}"
            if self.method in ("PUT", "PATCH") and getattr(self.view, "conditional", False)
            else said
        )

    def get_override_parameters(self) -> list[Any]:
        parameters: list[Any] = super().get_override_parameters()
        query = getattr(self.view, "query" if self.method == "GET" else "query_of_changes", QuerySerializer)
        return parameters if query is QuerySerializer else [query, *parameters]

    def get_auth(self) -> list[dict[str, Any]]:
        """What programs have is named before the session of a person. Where a link may be read, its parts stand for a key."""
        found = sorted(super().get_auth(), key=lambda each: "session" in each)
        query = getattr(self.view, "query", QuerySerializer)
        return [*found, {}] if self.method == "GET" and issubclass(query, LinkSerializer) else found

    def _get_request_for_media_type(self, serializer: Any, direction: Any = "request") -> tuple[Any, bool]:
        """A body of several forms may be left out no more than one of a single form."""
        schema, required = super()._get_request_for_media_type(serializer, direction)  # type: ignore[no-untyped-call]
        named = isinstance(serializer, dict)  # a schema as it stands
        return schema, required or named or isinstance(serializer, PolymorphicProxySerializer)

    def _map_basic_serializer(self, serializer: Any, direction: Any) -> dict[str, Any]:
        schema: dict[str, Any] = super()._map_basic_serializer(serializer, direction)  # type: ignore[no-untyped-call]
        described = serializer() if isinstance(serializer, type) else serializer
        if not vars(type(described)).get("__doc__"):
            schema.pop("description", None)  # that of a base, which is about the code
        if direction != "request":
            return schema
        for name, part in schema.get("properties", {}).items():
            if (field := described.fields.get(name)) is not None:
                _narrow(field, part)
        if isinstance(described, StrictSerializer):
            schema["additionalProperties"] = False
            if described.never:
                schema["not"] = {"anyOf": list(described.never)} if len(described.never) > 1 else described.never[0]
        if isinstance(described, PageSerializer) and (prefix := getattr(self.view, "cursor", "")):
            schema["properties"]["after"] |= {"pattern": id_pattern(prefix)}
        return schema


def _narrow(field: Any, schema: dict[str, Any]) -> None:
    """Say what every field of its kind refuses; a pattern, format or list of its own says more."""
    if isinstance(field, (serializers.ListField, serializers.ListSerializer)) and "items" in schema:
        _narrow(field.child, schema["items"])
        if not field.allow_empty:
            schema.setdefault("minItems", 1)
        if (most := getattr(field, "max_length", None)) is not None:
            schema.setdefault("maxItems", most)
    elif isinstance(field, serializers.DictField) and isinstance(schema.get("additionalProperties"), dict):
        _narrow(field.child, schema["additionalProperties"])
    elif type(field) is serializers.JSONField and not field.allow_null and "$ref" not in schema:
        schema["not"] = {"enum": [None]}
    elif isinstance(field, serializers.CharField) and schema.get("type") == "string":
        blank = NOT_BLANK if field.trim_whitespace else NOT_EMPTY
        if {"pattern", "format", "enum"}.isdisjoint(schema):
            schema["pattern"] = ANY_TEXT if field.allow_blank else blank
