"""Call serializers: what callers send about calls, and what is refused by name."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, ClassVar
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from drf_spectacular.utils import OpenApiExample, OpenApiParameter, extend_schema_field
from rest_framework import serializers

from invocations.answer.prefer_header import parse_prefer_header
from invocations.callbacks.services import THE_ONLY_ONE
from invocations.calls import CallRequest
from invocations.models import Origin
from invocations.problems import KeysDiffer
from invocations.proposals.proposal_links import complete_link
from kernel.http.base_serializers import IdField, ObjectField, PatternField, StrictSerializer, validate_data
from kernel.http.envelopes import RequestEnvelope
from kernel.http.parsers import read_json
from kernel.problems import Problem

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rest_framework.request import Request

SCOPE = "invocations:create"
ENVELOPE_VERSION = "1"
MAX_CANDIDATES = 100
KEY_WANTED = "Use 1 to 255 printable ASCII characters without spaces; in the header they may stand in quotation marks."
CALLBACK = "[-a-zA-Z0-9_]{1,40}"
SPAN_ID = "16 of the characters 0 to 9 and a to f"


class ActorSerializer(StrictSerializer):
    type = serializers.ChoiceField(choices=["user", "agent", "system"], help_text="Who triggered the call.")
    id = serializers.CharField(max_length=128)


class ClientSerializer(StrictSerializer):
    app = serializers.CharField(max_length=40)
    version = serializers.CharField(max_length=40, required=False, default="")
    model = serializers.CharField(max_length=120, required=False, help_text="The model that proposed the call, if any.")


class TraceSerializer(StrictSerializer):
    span_id = PatternField(r"^[0-9a-f]{16}$", wanted=SPAN_ID)
    parent_span_id = PatternField(r"^[0-9a-f]{16}$", wanted=SPAN_ID, required=False)


@extend_schema_field({"oneOf": [{"type": "string", "pattern": f"^{CALLBACK}$"}, {"type": "boolean", "enum": [True]}]})
class CallbackField(serializers.Field[Any, Any, Any, Any]):
    """The name of an endpoint, or true for the only one."""

    def to_internal_value(self, data: Any) -> str:
        if data is True:
            return THE_ONLY_ONE
        if isinstance(data, str) and re.fullmatch(CALLBACK, data):
            return data
        raise serializers.ValidationError("Name a callback endpoint of the agent, or send true for its only one.")


@extend_schema_field({"type": "string", "format": "time-zone", "maxLength": 64})
class TimeZoneField(serializers.CharField):
    """A name of the IANA time zone database."""


@extend_schema_field({"type": "string", "pattern": "^[!-~]{0,255}$"})
class KeyField(serializers.CharField):
    """An idempotency key, or none; it is read together with the header (:meth:`EnvelopeFields.to_envelope`)."""


class ProposedBySerializer(StrictSerializer):
    """Which answer of a model proposed the call."""

    invocation = IdField("inv", help_text="The call of the model, made by this agent.")
    call_id = serializers.CharField(
        max_length=512, required=False, help_text="The proposal's id, where nothing else in the request says it."
    )


WITHOUT_PURPOSE: dict[str, Any] = {
    "required": ["on_consent"],
    "properties": {"on_consent": {"enum": ["ask", "hold"]}, "purpose": {"pattern": r"^\s*$"}},
}


class EnvelopeFields(StrictSerializer):
    """The SPEC-1 envelope."""

    never: ClassVar[tuple[dict[str, Any], ...]] = (WITHOUT_PURPOSE,)
    envelope = serializers.ChoiceField(
        choices=[ENVELOPE_VERSION],
        required=False,
        default=ENVELOPE_VERSION,
        error_messages={
            "invalid_choice": f"This hub reads and writes version {ENVELOPE_VERSION} of the envelope only."
        },
        help_text="The version of the envelope, of the request and of its answer.",
    )
    request_id = PatternField(
        r"^[A-Za-z0-9._:-]{8,64}$",
        wanted="8 to 64 letters, digits or . _ : -",
        help_text="Unique for this call; found again in evidence.",
    )
    actor = ActorSerializer()
    user_id = serializers.CharField(max_length=128, required=False, default="", allow_blank=True)
    session_id = serializers.CharField(max_length=128, required=False, default="", allow_blank=True)
    locale = PatternField(
        r"^[A-Za-z]{2,3}([-_][A-Za-z0-9]{2,8})*$",
        wanted="a language and, if you like, a country, such as en or en-US",
        required=False,
        default="en-US",
    )
    currency = PatternField(r"^[A-Z]{3}$", wanted="three capital letters, such as EUR", required=False, default="USD")
    timezone = TimeZoneField(max_length=64, required=False, default="UTC")
    client = ClientSerializer(required=False)
    dry_run = serializers.BooleanField(required=False, default=False)
    idempotency_key = KeyField(max_length=255, required=False, default="", allow_blank=True)
    trace = TraceSerializer(required=False)
    on_consent = serializers.ChoiceField(
        choices=["refuse", "ask", "hold"],
        required=False,
        default="refuse",
        help_text="When a person must agree first: refuse the call; refuse it and ask for the consent; or ask and hold the "
        "call, which goes ahead once somebody has agreed.",
    )
    purpose = serializers.CharField(
        max_length=500,
        required=False,
        default="",
        allow_blank=True,
        help_text="What the call is for, for the person who decides. Needed with `ask` and `hold`.",
    )

    callback = CallbackField(
        required=False,
        help_text="The endpoint of this agent that is told when the call has ended, by its name; true for its only one.",
    )

    proposed_by = ProposedBySerializer(
        required=False,
        help_text="The answer of a connected model that proposed the call. It is checked: a call that the answer did not propose, "
        "or not with these arguments, is refused.",
    )

    def validate(self, data: dict[str, Any]) -> dict[str, Any]:
        if data["on_consent"] != "refuse" and not data["purpose"].strip():
            raise serializers.ValidationError({"purpose": "Say what the call is for; the person who decides reads it."})
        return data

    def validate_timezone(self, value: str) -> str:
        try:
            ZoneInfo(value)
        except (ZoneInfoNotFoundError, ValueError, OSError):
            raise serializers.ValidationError("This is not a time zone name such as Asia/Shanghai.") from None
        return value

    def to_envelope(self, *, key_header: str = "") -> RequestEnvelope:
        """The typed envelope; the Idempotency-Key header and the field must not contradict each other."""
        data = self.validated_data
        key, header_key = data["idempotency_key"], parse_idempotency_key(key_header)
        if header_key and key and header_key != key:
            raise KeysDiffer()
        key = header_key or key
        if key and not re.fullmatch(r"[\x21-\x7e]{1,255}", key):
            raise serializers.ValidationError({"idempotency_key": KEY_WANTED})
        return RequestEnvelope(
            request_id=data["request_id"],
            actor=dict(data["actor"]),
            user_id=data["user_id"],
            session_id=data["session_id"],
            locale=data["locale"],
            currency=data["currency"],
            timezone=data["timezone"],
            client=dict(data.get("client", {})),
            dry_run=data["dry_run"],
            idempotency_key=key,
            trace=dict(data.get("trace", {})),
            on_consent=data["on_consent"],
            purpose=data["purpose"].strip(),
            callback=data.get("callback", ""),
            proposed_by=dict(data.get("proposed_by", {})),
        )


KEY_HEADER = OpenApiParameter(
    "Idempotency-Key",
    {"type": "string", "pattern": r'^([!#-~][!-~]{0,254}|"[!#-\[\]-~]{1,253}")$'},
    OpenApiParameter.HEADER,
    description="Same as the field; 1 to 255 characters.",
)
_QUOTED = re.compile(r'"((?:[\x20\x21\x23-\x5b\x5d-\x7e]|\\["\\])+)"')


def parse_idempotency_key(text: str) -> str:
    """The draft of the header has the key as a structured field (RFC 8941), in quotation marks; a bare one is read as well."""
    text = text.strip()
    if not text.startswith('"'):
        return text
    if (quoted := _QUOTED.fullmatch(text)) is None:
        raise serializers.ValidationError({"idempotency_key": KEY_WANTED})
    return re.sub(r"\\(.)", r"\1", quoted[1])


class InvokeSerializer(EnvelopeFields):
    """The SPEC-1 envelope around ``arguments``."""

    arguments = ObjectField(help_text="The tool's arguments, by its input schema.")


class CandidateSerializer(StrictSerializer):
    tool = serializers.CharField(max_length=300)
    arguments = serializers.JSONField(help_text="The tool's arguments, by its input schema.")


class CandidatesSerializer(EnvelopeFields):
    """The SPEC-1 envelope around calls that are only asked about."""

    calls = serializers.ListField(child=CandidateSerializer(), min_length=1, max_length=MAX_CANDIDATES)


class ProposalSerializer(EnvelopeFields):
    """The SPEC-1 envelope around what a model has proposed."""

    name = serializers.CharField(max_length=300, help_text="The tool.")
    call_id = PatternField(
        r"^[A-Za-z0-9._:-]{1,64}$",
        wanted="1 to 64 letters, digits or . _ : -",
        help_text="What the model calls it; found again in evidence.",
    )
    arguments = serializers.JSONField(help_text="An object, or JSON text of one.")


EXAMPLE = OpenApiExample(
    "A quote",
    value={
        "request_id": "2f6f1c9e-quote-1",
        "actor": {"type": "agent", "id": "shopping-assistant"},
        "currency": "EUR",
        "arguments": {"sku": "LAPTOP-14", "quantity": 2},
    },
    request_only=True,
)


def read_call(request: Request, tool_id: str) -> CallRequest:
    """The call in a request: the body is the SPEC-1 envelope, the address names the tool."""
    return read_call_body(request.data, request.headers, tool_id)


def read_call_body(data: Any, headers: Mapping[str, str], tool_id: str) -> CallRequest:
    payload = validate_data(InvokeSerializer, data)
    prefers = parse_prefer_header(headers.get("Prefer", ""))
    envelope = payload.to_envelope(key_header=headers.get("Idempotency-Key", ""))
    return CallRequest(
        tool=tool_id,
        arguments=payload.validated_data["arguments"],
        envelope=envelope,
        origin=Origin.LLM if envelope.proposed_by else Origin.API,
        proposal=envelope.proposed_by.get("call_id", ""),
        scope=SCOPE,
        respond_async=prefers.respond_async,
        wait_s=prefers.wait_s,
    )


def read_candidates(request: Request) -> list[CallRequest]:
    """The calls that are asked about; all in one envelope."""
    payload = CandidatesSerializer(data=request.data)
    payload.is_valid(raise_exception=True)
    envelope = payload.to_envelope(key_header=request.headers.get("Idempotency-Key", ""))
    return [
        CallRequest(tool=each["tool"], arguments=each["arguments"], envelope=envelope)
        for each in payload.validated_data["calls"]
    ]


def read_proposal(request: Request) -> CallRequest:
    """What a model wants to be called. Arguments that are no object stay what they are, for the tool's schema to refuse."""
    payload = validate_data(ProposalSerializer, request.data)
    said = payload.validated_data
    prefers = parse_prefer_header(request.headers.get("Prefer", ""))
    return CallRequest(
        tool=said["name"],
        arguments=_arguments_of(said["arguments"]),
        envelope=complete_link(
            payload.to_envelope(key_header=request.headers.get("Idempotency-Key", "")), said["call_id"]
        ),
        origin=Origin.LLM,
        proposal=said["call_id"],
        scope=SCOPE,
        respond_async=prefers.respond_async,
        wait_s=prefers.wait_s,
    )


def _arguments_of(said: Any) -> Any:
    """Providers send text; where a tool takes nothing, often the empty one."""
    if not isinstance(said, str):
        return said
    try:
        found = read_json(said.encode()) if said.strip() else {}
    except Problem:
        return said
    return found if isinstance(found, dict) else said
