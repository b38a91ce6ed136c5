"""Base serializers: how a request is checked, so that a misspelled name is refused, and what an answer holds.

:class:`StrictSerializer` reads bodies, :class:`QuerySerializer` the parameters of an address.
:func:`build_envelope_serializer` and :func:`build_page_serializer`
describe answers for the OpenAPI document; ``ResponseEnvelope`` writes them.
"""

from __future__ import annotations

import copy
import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from drf_spectacular.utils import extend_schema_field, inline_serializer
from rest_framework import serializers

from kernel.http.pagination import MAX_LIMIT, PAGE_SIZE
from kernel.ids import id_pattern
from kernel.problems import SchemaInvalid

if TYPE_CHECKING:
    from collections.abc import Mapping

_WHOLE = re.compile(r"-?[0-9]{1,19}")  # int() takes digits of other scripts, spaces and underscores
MOST_NAMED = 10  # unknown names that one answer lists
# What JSON each field takes. DRF would read 12345 as a text, "5" as a number and "yes" as true.
_TAKES: tuple[tuple[type[Any] | tuple[type[Any], ...], tuple[type[Any], ...], str], ...] = (
    (serializers.BooleanField, (bool,), "true or false"),
    (serializers.IntegerField, (int,), "a whole number"),
    (serializers.FloatField, (int, float), "a number"),
    ((serializers.CharField, serializers.ChoiceField), (str,), "a text"),
    ((serializers.DateField, serializers.DateTimeField), (str,), "a text"),
)


def _unfit_choice(field: Any, value: Any) -> str:
    own_words = (
        serializers.ChoiceField.default_error_messages["invalid_choice"] != field.error_messages["invalid_choice"]
    )
    if own_words or value in field.choices or (value == "" and field.allow_blank):
        return ""
    return f"{value[:40]!r} is not one of the values. They are: {', '.join(map(str, field.choices))}."


def _mistaken(field: Any, value: Any) -> Any:
    """What is wrong with the type of a value, or with a choice, as DRF says errors; empty when nothing is."""
    if value is None or isinstance(
        field, StrictSerializer
    ):  # null is the field's own matter, and what is within is checked there
        return ""
    if isinstance(field, (serializers.ListField, serializers.ListSerializer)) and isinstance(value, list):
        return {str(i): wrong for i, each in enumerate(value) if (wrong := _mistaken(field.child, each))}
    if isinstance(field, serializers.DictField) and isinstance(value, dict):
        return {name: wrong for name, each in value.items() if (wrong := _mistaken(field.child, each))}
    for kinds, types, words in _TAKES:
        if isinstance(field, kinds):
            if not isinstance(value, types) or (isinstance(value, bool) and bool not in types):
                return [f"This must be {words}."]
            break
    if isinstance(field, serializers.CharField) and field.max_length is not None and len(value) > field.max_length:
        return [f"This has more than {field.max_length} characters."]  # DRF would count without the spaces around it
    unfit = _unfit_choice(field, value) if isinstance(field, serializers.ChoiceField) else ""
    return [unfit] if unfit else ""


class StrictSerializer(serializers.Serializer[Any]):
    """Refuses unknown fields by name, and values of another JSON type than the field's.

    ``never``: for the OpenAPI document, the combinations of fields that ``validate`` or the service refuses, each as a schema.
    """

    never: ClassVar[tuple[dict[str, Any], ...]] = ()

    def to_internal_value(self, data: Any) -> Any:
        if isinstance(data, dict):
            unknown = sorted(set(data) - set(self.fields))
            if unknown:
                raise serializers.ValidationError(
                    {
                        name[:64]: [f"There is no field with this name. The fields are: {', '.join(self.fields)}."]
                        for name in unknown[:MOST_NAMED]
                    }
                )
            mistaken = {name: wrong for name, value in data.items() if (wrong := _mistaken(self.fields[name], value))}
            if mistaken:
                raise serializers.ValidationError(mistaken)
        return super().to_internal_value(data)


class PatternField(serializers.RegexField):
    """``wanted`` is the pattern in words, for whoever sent something else."""

    def __init__(self, regex: str, *, wanted: str, **options: Any) -> None:
        options.setdefault("trim_whitespace", False)  # the pattern says whether spaces may stand around
        super().__init__(regex, error_messages={"invalid": f"This must be {wanted}."}, **options)


class IdField(PatternField):
    """An id of the kind that the prefix says, as it stands on the wire."""

    def __init__(self, prefix: str, **options: Any) -> None:
        super().__init__(id_pattern(prefix), wanted=f"an id of the form {prefix}_…", **options)


_LABEL = "[a-zA-Z0-9]([a-zA-Z0-9-]{0,30}[a-zA-Z0-9])?"
WEB_ADDRESS = rf"^https://({_LABEL}[.])+[a-zA-Z]{{2,20}}(:[0-9]{{1,4}})?(/[!$-~]*)?$"


