"""Models that tests connect and ask: a provider in the process, behind the whole way of a call."""

from __future__ import annotations

import asyncio
import json
from contextlib import aclosing
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from asgiref.testing import ApplicationCommunicator

from evidence.models import Fact
from llm.answers import ChatDelta
from llm.interfaces import ChatModel
from tests.support.scripted_models import EVERYTHING, ScriptedChat, ScriptedProvider, text_answer

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

    from invocations.models import Invocation
    from kernel.http.deferred_responses import Handler
    from llm.provider_factory import ProviderConfig
    from llm.requests import ChatRequest
    from tests.conftest import Caller
    from tests.support.scripted_models import Script

MODEL = "model.script.main"  # tests.support.connected_models
PATIENCE_S, LONG_S = 60.0, 180.0


@dataclass
class HeldChat(ChatModel):
    """Says a beginning, and waits until it is let go on. ``waiting``: how many wait now."""

    features: Any = EVERYTHING
    asked: int = 0
    waiting: int = 0
    closed: int = 0
    go_on: asyncio.Event = field(default_factory=asyncio.Event)

    async def open_stream(self, request: ChatRequest) -> AsyncGenerator[ChatDelta, None]:
        self.asked += 1
        try:
            yield ChatDelta(text="Begin", model="script-001")
            self.waiting += 1
            try:
                await self.go_on.wait()
            finally:
                self.waiting -= 1
            for delta in text_answer("ning"):
                yield cast("ChatDelta", delta)
        finally:
            self.closed += 1


@dataclass
class JournalChat(ScriptedChat):
    journal: Path = Path()

    async def open_stream(self, request: ChatRequest) -> AsyncGenerator[ChatDelta, None]:
        with self.journal.open("a") as lines:
            lines.write("asked\n")
        async with aclosing(super().open_stream(request)) as deltas:
            async for delta in deltas:
                yield delta


class JournalProvider(ScriptedProvider):
    """Writes down that its model is asked, before it answers."""

    def __init__(self, cfg: ProviderConfig, journal: Path) -> None:
        super().__init__(cfg)
        self.chat = JournalChat(self.chat.scripts, journal=journal)


class ProviderBench:
    """All providers that were connected in a test are one, and ``chat`` is its model."""

    def __init__(self) -> None:
        self.provider: ScriptedProvider | None = None
        self.configs: list[ProviderConfig] = []
        self.chat: Any = None
        self.scripts: Sequence[Script] = [text_answer("Hi there")] * 1000
        self.vectors: tuple[tuple[float, ...], ...] | None = None

    def connect(self, cfg: ProviderConfig) -> ScriptedProvider:
        self.configs.append(cfg)
        provider = ScriptedProvider(cfg)
        if self.chat is not None:
            provider.chat = self.chat
        else:
            provider.chat.scripts = self.scripts
        if self.vectors is not None:
            provider.embedder.vectors = self.vectors
        self.provider = provider
        return provider

    @property
    def requests(self) -> list[Any]:
        """What the model was asked."""
        return self.provider.chat.requests if self.provider is not None else []


def leaf_of(call: Invocation, kind: str) -> dict[str, Any]:
    """What a fact of a call says."""
    found: dict[str, Any] = json.loads(bytes(Fact.objects.get(invocation_id=call.pk, kind=kind).leaf))["data"]
    return found


def say(*texts: str, **more: Any) -> dict[str, Any]:
    """The arguments of a chat."""
    messages = [{"role": "user", "segments": [{"type": "text", "text": text}]} for text in texts]
    return {"messages": messages, **more}


def build_body(caller: Caller, arguments: dict[str, Any], **envelope: Any) -> dict[str, Any]:
    actor = {"type": "agent", "id": caller.agent.name}
    return {"request_id": "test-request-1", "actor": actor, "arguments": arguments, **envelope}


def ask(caller: Caller, arguments: dict[str, Any], *, model: str = MODEL, operation: str = "chat", **more: Any) -> Any:
    """``headers``: of the request; the rest goes into the envelope."""
    headers = more.pop("headers", {})
    return caller.post(f"/models/{model}/{operation}", build_body(caller, arguments, **more), **headers)


def parse_events(text: str) -> list[tuple[str, Any]]:
    found = []
    for block in text.split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.splitlines())
        if "event" in fields:
            found.append((fields["event"], json.loads(fields["data"])))
    return found


class OpenStream:
    """A request for a stream over ASGI, from its caller's side."""

    def __init__(
        self, handler: Handler, caller: Caller, body: dict[str, Any], *, model: str = MODEL, **headers: str
    ) -> None:
        said = {"host": "testserver", "content-type": "application/json", "accept": "text/event-stream", **headers}
        self._body = json.dumps(body).encode()
        said |= {"authorization": f"Bearer {caller.key}", "content-length": str(len(self._body))}
        scope = {
            "type": "http",
            "method": "POST",
            "path": f"/api/v1/models/{model}/chat",
            "query_string": b"",
            "headers": [(name.encode(), text.encode()) for name, text in said.items()],
        }
        self.status, self.text = 0, ""
        self.communicator: Any = ApplicationCommunicator(handler, scope)  # type: ignore[no-untyped-call]

    async def send(self) -> None:
        await self.communicator.send_input({"type": "http.request", "body": self._body, "more_body": False})

    async def leave(self) -> None:
        await self.communicator.send_input({"type": "http.disconnect"})
        await self.communicator.wait(PATIENCE_S)

    async def read(self, *, until: str = "") -> list[tuple[str, Any]]:
        """Up to the first event that has ``until`` in it; without it to the end."""
        while True:
            message = await self.communicator.receive_output(LONG_S)
            if message["type"] == "http.response.start":
                self.status = message["status"]
                continue
            self.text += message.get("body", b"").decode()
            if (until and until in self.text) or not message.get("more_body"):
                return parse_events(self.text)


async def until(condition: Any, *, at_most_s: float = PATIENCE_S) -> None:
    async with asyncio.timeout(at_most_s):
        while not condition():
            await asyncio.sleep(0.01)
