"""Tool service: does ``run_tool`` answer a program of the older tool service as that service did?"""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from tests.support.http_server import Server, local_server
from unitools.hub import AsyncHubClient, HubClient, NotUnderstood
from unitools.hub.tool_service import AsyncToolService, ToolCallRequest, ToolResult, ToolService

ASKED = ToolCallRequest("Web-Search", {"q": "a"}, idempotency_key="again-1", envelope={"user_id": "erika"})
GOOD: dict[str, Any] = {
    "ok": True,
    "data": {"found": 1},
    "warnings": [],
    "error": None,
    "call": {"call_id": "inv_1", "status": "ok", "state": "succeeded", "tool": "old.tools.web_search", "version": "1"},
}


def answered(document: dict[str, Any], status: int = 200) -> tuple[ToolResult, Server]:
    with local_server() as server:
        server.status, server.document = status, document
        with HubClient(server.url, "key", attempts=1) as hub:
            return ToolService(hub, group="old.tools").run_tool(ASKED), server


def refused(**error: Any) -> dict[str, Any]:
    said = {"code": "INTERNAL", "message": "No.", "retryable": "no", "details": {}} | error
    return GOOD | {
        "ok": False,
        "data": None,
        "error": said,
        "call": GOOD["call"] | {"status": "error", "state": "failed"},
    }


@pytest.mark.req("SVC-1", "SVC-4")
def test_what_a_tool_returns_is_a_success() -> None:
    result, server = answered(GOOD)

    assert result == {"status": "SUCCESS", "output": {"found": 1}, "call_id": "inv_1"}
    (sent,) = server.heard
    assert sent.path == "/api/v1/tools/old.tools.web_search/invoke"
    assert sent.headers["idempotency-key"] == '"again-1"'
    assert b'"user_id": "erika"' in sent.body.replace(b'":"', b'": "')


@pytest.mark.req("SVC-8")
def test_the_plan_of_a_tool_is_passed_through() -> None:
    result, _ = answered(GOOD | {"call": GOOD["call"] | {"post_execution_plan": {"steps": [1]}}})

    assert result["post_execution_plan"] == {"steps": [1]}


@pytest.mark.req("SVC-4", "SVC-7")
@pytest.mark.parametrize(
    ("error", "status", "kind"),
    [
        ({"reason": "TOOL.EXECUTION_FAILED", "error_type": "TOOL_EXECUTION_ERROR"}, 502, "TOOL_EXECUTION_ERROR"),
        ({"reason": "TOOL.TIMEOUT", "code": "TIMEOUT", "error_type": "TOOL_TIMEOUT_ERROR"}, 504, "TOOL_TIMEOUT_ERROR"),
        ({"reason": "AUTH.NO_GRANT", "code": "FORBIDDEN"}, 403, "AUTH.NO_GRANT"),
    ],
)
def test_a_tool_that_fails_and_a_call_that_is_refused_are_failures(
    error: dict[str, Any], status: int, kind: str
) -> None:
    result, _ = answered(refused(**error), status)

    assert (result["status"], result["error_type"], result["error_message"]) == ("FAILURE", kind, "No.")
    assert "output" not in result


def test_what_nobody_knows_the_end_of_is_no_result() -> None:
    with pytest.raises(NotUnderstood):
        answered({"hello": "I am no hub"}, 200)


def test_the_same_without_blocking() -> None:
    async def ask(url: str) -> ToolResult:
        async with AsyncHubClient(url, "key", attempts=1) as hub:
            return await AsyncToolService(hub, group="old.tools").run_tool(ASKED)

    with local_server() as server:
        server.document = GOOD
        assert anyio.run(ask, server.url)["status"] == "SUCCESS"
