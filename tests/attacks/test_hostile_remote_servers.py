"""Hostile remote servers: what a server somewhere else may answer, is it contained, and is the next call's answer right?"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from invocations.sandbox.base import BoxKey, Limits, Profile, RunOutcome, RunStatus
from tests.egress.conftest import authority, engine_boxes, named, sandbox, service  # noqa: F401  fixtures
from tests.egress.services import ID, Service, answer_with
from tests.egress.world import HOST
from tests.support.sandboxes import call_of
from unitools.capabilities import Capabilities
from unitools.mcp_listings import LISTING_FILE, Listing
from unitools.packages import zip_files

if TYPE_CHECKING:
    from collections.abc import Callable

    from invocations.sandbox.docker import DockerSandbox

MODERN = "2026-07-28"
ENTRY = {"name": "echo", "description": "Says it again.", "inputSchema": {"type": "object"}}
PINNED = Listing.from_json({"protocol": MODERN, "tools": [ENTRY]})
PACKAGE = zip_files([(f"mcp_x/{LISTING_FILE}", PINNED.to_bytes())])
JSON = "application/json"
EVENTS = "text/event-stream"


def say(message: Any, content_type: str = JSON) -> bytes:
    return answer_with(json.dumps(message).encode(), content_type=content_type)


def result(**said: Any) -> dict[str, Any]:
    """An answer to whatever was asked: :func:`answering` puts the id in."""
    return {"jsonrpc": "2.0", "id": json.loads(ID), "result": said}


def events(*messages: Any) -> bytes:
    return b"".join(b"data: " + json.dumps(each).encode() + b"\n\n" for each in messages)


GOOD = result(content=[{"type": "text", "text": "hi"}], resultType="complete")


@pytest.fixture
def call(sandbox: DockerSandbox, service: Service, request: pytest.FixtureRequest) -> Callable[..., RunOutcome]:  # noqa: F811
    """``call(answers)``: one call of the tool, to which the server answers these in turn."""

    def make(*answers: bytes, check: bool = False, revision: str = MODERN, **limits: int) -> RunOutcome:
        service.echo_ids = True
        service.answers = list(answers)
        service.heard.clear()
        asks: dict[str, Any] = {"tool": "echo", "structured": False}
        if check:
            asks |= {"entry": PINNED.entry_digest("echo"), "listing": PINNED.digest}
        remote = {"url": f"https://{HOST}:{service.port}/mcp", "listing": "mcp_x", "revision": revision}
        net = Capabilities.from_json({"net": [{"host": HOST, "port": service.port, "methods": ["DELETE", "POST"]}]})
        run = replace(
            call_of(PACKAGE),
            key=BoxKey("tenant", f"{request.node.name} {revision}"),
            remote=remote,
            asks=asks,
            module="",
            entry="",
        )
        return sandbox.run(Profile(Limits(**{"wall_ms": 20_000} | limits), net, isolation="fresh"), run)

    return make


HOSTILE = [
    pytest.param(answer_with(b"<html>log in</html>", content_type="text/html"), id="a page"),
    pytest.param(answer_with(b"", content_type=JSON), id="nothing"),
    pytest.param(say({"jsonrpc": "2.0", "id": 999, "result": {}}), id="an answer to something else"),
    pytest.param(say([GOOD]), id="a batch"),
    pytest.param(say({"jsonrpc": "2.0", "id": json.loads(ID), "result": []}), id="a result that is no object"),
    pytest.param(say(result(content="text")), id="content that is no list"),
    pytest.param(say(result(resultType="input_required", content=[])), id="asks for more"),
    pytest.param(
        say(result(content=[{"type": "image", "data": "%%", "mimeType": "image/png"}])), id="bytes that are none"
    ),
    pytest.param(answer_with(b"[" * 200_000, content_type=JSON), id="nested without end"),
    pytest.param(answer_with(b"\xff" * 2000, content_type=JSON), id="no UTF-8"),
    pytest.param(answer_with(b"data: " + b"x" * 9_000_000, content_type=EVENTS), id="an endless event"),
    pytest.param(answer_with(b": wait\n\n" * 50_000, content_type=EVENTS), id="a stream without an answer"),
    pytest.param(
        answer_with(events(*[{"jsonrpc": "2.0", "id": 5, "result": {}}] * 1500), content_type=EVENTS),
        id="answers to nothing",
    ),
    pytest.param(answer_with(events(*["banner"] * 5000), content_type=EVENTS), id="a banner"),
    pytest.param(answer_with(b"data: {\n\n", content_type=EVENTS), id="half a message"),
    pytest.param(answer_with(b"", status="302 Found", location="https://evil.example/"), id="somewhere else"),
    pytest.param(answer_with(b"{}", status="500 Oops", content_type=JSON), id="an error without a word"),
    pytest.param(say({"jsonrpc": "2.0", "id": None, "error": {"code": "x", "message": 5}}), id="an error that is none"),
]


@pytest.mark.req("BRING-3", "SVC-6")
@pytest.mark.parametrize("answer", HOSTILE)
def test_what_is_no_answer_is_contained_and_the_next_call_is_right(
    answer: bytes, call: Callable[..., RunOutcome]
) -> None:
    hostile = call(answer)
    innocent = call(say(GOOD))

    assert hostile.status in (RunStatus.DOMAIN_ERROR, RunStatus.LOG_FLOOD), (hostile.status, hostile.error_message)
    assert innocent.status is RunStatus.OK, innocent.error_message
    assert innocent.value == {"content": [{"type": "text", "text": "hi"}]}


@pytest.mark.req("BRING-3", "SVC-6")
@pytest.mark.parametrize(
    "pages",
    [
        pytest.param([say(result(tools=[ENTRY], nextCursor="a"))], id="a cursor that comes back"),
        pytest.param([say(result(tools="none"))], id="no list"),
        pytest.param([say(result(tools=[ENTRY, ENTRY]))], id="a name twice"),
        pytest.param([say(result(tools=[ENTRY | {"description": "x" * 2_000_000}]))], id="two megabytes"),
        pytest.param([say(result(tools=[ENTRY | {"description": "evil\u200b"}]))], id="an invisible letter"),
        pytest.param([say(result(tools=[ENTRY | {"name": "echо"}]))], id="a letter that looks alike"),
        pytest.param([say(result(tools=[]))], id="gone"),
    ],
)
def test_a_list_that_is_not_the_reviewed_one_leaves_the_tool_uncalled(
    pages: list[bytes],
    call: Callable[..., RunOutcome],
    service: Service,  # noqa: F811
) -> None:
    outcome = call(*pages, check=True)

    assert outcome.status is RunStatus.DOMAIN_ERROR
    assert not any(b"tools/call" in each for each in service.heard)
    assert "evil" not in json.dumps([outcome.error_message, outcome.error_details])
    innocent = call(say(GOOD))
    assert (innocent.status, innocent.value) == (RunStatus.OK, {"content": [{"type": "text", "text": "hi"}]})


def test_progress_and_questions_of_the_server_come_before_its_answer(call: Callable[..., RunOutcome]) -> None:
    asked = {"jsonrpc": "2.0", "id": "q", "method": "sampling/createMessage", "params": {}}
    told = {"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": 1, "progress": 1}}

    outcome = call(answer_with(events(told, asked, GOOD), content_type=EVENTS))

    assert outcome.status is RunStatus.OK, (outcome.error_type, outcome.error_message, outcome.stderr[-900:])
    assert outcome.report["warnings"] == ["The server asked its client for sampling/createMessage, which no call has."]


OPEN = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"


def test_a_stream_that_the_server_leaves_open_is_read_to_the_answer(
    call: Callable[..., RunOutcome],
    service: Service,  # noqa: F811
) -> None:
    service.hangs_up = "never"
    listed = result(tools=[ENTRY], resultType="complete")

    outcome = call(OPEN + events(listed), OPEN + events(GOOD), check=True)

    assert outcome.status is RunStatus.OK, (outcome.error_type, outcome.error_message, outcome.stderr[-900:])
    assert len(service.heard) == 2


def test_an_older_server_that_speaks_another_revision_by_now_is_not_called(
    call: Callable[..., RunOutcome],
    service: Service,  # noqa: F811
) -> None:
    said = say(result(protocolVersion="2024-11-05\r\nX: y", capabilities={}, serverInfo={}))
    other = say(result(protocolVersion="2024-11-05", capabilities={}, serverInfo={}))

    outcomes = [call(each, revision="2025-11-25") for each in (said, other)]

    assert [each.status for each in outcomes] == [RunStatus.DOMAIN_ERROR] * 2
    assert "2024-11-05, not 2025-11-25" in outcomes[1].error_message
    assert not any(b"tools/call" in each for each in service.heard)
    assert call(say(GOOD)).status is RunStatus.OK
