"""Our client by the official suite: what does it say about how tools of servers somewhere else are asked?"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.mcp_conformance.suite import expected_failures, failures, judge_client

CLIENT = Path(__file__).parent / "clients" / "with_our_conversation.py"
ROOT = Path(__file__).parents[2]
LEGACY, MODERN = "2025-11-25", "2026-07-28"
# Of the suite's scenarios for clients, those of what a call does: neither a sign-in, which is a person's in the console, nor an answer
# to a server that asks, which no call has.
SCENARIOS = [
    (LEGACY, "initialize", "mcp-client-initialization"),
    (LEGACY, "tools_call", "tool-add-numbers"),
    (LEGACY, "json-schema-2020-12-preservation", "json-schema-2020-12-client-$defs-preserved"),
    (MODERN, "tools_call", "tool-add-numbers"),
    (MODERN, "request-metadata", "sep-2575-client-populates-meta"),
    (MODERN, "http-standard-headers", "sep-2243-client-includes-standard-headers"),
    (MODERN, "http-custom-headers", "sep-2243-client-mirrors-designated-params"),
    (MODERN, "http-invalid-tool-headers", "sep-2243-client-reject-invalid-tool"),
    (MODERN, "json-schema-ref-no-deref", "sep-2106-no-network-ref-deref"),
    (MODERN, "json-schema-2020-12-preservation", "sep-2106-client-composition-keywords-preserved"),
]


@pytest.mark.req("SVC-6")
@pytest.mark.parametrize(("revision", "scenario", "check"), SCENARIOS)
def test_the_official_suite_finds_nothing_in_how_a_server_somewhere_else_is_asked(
    revision: str, scenario: str, check: str, tmp_path: Path
) -> None:
    program = ["env", f"PYTHONPATH={ROOT}", sys.executable, str(CLIENT)]

    verdict = judge_client(program, scenario, revision, tmp_path)

    expected = {each for each in expected_failures(revision, "client") if each.startswith(f"{scenario}:")}
    assert {each.name for each in failures(verdict.checks)} == expected, verdict.said
    assert check in {each.id for each in verdict.checks if each.status == "SUCCESS"}, verdict.said
    assert verdict.accepted == (not expected), verdict.said
