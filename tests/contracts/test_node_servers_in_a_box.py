"""Node servers in a box: does a server of a package of npm answer like any tool, and does one that stands ready before its call keep
to the walls, and to its one call?
"""

from __future__ import annotations

import json
import subprocess
import time
from typing import TYPE_CHECKING, Any

import pytest

from invocations.sandbox.base import Limits, RunStatus
from invocations.sandbox.pool import standby
from invocations.sandbox.pool.slots import PoolCaps, PoolSlotState
from tests.support.background_runs import wait_for
from tests.support.npm_packages import STARTED, TOOLS, ask_server, lay_out_server, source_of
from tests.support.sandboxes import docker_sandbox

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from invocations.sandbox.base import RunEvent, RunOutcome
    from invocations.sandbox.docker import DockerSandbox

ROOMY = Limits(wall_ms=20_000, artifacts=3, artifact_bytes=1 << 16)
KEY = {"name": "KEY", "secret": "API_KEY"}
ZONE = {"name": "ZONE", "config": "zone"}


@pytest.fixture
def sandbox() -> Iterator[DockerSandbox]:
    found = docker_sandbox(caps=PoolCaps(boxes=6))
    yield found
    found.close()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("node-server")
    place.chmod(0o755)
    return lay_out_server(place / "deps")


def ask(sandbox: DockerSandbox, folder: Path, tool: str, *, limits: Limits = ROOMY, **given: Any) -> RunOutcome:
    return ask_server(sandbox, folder, tool, limits=limits, **given)


def said(outcome: RunOutcome) -> str:
    assert (outcome.status, outcome.clean) == (RunStatus.OK, True), outcome
    return str(outcome.value["content"][0]["text"])


