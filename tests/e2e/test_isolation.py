"""A tool reaches for what is not its own, through the whole hub: is it stopped, and does the evidence say so?"""

from __future__ import annotations

import os
import socket
import threading
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from tests.e2e.conftest import CANARY, RUNNING, Embedded
from tests.e2e.console import Person
from tests.e2e.processes import until
from tests.e2e.wire import Agent, Answer, in_background

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [pytest.mark.attack]
HOSTILE = "sample.tools."
SECRET = "the-data-of-another-call"


def blocked_in(agent: Agent, answer: Answer) -> list[str]:
    """The kinds of things that the tool reached for, as the End's leaf says."""
    found: list[str] = agent.check_pair(answer.call_id)["data"].get("blocked", [])
    return found


def check_blocked(agent: Agent, answer: Answer, capability: str, attempt: str) -> None:
    assert (answer.status, answer.reason) == (403, "SANDBOX.CAPABILITY_BLOCKED"), answer
    assert answer.json()["data"] is None
    assert answer.json()["error"]["details"]["capability"] == capability, answer
    assert attempt in answer.json()["error"]["details"]["attempts"], answer
    end = agent.check_pair(answer.call_id)
    assert (end["outcome"], end["reason"]) == ("failed", "SANDBOX.CAPABILITY_BLOCKED"), end
    assert capability in end["data"]["blocked"], end
    assert end["data"]["run"]["status"] == "capability_blocked", end


@contextmanager
def listener() -> Iterator[tuple[int, list[bytes]]]:
    """Somebody on the host who would hear from a tool; yields its port and what it heard."""
    heard: list[bytes] = []
    with closing(socket.create_server(("", 0))) as server:
        server.settimeout(0.1)
        over = threading.Event()

        def listen() -> None:
            while not over.is_set():
                try:
                    connection, _ = server.accept()
                except TimeoutError:
                    continue
                with connection:
                    connection.settimeout(5)
                    heard.append(connection.recv(1000))

        thread = threading.Thread(target=listen)
        thread.start()
        try:
            yield server.getsockname()[1], heard
        finally:
            over.set()
            thread.join()


def address_of_this_host() -> str:
    """Not its loopback address: the one that others use."""
    with closing(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) as probe:
        probe.connect(("192.0.2.1", 9))  # sends nothing; the kernel chooses the interface
        return str(probe.getsockname()[0])


@pytest.mark.req("SVC-10", "TOOLS-16", "TOOLS-24")
@pytest.mark.parametrize(
    "path", ["/etc/shadow", "/proc/1/environ", "/var/run/docker.sock", "/home/anna/.ssh/id_ed25519"]
)
def test_a_system_file_is_out_of_reach(hub: Embedded, path: str) -> None:
    answer = hub.agent.invoke(HOSTILE + "reads_file", {"path": path})

    check_blocked(hub.agent, answer, "fs", f"fs:{path}")


@pytest.mark.req("SVC-10", "TOOLS-16")
def test_the_hub_s_own_files_and_those_of_its_users_are_out_of_reach(hub: Embedded, tmp_path: Path) -> None:
    mine = tmp_path / "private.txt"
    mine.write_text(SECRET)
    mine.chmod(0o644)

    for path in (mine, hub.data / "keys.json", hub.data / "toolhub.sqlite3"):
        assert path.exists()
        answer = hub.agent.invoke(HOSTILE + "reads_file", {"path": str(path)})

        check_blocked(hub.agent, answer, "fs", f"fs:{path}")
        assert SECRET not in answer.body.decode()


@pytest.mark.req("SVC-10", "SVC-6", "TOOLS-16")
def test_the_network_is_out_of_reach(hub: Embedded) -> None:
    with listener() as (port, heard):
        socket.create_connection(("127.0.0.1", port)).close()
        until(lambda: heard, "the listener works")
        for host in ("127.0.0.1", address_of_this_host(), "hub.example"):
            answer = hub.agent.invoke(HOSTILE + "connects", {"host": host, "port": port})

            check_blocked(hub.agent, answer, "net", f"net:{host}:{port}")

    assert heard == [b""], "only the test's own connection arrived"


