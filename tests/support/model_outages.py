"""Providers on this machine that answer, fail and come back, connected as a tenant connects them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from registry.model_providers.connected_models import connect_model
from registry.model_providers.services import connect_provider
from tests.support.model_servers import Reply, event_reply
from tests.support.model_streams import chat_chunks

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kernel.principal import Principal
    from registry.models import Tool

DONE = b"data: [DONE]\r\n\r\n"


def chat_reply(
    text: str,
    *,
    model: str = "small-1",
    pieces: int | None = None,
    usage: dict[str, Any] | None = None,
    **others: Any,
) -> Reply:
    """The answer of a server that speaks OpenAI's chat. ``pieces``: so many of its chunks and no more, as of one that dies; ``usage``:
    what it reports, in its last chunk.
    """
    message = {"role": "assistant", "content": text}
    choice = {"index": 0, "message": message, "finish_reason": "stop", "logprobs": None}
    whole = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": model, "choices": [choice]}
    said = list(chat_chunks(whole))
    if usage is not None:
        said[-1]["usage"] = usage
    chunks: Sequence[Any] = [*said, DONE]
    return event_reply(*chunks[:pieces], end="whole" if pieces is None else "cut", **others)


def connect_server(
    by: Principal, name: str, url: str, *, alias: str = "main", settings: dict[str, Any] | None = None, **terms: Any
) -> Tool:
    """``model.<name>.<alias>``, answered by the server at this address, which is asked once."""
    connect_provider(
        name=name,
        kind="openai_compatible",
        address=f"{url}/v1",
        settings={"retries": 0} | (settings or {}),
        reason="for a test",
        by=by,
    )
    said = {"model": "small-1", "unpriced": "count"} | terms
    return connect_model(provider=name, alias=alias, reason="for a test", by=by, **said)
