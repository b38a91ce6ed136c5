"""Docker Compose: does docker-compose.yml build, become healthy, and answer a governed call whose evidence is sealed?"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest

from kernel.http.uvicorn_protocol import MAX_HEAD_BYTES
from tests.e2e.wire import Agent, request
from tests.support.how_to_follower import Follower, blocks_of

if TYPE_CHECKING:
    from pathlib import Path

    from tests.compose.conftest import Composed

pytestmark = pytest.mark.long
HAND_ON = ("TOOLHUB_WORKER_CONCURRENCY", "TOOLHUB_TENANT")


@pytest.mark.req("TOOLS-18")
def test_the_page_ends_with_a_governed_sealed_and_verified_call(composed: Composed, tmp_path: Path) -> None:
    somebody = Follower(tmp_path, composed.on_the_path(tmp_path), {"http://127.0.0.1:8000": composed.url})

    *_, call, sealed = map(somebody.follow, blocks_of("run-the-production-shape.md", section="With docker compose"))

    assert json.loads(call.split("\n}")[0] + "\n}")["quantity"] == 2
    assert '"invocation.began"' in sealed
    assert '"invocation.ended"' in sealed
    assert "leaves" in sealed
    key = composed.manage("create_key", "buyer", "--tenant", "acme", "--as", "olivia").strip()
    agent = Agent(composed.url, key, "buyer")
    end = agent.check_pair(re.findall(r"inv_\w+", call)[0])
    assert (end["outcome"], bool(end["data"]["run"]["box"])) == ("succeeded", True)


@pytest.mark.req("CARD-1")
def test_the_composed_web_server_refuses_a_header_that_is_too_large(composed: Composed) -> None:
    answer = request("GET", f"{composed.url}/healthz", headers={"X-Long": "x" * MAX_HEAD_BYTES})

    assert (answer.status, answer.reason) == (431, "REQUEST.HEAD_TOO_LARGE")


@pytest.mark.req("CARD-1")
def test_what_stands_in_the_env_file_reaches_the_processes(composed: Composed) -> None:
    script = f"import json, os; print(json.dumps({{name: os.environ.get(name) for name in {HAND_ON}}}))"

    told = json.loads(composed.compose("exec", "-T", "worker", "python", "-c", script))

    assert told == {"TOOLHUB_WORKER_CONCURRENCY": "3", "TOOLHUB_TENANT": "acme"}


@pytest.mark.req("CARD-1")
def test_a_process_without_its_database_is_not_ready_and_lives(composed: Composed) -> None:
    asked = ("exec", "-T", "keeper", "python", "-ISB", "toolhub/probes/client.py")
    composed.compose("pause", "postgres")
    try:
        with pytest.raises(AssertionError, match="does not answer"):
            composed.compose(*asked, "readyz", "127.0.0.1:8001")
        assert '"ok": true' in composed.compose(*asked, "healthz", "127.0.0.1:8001")
    finally:
        composed.compose("unpause", "postgres")


@pytest.mark.req("OPS-1")
def test_from_the_worker_no_container_can_be_listed(composed: Composed) -> None:
    script = (
        "from invocations.sandbox.engine import Engine, EngineError\n"
        "try: print('found', Engine().find({}))\n"
        "except EngineError as error: print('refused', error)"
    )

    assert composed.compose("exec", "-T", "worker", "python", "-c", script).startswith("refused")
    assert composed.compose("exec", "-T", "boxd", "python", "-c", script).startswith("found")
