"""Chain serializers: what is sent to have a plan of calls carried out, and what is refused by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from drf_spectacular.utils import OpenApiExample
from rest_framework import serializers

from invocations.chains.plan import ID, MAX_PLAN_BYTES, MAX_RETRIES, MAX_STEPS, ChainPlan, read_plan
from invocations.serializers import WITHOUT_PURPOSE, InvokeSerializer
from kernel.canonical import encode_hash_input
from kernel.http.base_serializers import ObjectField, PatternField, StrictSerializer
from kernel.problems import TooLarge

if TYPE_CHECKING:
    from rest_framework.request import Request

    from kernel.http.envelopes import RequestEnvelope

ARGUMENTS = (
    'The tool\'s arguments. An object `{"$from": step, "pointer": "/…"}` in them stands for what an earlier step has delivered '
    'there; `{"$data": …}` stands for what it holds, as it is.'
)
EXAMPLE = OpenApiExample(
    "A quote, and an order at that price",
    value={
        "request_id": "2f6f1c9e-chain-1",
        "actor": {"type": "agent", "id": "shopping-assistant"},
        "plan": {
            "steps": [
                {"id": "quote", "tool": "shop.prices.quote", "arguments": {"sku": "A-1"}},
                {
                    "id": "order",
                    "tool": "shop.orders.create",
                    "arguments": {"sku": "A-1", "total": {"$from": "quote", "pointer": "/total"}},
                    "retry": 2,
                    "compensate": {
                        "tool": "shop.orders.cancel",
                        "arguments": {"order": {"$from": "order", "pointer": "/id"}},
                    },
                },
            ]
        },
    },
    request_only=True,
)


class PlannedSerializer(StrictSerializer):
    tool = serializers.CharField(max_length=128)
    arguments = ObjectField(required=False, default=dict, help_text=ARGUMENTS)
    retry = serializers.IntegerField(
        min_value=0,
        max_value=MAX_RETRIES,
        required=False,
        default=0,
        help_text="How often it may be made again when it fails. Only for tools that honour their key.",
    )


class StepSerializer(PlannedSerializer):
    id = PatternField(
        f"^{ID.pattern}$",
        wanted="1 to 32 lower-case letters, digits, _ or -, beginning with a letter",
        help_text="Its name in this plan.",
    )
    compensate = PlannedSerializer(
        required=False, help_text="The call that undoes what this step did, when the chain does not come to its end."
    )


class PlanSerializer(StrictSerializer):
    steps = StepSerializer(many=True, allow_empty=False, max_length=MAX_STEPS)  # type: ignore[call-arg]


ONLY_ASKS: dict[str, Any] = {"required": ["on_consent"], "properties": {"on_consent": {"enum": ["ask"]}}}


class ChainSerializer(InvokeSerializer):
    """The SPEC-1 envelope around ``plan``. Its steps are called with the same envelope."""

    never = (WITHOUT_PURPOSE, ONLY_ASKS)
    arguments = None  # type: ignore[assignment]
    callback = None  # type: ignore[assignment]
    plan = PlanSerializer(help_text="A tool's `post_execution_plan` can be sent here when it has this form.")

    def validate_on_consent(self, value: str) -> str:
        if value == "ask":
            raise serializers.ValidationError("A chain is refused, or held at the step for which a person must agree.")
        return value

    def validate(self, data: dict[str, Any]) -> dict[str, Any]:
        return super().validate(data) | {"callback": ""}


def read_chain(request: Request) -> tuple[ChainPlan, RequestEnvelope]:
    """The plan in a request, and the envelope around it."""
    payload = ChainSerializer(data=request.data)
    payload.is_valid(raise_exception=True)
    document = payload.validated_data["plan"]
    size = len(encode_hash_input(document)[1])
    if size > MAX_PLAN_BYTES:
        raise TooLarge(
            f"The plan is {size:,} bytes; it may have {MAX_PLAN_BYTES:,}.", details={"max_bytes": MAX_PLAN_BYTES}
        )
    return read_plan(document), payload.to_envelope(key_header=request.headers.get("Idempotency-Key", ""))
