"""Served formats over HTTP: models as OpenAI's SDKs and most frameworks ask for them."""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING, Any

from django.http import HttpResponse, JsonResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework.renderers import JSONRenderer

from invocations import services
from invocations.accept.api import AskingView, CallView
from invocations.answer.envelope import build_answered_envelope
from invocations.decide.preflight_requests import request_preflight
from invocations.event_streams.api import EventStreamRenderer
from invocations.model_calls.answer_streams import EVENT_STREAM, HEADERS, open_event_stream
from invocations.model_calls.api import LATE_S, ask_model
from invocations.model_calls.asked_models import SCOPE, build_model_call, resolve_model_id
from invocations.model_calls.kept_vectors import check_vectors_kept
from invocations.model_calls.served.key_authentication import ServedKeyAuthentication
from invocations.model_calls.served.served_calls import build_served_call
from invocations.model_calls.served.stream_openings import FirstWord, stream_served
from invocations.serializers import KEY_HEADER, InvokeSerializer
from kernel.database.tenancy import acting_for
from kernel.http.api_requests import get_caller
from kernel.http.base_serializers import validate_data
from kernel.http.deferred_responses import WaitingResponse
from kernel.http.exception_handlers import build_problem_response
from kernel.http.parsers import WideJSONParser
from kernel.ids import new_id
from kernel.problems import Internal
from llm.served.formats import Answered
from llm.served.openai_chat import OpenAIChatFormat
from llm.served.openai_embeddings import read_embedding, write_embedding
from llm.served.rerank import read_rerank, write_rerank

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from django.http.response import HttpResponseBase
    from rest_framework.request import Request

    from invocations.calls import AnsweredCall, BegunCall, CallRefused
    from invocations.model_calls.model_runs import ModelRun
    from invocations.models import Invocation
    from kernel.http.envelopes import RequestEnvelope, ResponseEnvelope
    from kernel.problems import Problem
    from llm.served.formats import ChatFormat, ServedChat, StreamWriter

CALL = "X-Hub-Call"
# What is too much may be counted all the same.
ABOUT_ROOM = ("LLM.CONTEXT_OVERFLOW", "QUOTA.BUDGET_EXCEEDED", "QUOTA.RATE_LIMITED")
ESTIMATED = {"counted_by": "estimate"}  # what the hub says beside a count
REQUEST_ID = re.compile(r"[A-Za-z0-9._:-]{8,64}")


def refer_to(component: str) -> dict[str, Any]:
    """The body of a request, as :mod:`llm.served.body_schemas` describes it."""
    return {"application/json": {"$ref": f"#/components/schemas/{component}"}}


class ServedForm:
    """Answers in a served format.

    ``write``: the hub's own answer as the format has it. ``open_stream``: None where it has no streams; ``stream_type``: what
    they are.
    """

    def __init__(
        self,
        write: Callable[[dict[str, Any], Answered], dict[str, Any]],
        *,
        names: Mapping[str, str],
        warnings: tuple[str, ...] = (),
        options: Mapping[str, Any] | None = None,
        open_stream: Callable[[Answered], StreamWriter] | None = None,
        stream_type: str = EVENT_STREAM,
    ) -> None:
        self._write, self._names, self._warnings, self._open_stream = write, names, warnings, open_stream
        self._options, self._stream_type = options or {}, stream_type

    def describe(self, invocation: Invocation, warnings: tuple[str, ...] = ()) -> Answered:
        return Answered(
            call_id=invocation.wire_id,
            model=invocation.tool,
            created=int(invocation.created_at.timestamp()),
            names=self._names,
            warnings=(*self._warnings, *warnings),
            options=self._options,
        )

    def write_refused(self, request: Request, refused: CallRefused) -> HttpResponse:
        return write_problem(request, refused.invocation, refused.problem)

    def write_whole(self, request: Request, answered: AnsweredCall) -> HttpResponse:
        invocation, envelope = answered.invocation, read_answer(answered)
        if envelope.error is not None:
            return write_problem(request, invocation, envelope.error)
        response = JsonResponse(self._write(envelope.data, self.describe(invocation, envelope.warnings)))
        return add_headers(response, answered)

    def write_stored_stream(self, request: Request, answered: AnsweredCall) -> HttpResponse:
        assert self._open_stream is not None
        envelope, writer = read_answer(answered), self._open_stream(self.describe(answered.invocation))
        text = writer.end(envelope.data, envelope.warnings)
        return add_headers(HttpResponse(text, content_type=self._stream_type, headers=HEADERS), answered)

    def open_stream(self, request: Request, run: ModelRun, begun: BegunCall) -> HttpResponseBase:
        """A stream where the model says something, and an answer with a status of its own where it fails before that."""
        assert self._open_stream is not None
        writer, opened = self._open_stream(self.describe(begun.invocation)), False

        def look(last: bool) -> HttpResponseBase | None:
            nonlocal opened
            with acting_for(begun.invocation.tenant_id):
                if run.pieces.is_closed and not run.pieces.has_content:
                    answered = services.get_answer(begun)
                    if read_answer(answered).error is not None:
                        return self.write_whole(request, answered)
                elif not run.pieces.has_content and not last:
                    return None
            opened = True
            stream = stream_served(run, begun.invocation, writer)
            headers = {CALL: begun.invocation.wire_id}
            return open_event_stream(run, stream, headers, content_type=self._stream_type)

        def end() -> None:
            if not opened:
                run.leave()

        return WaitingResponse(FirstWord(run), at_most_s=run.timeout_s + LATE_S, look=look, end=end)


