"""MCP conversations: is what a server says taken as MCP has it, and is what it should not say passed over or refused?"""

from __future__ import annotations

import json
import os
import threading
import time
from itertools import count
from typing import TYPE_CHECKING, Any

import pytest

from unitools.mcp_conversation import (
    MAX_MESSAGE_BYTES,
    MAX_PAGES,
    RequestRefused,
    ServerEnded,
    ServerUnfit,
)
from unitools.mcp_pipes import PipeConversation

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class Server:
    """Says beforehand what it will say; what it was told is read when all is over."""

    def __init__(self) -> None:
        self.output, self._says = os.pipe()
        self._hears, self.input = os.pipe()
        self.logs: list[str] = []
        self.notes: list[str] = []
        self.told: list[tuple[float, str]] = []
        self.talk = PipeConversation(
            self.output,
            self.input,
            log=self.logs.append,
            note=self.notes.append,
            progress=lambda fraction, message: self.told.append((fraction, message)),
            new_id=count(1).__next__,
        )
        self._threads: list[threading.Thread] = []

    def says(self, *lines: Any) -> None:
        data = b"".join(each if isinstance(each, bytes) else json.dumps(each).encode() + b"\n" for each in lines)
        self._threads.append(threading.Thread(target=self._write, args=(data,), daemon=True))
        self._threads[-1].start()

    def _write(self, data: bytes) -> None:
        with os.fdopen(self._says, "wb") as file:
            file.write(data)

    def heard(self) -> list[Any]:
        os.close(self.input)
        with os.fdopen(self._hears, "rb") as file:
            return [json.loads(line) for line in file.read().splitlines()]


@pytest.fixture
def server() -> Iterator[Server]:
    found = Server()
    yield found
    os.close(found.output)


def answer(id: Any = 1, **result: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id, "result": result}


@pytest.mark.req("BRING-2")
def test_what_is_no_message_is_a_log_and_the_answer_is_found_behind_it(server: Server) -> None:
    server.says(b"Welcome!\n\xff\xfe\n\n[1]\n", {"no": "message"}, answer(x=1))

    assert server.talk.request("a", {}) == {"x": 1}
    assert server.logs == ["Welcome!", "\\xff\\xfe", "[1]", '{"no": "message"}']


@pytest.mark.req("BRING-2")
def test_answers_to_nothing_that_was_asked_are_passed_over(server: Server) -> None:
    server.says(answer("1"), answer(True), answer(1.0), answer(7), answer(1) | {"error": {}}, answer(right=True))

    assert server.talk.request("a", {}) == {"right": True}
    assert server.notes == ["The server sent an answer to nothing that was asked."]


@pytest.mark.req("BRING-2")
def test_an_answer_that_comes_too_late_is_not_that_of_the_next_request(server: Server) -> None:
    server.talk.set_deadline(time.monotonic())
    server.talk.ping()
    server.talk.set_deadline(None)
    server.says(answer(1, late=True), answer(1, twice=True), answer(2, right=True))

    assert server.talk.request("a", {}) == {"right": True}
    assert server.notes == ["The server sent an answer to nothing that was asked."]


@pytest.mark.req("BRING-2")
def test_nobody_knows_the_id_of_a_request_before_it_is_made(server: Server) -> None:
    """A server that prints a text of others to its output lets that text speak; it cannot answer what is asked later."""
    talk = PipeConversation(
        server.output, server.input, log=server.logs.append, note=server.notes.append, progress=lambda *_: None
    )
    server.says(*(answer(id, forged=True) for id in range(200)))

    with pytest.raises(ServerEnded):
        talk.request("a", {})

    (asked,) = server.heard()
    assert server.notes == ["The server sent an answer to nothing that was asked."]
    assert 0 <= asked["id"] < 2**31


@pytest.mark.req("BRING-2")
@pytest.mark.parametrize("says", [b"", b'{"jsonrpc": "2.0", "method": "notifications/message"}\n' * 10])
def test_a_server_that_is_late_is_taken_for_one_that_has_ended(says: bytes) -> None:
    output, its_output = os.pipe()
    its_input, ours = os.pipe()
    os.write(its_output, says or b"\n")
    talk = PipeConversation(output, ours, log=print, note=print, progress=lambda *_: None, deadline=time.monotonic())

    with pytest.raises(ServerEnded):
        talk.request("a", {})

    for each in (output, its_output, its_input, ours):
        os.close(each)


