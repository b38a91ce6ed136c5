"""Llama servers: llama.cpp's server as a part of this process, for one model's file and what it is used for.

The library was made for programs of its own: where it loads a model it opens a server and takes the signals that end a process. The
server gets a socket in a folder that only this user can read and a key that nobody knows, for it cannot be left out; the signals are
given back, for which models are loaded one after the other.
"""

from __future__ import annotations

import ctypes
import secrets
import signal
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

LIBRARY = "xllamacpp"
TAKEN = (signal.SIGINT, signal.SIGTERM)
BYTES = 256  # more than the handler of a signal takes on any system
SILENT = -1  # llama.cpp writes prompts into its log otherwise
BATCH = 512  # tokens computed at once, where a text may be split
# Handlers belong to the process: of two loads at once the second would keep those of the library, and give them back last.
loading_lock = Lock()


@dataclass(frozen=True, slots=True)
class ServerPlan:
    """What is loaded. ``pooling``: ``none`` for conversations. ``context_tokens``: of prompt and answer together."""

    path: str
    pooling: str
    context_tokens: int


def open_server(plan: ServerPlan) -> Any:
    """A server that answers. Raises whatever the library does; where that ends the process, nobody can help."""
    library = import_module(LIBRARY)
    with loading_lock, tempfile.TemporaryDirectory(prefix="toolhub-model-") as folder, keep_signal_handlers():
        server = library.Server(_build_parameters(library, plan, Path(folder)))
        # Its loop may not have begun yet. One that is dropped before waits for it for ever; this goes through the loop.
        server.handle_metrics()
    return server


def _build_parameters(library: Any, plan: ServerPlan, folder: Path) -> Any:
    parameters = library.CommonParams()
    parameters.model.path = plan.path
    parameters.n_ctx = plan.context_tokens
    parameters.n_parallel = 1
    if plan.pooling != "none":
        parameters.embedding = True
        parameters.pooling_type = getattr(library.llama_pooling_type, f"LLAMA_POOLING_TYPE_{plan.pooling.upper()}")
        # A text whose tokens see each other in both directions is computed as a whole.
        batch = min(plan.context_tokens, BATCH) if plan.pooling == "last" else plan.context_tokens
        parameters.n_batch = parameters.n_ubatch = batch
    parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = 1
    parameters.n_threads_http = 1
    parameters.hostnames = [str(folder / "socket.sock")]
    parameters.api_keys = [secrets.token_urlsafe(32)]
    parameters.ui = parameters.endpoint_slots = parameters.endpoint_props = False
    parameters.endpoint_metrics = True
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
