"""How is a request body checked, so that a misspelled field is an answer and not a surprise; and what does an answer hold?

:func:`enveloped` and :func:`paged` describe answers for the OpenAPI document; ``ResponseEnvelope`` writes them.
"""

from __future__ import annotations

import copy
from functools import lru_cache
from typing import Any, TypeVar

from drf_spectacular.utils import inline_serializer
from rest_framework import serializers


class StrictSerializer(serializers.Serializer[Any]):
    """Refuses unknown fields by name."""

    def to_internal_value(self, data: Any) -> Any:
        if isinstance(data, dict):
            unknown = sorted(set(data) - set(self.fields))
            if unknown:
                raise serializers.ValidationError(
                    {
                        name[:64]: [f"There is no field with this name. The fields are: {', '.join(self.fields)}."]
                        for name in unknown[:10]
                    }
                )
        return super().to_internal_value(data)


Strict = TypeVar("Strict", bound=StrictSerializer)


@lru_cache
def _blank(kind: type[Strict]) -> Strict:
    blank: Strict = kind()
    blank.fields  # noqa: B018  makes them
    return blank


def checked(kind: type[Strict], data: object) -> Strict:
    """As ``kind(data=data)`` and ``is_valid(raise_exception=True)``; fields are made once and not copied for each body."""
    payload: Strict = copy.copy(_blank(kind))
    payload.initial_data = data
    payload.is_valid(raise_exception=True)
    return payload


class ReasonSerializer(StrictSerializer):
    """Why; enough for what ends or stops something that the address names."""

    reason = serializers.CharField(max_length=500, help_text="Kept as evidence.")


def enveloped(name: str, data: Any) -> Any:
    """The SPEC-4 envelope around ``data``, by a name of its own."""
    return inline_serializer(name, {"ok": serializers.BooleanField(), "data": data})


def paged(name: str, rows: str, row: type[serializers.Serializer[Any]]) -> Any:
    """The envelope of one page of a list: ``{rows: [...], "next": cursor}``."""
    fields = {rows: row(many=True), "next": serializers.CharField(allow_null=True)}
    return enveloped(f"{name}Envelope", inline_serializer(name, fields))
