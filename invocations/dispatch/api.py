"""Dispatch over REST: how what a model has answered becomes calls, and what the model is told.

The body is the provider's response as it came, in the envelope of a call; the answer holds the messages that go back to the model, and
for each call what :mod:`invocations.api` would have answered.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from django.http import HttpResponse, JsonResponse
from drf_spectacular.utils import OpenApiExample, OpenApiParameter, extend_schema, extend_schema_field
from rest_framework import serializers

from invocations.accept.api import CallView
from invocations.answer.answer_serializers import CallEnvelopeSerializer
from invocations.answer.prefer_header import parse_prefer_header
from invocations.api import PREFER
from invocations.dispatch.services import Dispatch, build_call, build_tool_result, read_response
from invocations.serializers import KEY_HEADER, SCOPE, EnvelopeFields
from kernel.database.connections import release_connection
from kernel.database.tenancy import acting_for
from kernel.http.api_requests import get_caller
from kernel.http.base_serializers import build_envelope_serializer, validate_data
from kernel.http.deferred_responses import WaitingResponse, can_wait
from kernel.http.envelopes import ResponseEnvelope
from kernel.http.exception_handlers import build_problem_response
from kernel.problems import Forbidden
from registry.discovery.tool_specs import DIALECTS
from unitools.calls import Status
from unitools.dialects.text_calls import FORMS, TextDriver

if TYPE_CHECKING:
    from rest_framework.request import Request

    from invocations.dispatch.services import ReadResponse

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


@extend_schema_field({"type": "string", "pattern": f"^({'|'.join(DIALECTS)})?$"})
class DialectField(serializers.CharField):
    """A dialect; another one is refused with those that there are."""


class DispatchSerializer(EnvelopeFields):
    """The SPEC-1 envelope around what a model has answered."""

    response = serializers.JSONField(
        help_text="The provider's response as it came: an object, a list, text; a stream's text or list of chunks."
    )
    dialect = DialectField(
        max_length=40, required=False, default="", help_text="Where the shape of the response does not tell."
    )
    model = serializers.CharField(
        max_length=120,
        required=False,
        default="",
        help_text="The model that answered. Tells two dialects apart that look alike, and stands for an empty `client.model`.",
    )

    trust_text = serializers.ChoiceField(
        tuple(FORMS),
        required=False,
        help_text="The form in which this model writes calls into its text: they are taken for its own, at the end of the answer and "
        "outside of code fences. Left out, nothing in a text is run.",
    )


class DispatchedSerializer(serializers.Serializer[Any]):
    id = serializers.CharField(help_text="The model's id of the call; `call_<n>` where it gave none.")
    name = serializers.CharField(help_text="The tool.")
    status = serializers.ChoiceField([str(each) for each in Status])
    repaired = serializers.BooleanField(help_text="Whether broken JSON was put right before the call.")
    replayed = serializers.BooleanField(help_text="Whether an earlier call was answered again.")
    answer = CallEnvelopeSerializer()


class DispatchAnswerSerializer(serializers.Serializer[Any]):
    dialect = serializers.ChoiceField((*DIALECTS, TextDriver.dialect))
    messages = serializers.JSONField(help_text="For the next request to the model, behind what it answered.")
    calls = DispatchedSerializer(many=True)


ANSWER = build_envelope_serializer("DispatchEnvelope", DispatchAnswerSerializer())


class DispatchView(CallView):
    """Make the calls that a model's response proposes, and answer each of them in the dialect of the response."""

    @extend_schema(
        request=DispatchSerializer,
        responses={200: ANSWER, 202: ANSWER},
        examples=[EXAMPLE],
        operation_id="dispatch",
        parameters=[
            KEY_HEADER,
            OpenApiParameter("Prefer", str, OpenApiParameter.HEADER, description=PREFER),
        ],
    )
    def post(self, request: Request) -> HttpResponse:
        by = get_caller(request)
        payload = validate_data(DispatchSerializer, request.data)
        said = payload.validated_data
        envelope = payload.to_envelope(key_header=request.headers.get("Idempotency-Key", ""))
        if said["model"] and not envelope.client.get("model"):
            envelope = replace(envelope, client=envelope.client | {"model": said["model"]})
        prefers = parse_prefer_header(request.headers.get("Prefer", ""))
        read = read_response(
            said["response"], dialect=said["dialect"], model=said["model"], by=by, trust_text=said.get("trust_text", "")
        )
        calls = [(each, build_call(each, envelope=envelope, scope=SCOPE, prefers=prefers)) for each in read.calls]
        dispatch = Dispatch(calls, by=by)
        try:
            by.check(SCOPE)  # each call was refused for it, with a pair
        except Forbidden as problem:
            dispatch.close()
            return build_problem_response(request._request, problem)
        if not dispatch.look(last=False) and can_wait(request._request):
            return _answer_later(dispatch, read, tenant_id=by.tenant_id)
        try:
            until = time.monotonic() + dispatch.at_most_s
            while not dispatch.look(last=(left := until - time.monotonic()) <= 0):
                release_connection()
                dispatch.wait(left)
            return write_dispatch_answer(dispatch, read)
        finally:
            dispatch.close()


def _answer_later(dispatch: Dispatch, read: ReadResponse, *, tenant_id: Any) -> WaitingResponse:
    """The same answer, for which no thread waits."""

    def look(last: bool) -> HttpResponse | None:
        with acting_for(tenant_id):
            return write_dispatch_answer(dispatch, read) if dispatch.look(last=last) else None

    return WaitingResponse(dispatch, at_most_s=dispatch.at_most_s, look=look, end=dispatch.close)


def write_dispatch_answer(dispatch: Dispatch, read: ReadResponse) -> HttpResponse:
    """200 when all calls have ended, however they did; 202 while one goes on."""
    envelopes = [each.envelope() for each in dispatch.calls]
    results = [build_tool_result(each, envelope) for each, envelope in zip(dispatch.calls, envelopes, strict=True)]
    data = {
        "dialect": read.driver.dialect,
        "messages": read.driver.reply(results),
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
    warnings = () if dispatch.calls else tuple(filter(None, (NOTHING_CALLED, read.looks_like)))
    go_on = any(each.goes_on for each in dispatch.calls)
    response = JsonResponse(ResponseEnvelope(data=data, warnings=warnings).to_json(), status=202 if go_on else 200)
    response.headers["Cache-Control"] = "no-store"
    if go_on:
        response.headers["Retry-After"] = "1"
    return response
