"""OpenAI's Responses over HTTP: models of the hub, as OpenAI's newer interface asks for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema

from invocations.model_calls.answer_streams import EVENT_STREAM
from invocations.model_calls.served.api import ServedChatView, refer_to
from invocations.serializers import KEY_HEADER
from llm.served.openai_responses import OpenAIResponses

if TYPE_CHECKING:
    from django.http.response import HttpResponseBase
    from rest_framework.request import Request


class ResponsesView(ServedChatView):
    """OpenAI's Responses, without what it would have to keep. Calls of tools that the model proposes are returned and never made."""

    served = OpenAIResponses()
    dialect = "openai-responses"

    @extend_schema(
        request=refer_to("ServedResponse"),
        responses={200: OpenApiTypes.OBJECT, (200, EVENT_STREAM): OpenApiTypes.STR},
        operation_id="create_response",
        parameters=[KEY_HEADER],
    )
    def post(self, request: Request) -> HttpResponseBase:
        return self.answer(request)
