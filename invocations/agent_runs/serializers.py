"""Agent run serializers: what is sent to have a question taken to its answer, and what is refused by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from drf_spectacular.utils import OpenApiExample, extend_schema_field
from rest_framework import serializers

from invocations.agent_runs.limits import MAX_COST_MICROS, MAX_EQUAL_CALLS, MAX_SECONDS, MAX_STEPS, RunLimits
from invocations.agent_runs.services import RunQuestion
from invocations.model_calls.held_files import take_pictures
from invocations.serializers import WITHOUT_PURPOSE, InvokeSerializer
from kernel.http.base_serializers import ObjectField, StrictSerializer, validate_data
from kernel.problems import SchemaInvalid

if TYPE_CHECKING:
    from rest_framework.request import Request

    from kernel.http.envelopes import RequestEnvelope

DEFAULTS = RunLimits()
EXAMPLE = OpenApiExample(
    "A question that takes two tools",
    value={
        "request_id": "2f6f1c9e-run-1",
        "actor": {"type": "agent", "id": "shopping-assistant"},
        "on_consent": "hold",
        "purpose": "Order what the customer asked for",
        "model": "main",
        "arguments": {
            "messages": [{"role": "user", "segments": [{"type": "text", "text": "Order the cheapest headphones."}]}],
            "tools": ["commerce.*"],
        },
        "limits": {"steps": 8, "cost_micros": 50000, "seconds": 120},
    },
    request_only=True,
)


class LimitsSerializer(StrictSerializer):
    steps = serializers.IntegerField(
        min_value=1,
        max_value=MAX_STEPS,
        required=False,
        default=DEFAULTS.steps,
        help_text="How often the model is asked at most.",
    )
    cost_micros = serializers.IntegerField(
        min_value=0,
        max_value=MAX_COST_MICROS,
        required=False,
        allow_null=True,
        default=None,
        help_text="What all calls may cost, in millionths of the currency. A call that might cost more is not made.",
    )
    seconds = serializers.IntegerField(
        min_value=1,
        max_value=MAX_SECONDS,
        required=False,
        default=DEFAULTS.seconds,
        help_text="From the beginning; time in which a call waits for a person does not count.",
    )
    equal_calls = serializers.IntegerField(
        min_value=1,
        max_value=MAX_EQUAL_CALLS,
        required=False,
        default=DEFAULTS.equal_calls,
        help_text="How often one tool is called with the same arguments.",
    )


ONLY_ASKS: dict[str, Any] = {"required": ["on_consent"], "properties": {"on_consent": {"enum": ["ask"]}}}
FOR_SHOW: dict[str, Any] = {"required": ["dry_run"], "properties": {"dry_run": {"enum": [True]}}}


@extend_schema_field(
    {
        "type": "object",
        "required": ["messages"],
        "properties": {"messages": {"type": "array", "items": {"type": "object", "additionalProperties": {}}}},
        "additionalProperties": {},
    }
)
class QuestionField(ObjectField):
    """What a model is asked."""


class AgentRunSerializer(InvokeSerializer):
    """The SPEC-1 envelope around a question. The calls of tools are made in the same envelope."""

    never = (WITHOUT_PURPOSE, ONLY_ASKS, FOR_SHOW)
    callback = None  # type: ignore[assignment]
    proposed_by = None  # type: ignore[assignment]
    model = serializers.CharField(
        max_length=128, help_text="The id of a model, or an alias that only one provider has."
    )
    arguments = QuestionField(help_text="As for a chat: `messages`, `tools` and the parameters of the model.")
    limits = LimitsSerializer(required=False)

    def validate_on_consent(self, value: str) -> str:
        if value == "ask":
            raise serializers.ValidationError("A run is told of a refusal, or waits: use `refuse` or `hold`.")
        return value

    def validate_dry_run(self, value: bool) -> bool:
        if value:
            raise serializers.ValidationError("A run cannot be made for show: a model's answers are never the same.")
        return value

    def validate_arguments(self, value: Any) -> Any:
        if not isinstance(value.get("messages"), list):
            raise serializers.ValidationError("`messages` is a list of messages.")
        return value

    def validate(self, data: dict[str, Any]) -> dict[str, Any]:
        return super().validate(data) | {"callback": ""}


def read_run(request: Request) -> tuple[RunQuestion, RequestEnvelope]:
    """The question in a request, and the envelope around it."""
    payload = validate_data(AgentRunSerializer, request.data)
    said = payload.validated_data
    _, pictures, _ = take_pictures(said["arguments"])
    if pictures:
        # A run keeps its conversation until it has ended, and a picture that stands in a request is never kept (ADR 0045).
        raise SchemaInvalid.at("/arguments/messages", "Store the picture as a file, and name it by its id (fil_…).")
    limits = RunLimits(**said["limits"]) if said.get("limits") else DEFAULTS
    question = RunQuestion(said["model"], said["arguments"], limits)
    return question, payload.to_envelope(key_header=request.headers.get("Idempotency-Key", ""))
