"""Models over REST: how agents ask models, and what they are answered."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Any

from django.http import HttpResponse, JsonResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiExample, OpenApiParameter, extend_schema
from rest_framework.renderers import JSONRenderer

from invocations import services
from invocations.accept.api import AskingView, CallView
from invocations.answer.answer_serializers import CallEnvelopeSerializer
from invocations.answer.envelope import build_answer_envelope
from invocations.api import answer_later, write_answer, write_answered
from invocations.calls import CallRefused
from invocations.decide.api import PREFLIGHT_ENVELOPE
from invocations.decide.preflight_requests import request_preflight
from invocations.event_streams.api import EventStreamRenderer
from invocations.model_calls.answer_streams import (
    EVENT_STREAM,
    HEADERS,
    open_event_stream,
    stream_answer,
    write_stored_answer,
)
from invocations.model_calls.asked_models import SCOPE, build_model_call, resolve_model_id
from invocations.model_calls.early_runs import EarlyRun
from invocations.model_calls.model_requests import ANY_OPERATION
from invocations.model_calls.model_runs import prepare_run
from invocations.serializers import KEY_HEADER, InvokeSerializer
from kernel.database.tenancy import acting_for
from kernel.http.api_requests import get_caller
from kernel.http.base_serializers import validate_data
from kernel.http.deferred_responses import WaitingResponse, can_wait, find_event_loop
from kernel.http.envelopes import ResponseEnvelope
from kernel.http.parsers import WideJSONParser

if TYPE_CHECKING:
    from django.http.response import HttpResponseBase
    from rest_framework.request import Request

    from invocations.calls import AnsweredCall, BegunCall, CallRequest
    from invocations.model_calls.answer_forms import ModelAnswerForm
    from invocations.model_calls.model_runs import ModelRun
    from kernel.principal import Principal

LATE_S = 30.0  # behind the time of an answer: for writing it down
ACCEPT = OpenApiParameter(
    "Accept",
    str,
    OpenApiParameter.HEADER,
    enum=["application/json", EVENT_STREAM],
    description="`text/event-stream`: the answer while it comes, as events `delta`, and at last `end` with the envelope, or `error`.",
)


def build_example(name: str, arguments: dict[str, Any]) -> OpenApiExample:
    value = {"request_id": "2f6f1c9e-chat-1", "actor": {"type": "agent", "id": "shopping-assistant"}}
    return OpenApiExample(name, value=value | {"arguments": arguments}, request_only=True)


CHAT = build_example(
    "A question",
    {
        "messages": [{"role": "user", "segments": [{"type": "text", "text": "Which of them is cheapest?"}]}],
        "max_tokens": 300,
        "tools": ["commerce.pricing.get_realtime_quote"],
    },
)
EMBED = build_example("Two texts", {"items": ["a red bicycle", "ein rotes Fahrrad"], "kind": "passage"})
RERANK = build_example("Which answers best", {"query": "cheap bicycles", "candidates": ["…", "…"]})


class ModelChatView(CallView):
    """Ask a model to go on with a conversation. Calls of tools that it proposes are returned and never made."""

    required_scope = SCOPE
    renderer_classes = [JSONRenderer, EventStreamRenderer]
    parser_classes = [WideJSONParser]

    @extend_schema(
        request=InvokeSerializer,
        responses={200: CallEnvelopeSerializer, (200, EVENT_STREAM): OpenApiTypes.STR},
        examples=[CHAT],
        operation_id="chat",
        parameters=[KEY_HEADER, ACCEPT],
    )
    def post(self, request: Request, model_id: str) -> HttpResponseBase:
        wants_stream = request.accepted_renderer.media_type == EVENT_STREAM
        return ask_model(request, read_model_call(request, model_id, "chat"), wants_stream=wants_stream)


class ModelEmbedView(CallView):
    """Turn texts into vectors, one for each, in their order."""

    required_scope = SCOPE

    @extend_schema(
        request=InvokeSerializer,
        responses={200: CallEnvelopeSerializer},
        examples=[EMBED],
        operation_id="embed",
        parameters=[KEY_HEADER],
    )
    def post(self, request: Request, model_id: str) -> HttpResponseBase:
        return ask_model(request, read_model_call(request, model_id, "embed"))


class ModelRerankView(CallView):
    """Order texts by how well they answer a query."""

    required_scope = SCOPE

    @extend_schema(
        request=InvokeSerializer,
        responses={200: CallEnvelopeSerializer},
        examples=[RERANK],
        operation_id="rerank",
        parameters=[KEY_HEADER],
    )
    def post(self, request: Request, model_id: str) -> HttpResponseBase:
        return ask_model(request, read_model_call(request, model_id, "rerank"))


class ModelPreflightView(AskingView):
    """Would this call of a model be allowed, and what may it take? Nothing is sent and nothing is taken."""

    required_scope = SCOPE
    parser_classes = [WideJSONParser]

    @extend_schema(
        request=InvokeSerializer,
        responses={200: PREFLIGHT_ENVELOPE},
        examples=[CHAT],
        operation_id="preflight_model",
    )
    def post(self, request: Request, model_id: str) -> HttpResponse:
        asked = request_preflight(read_model_call(request, model_id, ANY_OPERATION), by=get_caller(request))
        return JsonResponse(ResponseEnvelope(data=asked.to_json()).to_json())


def read_model_call(request: Request, model_id: str, operation: str) -> CallRequest:
    """The call in a request. ``model_id``: the whole id, or an alias that only one provider has."""
    payload, by = validate_data(InvokeSerializer, request.data), get_caller(request)
    envelope = payload.to_envelope(key_header=request.headers.get("Idempotency-Key", ""))
    tool, arguments = resolve_model_id(model_id, by=by), payload.validated_data["arguments"]
    return build_model_call(tool, arguments, envelope, operation=operation, by=by)


class EnvelopeForm:
    """The hub's own: envelopes, and streams of events."""

    def write_refused(self, request: Request, refused: CallRefused) -> HttpResponse:
        envelope = build_answer_envelope(refused.invocation, problem=refused.problem, preflight=refused.preflight)
        return write_answer(request, refused.invocation, envelope)

    def write_whole(self, request: Request, answered: AnsweredCall) -> HttpResponse:
        return write_answered(request, answered)

    def write_stored_stream(self, request: Request, answered: AnsweredCall) -> HttpResponse:
        whole = write_answered(request, answered)
        envelope = build_answer_envelope(answered.invocation, notices=answered.notices, sealed=answered.sealed)
        response = HttpResponse(write_stored_answer(envelope), content_type=EVENT_STREAM, headers=HEADERS)
        for name in ("Location", "Idempotency-Replayed"):
            if name in whole.headers:
                response.headers[name] = whole.headers[name]
        return response

    def open_stream(self, request: Request, run: ModelRun, begun: BegunCall) -> HttpResponseBase:
        location = {"Location": f"/api/v1/invocations/{begun.invocation.wire_id}"}
        return open_event_stream(run, stream_answer(run, begun.invocation), location)