@extend_schema_field({"type": "string", "maxLength": 500, "pattern": WEB_ADDRESS})
class WebAddressField(serializers.CharField):
    """An address that the hub is to ask. What it may ask depends on the operator's networks, so services check it."""


@extend_schema_field({"type": "string", "maxLength": 500, "pattern": f"{WEB_ADDRESS}|^$"})
class OptionalWebAddressField(WebAddressField):
    """The same, or nothing."""


@extend_schema_field({"type": "object", "additionalProperties": {}})
class ObjectField(serializers.JSONField):
    """A JSON object, whatever is in it."""

    def to_internal_value(self, data: Any) -> Any:
        if not isinstance(data, dict):
            raise serializers.ValidationError(f"{self.label} must be a JSON object.")
        return super().to_internal_value(data)


class QuerySerializer(serializers.Serializer[Any]):
    """The query parameters that a GET takes: none, unless a subclass declares them."""

    @classmethod
    def read(cls, given: Mapping[str, list[str]]) -> dict[str, Any]:
        """What was asked for; refused is what the endpoint would ignore or cannot understand."""
        fields = _blank(cls).fields
        findings = [
            {"pointer": f"/{name[:64]}", "message": wrong}
            for name, values in sorted(given.items())
            if (wrong := cls._wrong(name, values))
        ][:MOST_NAMED]
        payload = copy.copy(_blank(cls))
        payload.initial_data = {name: values[0] for name, values in given.items()}
        if not findings and not payload.is_valid():
            findings = [{"pointer": f"/{name}", "message": str(wrong[0])} for name, wrong in payload.errors.items()]
        if findings:
            raise SchemaInvalid(
                f"The parameter `{findings[0]['pointer'][1:]}` is refused. {findings[0]['message']}",
                remedy="Correct or leave out the parameters that the findings name.",
                details={"findings": findings, "parameters": list(fields)},
            )
        return dict(payload.validated_data)

    @classmethod
    def _wrong(cls, name: str, values: list[str]) -> str:
        field = _blank(cls).fields.get(name)
        if field is None:
            names = ", ".join(_blank(cls).fields)
            return (
                f"There is no parameter with this name. The parameters are: {names}." if names else "This takes none."
            )
        if len(values) > 1:
            return "It is given more than once."
        if values[0] == "":
            return "It has no value. Leave it out where nothing is meant."
        if isinstance(field, serializers.ChoiceField):
            return _unfit_choice(field, values[0])
        if isinstance(field, serializers.IntegerField) and not _WHOLE.fullmatch(values[0]):
            return "This must be a whole number."
        return ""


class PageSerializer(QuerySerializer):
    """Which part of a list."""

    after = serializers.CharField(required=False, help_text="The cursor `next` of the page before.")
    limit = serializers.IntegerField(
        required=False, default=PAGE_SIZE, min_value=1, max_value=MAX_LIMIT, help_text="At most so many rows."
    )


_PART = "Part of a link, which stands for a key."


class LinkSerializer(QuerySerializer):
    """A signed link, in the place of a key."""

    tenant = serializers.CharField(required=False, help_text=_PART)
    agent = serializers.CharField(required=False, help_text=_PART)
    expires = serializers.CharField(required=False, help_text=_PART)
    signature = serializers.CharField(required=False, help_text=_PART)


Strict = TypeVar("Strict", bound=serializers.Serializer[Any])


@lru_cache(maxsize=512)
def _blank(kind: type[Strict]) -> Strict:
    blank: Strict = kind()
    blank.fields  # noqa: B018  makes them
    return blank


def validate_data(kind: type[Strict], data: object) -> Strict:
    """As ``kind(data=data)`` and ``is_valid(raise_exception=True)``; fields are made once and not copied for each body."""
    payload: Strict = copy.copy(_blank(kind))
    payload.initial_data = data
    payload.is_valid(raise_exception=True)
    return payload


class StatedReasonSerializer(StrictSerializer):
    """Why; enough for what ends or stops something that the address names."""

    reason = serializers.CharField(max_length=500, help_text="Kept as evidence.")


def build_envelope_serializer(name: str, data: Any) -> Any:
    """The SPEC-4 envelope around ``data``, by a name of its own."""
    return inline_serializer(name, {"ok": serializers.BooleanField(), "data": data})


def build_page_serializer(name: str, rows: str, row: type[serializers.Serializer[Any]]) -> Any:
    """The envelope of one page of a list: ``{rows: [...], "next": cursor}``."""
    fields = {rows: row(many=True), "next": serializers.CharField(allow_null=True)}
    return build_envelope_serializer(f"{name}Envelope", inline_serializer(name, fields))