def read_answer(answered: AnsweredCall) -> ResponseEnvelope:
    """What has become of a call; that it has not ended is a problem, for these formats know no other word for it."""
    if not answered.invocation.is_final:
        raise services.build_in_progress_problem(answered.invocation)
    envelope = build_answered_envelope(answered)
    check_vectors_kept(envelope.data)
    return envelope


def write_problem(request: Request, invocation: Invocation, problem: Problem) -> HttpResponse:
    response = build_problem_response(request._request, problem)
    response.headers[CALL] = invocation.wire_id
    return response


def add_headers(response: HttpResponse, answered: AnsweredCall) -> HttpResponse:
    response.headers[CALL] = answered.invocation.wire_id
    response.headers["Cache-Control"] = "no-store"
    if answered.replayed:
        response.headers["Idempotency-Replayed"] = "true"
    return response


def build_envelope(request: Request, said: Mapping[str, Any]) -> RequestEnvelope:
    """The hub's envelope around a request in a format that has none."""
    given = str(getattr(request._request, "request_id", ""))
    body = {
        "request_id": given if REQUEST_ID.fullmatch(given) else str(new_id()),
        "actor": {"type": "agent", "id": get_caller(request).name[:128]},
        "arguments": {},
        **said,
    }
    payload = validate_data(InvokeSerializer, body)
    return payload.to_envelope(key_header=request.headers.get("Idempotency-Key", ""))


class ServedView(CallView):
    """What the endpoints of all formats have in common."""

    authentication_classes = [ServedKeyAuthentication]
    required_scope = SCOPE
    renderer_classes = [JSONRenderer, EventStreamRenderer]


class ServedChatView(ServedView):
    """``served``: the format. ``dialect``: that in which its callers are shown the hub's tools. ``stream_type``: of its streams."""

    parser_classes = [WideJSONParser]
    served: ChatFormat
    dialect: str
    stream_type: str = EVENT_STREAM

    def answer(self, request: Request) -> HttpResponseBase:
        asked: ServedChat = self.served.read(request.data)
        by = get_caller(request)
        envelope = build_envelope(request, asked.envelope)
        call, names = build_served_call(asked, envelope, dialect=self.dialect, by=by)

        def open_stream(about: Answered) -> StreamWriter:
            return self.served.open_stream(about, asked.options)

        form = ServedForm(
            self.served.write,
            names=names,
            warnings=asked.warnings,
            options=asked.options,
            open_stream=open_stream,
            stream_type=self.stream_type,
        )
        return ask_model(request, call, wants_stream=asked.wants_stream, form=form)


class ServedCountView(AskingView):
    """How many tokens a conversation has, by the hub's own estimate, which is a high one. No provider is asked."""

    authentication_classes = [ServedKeyAuthentication]
    required_scope = SCOPE
    parser_classes = [WideJSONParser]
    dialect: str

    def count_tokens(self, request: Request, asked: ServedChat) -> int:
        """As the preflight of the call counts them. Raises what would refuse the call, but for want of room."""
        by = get_caller(request)
        call, _ = build_served_call(asked, build_envelope(request, asked.envelope), dialect=self.dialect, by=by)
        found = request_preflight(call, by=by)
        if found.problem is not None and found.problem.reason not in ABOUT_ROOM:
            raise found.problem
        demand = found.preflight.model_demand if found.preflight is not None else None
        if demand is None:
            raise found.problem or Internal()
        return demand.input_tokens


class ServedModelView(ServedView):
    """Of models that do not converse. ``operation``: what they are for."""

    operation: str

    def answer(
        self,
        request: Request,
        model: str,
        arguments: dict[str, Any],
        envelope: Mapping[str, Any],
        write: Callable[[dict[str, Any], Answered], dict[str, Any]],
    ) -> HttpResponseBase:
        by = get_caller(request)
        around, tool = build_envelope(request, envelope), resolve_model_id(model, by=by)
        call = build_model_call(tool, arguments, around, operation=self.operation, by=by)
        return ask_model(request, call, form=ServedForm(write, names={}))


class ChatCompletionsView(ServedChatView):
    """OpenAI's Chat Completions. Calls of tools that the model proposes are returned and never made."""

    served = OpenAIChatFormat()
    dialect = "openai"

    @extend_schema(
        request=refer_to("ServedChat"),
        responses={200: OpenApiTypes.OBJECT, (200, EVENT_STREAM): OpenApiTypes.STR},
        operation_id="create_chat_completion",
        parameters=[KEY_HEADER],
    )
    def post(self, request: Request) -> HttpResponseBase:
        return self.answer(request)


class EmbeddingsView(ServedModelView):
    """OpenAI's embeddings: a vector for each text."""

    operation = "embed"

    @extend_schema(
        request=refer_to("ServedEmbedding"),
        responses={200: OpenApiTypes.OBJECT},
        operation_id="create_embedding",
        parameters=[KEY_HEADER],
    )
    def post(self, request: Request) -> HttpResponseBase:
        model, arguments, envelope, as_base64 = read_embedding(request.data)
        return self.answer(request, model, arguments, envelope, partial(write_embedding, as_base64=as_base64))


class RerankView(ServedModelView):
    """Texts in the order of how well they answer a query, in the shape of Cohere and Jina."""

    operation = "rerank"

    @extend_schema(
        request=refer_to("ServedRerank"),
        responses={200: OpenApiTypes.OBJECT},
        operation_id="create_rerank",
        parameters=[KEY_HEADER],
    )
    def post(self, request: Request) -> HttpResponseBase:
        model, arguments, wanted = read_rerank(request.data)
        return self.answer(request, model, arguments, {}, partial(write_rerank, **wanted))
