"""Stream openings: a stream that is begun once there is something to say.

Until the model has said its first word a failure is an answer with a status of its own, as programs that speak these formats expect.
After that the status is sent, and only the stream can tell.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

from invocations.model_calls.answer_streams import wait_for_end
from kernel.http.exception_handlers import translate_exception

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from invocations.model_calls.model_runs import ModelRun
    from invocations.models import Invocation
    from llm.served.formats import StreamWriter


class FirstWord:
    """Waits for the first word of a run, or for its end."""

    def __init__(self, run: ModelRun) -> None:
        self._run = run

    async def wait_async(self, seconds: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._run.pieces.wait_for_content()
        if self._run.pieces.is_closed:
            # Nothing more comes: its End is about to be written.
            await self._run.wait_async(seconds)


async def stream_served(run: ModelRun, invocation: Invocation, writer: StreamWriter) -> AsyncIterator[str]:
    """The text of the stream."""
    async for pieces in run.pieces.read():
        if text := "".join(map(writer.add, pieces)):
            yield text
    try:
        envelope = await wait_for_end(run, invocation)
    except Exception as error:  # noqa: BLE001  the reader is told before the stream ends
        yield writer.fail(translate_exception(error))
        return
    yield writer.end(envelope.data, envelope.warnings) if envelope.error is None else writer.fail(envelope.error)