ENVELOPES = EnvelopeForm()


def ask_model(
    request: Request, call: CallRequest, *, wants_stream: bool = False, form: ModelAnswerForm = ENVELOPES
) -> HttpResponseBase:
    """Make the call, and answer with what becomes of it."""
    by, loop = get_caller(request), find_event_loop(request._request)
    with EarlyRun(loop, wants_stream=wants_stream) as early:
        try:
            begun = services.begin_call(call, by=by, while_committing=early.build)
        except CallRefused as refused:
            return form.write_refused(request, refused)
        if begun.preflight is None:
            return answer_again(request, begun, by=by, wants_stream=wants_stream, form=form)
        run = prepare_run(begun, wants_stream=wants_stream, early=early.take(begun))
    if run is None:
        return form.write_whole(request, services.get_answer(begun))
    if loop is None:
        run.run_here()
        return answer_from_store(request, begun, wants_stream=wants_stream, form=form, run=run)
    run.start_soon(loop)
    if wants_stream:
        return form.open_stream(request, run, begun)
    return answer_when_there(request, run, begun, by=by, form=form)


def answer_when_there(
    request: Request, run: ModelRun, begun: BegunCall, *, by: Principal, form: ModelAnswerForm
) -> WaitingResponse:
    """The answer as a whole, for which no thread waits. Whoever leaves before it is there ends the run."""

    def look(last: bool) -> HttpResponse | None:
        with acting_for(by.tenant_id):
            answered = services.find_answer(begun, last=last or run.is_over)
            return None if answered is None else form.write_whole(request, run.complete(answered))

    at_most_s = run.timeout_s + LATE_S
    return WaitingResponse(run, at_most_s=at_most_s, look=look, end=run.leave)


def answer_again(
    request: Request, begun: BegunCall, *, by: Principal, wants_stream: bool, form: ModelAnswerForm
) -> HttpResponse:
    """What an earlier call with this key was answered."""
    if begun.waiter is not None and can_wait(request._request) and not wants_stream:
        return answer_later(request, begun, by=by, write=form.write_whole)
    with closing(begun):
        if begun.waiter is not None:
            services.wait_for_end(begun.invocation.pk, begun.waiter, at_most_s=begun.at_most_s)
        return answer_from_store(request, begun, wants_stream=wants_stream, form=form)


def answer_from_store(
    request: Request, begun: BegunCall, *, wants_stream: bool, form: ModelAnswerForm, run: ModelRun | None = None
) -> HttpResponse:
    """The answer of a call that has ended, as its caller wants it. One that failed is a problem in both forms."""
    answered = services.get_answer(begun)
    if run is not None:
        answered = run.complete(answered)
    whole = form.write_whole(request, answered)
    return form.write_stored_stream(request, answered) if wants_stream and whole.status_code == 200 else whole
