"""Stream faults: is every way in which a provider's stream goes wrong a problem by its name, and never a success, on each wire?"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from kernel.problems import Problem
from llm.messages import Text, UserMessage
from llm.problems import (
    ModelTimedOut,
    ProviderAnswerUnreadable,
    ProviderRateLimited,
    ProviderUnavailable,
    StreamTruncated,
)
from llm.providers.http_client import TimeLimits
from llm.requests import ChatRequest
from tests.support.model_servers import Reply, event_reply, json_reply, served_here
from tests.support.provider_wires import ALL_WIRES, Wire, build_events, connect

if TYPE_CHECKING:
    from collections.abc import Callable

    from llm.answers import ChatDelta


HELLO = ChatRequest(model="main", messages=(UserMessage((Text("my secret prompt"),)),))
SHORT = TimeLimits(connect_s=10, first_event_s=10, idle_s=0.1, total_s=60)
BRIEF = TimeLimits(total_s=0.3)  # where pieces keep coming
SAID = {"message": "sk-canary: my secret prompt", "type": "overloaded_error"}
HTML = "text/html"


def error_frame(wire: Wire) -> bytes:
    """As each of them says it in the middle of an answer."""
    if wire.kind == "openai_responses":
        failed = {"code": "server_error", "message": SAID["message"]}
        document: dict[str, Any] = {"type": "response.failed", "response": {"status": "failed", "error": failed}}
    else:
        document = {"type": "error", "error": SAID} if wire.kind == "anthropic" else {"error": SAID}
    return f"event: {document.get('type', '')}\ndata: {json.dumps(document)}\n\n".encode()


def break_line(event: bytes) -> bytes:
    return event[: len(event) - 6] + b"\n\n"


FAULTS: dict[str, tuple[Callable[[Wire, list[bytes]], Reply], type[Problem]]] = {
    "cut before the first event": (lambda _, events: event_reply(end="cut"), StreamTruncated),
    "cut after one event": (lambda _, events: event_reply(*events[:1], end="cut"), StreamTruncated),
    "cut after five events": (lambda _, events: event_reply(*events[:5], end="cut"), StreamTruncated),
    "cut within a line": (lambda _, events: event_reply(*events[:3], events[3][:20], end="cut"), StreamTruncated),
    "ended within a line": (lambda _, events: event_reply(*events[:3], events[3][:20]), StreamTruncated),
    "ended after five events": (lambda _, events: event_reply(*events[:5]), StreamTruncated),
    "without the last event": (lambda wire, events: event_reply(*events[: -wire.terminal]), StreamTruncated),
    "without any event": (lambda _, events: event_reply(), StreamTruncated),
    "stalled": (lambda _, events: event_reply(*events[:4], end="stall"), ModelTimedOut),
    "never ended": (lambda _, events: event_reply(*events[:4], b": ping\n\n", end="endless"), ModelTimedOut),
    "one broken line": (
        lambda _, events: event_reply(*events[:3], break_line(events[3]), *events[4:]),
        ProviderAnswerUnreadable,
    ),
    "HTML": (lambda _, events: Reply([b"<html>sk-canary"], content_type=HTML), ProviderAnswerUnreadable),
    "HTML that says it is events": (lambda _, events: event_reply(b"<html>sk-canary</html>"), StreamTruncated),
    "429": (lambda _, events: json_reply({"error": SAID}, 429, headers={"retry-after": "7"}), ProviderRateLimited),
    "529": (lambda _, events: json_reply({"error": SAID}, 529), ProviderUnavailable),
    "500": (lambda _, events: Reply([b"<html>sk-canary"], 500, HTML), ProviderUnavailable),
    "an error in the middle": (lambda wire, events: event_reply(*events[:4], error_frame(wire)), ProviderUnavailable),
}


async def read_stream(model: Any) -> list[ChatDelta]:
    return [each async for each in model.stream(HELLO)]


async def ask_whole(model: Any) -> Any:
    return await model.generate(HELLO)


def ask(wire: Wire, reply: Reply, read: Any) -> Any:
    limits = BRIEF if reply.end == "endless" else SHORT

    async def run() -> Any:
        async with served_here(reply) as server:
            model = connect(wire, server.url, limits=limits)
            try:
                return await read(model)
            finally:
                await model.http.aclose()  # type: ignore[attr-defined]

    return anyio.run(run)


@pytest.mark.req("LLM-9")
@pytest.mark.parametrize("read", [read_stream, ask_whole])
@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("name", ALL_WIRES)
def test_a_fault_is_a_problem_that_quotes_nothing(name: str, fault: str, read: Any) -> None:
    wire = ALL_WIRES[name]
    build, expected = FAULTS[fault]

    with pytest.raises(Problem) as found:
        ask(wire, build(wire, build_events(wire)), read)

    assert type(found.value) is expected
    told = str(found.value.to_error())
    assert "canary" not in told
    assert "secret" not in told
    if fault == "429":
        assert found.value.retry_after == 7


@pytest.mark.req("LLM-5")
@pytest.mark.parametrize("name", ALL_WIRES)
def test_no_beginning_of_an_answer_is_taken_for_the_whole(name: str) -> None:
    wire = ALL_WIRES[name]
    events = build_events(wire)

    async def run() -> list[type[BaseException] | None]:
        outcomes: list[type[BaseException] | None] = []
        replies = [event_reply(*events[:count]) for count in range(len(events))]
        async with served_here(*replies) as server:
            model = connect(wire, server.url)
            for _ in replies:
                try:
                    await ask_whole(model)
                except Problem as problem:
                    outcomes.append(type(problem))
                else:
                    outcomes.append(None)
            await model.http.aclose()  # type: ignore[attr-defined]
        return outcomes

    assert set(anyio.run(run)) == {StreamTruncated}
