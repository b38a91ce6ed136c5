"""Answer streams: a model's answer as server-sent events, while it comes.

`delta` for each piece; then `end` with the envelope of the whole answer, or `error` with the problem. A stream that ends with neither
broke off. What is stored of an answer is given again in the same form.
"""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

from asgiref.sync import sync_to_async
from django.http import StreamingHttpResponse

from invocations.answer.envelope import build_answer_envelope
from invocations.model_calls.model_answers import delta_to_json
from invocations.models import FOR_WORK
from kernel.database.connections import release_connection
from kernel.database.tenancy import acting_for
from kernel.http.exception_handlers import translate_exception

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from uuid import UUID

    from invocations.model_calls.model_runs import ModelRun
    from invocations.models import Invocation
    from kernel.http.envelopes import ResponseEnvelope

EVENT_STREAM = "text/event-stream"
HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}


def write_event(event: str, data: Any) -> str:
    return f"event: {event}\ndata: {json.dumps(data, ensure_ascii=False, separators=(',', ':'))}\n\n"


def write_last_event(envelope: ResponseEnvelope) -> str:
    return write_event("end" if envelope.error is None else "error", envelope.to_json())


def read_envelope(invocation_id: UUID, tenant_id: UUID) -> ResponseEnvelope:
    """What has become of a call, from what is stored of it."""
    try:
        with acting_for(tenant_id):
            return build_answer_envelope(FOR_WORK.get(pk=invocation_id))
    finally:
        release_connection()


async def wait_for_end(run: ModelRun, invocation: Invocation) -> ResponseEnvelope:
    """What has become of a call, once its End is written. It is written also where its reader goes meanwhile."""
    await asyncio.shield(run.start())
    return await sync_to_async(read_envelope, thread_sensitive=False)(invocation.pk, invocation.tenant_id)


def open_event_stream(
    run: ModelRun, stream: AsyncIterator[str], headers: dict[str, str], *, content_type: str = EVENT_STREAM
) -> StreamingHttpResponse:
    """The answer of a run while it comes. Whoever closes it early, also before it begins, ends the run."""
    response = StreamingHttpResponse(stream, content_type=content_type, headers=HEADERS | headers)
    response._resource_closers.append(run.leave)  # type: ignore[attr-defined]
    return response


async def stream_answer(run: ModelRun, invocation: Invocation) -> AsyncIterator[str]:
    """The text of the stream."""
    told = False
    async for pieces in run.pieces.read():
        texts = [write_event("delta", said) for piece in pieces if (said := delta_to_json(piece))]
        if texts:
            told = True
            yield "".join(texts)
    try:
        envelope = await wait_for_end(run, invocation)
    except Exception as error:  # noqa: BLE001  the reader is told before the stream ends
        yield write_event("error", translate_exception(error).to_error())
        return
    yield write_last_event(envelope) if told else write_stored_answer(envelope)


def write_stored_answer(envelope: ResponseEnvelope) -> str:
    """An answer that is there as a whole, in the form of a stream."""
    data = envelope.data
    if envelope.error is not None or not isinstance(data, dict) or "text" not in data:
        return write_last_event(envelope)
    events = [write_event("delta", {"text": data["text"], "model": data["model"]})] if data["text"] else []
    for index, call in enumerate(data["proposals"]):
        arguments = json.dumps(call["arguments"], ensure_ascii=False)
        piece = {"index": index, "call_id": call["call_id"], "name": call["name"], "arguments": arguments}
        events.append(write_event("delta", {"tool_call": piece}))
    events.append(write_event("delta", {"finish_reason": data["finish_reason"], "usage": data["usage"]}))
    return "".join([*events, write_last_event(envelope)])
