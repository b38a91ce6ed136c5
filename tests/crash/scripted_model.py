"""Scripted model: what does a model say that has a conversation written down for it, and how often was it asked what?

It speaks OpenAI's API over HTTP, so that a hub's processes ask it as any provider, and may be killed while they do.
"""

from __future__ import annotations

import json
import threading
from collections import Counter, defaultdict
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

from kernel.canonical import compute_digest
from tests.support.http_server import QuietHandler, serve_requests
from tests.support.model_streams import chat_chunks

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

PREFIX = "Order "
USAGE = {"prompt_tokens": 12, "completion_tokens": 7, "total_tokens": 19}


@dataclass(slots=True)
class Gate:
    """Keeps the answers to one question of each run until it is opened."""

    turn: int
    names: set[str] = field(default_factory=set)
    opened: threading.Event = field(default_factory=threading.Event)


@dataclass(slots=True)
class ScriptedModel:
    """``asked``: how often each run has asked its model for which turn; ``told``: digests of the conversations that it came with."""

    store_url: str
    url: str = ""
    asked: Counter[tuple[str, int]] = field(default_factory=Counter)
    told: dict[tuple[str, int], set[str]] = field(default_factory=lambda: defaultdict(set))
    gate: Gate | None = None
    _scripts: dict[str, tuple[Sequence[str], Mapping[int, float]]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def expect(self, name: str, tools: Sequence[str], seconds: Mapping[int, float]) -> None:
        """Of the run of this name: the tools that are proposed, one a turn, and for how long each runs."""
        self._scripts[name] = (tools, seconds)

    def answer(self, body: dict[str, Any]) -> dict[str, Any]:
        name = read_text(next(each for each in body["messages"] if each["role"] == "user")).removeprefix(PREFIX)
        turn = 1 + sum(each["role"] == "assistant" for each in body["messages"])
        with self._lock:
            self.asked[name, turn] += 1
            self.told[name, turn].add(compute_digest(body["messages"]))
            gate = self.gate
        if gate is not None and gate.turn == turn:
            gate.names.add(name)
            gate.opened.wait()
        return self._propose(name, turn, body)

    def _propose(self, name: str, turn: int, body: dict[str, Any]) -> dict[str, Any]:
        tools, seconds = self._scripts[name]
        if turn > len(tools):
            results = [read_text(each) for each in body["messages"] if each["role"] == "tool"]
            good = sum('"effects": 1' in each or '"effects":1' in each for each in results)
            return {"content": f"{good} of {len(results)}"}
        shown = (each["function"]["name"] for each in body["tools"])
        proposed = next(each for each in shown if each.endswith(tools[turn - 1]))
        arguments = {"store": self.store_url, "order": f"{name}/{turn}", "seconds": seconds.get(turn, 0)}
        function = {"name": proposed, "arguments": json.dumps(arguments)}
        return {"content": None, "tool_calls": [{"id": f"call_{turn}", "type": "function", "function": function}]}


def read_text(message: dict[str, Any]) -> str:
    said = message["content"]
    return said if isinstance(said, str) else "".join(part["text"] for part in said)


@contextmanager
def serve_scripted_model(store_url: str) -> Iterator[ScriptedModel]:
    model = ScriptedModel(store_url)

    class Handler(QuietHandler):
        def do_POST(self) -> None:  # noqa: N802  as http.server calls it
            body = json.loads(self.read_body())
            message = {"role": "assistant"} | model.answer(body)
            reason = "tool_calls" if message.get("tool_calls") else "stop"
            choice = {"index": 0, "message": message, "finish_reason": reason}
            chunks = list(chat_chunks({"id": "x", "created": 1, "model": "scripted", "choices": [choice]}))
            chunks[-1]["usage"] = USAGE
            text = "".join(f"data: {json.dumps(each)}\n\n" for each in chunks) + "data: [DONE]\n\n"
            with suppress(OSError):  # who asked may have been killed
                self.write_answer(200, text.encode(), {"Content-Type": "text/event-stream"})

    class Server(ThreadingHTTPServer):
        request_queue_size = 512
        daemon_threads = True

    with serve_requests(Handler, server_class=Server) as port:
        model.url = f"http://127.0.0.1:{port}"
        try:
            yield model
        finally:
            if model.gate is not None:
                model.gate.opened.set()
