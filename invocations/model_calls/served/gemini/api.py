"""Google's generateContent over HTTP: models of the hub, as Google's SDKs ask for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.http import HttpResponse, JsonResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework import serializers

from invocations.model_calls.answer_streams import EVENT_STREAM
from invocations.model_calls.served.api import ESTIMATED, ServedChatView, ServedCountView, ServedModelView, refer_to
from invocations.serializers import KEY_HEADER
from kernel.http.base_serializers import QuerySerializer
from llm.served.gemini_contents import GeminiContents
from llm.served.gemini_embeddings import (
    read_batch_embedding,
    read_content_embedding,
    write_batch_embedding,
    write_content_embedding,
)
from llm.served.gemini_requests import read_content_count

if TYPE_CHECKING:
    from django.http.response import HttpResponseBase
    from rest_framework.request import Request

DIALECT = "gemini"
EVENTS, ARRAY = "sse", "json"
JSON = "application/json"


class StreamQuerySerializer(QuerySerializer):
    alt = serializers.ChoiceField(
        (EVENTS, ARRAY), default=ARRAY, help_text="`sse`: server-sent events. Else one JSON array, piece by piece."
    )


class GenerateContentView(ServedChatView):
    """Google's generateContent, whole; also below /v1. Calls of tools that the model proposes are returned and never made."""

    dialect = DIALECT

    @extend_schema(
        request=refer_to("ServedContents"),
        responses={200: OpenApiTypes.OBJECT},
        operation_id="generate_content",
        parameters=[KEY_HEADER],
    )
    def post(self, request: Request, model_id: str) -> HttpResponseBase:
        self.served = GeminiContents(model_id)
        return self.answer(request)


class StreamContentView(ServedChatView):
    """The same as a stream, in either of Google's forms; also below /v1."""

    dialect = DIALECT
    query_of_changes = StreamQuerySerializer

    @extend_schema(
        request=refer_to("ServedContents"),
        responses={200: OpenApiTypes.OBJECT, (200, EVENT_STREAM): OpenApiTypes.STR},
        operation_id="stream_content",
        parameters=[KEY_HEADER],
    )
    def post(self, request: Request, model_id: str) -> HttpResponseBase:
        as_array = self.asked["alt"] == ARRAY
        self.served = GeminiContents(model_id, wants_stream=True, as_array=as_array)
        self.stream_type = JSON if as_array else EVENT_STREAM
        return self.answer(request)


class ContentCountView(ServedCountView):
    """How many tokens contents have, by the hub's own estimate, which is a high one; also below /v1. No provider is asked."""

    dialect = DIALECT

    @extend_schema(
        request=refer_to("ServedContentCount"),
        responses={200: OpenApiTypes.OBJECT},
        operation_id="count_content_tokens",
    )
    def post(self, request: Request, model_id: str) -> HttpResponse:
        tokens = self.count_tokens(request, read_content_count(request.data, model=model_id))
        return JsonResponse({"totalTokens": tokens, "hub": ESTIMATED})


class EmbedContentView(ServedModelView):
    """Google's embedContent: the vector of one text; also below /v1."""

    operation = "embed"

    @extend_schema(
        request=refer_to("ServedContentVector"),
        responses={200: OpenApiTypes.OBJECT},
        operation_id="embed_content",
        parameters=[KEY_HEADER],
    )
    def post(self, request: Request, model_id: str) -> HttpResponseBase:
        arguments = read_content_embedding(request.data, model=model_id)
        return self.answer(request, model_id, arguments, {}, write_content_embedding)


class EmbedContentsView(ServedModelView):
    """Google's batchEmbedContents: the vectors of several texts, or of one, as its SDKs ask for it; also below /v1."""

    operation = "embed"

    @extend_schema(
        request=refer_to("ServedContentVectors"),
        responses={200: OpenApiTypes.OBJECT},
        operation_id="embed_contents",
        parameters=[KEY_HEADER],
    )
    def post(self, request: Request, model_id: str) -> HttpResponseBase:
        arguments = read_batch_embedding(request.data, model=model_id)
        return self.answer(request, model_id, arguments, {}, write_batch_embedding)
