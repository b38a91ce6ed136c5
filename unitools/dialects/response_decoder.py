"""Decoder of a response: text as what it says, a stream as the response that it makes."""

from __future__ import annotations

import re

from unitools.dialects import model_json
from unitools.dialects.errors import NotJson, ResponseTooLarge
from unitools.dialects.parsers.responses import MAX_DEPTH, MAX_RESPONSE
from unitools.dialects.streams import collect_response, is_stream
from unitools.strict_json import JsonRefused

_LIKE_JSON = re.compile(r"\s*+(?:\{\s*+[\"}]|\[\s*+[\[{\]])")
_LIKE_XML = "<tool_call"


def decode_response(response: object) -> object:
    """JSON text as what it says, a stream as the response that its pieces make, all else as it is.

    Raises:
        ResponseTooLarge: the text is larger or nested deeper than is read.
        NotJson: the text begins as JSON does and is none, or not as every reader understands it.
        UnreadableResponse: a stream ended before the answer did, or with an error of the provider.
    """
    decoded = _decode_text(response)
    if not is_stream(decoded):
        return decoded
    return collect_response([decoded] if isinstance(decoded, str) else decoded)


def _decode_text(response: object) -> object:
    if isinstance(response, (bytes, bytearray)):
        try:
            response = bytes(response).decode()
        except UnicodeDecodeError:
            raise NotJson("The response is no text in UTF-8.") from None
    if not isinstance(response, str) or not _LIKE_JSON.match(response := response.removeprefix("\ufeff")):
        return response
    try:
        return model_json.load_json(response, max_bytes=MAX_RESPONSE, max_depth=MAX_DEPTH)
    except JsonRefused as refusal:
        if refusal.code == "invalid_json" and _LIKE_XML in response:
            return response
        error = ResponseTooLarge if refusal.code in {"too_large", "too_deep"} else NotJson
        raise error(f"The response cannot be read: {refusal}") from None
