"""Anthropic's Messages over HTTP: models of the hub, as Anthropic's SDKs ask for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.http import HttpResponse, JsonResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema

from invocations.accept.api import AskingView
from invocations.decide.preflight_requests import request_preflight
from invocations.model_calls.answer_streams import EVENT_STREAM
from invocations.model_calls.asked_models import SCOPE
from invocations.model_calls.served.api import ServedChatView, build_envelope, refer_to
from invocations.model_calls.served.key_authentication import ServedKeyAuthentication
from invocations.model_calls.served.served_calls import build_served_call
from invocations.serializers import KEY_HEADER
from kernel.http.api_requests import get_caller
from kernel.http.parsers import WideJSONParser
from kernel.problems import Internal
from llm.served.anthropic_messages import AnthropicMessages
from llm.served.anthropic_requests import read_count

if TYPE_CHECKING:
    from django.http.response import HttpResponseBase
    from rest_framework.request import Request

DIALECT = "anthropic"
# What is too much may be counted all the same.
ABOUT_ROOM = ("LLM.CONTEXT_OVERFLOW", "QUOTA.BUDGET_EXCEEDED", "QUOTA.RATE_LIMITED")


class MessagesView(ServedChatView):
    """Anthropic's Messages. Calls of tools that the model proposes are returned and never made."""

    served = AnthropicMessages()
    dialect = DIALECT

    @extend_schema(
        request=refer_to("ServedMessages"),
        responses={200: OpenApiTypes.OBJECT, (200, EVENT_STREAM): OpenApiTypes.STR},
        operation_id="create_message",
        parameters=[KEY_HEADER],
    )
    def post(self, request: Request) -> HttpResponseBase:
        return self.answer(request)


class MessageCountView(AskingView):
    """How many tokens a conversation has, by the hub's own estimate, which is a high one. No provider is asked."""

    authentication_classes = [ServedKeyAuthentication]
    required_scope = SCOPE
    parser_classes = [WideJSONParser]

    @extend_schema(
        request=refer_to("ServedMessageCount"),
        responses={200: OpenApiTypes.OBJECT},
        operation_id="count_message_tokens",
    )
    def post(self, request: Request) -> HttpResponse:
        asked, by = read_count(request.data), get_caller(request)
        call, _ = build_served_call(asked, build_envelope(request, asked.envelope), dialect=DIALECT, by=by)
        found = request_preflight(call, by=by)
        if found.problem is not None and found.problem.reason not in ABOUT_ROOM:
            raise found.problem
        demand = found.preflight.model_demand if found.preflight is not None else None
        if demand is None:
            raise found.problem or Internal()
        return JsonResponse({"input_tokens": demand.input_tokens, "hub": {"counted_by": "estimate"}})
