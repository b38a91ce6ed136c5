"""Token counts: what a request and its answer are estimated at, where nobody has counted them."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING

from invocations.model_calls.media_tokens import estimate_media
from llm.messages import AssistantMessage, Text, ToolMessage
from llm.requests import ChatRequest, EmbedRequest
from llm.untrusted_texts import AROUND_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from invocations.model_calls.model_requests import ModelRequest
    from llm.messages import AttachmentRef, AudioRef, ImageRef

BYTES_A_TOKEN = 3  # fewer than texts have as a rule: what is reserved is the most
MOST_BYTES_A_TOKEN = 6  # hardly any text has more
OF_A_MESSAGE = 8  # around the text of each
OF_A_RESULT = math.ceil(AROUND_BYTES / BYTES_A_TOKEN)  # the marks around what a tool returned


def count_tokens(text_bytes: int) -> int:
    return math.ceil(text_bytes / BYTES_A_TOKEN)


def estimate_text(text: str) -> int:
    return count_tokens(len(text.encode()))


def estimate_request(request: ModelRequest, *, kind: str = "", model: str = "") -> int:
    """Never fewer than a provider is likely to count. ``kind``: of the provider, ``model``: its name of the model."""
    media = sum(estimate_media(each, kind=kind, model=model) for each in list_media(request))
    return estimate_texts(request) + media


def estimate_texts(request: ModelRequest) -> int:
    """The same without pictures, sounds and files."""
    if isinstance(request, ChatRequest):
        results = sum(isinstance(message, ToolMessage) for message in request.messages)
        frames = OF_A_MESSAGE * (len(request.messages) + len(request.tools)) + OF_A_RESULT * results
        return sum(map(estimate_text, _iter_texts(request))) + frames
    if isinstance(request, EmbedRequest):
        return sum(estimate_text(each) + OF_A_MESSAGE for each in request.items)
    query = estimate_text(request.query)
    return sum(query + estimate_text(each) + OF_A_MESSAGE for each in request.candidates)


def _iter_texts(request: ChatRequest) -> Iterator[str]:
    for message in request.messages:
        for segment in message.segments:
            if isinstance(segment, Text):
                yield segment.text
        if isinstance(message, AssistantMessage):
            for call in message.proposals:
                yield call.name + (call.raw or json.dumps(call.arguments))
    for tool in request.tools:
        yield tool.name + tool.description + json.dumps(dict(tool.parameters))


def list_media(request: ModelRequest) -> list[ImageRef | AudioRef | AttachmentRef]:
    """What of a request is no text."""
    if not isinstance(request, ChatRequest):
        return []
    return [segment for message in request.messages for segment in message.segments if not isinstance(segment, Text)]
