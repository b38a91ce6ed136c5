"""The remote way at the gate: is one tool of a server somewhere else asked for, and nothing else?"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from invocations.sandbox.egress import RemoteWay
from tests.egress.operations import TOKEN, ask
from tests.egress.services import Service, answer_with
from tests.egress.world import HOST, Client, rules, tls

if TYPE_CHECKING:
    from collections.abc import Sequence

    from invocations.sandbox.egress import EgressDoor

MODERN, LEGACY = "2026-07-28", "2025-06-18"
BEARER = {"secret": "TOKEN", "in": "header", "name": "Authorization", "scheme": "bearer"}
CALL: dict[str, Any] = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "tools/call",
    "params": {"name": "Get-Item", "arguments": {}},
}
SENT = json.dumps(CALL, separators=(",", ":")).encode()
LIST = {"jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": {}}


def begin(
    door: EgressDoor, port: int, *, revision: str = MODERN, tool: str = "Get-Item", said: Sequence[dict[str, Any]] = ()
) -> None:
    remote = {"url": f"https://{HOST}:{port}/mcp", "credentials": [BEARER], "revision": revision}
    way = RemoteWay.build_for(remote, {"tool": tool, "headers": list(said)}, {"TOKEN": TOKEN}, {"TOKEN": [TOKEN]})
    door.begin(rules(net=[tls(HOST, port)]), way=way)


def post(port: int, message: Any, *more: str, path: str = "/mcp", method: str = "POST") -> bytes:
    body = message if isinstance(message, bytes) else json.dumps(message).encode()
    lines = [f"{method} http://{HOST}:{port}{path} HTTP/1.1", *more, f"Content-Length: {len(body)}"]
    return "\r\n".join([*lines, "", ""]).encode() + body


@pytest.mark.req("SVC-6")
def test_the_gate_says_which_method_and_tool_it_is_whatever_the_box_says(
    trusting: EgressDoor, service: Service
) -> None:
    begin(trusting, service.port)

    ask(
        trusting,
        post(
            service.port,
            CALL,
            "Content-Type: application/json; charset=utf-7",
            "Mcp-Method: tools/list",
            "Mcp-Name: other",
            "Authorization: mine",
            "MCP-Protocol-Version: 2025-03-26",
            "Mcp-Session-Id: another",
            "X-Other: dropped",
        ),
    )

    (heard,) = service.requests()
    lines = heard.decode().partition("\r\n\r\n")[0].split("\r\n")
    assert lines[0] == "POST /mcp HTTP/1.1"
    assert set(lines[1:]) == {
        f"Host: {HOST}:{service.port}",
        "Content-Type: application/json",
        f"MCP-Protocol-Version: {MODERN}",
        "Mcp-Method: tools/call",
        "Mcp-Name: Get-Item",
        f"Authorization: Bearer {TOKEN}",
        "User-Agent: toolhub",
        f"Content-Length: {len(SENT)}",
        "Connection: close",
    }
    assert heard.partition(b"\r\n\r\n")[2] == SENT
    (record,) = trusting.end()
    assert record.service is not None
    assert (record.service.asks, record.service.counts, record.service.left) == ("tools/call", True, True)


@pytest.mark.req("SVC-6")
def test_a_name_that_no_header_can_hold_is_written_in_base64(trusting: EgressDoor, service: Service) -> None:
    begin(trusting, service.port, tool="zeichne\u00b7ü")

    ask(trusting, post(service.port, CALL | {"params": {"name": "zeichne\u00b7ü"}}))

    assert b"Mcp-Name: =?base64?emVpY2huZcK3w7w=?=\r\n" in service.requests()[0]


REGION = {"header": "Mcp-Param-Region", "path": ["place", "region"]}


@pytest.mark.req("SVC-6")
def test_an_argument_that_the_server_marked_is_said_in_its_header_by_the_gate_alone(
    trusting: EgressDoor, service: Service
) -> None:
    begin(trusting, service.port, said=[REGION, {"header": "Mcp-Param-Limit", "path": ["limit"]}])
    params = {"name": "Get-Item", "arguments": {"place": {"region": "Zürich\r\nHost: other"}, "limit": None}}

    ask(trusting, post(service.port, CALL | {"params": params}, "Mcp-Param-Region: other", "Mcp-Param-Limit: 5"))

    head = service.requests()[0].partition(b"\r\n\r\n")[0]
    said = [line for line in head.split(b"\r\n") if line.lower().startswith(b"mcp-param-")]
    assert said == [b"Mcp-Param-Region: =?base64?WsO8cmljaA0KSG9zdDogb3RoZXI=?="]


@pytest.mark.req("SVC-6")
def test_an_argument_that_is_more_than_a_header_leaves_nowhere(trusting: EgressDoor, service: Service) -> None:
    begin(trusting, service.port, said=[REGION])
    params = {"name": "Get-Item", "arguments": {"place": {"region": "a" * 9_000}}}

    head, _ = ask(trusting, post(service.port, CALL | {"params": params}))

    assert head.startswith(b"HTTP/1.1 413 ")
    assert service.connections == 0


@pytest.mark.req("SVC-6")
@pytest.mark.parametrize(
    "message",
    [
        pytest.param(CALL | {"params": {"name": "Delete-All"}}, id="another tool"),
        pytest.param(CALL | {"params": {}}, id="no tool"),
        pytest.param(CALL | {"method": "resources/read"}, id="another method"),
        pytest.param(CALL | {"method": "initialize"}, id="a session, which the revision has not"),
        pytest.param(CALL | {"params": {"name": "Get-Item", "Name": "Delete-All"}}, id="a name in another case"),
        pytest.param(CALL | {"params": {"name": "Get-Item", "task": {}}}, id="what the call has no use for"),
        pytest.param(LIST | {"params": {"name": "Delete-All"}}, id="a list of a tool"),
        pytest.param(CALL | {"method": ["tools/call"]}, id="a list of methods"),
        pytest.param(CALL | {"method": None}, id="no method"),
        pytest.param([CALL], id="a batch"),
        pytest.param([LIST, CALL | {"params": {"name": "Delete-All"}}], id="a batch of two"),
        pytest.param(CALL | {"jsonrpc": "1.0"}, id="another protocol"),
        pytest.param(CALL | {"params": ["Delete-All"]}, id="by position"),
        pytest.param(CALL | {"result": {}}, id="an answer as well"),
        pytest.param(
            b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"Get-Item","name":"Delete-All"}}',
            id="a name twice",
        ),
        pytest.param(
            b'{"jsonrpc":"2.0","id":1,"method":"tools/list","method":"tools/call","params":{"name":"Delete-All"}}',
            id="a method twice",
        ),
        pytest.param(b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}{}', id="more behind it"),
        pytest.param(b"\xff\xfe", id="no UTF-8"),
        pytest.param(b"[" * 40_000, id="nested without end"),
        pytest.param(b"", id="nothing"),
    ],
)
def test_what_is_no_message_of_the_tool_leaves_nowhere(message: Any, trusting: EgressDoor, service: Service) -> None:
    begin(trusting, service.port)

    head, _ = ask(trusting, post(service.port, message))

    assert head.startswith(b"HTTP/1.1 403 ")
    assert b"X-Toolhub-Left: 0\r\n" in head
    assert service.connections == 0
    ask(trusting, post(service.port, CALL))
    assert len(service.requests()) == 1, "and the call itself is asked for as before"


@pytest.mark.req("SVC-6")
@pytest.mark.parametrize(
    "request_of",
    [
        pytest.param(lambda port: post(port, CALL, path="/mcp/"), id="another path"),
        pytest.param(lambda port: post(port, CALL, path="/mcp?x=1#y"), id="a fragment"),
        pytest.param(lambda port: post(port, CALL, path="/mcp?account=another"), id="a query"),
        pytest.param(lambda port: post(port, CALL, method="PUT"), id="another method of HTTP"),
        pytest.param(lambda port: post(port, b"", method="DELETE"), id="the end of a session that there is none of"),
        pytest.param(lambda port: post(port, CALL, method="GET"), id="a stream"),
    ],
)
def test_another_address_or_method_is_refused(request_of: Any, trusting: EgressDoor, service: Service) -> None:
    begin(trusting, service.port)

    head, _ = ask(trusting, request_of(service.port))

    assert head.startswith(b"HTTP/1.1 403 ")
    assert service.connections == 0


def test_the_tool_is_called_once_and_its_list_read_as_often_as_it_has_pages(
    trusting: EgressDoor, service: Service
) -> None:
    begin(trusting, service.port)

    for message in (LIST, LIST, CALL, LIST):
        assert ask(trusting, post(service.port, message))[0].startswith(b"HTTP/1.1 200 ")
    head, _ = ask(trusting, post(service.port, CALL))

    assert head.startswith(b"HTTP/1.1 429 ")
    assert len(service.requests(4)) == 4
    assert [each.service.counts for each in trusting.end() if each.service] == [False, False, True, False, True]


def test_the_session_of_an_older_server_is_passed_on_and_ended(trusting: EgressDoor, service: Service) -> None:
    service.answers = [answer_with(b"{}", mcp_session_id="s-1", set_cookie="a=b", content_type="application/json")]
    begin(trusting, service.port, revision=LEGACY)

    head, _ = ask(trusting, post(service.port, {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}}))
    ask(trusting, post(service.port, CALL, "Mcp-Session-Id: s-1", f"MCP-Protocol-Version: {LEGACY}"))
    ask(trusting, post(service.port, b"", "Mcp-Session-Id: s-1", method="DELETE"))

    assert b"mcp-session-id: s-1\r\n" in head.lower()
    assert b"set-cookie" not in head.lower()
    heard = service.requests(3)
    assert heard[1].count(b"Mcp-Session-Id: s-1\r\n") == 1
    assert b"Mcp-Method" not in heard[1]
    assert heard[2].startswith(b"DELETE /mcp HTTP/1.1\r\n")


@pytest.mark.req("SVC-6")
def test_a_session_that_holds_the_token_is_hidden_from_the_box(trusting: EgressDoor, service: Service) -> None:
    service.answers = [answer_with(b"{}", mcp_session_id=f"s-{TOKEN}")]
    begin(trusting, service.port, revision=LEGACY)

    head, _ = ask(trusting, post(service.port, {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}}))

    assert TOKEN.encode() not in head


@pytest.mark.req("SVC-6")
def test_what_is_sent_is_written_anew_in_ascii(trusting: EgressDoor, service: Service) -> None:
    begin(trusting, service.port)
    said = CALL | {
        "params": {"name": "Get-Item", "arguments": {"text": "+ACI- \u00fc \U0001f600", "n": 10**30, "x": 0.1}}
    }

    ask(trusting, post(service.port, json.dumps(said, ensure_ascii=False, indent=2).encode()))

    body = service.requests()[0].partition(b"\r\n\r\n")[2]
    assert body.isascii()
    assert json.loads(body) == said


def test_a_message_that_takes_long_to_read_is_not_read(trusting: EgressDoor, service: Service) -> None:
    begin(trusting, service.port)
    many = CALL | {"params": {"name": "Get-Item", "arguments": {"x": [[]] * 60_000}}}

    head, _ = ask(trusting, post(service.port, many))

    assert head.startswith(b"HTTP/1.1 413 ")
    assert service.connections == 0


def test_a_box_that_hangs_up_makes_room_for_its_next_request(trusting: EgressDoor, service: Service) -> None:
    service.hangs_up = "never"
    service.answers = [b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: {}\n\n"]
    begin(trusting, service.port)

    for count in (1, 2):
        with Client(trusting) as client:
            client.say(post(service.port, LIST))
            service.requests(count)
    service.hangs_up = ""

    assert ask(trusting, post(service.port, CALL))[0].startswith(b"HTTP/1.1 200 ")