def list_programs(box: str) -> list[str]:
    command = ["docker", "top", box, "-o", "pid,comm"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()


def list_standing_by(sandbox: DockerSandbox) -> list[str]:
    """The boxes in which a server waits for its call, once none is being made ready."""
    until = time.monotonic() + 30
    while sandbox._standby._coming and time.monotonic() < until:
        sandbox._standby._threads.submit(lambda: None).result(30)
    slots = sandbox._pool.slots()
    return [slot.box.id for slot in slots if slot.idle.for_one_call and slot.box and slot.state is PoolSlotState.LOADED]


@pytest.mark.req("BRING-2")
def test_a_server_stands_ready_for_one_call_and_is_gone_after_it(sandbox: DockerSandbox, folder: Path) -> None:
    first = ask(sandbox, folder, "count")
    (ready,) = list_standing_by(sandbox)
    events: list[RunEvent] = []
    second = ask(sandbox, folder, "count", events=events)
    (other,) = list_standing_by(sandbox)

    assert [said(each) for each in (first, second)] == ["1 false /w"] * 2
    assert second.box == ready != other
    assert first.level == second.level == "single"
    assert second.stderr == "A server begins.\n"
    assert [each.text for each in events if each.stream == "stderr"] == ["A server begins.\n"]


@pytest.mark.req("BRING-2")
def test_what_it_answers_is_what_any_server_does(sandbox: DockerSandbox, folder: Path) -> None:
    for _ in range(2):
        listed = ask(sandbox, folder, "")
        assert (listed.status, listed.value) == (RunStatus.OK, {"protocol": "2025-11-25", "tools": TOOLS}), listed
        list_standing_by(sandbox)
    structured = ask(sandbox, folder, "Echo-Text", structured=True, text="hi")
    failed = ask(sandbox, folder, "fail")
    drawn = ask(sandbox, folder, "draw")
    events: list[RunEvent] = []
    told = ask(sandbox, folder, "progress", events=events)

    assert structured.value == {"text": "hi"}
    assert (failed.status, failed.error_code) == (RunStatus.DOMAIN_ERROR, "UPSTREAM_ERROR")
    assert [each.claim for each in drawn.artifacts] == ["image/png"]
    assert (said(told), [each.progress["fraction"] for each in events if each.stream == "progress"]) == (
        "done",
        [0.25, 0.5],
    )


@pytest.mark.req("BRING-2")
def test_nobody_stands_ready_where_a_secret_or_a_host_is_given(sandbox: DockerSandbox, folder: Path) -> None:
    start = STARTED | {"environment": [KEY, ZONE], "arguments": ["--x"]}

    outcome = ask(
        sandbox, folder, "environment", start=start, given={"secrets": {"API_KEY": "s3cret"}, "config": {"zone": 3}}
    )

    assert json.loads(said(outcome)) == ["s3cret", "3", ["--x"]]
    assert list_standing_by(sandbox) == []


@pytest.mark.req("BRING-2")
def test_each_tenant_version_and_settings_has_a_server_of_its_own(sandbox: DockerSandbox, folder: Path) -> None:
    start = STARTED | {"environment": [ZONE]}

    def zone_of(zone: str, tenant: str = "tenant") -> tuple[str, str]:
        outcome = ask(sandbox, folder, "environment", start=start, tenant=tenant, given={"config": {"zone": zone}})
        return json.loads(said(outcome))[1], outcome.box

    zone_of("one")
    (ready,) = list_standing_by(sandbox)
    other_settings, other_tenant = zone_of("two"), zone_of("one", "another")
    assert ready not in (other_settings[1], other_tenant[1])
    assert zone_of("one") == ("one", ready)
    assert (other_settings[0], other_tenant[0]) == ("two", "one")


@pytest.mark.req("BRING-2")
def test_a_tenant_has_two_servers_ready_and_none_after_a_minute(sandbox: DockerSandbox, folder: Path) -> None:
    for number in range(3):
        ask(sandbox, folder, "say", start=STARTED | {"arguments": [str(number)]}, text="x")
        list_standing_by(sandbox)

    assert len(list_standing_by(sandbox)) == standby.MOST_OF_A_TENANT
    later = time.monotonic() + standby.TERMS.most_s + 1
    sandbox._pool._clock = lambda: later
    sandbox._pool.tick()
    assert list_standing_by(sandbox) == []


@pytest.mark.req("BRING-2")
def test_one_that_has_ended_while_it_waited_is_started_anew(sandbox: DockerSandbox, tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    ends = "async function call() { return text('well'); }\nsetTimeout(() => process.exit(0), 3000);"
    folder = lay_out_server(tmp_path / "deps", source_of(ends))
    assert said(ask(sandbox, folder, "say")) == "well"
    (ready,) = list_standing_by(sandbox)
    wait_for(lambda: "node" not in list_programs(ready))
    again = ask(sandbox, folder, "say")

    assert (said(again), again.box) == ("well", ready)


@pytest.mark.req("BRING-2")
def test_what_runs_is_the_pinned_package_and_node_alone(sandbox: DockerSandbox, folder: Path) -> None:
    other = ask(sandbox, folder, "", start=STARTED | {"script": "another"})
    programs = [
        said(ask(sandbox, folder, "run", program=program)) for program in ("/usr/local/bin/sandbox-python", "git")
    ]
    reached = ask(sandbox, folder, "reach")

    assert (other.status, other.error_message) == (
        RunStatus.RAISED,
        "The package @a/server brings no program 'another'.",
    )
    assert programs == ["EACCES", "ENOENT"]
    assert reached.status is RunStatus.DOMAIN_ERROR, reached


@pytest.mark.req("BRING-2")
def test_one_that_hangs_is_ended_with_its_time(sandbox: DockerSandbox, folder: Path) -> None:
    for _ in range(2):
        ended = ask(sandbox, folder, "hang", limits=Limits(wall_ms=2_500))
        assert (ended.status, "I hang" in ended.stderr) == (RunStatus.TIMED_OUT, True), ended
        assert said(ask(sandbox, folder, "say", limits=Limits(wall_ms=2_500), text="well")) == "well"
        list_standing_by(sandbox)
