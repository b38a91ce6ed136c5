"""MCP conformance: what does the official conformance suite say about the hub, in both revisions?

What it may find is in ``expected``, each with the reason: things that the hub does not claim. All else passes, and what passes is not
in there.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import httpx2
import pytest

from tests.mcp_conformance.arrange import NAMED, PREFIX, SPARE, TOOLS
from tests.mcp_conformance.door import Door, opened
from tests.mcp_conformance.suite import expected_failures, failures, judge

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.mcp_conformance.conftest import Served

BOTH = {
    "tools-list",
    "tools-call-simple-text",
    "tools-call-image",
    "tools-call-audio",
    "tools-call-embedded-resource",
    "tools-call-mixed-content",
    "tools-call-error",
    "tools-call-with-progress",
    "server-sse-multiple-streams",
    "dns-rebinding-protection",
    "json-schema-2020-12",
    "resources-list",
    "resources-read-text",
    "resources-read-binary",
}
# Of these the suite may find nothing at all.
CLAIMED = {
    "2025-11-25": BOTH | {"server-initialize", "ping", "tools-call-elicitation"},
    "2026-07-28": BOTH
    | {
        "http-header-validation",
        "sep-2164-resource-not-found",
        "input-required-result-basic-elicitation",
        "input-required-result-result-type",
        "input-required-result-ignore-extra-params",
        "tasks-capability-negotiation",
        "tasks-wire-fields",
        "tasks-request-state-removal",
    },
}


def leave_artifact(served: Served, tool: str) -> str:
    """The address of the resource that a call of this tool has left last."""
    headers = {"Authorization": f"Bearer {served.key}", "Accept": "application/json, text/event-stream"}

    def ask(method: str, **params: Any) -> Any:
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        answer = httpx2.post(served.url, json=body, headers=headers, trust_env=False, timeout=60)
        (data,) = (line[6:] for line in answer.text.splitlines() if line.startswith("data: {"))
        return json.loads(data)["result"]

    assert not ask("tools/call", name=f"{NAMED}{tool}", arguments={}).get("isError")
    return str(ask("resources/list")["resources"][0]["uri"])


@pytest.fixture(scope="module")
def door(served: Served) -> Iterator[Door]:
    resources = {
        "test://static-text": leave_artifact(served, "test_embedded_resource"),
        "test://static-binary": leave_artifact(served, "test_image_content"),
    }
    with opened(
        Door(served.address, served.key, NAMED, frozenset(TOOLS), resources=resources, operates=served.operates)
    ) as found:
        yield found
        if found.paused:
            resumed = httpx2.post(
                f"http://{served.address}/api/v1/installations/{PREFIX}{SPARE}/resume",
                json={"reason": "For whoever comes next."},
                headers={"Authorization": f"Bearer {served.operates}"},
                trust_env=False,
            )
            assert resumed.status_code == 200, resumed.text


@pytest.mark.req("SVC-1", "SVC-3")
@pytest.mark.parametrize("revision", CLAIMED)
def test_the_official_suite_finds_nothing_but_what_is_not_claimed(revision: str, door: Door, tmp_path: Path) -> None:
    verdict = judge(door.url, revision, tmp_path)

    expected = expected_failures(revision)
    failed = failures(verdict.checks)
    surprising = [str(check) for check in failed if not expected & {check.scenario, check.name}]
    found = {name for check in failed for name in (check.scenario, check.name)}
    assert surprising == []
    assert expected - found == set(), "these pass now: take them out"
    assert verdict.accepted, verdict.said
    assert {check.scenario for check in verdict.checks if check.status == "SUCCESS"} >= CLAIMED[revision]


@pytest.mark.req("SVC-1")
@pytest.mark.parametrize("revision", CLAIMED)
def test_nothing_that_is_claimed_is_expected_to_fail(revision: str) -> None:
    assert {each.partition(":")[0] for each in expected_failures(revision)} & CLAIMED[revision] == set()


def test_the_hub_loses_no_run_to_a_lease_that_is_shorter_than_everybodys(served: Served) -> None:
    """On a busy machine a heartbeat may come seconds late."""
    assert "TOOLHUB_LEASE_S" not in served.hub.env
