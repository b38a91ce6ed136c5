"""Anthropic's Messages over HTTP: models of the hub, as Anthropic's SDKs ask for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.http import HttpResponse, JsonResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema

from invocations.model_calls.answer_streams import EVENT_STREAM
from invocations.model_calls.served.api import ESTIMATED, ServedChatView, ServedCountView, refer_to
from invocations.serializers import KEY_HEADER
from llm.served.anthropic_messages import AnthropicMessages
from llm.served.anthropic_requests import read_count

if TYPE_CHECKING:
    from django.http.response import HttpResponseBase
    from rest_framework.request import Request

DIALECT = "anthropic"


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


class MessageCountView(ServedCountView):
    """How many tokens a conversation has, by the hub's own estimate, which is a high one. No provider is asked."""

    dialect = DIALECT

    @extend_schema(
        request=refer_to("ServedMessageCount"),
        responses={200: OpenApiTypes.OBJECT},
        operation_id="count_message_tokens",
    )
    def post(self, request: Request) -> HttpResponse:
        tokens = self.count_tokens(request, read_count(request.data))
        return JsonResponse({"input_tokens": tokens, "hub": ESTIMATED})