@pytest.mark.req("BRING-2")
def test_what_it_asks_is_refused_but_for_a_ping(server: Server) -> None:
    asks = {"jsonrpc": "2.0", "id": "r", "method": "roots/list"}
    server.says(asks, {"jsonrpc": "2.0", "id": 9, "method": "ping"}, answer(), answer(2))

    server.talk.request("a", {})
    server.talk.request("b", {})

    heard = server.heard()
    assert [each["id"] for each in heard] == [1, "r", 9, 2]
    assert (heard[1]["error"]["code"], heard[2]["result"]) == (-32601, {})
    assert server.notes[-1] == "The server asked its client for roots/list, which no call has."


@pytest.mark.req("BRING-2")
def test_progress_is_passed_on_in_bounds_and_only_of_this_call(server: Server) -> None:
    def progress(token: Any = 1, **params: Any) -> dict[str, Any]:
        return {"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": token, **params}}

    server.says(
        progress(progress=1, total=2, message="half"),
        progress(progress=5, total=2),
        progress(progress=3),
        progress(token=2, progress=1),
        progress(progress="x"),
        progress(progress=True),
        answer(),
    )

    server.talk.request("a", {})

    assert server.told == [(0.5, "half"), (1.0, ""), (0.0, "")]


@pytest.mark.req("BRING-2")
def test_an_error_of_the_protocol_keeps_its_code(server: Server) -> None:
    server.says({"jsonrpc": "2.0", "id": 1, "error": {"code": -32602, "message": "no such tool"}})

    with pytest.raises(RequestRefused) as refused:
        server.talk.request("a", {})

    assert (refused.value.code, refused.value.message) == (-32602, "no such tool")


@pytest.mark.req("BRING-2")
def test_a_server_that_ends_has_not_answered(server: Server) -> None:
    server.says(b'{"jsonrpc": "2.0", "id": 1, "result"')

    with pytest.raises(ServerEnded):
        server.talk.request("a", {})


@pytest.mark.req("BRING-2")
@pytest.mark.parametrize(
    ("said", "why"),
    [
        (b"x" * (MAX_MESSAGE_BYTES + 2), "a line of more than 1 MiB"),
        (json.dumps({"jsonrpc": "2.0", "id": 1, "result": []}).encode() + b"\n", "is no object"),
        (b'{"jsonrpc": "2.0", "id": 5, "result": {}}\n' * 1001, "over 1000 messages"),
    ],
)
def test_what_is_too_much_ends_the_conversation(server: Server, said: bytes, why: str) -> None:
    server.says(said)

    with pytest.raises(ServerUnfit, match=why):
        server.talk.request("a", {})


def pages(next_of: Callable[[int], Any]) -> list[dict[str, Any]]:
    return [answer(n, tools=[{"name": f"t{n}"}], nextCursor=next_of(n)) for n in range(1, MAX_PAGES + 2)]


@pytest.mark.req("BRING-2")
def test_all_pages_of_a_list_are_read(server: Server) -> None:
    server.says(*pages(lambda n: f"c{n}")[:2], answer(3, tools=[]))

    assert server.talk.list_tools() == [{"name": "t1"}, {"name": "t2"}]
    assert [each["params"] for each in server.heard()] == [{}, {"cursor": "c1"}, {"cursor": "c2"}]


@pytest.mark.req("BRING-2")
@pytest.mark.parametrize(
    ("next_of", "why"),
    [(lambda n: f"c{n}", "more than 50 pages"), (lambda n: "same", "come back"), (lambda n: n, "come back")],
)
def test_a_list_without_an_end_is_no_list(server: Server, next_of: Callable[[int], Any], why: str) -> None:
    server.says(*pages(next_of))

    with pytest.raises(ServerUnfit, match=why):
        server.talk.list_tools()


@pytest.mark.req("BRING-2")
def test_a_list_of_too_many_tools_is_no_list(server: Server) -> None:
    server.says(answer(tools=[{"name": f"t{n}"} for n in range(1001)]))

    with pytest.raises(ServerUnfit, match="more than 1000 tools"):
        server.talk.list_tools()
