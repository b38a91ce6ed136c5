"""Background model runs: calls of models that no request waits for, on an event loop of the process.

A web process has a loop for its requests; workers have none, and an agent run goes on wherever the last of its calls has ended. One
thread a process has a loop for all of them, so that a model that thinks for a minute holds no thread. What is lost with the process
is ended by the sweeper, as any call of a model is.
"""

from __future__ import annotations

import asyncio
import os
import threading
from typing import TYPE_CHECKING

from invocations.model_calls.live_words import LiveWords
from invocations.model_calls.model_runs import prepare_run

if TYPE_CHECKING:
    from invocations.calls import BegunCall


class BackgroundLoop:
    """The loop, which begins with the first run: a process that makes none has no thread of it, and one that was forked a new one."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._process = 0

    def get(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None or self._process != os.getpid():
                self._loop, self._process = asyncio.new_event_loop(), os.getpid()
                threading.Thread(target=self._loop.run_forever, name="model-runs", daemon=True).start()
            return self._loop


_background = BackgroundLoop()


def start_background_run(begun: BegunCall) -> None:
    """Ask the model of a call that was accepted and committed. Where its provider cannot be asked, it has its End at once."""
    step = begun.invocation.run_step
    words = LiveWords(begun.invocation.pk, followed_id=step.run_id) if step is not None else None
    run = prepare_run(begun, wants_stream=False, words=words)
    if run is not None:
        run.start_soon(_background.get())