@pytest.mark.req("SVC-10", "TOOLS-16")
def test_programs_are_out_of_reach(hub: Embedded) -> None:
    answer = hub.agent.invoke(HOSTILE + "runs_program", {"program": "/bin/sh"})

    check_blocked(hub.agent, answer, "proc", "proc:/bin/sh")


@pytest.mark.req("SVC-10")
def test_a_tool_sees_nothing_of_the_hub_s_environment(hub: Embedded) -> None:
    assert CANARY in hub.env.values()

    answer = hub.agent.invoke(HOSTILE + "shows_environment", {})

    seen: dict[str, Any] = answer.json()["data"]["environment"]
    assert answer.status == 200, answer
    assert CANARY not in answer.body.decode()
    assert not [name for name in seen if name.startswith(("TOOLHUB_", "DJANGO_", "E2E_"))]
    assert set(seen.values()).isdisjoint(value for value in os.environ.values() if len(value) > 16)


@pytest.mark.req("SVC-10", "TOOLS-16")
def test_what_a_tool_hides_from_its_caller_is_in_the_evidence(hub: Embedded) -> None:
    paths = ["/etc/shadow", str(hub.data / "keys.json"), "/proc/1/environ"]

    answer = hub.agent.invoke(HOSTILE + "reads_all_it_can", {"paths": paths})

    assert answer.status == 200, answer
    assert answer.json()["data"]["found"] == {}
    assert blocked_in(hub.agent, answer) == ["fs"]
    assert hub.credentials is not None
    with Person(hub.url, "aaron", hub.credentials.password("aaron")) as auditor:
        call = f"/invocations/{answer.call_id}"
        page = auditor.send(call, f"{call}/values", reason="What did it reach for?")
    assert [path for path in paths if f"fs:{path}" not in page] == [], "the sealed rest says which"


@pytest.mark.req("SVC-10", "SVC-6")
def test_a_call_finds_nothing_of_the_calls_before_it_and_beside_it(hub: Embedded) -> None:
    agent = hub.agent
    left = agent.invoke(HOSTILE + "leaves_something", {"text": SECRET})
    assert left.json()["data"]["written"], "the control: it could write somewhere"
    beside = in_background(lambda: agent.invoke(HOSTILE + "keeps_a_secret", {"text": SECRET, "seconds": 6}))
    until(lambda: hub.count(RUNNING) == 1, "the other call runs")

    looks = 0
    while hub.count(RUNNING):
        # The tool gets the words apart, so that it does not find its own arguments.
        answer = agent.invoke(HOSTILE + "looks_for_leftovers", {"words": SECRET.split("-")})

        assert answer.status == 200, answer
        assert answer.json()["data"]["found"] == [], answer
        assert len(answer.json()["data"]["processes"]) <= 4, "it sees its own box's processes only"
        looks += 1

    assert looks > 1
    assert beside.answer().json()["data"] == {"kept": len(SECRET)}, beside.answer()


@pytest.mark.req("SVC-10", "TOOLS-18")
def test_noise_does_not_keep_a_tool_s_doings_out_of_the_evidence(hub: Embedded) -> None:
    answer = hub.agent.invoke(HOSTILE + "hides_in_noise", {"text": ""})

    assert (answer.status, answer.reason) == (403, "SANDBOX.CAPABILITY_BLOCKED"), answer
    assert blocked_in(hub.agent, answer) == ["fs"]


@pytest.mark.req("SVC-10", "TOOLS-18")
def test_a_name_that_is_no_text_does_not_hurt_the_evidence(hub: Embedded) -> None:
    answer = hub.agent.invoke(HOSTILE + "reaches_for_an_unspeakable_name", {"text": ""})

    assert (answer.status, answer.reason) == (403, "SANDBOX.CAPABILITY_BLOCKED"), answer
    assert blocked_in(hub.agent, answer) == ["fs"]


@pytest.mark.req("SPEC-7", "TOOLS-18")
def test_an_answer_that_rests_on_very_many_sources_is_given_and_witnessed(hub: Embedded) -> None:
    answer = hub.agent.invoke(HOSTILE + "names_many_sources", {"number": 100})

    assert answer.status == 200, answer
    assert len(answer.json()["evidence"]["sources"]) == 101
    assert hub.agent.check_pair(answer.call_id)["outcome"] == "succeeded"
