"""Decoder of a response: text as what it says, a stream as the response that it makes."""

from __future__ import annotations

import re

from unitools.dialects.errors import NotJson
from unitools.dialects.model_json import load_response
from unitools.dialects.streams import collect_response, is_chunk

_LIKE_JSON = re.compile(r"\s*+(?:\{\s*+[\"}]|\[\s*+[\[{\]])")
_LIKE_XML = "<tool_call"
# Nothing but fields and comments of server-sent events, of which one holds JSON; the last line may be cut.
_FIELD = r"(?:(?:data|event|id|retry)(?::[^\r\n]*+)?|:[^\r\n]*+)?"
_CUT_NAME = "d|da|dat|e|ev|eve|even|i|r|re|ret|retr"
_EVENTS = re.compile(rf"\ufeff?(?:{_FIELD}(?:\r\n|\n|\r))*+(?:{_FIELD}|{_CUT_NAME})\Z")
_JSON_EVENT = re.compile(r"(?:\A\ufeff?|[\r\n])data: ?[{\[]")


def decode_response(response: object) -> object:
    """JSON text as what it says, a stream (its text, or a list of its chunks) as the response that it makes, all else as it is.

    What was decoded once stays as it is, so whoever asks two questions of a response decodes it before.

    Raises:
        ResponseTooLarge: the text is larger or nested deeper than is read.
        NotJson: the text begins as JSON does and is none, or not as every reader understands it.
        UnreadableResponse: a stream ended before the answer did, or with an error of the provider.
        UnknownResponse: a stream is of no known dialect.
    """
    if isinstance(response, (bytes, bytearray)):
        try:
            response = bytes(response).decode()
        except UnicodeDecodeError:
            raise NotJson("The response is no text in UTF-8.") from None
    if isinstance(response, str):
        response = _decode_text(response)
    if isinstance(response, list) and response and is_chunk(response[0]):
        return collect_response(response)
    return response


def _decode_text(text: str) -> object:
    if _EVENTS.match(text) and _JSON_EVENT.search(text):
        return collect_response([text])
    if not _LIKE_JSON.match(text := text.removeprefix("\ufeff")):
        return text
    try:
        return load_response(text, "The response")
    except NotJson:
        if _LIKE_XML in text:
            return text
        raise
