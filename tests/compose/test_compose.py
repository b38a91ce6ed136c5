"""Does docker-compose.yml build, become healthy, and answer a governed call whose evidence is sealed?"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.e2e.wire import Agent

if TYPE_CHECKING:
    from tests.compose.conftest import Composed

pytestmark = [pytest.mark.long, pytest.mark.req("TOOLS-18", "TOOLS-22")]
QUOTE = "commerce.pricing.get_realtime_quote"
MANIFEST = f"tools/commerce/manifests/{QUOTE}.json"
FILE = """
format: 1
tenant: acme
agents: [{name: buyer}]
grants: [{agent: buyer, tools: commerce.pricing.*, reason: Asks what things cost.}]
"""
HAND_ON = ("TOOLHUB_WORKER_CONCURRENCY", "TOOLHUB_TENANT")


def test_a_composed_hub_answers_a_governed_call_that_is_sealed(composed: Composed) -> None:
    as_owner, as_operator = ("--tenant", "acme", "--as", "oona"), ("--tenant", "acme", "--as", "olivia")
    composed.manage("invite_person", "olivia", "--role", "operator", *as_owner)
    composed.manage("submit_version", MANIFEST, *as_owner)
    composed.manage("review_version", QUOTE, "1.0.0", "--approve", *as_operator)
    composed.manage("enable_tool", QUOTE, "1.0.0", "--reason", "The first tool.", *as_operator)
    composed.manage("apply", "-f", "-", "--yes", given=FILE)
    agent = Agent(composed.url, composed.manage("create_key", "buyer", *as_operator).strip(), "buyer")

    answer = agent.invoke(QUOTE, {"sku": "LAPTOP-14", "quantity": 2, "currency": "EUR"})

    assert answer.status == 200, answer
    end = agent.check_pair(answer.call_id)
    assert (end["outcome"], bool(end["data"]["run"]["box"])) == ("succeeded", True)
    composed.manage("keep", "--once", service="keeper")
    assert "leaves" in composed.manage("verify_log", service="keeper")


def test_what_stands_in_the_env_file_reaches_the_processes(composed: Composed) -> None:
    script = f"import json, os; print(json.dumps({{name: os.environ.get(name) for name in {HAND_ON}}}))"

    told = json.loads(composed.compose("exec", "-T", "worker", "python", "-c", script))

    assert told == {"TOOLHUB_WORKER_CONCURRENCY": "3", "TOOLHUB_TENANT": "acme"}


def test_a_process_without_its_database_is_not_ready_and_lives(composed: Composed) -> None:
    asked = ("exec", "-T", "keeper", "python", "-ISB", "toolhub/probe.py")
    composed.compose("pause", "postgres")
    try:
        with pytest.raises(AssertionError, match="does not answer"):
            composed.compose(*asked, "readyz", "127.0.0.1:8001")
        assert '"ok": true' in composed.compose(*asked, "healthz", "127.0.0.1:8001")
    finally:
        composed.compose("unpause", "postgres")
