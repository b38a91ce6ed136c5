"""Node servers: does a server that waits for its call take nothing of the machine, and answer it all the same?"""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from sandbox import node_server
from sandbox.node_server import NodeServer
from tests.support.npm_packages import NAME, START, STARTED, about_of, source_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

# It would keep a processor busy, and so would what it starts.
BUSY = """
import { spawn } from "node:child_process";
setInterval(() => { const until = Date.now() + 5; while (Date.now() < until); }, 5);
const helper = spawn(process.execPath, ["-e", "setInterval(() => {}, 1)"], { stdio: "ignore" });
process.on("exit", () => helper.kill("SIGKILL"));
"""


@pytest.fixture
def make_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], NodeServer]]:
    """Of the source of its module."""
    place = tmp_path / "node_modules" / NAME
    place.mkdir(parents=True)
    (place / "package.json").write_bytes(about_of(bin={START["script"]: "server.mjs"}, type="module"))
    find = node_server.find_program
    monkeypatch.setattr(node_server, "find_program", lambda name, package: find(name, package, str(tmp_path)))
    found = NodeServer(STARTED, memory_bytes=256 << 20, has_files=False)

    def make(source: str) -> NodeServer:
        (place / "server.mjs").write_text(source)
        return found

    yield make
    found.drop()


@pytest.fixture
def server(make_server: Callable[[str], NodeServer]) -> NodeServer:
    return make_server(BUSY + source_of())


def stat_of(pid: int) -> list[str]:
    """From its state on."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


def group_of(pid: int) -> list[int]:
    return [int(each.name) for each in Path("/proc").iterdir() if each.name.isdigit() and _group(int(each.name)) == pid]


def _group(pid: int) -> int:
    try:
        return os.getpgid(pid)
    except ProcessLookupError:
        return 0


def used(pids: list[int]) -> list[list[str]]:
    """Ticks of the processor that they have taken."""
    return [stat_of(pid)[11:13] for pid in pids]


def await_stopped(pids: list[int]) -> None:
    until = time.monotonic() + 20
    while {stat_of(pid)[0] for pid in pids} != {"T"}:
        assert time.monotonic() < until, [stat_of(pid)[0] for pid in pids]
        os.sched_yield()


@pytest.mark.req("BRING-2")
def test_a_server_that_waits_is_stopped_with_what_it_has_started(server: NodeServer) -> None:
    server.begin({})
    assert server._begun is not None
    pid = server._begun._pid
    await_stopped([pid])
    group = group_of(pid)
    await_stopped(group)
    before = used(group)
    spin_until = time.process_time() + 0.2
    while time.process_time() < spin_until:
        pass
    assert used(group) == before

    assert server.waited_ms() is not None
    find = server.find_entry({"asks": {"tool": "say", "structured": False}})
    assert "well" in json.dumps(find(text="well"))


@pytest.mark.req("BRING-2")
def test_one_that_was_ended_while_it_waited_is_no_server(server: NodeServer) -> None:
    server.begin({})
    assert server._begun is not None
    os.killpg(server._begun._pid, 9)
    os.waitid(os.P_PID, server._begun._pid, os.WEXITED | os.WNOWAIT)

    assert server.waited_ms() is None


def ask_begun(server: NodeServer, tool: str) -> str:
    assert server.waited_ms() is not None
    find = server.find_entry({"asks": {"tool": tool, "structured": False}})
    return str(find()["content"][0]["text"])


@pytest.mark.req("BRING-2")
def test_it_has_answered_one_request_before_its_call(make_server: Callable[[str], NodeServer]) -> None:
    counts = "let pinged = 0;\nasync function call() { return text(`${pinged}`); }"
    server = make_server(source_of(counts, pings="() => { pinged += 1; return {}; }"))
    server.begin({})

    assert ask_begun(server, "count") == "1"


@pytest.mark.req("BRING-2")
@pytest.mark.parametrize(
    "pings",
    [
        "() => undefined",
        "({ id }) => { send({ id, error: { code: -32601, message: 'Method not found' } }); }",
        "({ id }) => { send({ id, result: 'pong' }); }",
        "({ id }) => { late = id; }",
    ],
    ids=["never", "refused", "no object", "with the call"],
)
def test_whatever_comes_of_its_ping_its_call_has_its_own_answer(
    make_server: Callable[[str], NodeServer], monkeypatch: pytest.MonkeyPatch, pings: str
) -> None:
    monkeypatch.setattr(node_server, "_PING_S", 0.1)
    calls = """
    let late;
    async function call() {
      if (late !== undefined) send({ id: late, result: text("of the ping") });
      return text("of the call");
    }
    """
    server = make_server(source_of(calls, pings=pings))
    server.begin({})

    assert ask_begun(server, "say") == "of the call"
