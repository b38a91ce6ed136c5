"""Local runtime: one model of llama.cpp in the memory of this process, and the one thread in which it works.

The library is optional and is imported when a model is first asked. It was made for programs of its own: where it loads a model it
opens a server and takes the signals that end a process. The server gets a socket in a folder that only this user can read and a key
that nobody knows, for it cannot be left out; the signals are given back.
"""

from __future__ import annotations

import asyncio
import ctypes
import json
import secrets
import signal
import tempfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any

from llm.problems import ContextOverflow, ParameterUnsupported, ProviderAnswerUnreadable, ProviderUnavailable
from unitools.dialects.streams.base import get_chunk, get_word

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator

    from kernel.problems import Problem

TAKEN = (signal.SIGINT, signal.SIGTERM)
BYTES = 256  # more than the handler of a signal takes on any system
SILENT = -1  # llama.cpp writes prompts into its log otherwise

NOT_LOADED = "The model's file cannot be loaded."


class LlamaRuntime:
    """A model's file. ``context_tokens``: of prompt and answer together."""

    def __init__(self, file: Path, *, context_tokens: int) -> None:
        self._file = file
        self._context_tokens = context_tokens
        self._server: Any = None
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="local-model")

    async def stream(self, body: dict[str, Any]) -> AsyncGenerator[dict[str, Any], None]:
        """The chunks of a chat completion, as llama.cpp's server would send them. Whoever leaves stops the model.

        Raises:
            ContextOverflow, ParameterUnsupported, ProviderUnavailable: what the library says.
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
                yield _read_piece(piece)
        finally:
            left.set()
            work.cancel()

    def _load(self) -> Any:
        if self._server is None:
            library = import_module("xllamacpp")
            with tempfile.TemporaryDirectory(prefix="toolhub-model-") as folder, keep_signal_handlers():
                self._server = library.Server(self._build_parameters(library, Path(folder)))
        return self._server

    def _build_parameters(self, library: Any, folder: Path) -> Any:
        parameters = library.CommonParams()
        parameters.model.path = str(self._file)
        parameters.n_ctx = self._context_tokens
        parameters.n_parallel = 1
        parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = 1
        parameters.n_threads_http = 1
        parameters.hostnames = [str(folder / "socket.sock")]
        parameters.api_keys = [secrets.token_urlsafe(32)]
        parameters.ui = parameters.endpoint_slots = parameters.endpoint_props = parameters.endpoint_metrics = False
        parameters.verbosity = SILENT
        return parameters


@contextmanager
def keep_signal_handlers() -> Iterator[None]:
    """What ends this process does so afterwards as before. Python itself could set handlers in its main thread only."""
    libc = ctypes.CDLL(None)
    held = {number: ctypes.create_string_buffer(BYTES) for number in TAKEN}
    for number, handler in held.items():
        libc.sigaction(int(number), None, handler)
    try:
        yield
    finally:
        for number, handler in held.items():
            libc.sigaction(int(number), handler, None)


def _read_piece(piece: str | Exception) -> dict[str, Any]:
    if isinstance(piece, Exception):
        raise ProviderUnavailable(NOT_LOADED) from piece
    try:
        chunk = json.loads(piece)
    except ValueError:
        raise ProviderAnswerUnreadable from None
    if not isinstance(chunk, dict):
        raise ProviderAnswerUnreadable
    if "choices" not in chunk:
        raise find_problem(get_chunk(chunk, "error") or chunk)
    return chunk


def find_problem(error: dict[str, Any]) -> Problem:
    """What the library means by an error. Its text is not quoted: it may hold the prompt."""
    match get_word(error, "type"):
        case "exceed_context_size_error":
            return ContextOverflow()
        case "invalid_request_error":
            return ParameterUnsupported("The local model does not take a part of this request, such as its schema.")
    return ProviderUnavailable("The local model could not answer.")
