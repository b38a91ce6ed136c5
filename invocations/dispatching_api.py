"""How does what a model has answered become calls, and what is the model told?

The body is the provider's response as it came, in the envelope of a call; the answer holds the messages that go back to the model, and
for each call what :mod:`invocations.api` would have answered.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from django.http import HttpResponse, JsonResponse
from drf_spectacular.utils import OpenApiExample, OpenApiParameter, extend_schema
from rest_framework import serializers

from invocations.api import PREFER
from invocations.call_view import CallView
from invocations.dispatching import Dispatch, call_from, read_response, result_of
from invocations.preferring import preferences_of
from invocations.serializers import SCOPE, EnvelopeFields, EnvelopeSerializer
from registry.showing_to_models import DIALECTS
from toolhub.kernel.api import caller
from toolhub.kernel.db import release_connection
from toolhub.kernel.envelopes import ResponseEnvelope
from toolhub.kernel.handlers import respond
from toolhub.kernel.problems import Forbidden
from toolhub.kernel.serializers import checked, enveloped
from toolhub.kernel.tenancy import acting_for
from toolhub.kernel.waiting import WaitingResponse, can_wait
from unitools.calls import Status

if TYPE_CHECKING:
    from rest_framework.request import Request

    from unitools.dialects import Driver

NOTHING_CALLED = "The response holds no call of a tool, so there is nothing to do."
EXAMPLE = OpenApiExample(
    "A response of OpenAI Chat Completions",
    value={
        "request_id": "2f6f1c9e-turn-3",
        "actor": {"type": "agent", "id": "shopping-assistant"},
        "response": {
            "choices": [
                {
                    "finish_reason": "tool_calls",
                    "message": {
                        "role": "assistant",
                        "content": None,
                        "tool_calls": [
                            {
                                "id": "call_7Qx1",
                                "type": "function",
                                "function": {
                                    "name": "commerce_pricing_get_realtime_quote",
                                    "arguments": '{"sku": "…", "quantity": 2}',
                                },
                            }
                        ],
                    },
                }
            ]
        },
    },
    request_only=True,
)


class DispatchSerializer(EnvelopeFields):
    """The SPEC-1 envelope around what a model has answered."""

    response = serializers.JSONField(help_text="The provider's response as it came: an object, a list, or text.")
    dialect = serializers.CharField(
        max_length=40, required=False, default="", help_text="Where the shape of the response does not tell."
    )
    model = serializers.CharField(
        max_length=120, required=False, default="", help_text="Tells two dialects apart that look alike."
    )


class DispatchedSerializer(serializers.Serializer[Any]):
    id = serializers.CharField(help_text="The model's id of the call; `call_<n>` where it gave none.")
    name = serializers.CharField(help_text="The tool.")
    status = serializers.ChoiceField([str(each) for each in Status])
    repaired = serializers.BooleanField(help_text="Whether broken JSON was put right before the call.")
    replayed = serializers.BooleanField(help_text="Whether an earlier call was answered again.")
    answer = EnvelopeSerializer()


class DispatchAnswerSerializer(serializers.Serializer[Any]):
    dialect = serializers.ChoiceField(DIALECTS)
    messages = serializers.JSONField(help_text="For the next request to the model, behind what it answered.")
    calls = DispatchedSerializer(many=True)


ANSWER = enveloped("DispatchEnvelope", DispatchAnswerSerializer())


class DispatchView(CallView):
    """Make the calls that a model's response proposes, and answer each of them in the dialect of the response."""

    @extend_schema(
        request=DispatchSerializer,
        responses={200: ANSWER, 202: ANSWER},
        examples=[EXAMPLE],
        operation_id="dispatch",
        parameters=[
            OpenApiParameter(
                "Idempotency-Key", str, OpenApiParameter.HEADER, description="In the place of request_id, for retries."
            ),
            OpenApiParameter("Prefer", str, OpenApiParameter.HEADER, description=PREFER),
        ],
    )
    def post(self, request: Request) -> HttpResponse:
        by = caller(request)
        payload = checked(DispatchSerializer, request.data)
        said = payload.validated_data
        envelope = payload.to_envelope(key_header=request.headers.get("Idempotency-Key", ""))
        prefers = preferences_of(request.headers.get("Prefer", ""))
        driver, proposed = read_response(said["response"], dialect=said["dialect"], model=said["model"], by=by)
        calls = [(each, call_from(each, envelope=envelope, scope=SCOPE, prefers=prefers)) for each in proposed]
        dispatch = Dispatch(calls, by=by)
        try:
            by.check(SCOPE)  # each call was refused for it, with a pair
        except Forbidden as problem:
            dispatch.close()
            return respond(request._request, problem)
        if not dispatch.look(last=False) and can_wait(request._request):
            return _answer_later(dispatch, driver, tenant_id=by.tenant_id)
        try:
            until = time.monotonic() + dispatch.at_most_s
            while not dispatch.look(last=(left := until - time.monotonic()) <= 0):
                release_connection()
                dispatch.wait(left)
            return write_dispatched(dispatch, driver)
        finally:
            dispatch.close()


def _answer_later(dispatch: Dispatch, driver: Driver, *, tenant_id: Any) -> WaitingResponse:
    """The same answer, for which no thread waits."""

    def look(last: bool) -> HttpResponse | None:
        with acting_for(tenant_id):
            return write_dispatched(dispatch, driver) if dispatch.look(last=last) else None

    return WaitingResponse(dispatch, at_most_s=dispatch.at_most_s, look=look, end=dispatch.close)


def write_dispatched(dispatch: Dispatch, driver: Driver) -> HttpResponse:
    """200 when all calls have ended, however they did; 202 while one goes on."""
    envelopes = [each.envelope() for each in dispatch.calls]
    results = [result_of(each, envelope) for each, envelope in zip(dispatch.calls, envelopes, strict=True)]
    data = {
        "dialect": driver.dialect,
        "messages": driver.reply(results),
        "calls": [
            {
                "id": each.proposed.id,
                "name": each.proposed.name,
                "status": str(result.status),
                "repaired": each.proposed.repaired,
                "replayed": bool(each.answered and each.answered.replayed),
                "answer": envelope.to_json(),
            }
            for each, result, envelope in zip(dispatch.calls, results, envelopes, strict=True)
        ],
    }
    warnings = () if dispatch.calls else (NOTHING_CALLED,)
    go_on = any(each.goes_on for each in dispatch.calls)
    response = JsonResponse(ResponseEnvelope(data=data, warnings=warnings).to_json(), status=202 if go_on else 200)
    response.headers["Cache-Control"] = "no-store"
    if go_on:
        response.headers["Retry-After"] = "1"
    return response
