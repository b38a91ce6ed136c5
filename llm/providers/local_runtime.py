"""Local runtime: one model of llama.cpp in the memory of this process, and the one thread in which it works.

A model is loaded when it is first asked, and leaves the memory with the last of those who hold its runtime: the providers that have
it, and the calls that it answers.
"""

from __future__ import annotations

import asyncio
import json
import logging
import math
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from threading import Event, Lock
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

from llm.problems import (
    ContextOverflow,
    ModelFileUnusable,
    ParameterUnsupported,
    ProviderAnswerUnreadable,
    ProviderUnavailable,
)
from llm.providers.file_trials import find_fault
from llm.providers.llama_servers import ServerPlan, open_server
from llm.providers.model_files import refuse_file
from unitools.dialects.streams.base import get_chunk, get_word

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from kernel.problems import Problem
    from llm.providers.file_trials import FileFault
    from llm.providers.model_files import ModelFile

log = logging.getLogger("toolhub.models")
NOT_LOADED = "The model's file cannot be loaded."
NOT_ANSWERED = "The local model could not answer."
PASSING_S = 60  # for which a fault is kept that lies in the machine: memory gets free again
TOO_LARGE = "is too large to process"  # how the library says that a text is more than it computes at once


class LlamaRuntime:
    """A model's file. ``tried``: somebody else brought it, so it is tried before this process loads it."""

    def __init__(
        self, plan: ServerPlan, *, tried: ModelFile | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._plan = plan
        self._tried = tried
        self._clock = clock
        self._fault: FileFault | None = None
        self._fault_ends = 0.0
        self._server: Any = None
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="local-model")

    async def stream(self, body: dict[str, Any]) -> AsyncGenerator[dict[str, Any], None]:
        """The chunks of a chat completion, as llama.cpp's server would send them. Whoever leaves stops the model.

        Raises:
            ContextOverflow, ParameterUnsupported, ProviderUnavailable: what the library says.
            ModelFileUnusable: what is wrong with the file.
        """
        loop, queue, left = asyncio.get_running_loop(), asyncio.Queue[str | Exception | None](), Event()

        def tell(piece: str | Exception | None) -> None:
            with suppress(RuntimeError):  # the loop is closed: nobody listens any more
                loop.call_soon_threadsafe(queue.put_nowait, piece)

        def take(piece: str) -> bool:
            """Take a piece, and say whether that is enough."""
            tell(piece)
            return left.is_set()

        def run() -> None:
            try:
                self._load().handle_chat_completions(json.dumps(body), take)
            except Exception as error:  # noqa: BLE001 - a library in C++ may raise anything
                tell(error)
            tell(None)

        work = self._thread.submit(run)
        try:
            while (piece := await queue.get()) is not None:
                yield _read_piece(piece, "choices")
        finally:
            left.set()
            work.cancel()

    async def compute_vectors(self, body: dict[str, Any]) -> dict[str, Any]:
        """As llama.cpp's server answers a request for vectors. It raises as :meth:`stream` does."""
        return await self._compute("handle_embeddings", body, "data")

    async def compute_scores(self, body: dict[str, Any]) -> dict[str, Any]:
        """As :meth:`compute_vectors`, of scores."""
        return await self._compute("handle_rerank", body, "results")

    async def _compute(self, method: str, body: dict[str, Any], wanted: str) -> dict[str, Any]:
        def run() -> str | Exception:
            try:
                answer: str = getattr(self._load(), method)(json.dumps(body))
            except Exception as error:  # noqa: BLE001 - as above
                return error
            return answer

        return _read_piece(await asyncio.get_running_loop().run_in_executor(self._thread, run), wanted)

    def _load(self) -> Any:
        if self._server is None:
            if self._tried is not None:
                self._check_file(self._tried)
            try:
                self._server = open_server(self._plan)
            except Exception as error:
                log.exception("The model's file %s cannot be loaded.", self._plan.path)
                raise ProviderUnavailable(NOT_LOADED) from error
        return self._server

    def _check_file(self, file: ModelFile) -> None:
        """Raises ModelFileUnusable. A trial may take minutes in which others wait, so its fault is kept: a file that was
        replaced has a runtime of its own."""
        if self._fault is None or self._clock() >= self._fault_ends:
            self._fault = _try_file(file, self._plan)
            may_pass = self._fault is not None and self._fault.may_pass
            self._fault_ends = self._clock() + (PASSING_S if may_pass else math.inf)
        if self._fault is not None:
            raise refuse_file(file.path, self._fault.ending)


class RuntimeShelf:
    """The runtimes of a process: one for each file and use of it, however many providers have it."""

    def __init__(self) -> None:
        self._runtimes: WeakValueDictionary[tuple[ModelFile, ServerPlan], LlamaRuntime] = WeakValueDictionary()
        self._lock = Lock()

    def take(self, file: ModelFile, plan: ServerPlan) -> LlamaRuntime:
        """The one that somebody holds, or a new one. A file that was replaced is another one."""
        with self._lock:
            runtime = self._runtimes.get((file, plan))
            if runtime is None:
                runtime = self._runtimes[file, plan] = LlamaRuntime(plan, tried=file)
            return runtime


def _try_file(file: ModelFile, plan: ServerPlan) -> FileFault | None:
    """What is wrong with it. Raises ModelFileUnusable where it was replaced before the trial or meanwhile: what was found is then of
    another file, and so would be what is loaded."""
    _check_is_unchanged(file)
    fault = find_fault(plan)
    _check_is_unchanged(file)
    return fault


def _check_is_unchanged(file: ModelFile) -> None:
    if not file.is_unchanged:
        raise refuse_file(file.path, "was replaced while it was asked: ask again")


def _read_piece(piece: str | Exception, wanted: str) -> dict[str, Any]:
    if isinstance(piece, ModelFileUnusable | ProviderUnavailable):
        raise piece
    if isinstance(piece, Exception):
        log.warning("A local model could not answer: %s.", type(piece).__name__)  # its words may hold the prompt
        raise ProviderUnavailable(NOT_ANSWERED) from piece
    try:
        chunk = json.loads(piece)
    except ValueError:
        raise ProviderAnswerUnreadable from None
    if not isinstance(chunk, dict):
        raise ProviderAnswerUnreadable
    if wanted not in chunk:
        raise find_problem(get_chunk(chunk, "error") or chunk)
    return chunk


def find_problem(error: dict[str, Any]) -> Problem:
    """What the library means by an error. Its text is not quoted: it may hold the prompt."""
    match get_word(error, "type"):
        case "exceed_context_size_error":
            return ContextOverflow()
        case "server_error" if TOO_LARGE in get_word(error, "message"):
            return ContextOverflow()
        case "invalid_request_error":
            return ParameterUnsupported("The local model does not take a part of this request, such as its schema.")
    return ProviderUnavailable(NOT_ANSWERED)
