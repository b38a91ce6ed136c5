"""Real servers: which servers of others are brought as they are, with what is each called, and what stands in for their hosts?"""

from __future__ import annotations

import json
import socket
import subprocess
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from http.server import ThreadingHTTPServer
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from sandbox import relay
from tests.support.http_server import QuietHandler
from unitools.npm_locks import read_package_lock

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from invocations.sandbox.base import Profile, RunEvent, RunOutcome, SandboxCall
    from invocations.sandbox.docker import DockerSandbox

HOST = "pages.example.org"
MODEL_CONTEXT = "npm:@modelcontextprotocol"
HANG = "/hang"
PATIENCE_MS = 150_000  # a host that runs many tests is slow


@dataclass(frozen=True)
class RealServer:
    """A package, how it is started, one of its tools with what that is called with, and a piece of what comes of it.

    ``asks``: a host that stands in for its own, whose address with ``{host}`` stands in arguments, environment or what is given.
    ``files``: of the tenant, before the call. ``slow``: what the tool is called with to take long; None: as ever. ``again``: what
    is given to a later call, where the same as before would find what that has left.
    """

    key: str
    package: str
    version: str
    tool: str
    given: dict[str, Any]
    answer: str
    start: dict[str, Any] = field(default_factory=dict)
    asks: bool = False
    repository: bool = False
    slow: dict[str, Any] | None = None
    again: dict[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.package.removeprefix("npm:")


NPM_VERSION = "2026.8.31"
ENTITIES = {"entities": [{"name": "A note", "entityType": "note", "observations": ["was kept"]}]}
LONG_QUERY = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000000000) SELECT sum(i) FROM n"
SERVERS = (
    RealServer(
        "everything",
        f"{MODEL_CONTEXT}/server-everything",
        NPM_VERSION,
        "trigger-long-running-operation",
        {"duration": 1, "steps": 1},
        "Long running operation completed",
        {"script": "mcp-server-everything"},
        slow={"duration": 60, "steps": 60},
    ),
    RealServer(
        "filesystem",
        f"{MODEL_CONTEXT}/server-filesystem",
        NPM_VERSION,
        "read_text_file",
        {"path": "/data/a.txt"},
        "a word",
        {"script": "mcp-server-filesystem", "arguments": ["/data"], "trees": ["/data"]},
        repository=True,
    ),
    RealServer(
        "memory",
        f"{MODEL_CONTEXT}/server-memory",
        NPM_VERSION,
        "create_entities",
        ENTITIES,
        "was kept",
        {"script": "mcp-server-memory", "keeps": "tenant", "environment": ["MEMORY_FILE_PATH=/data/memory.jsonl"]},
        again={"entities": [ENTITIES["entities"][0] | {"name": "Another"}]},
    ),
    RealServer(
        "sequential-thinking",
        f"{MODEL_CONTEXT}/server-sequential-thinking",
        NPM_VERSION,
        "sequentialthinking",
        {"thought": "a", "nextThoughtNeeded": False, "thoughtNumber": 1, "totalThoughts": 1},
        "thoughtNumber",
        {"script": "mcp-server-sequential-thinking"},
    ),
    RealServer(
        "chart",
        "npm:@antv/mcp-server-chart",
        "0.9.10",
        "generate_pie_chart",
        {"data": [{"category": "a", "value": 1}, {"category": "b", "value": 2}]},
        "drawn.png",
        {"script": "mcp-server-chart", "environment": ["VIS_REQUEST_SERVER=https://{host}/chart"]},
        asks=True,
    ),
    RealServer(
        "context7",
        "npm:@upstash/context7-mcp",
        "4.1.1",
        "resolve-library-id",
        {"query": "how to call it", "libraryName": "toolhub"},
        "/stand/in",
        {"script": "context7-mcp", "environment": ["CONTEXT7_API_URL=https://{host}/api"]},
        asks=True,
    ),
    RealServer(
        "playwright",
        "npm:@playwright/mcp",
        "0.0.83",
        "browser_navigate",
        {"url": "https://{host}/page"},
        "A page of the tests",
        {
            "script": "playwright-mcp",
            "browser": True,
            "arguments": [
                "--headless",
                "--isolated",
                "--no-sandbox",
                "--ignore-https-errors",
                "--browser=chromium",
                "--executable-path=/usr/lib/chromium/chromium-headless-shell",
                f"--proxy-server={relay.PROXY}",
            ],
        },
        asks=True,
        slow={"url": f"https://{{host}}{HANG}"},
    ),
    RealServer(
        "time",
        "mcp-server-time",
        "2026.10.19",
        "get_current_time",
        {"timezone": "Europe/Berlin"},
        "Europe/Berlin",
    ),
    RealServer(
        "git",
        "mcp-server-git",
        "2026.10.19",
        "git_log",
        {"repo_path": "/data/repository"},
        "the first of the tests",
        {
            "programs": ["git"],
            "trees": ["/data"],
            "environment": ["GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*"],
        },
        repository=True,
    ),
    RealServer(
        "fetch",
        "mcp-server-fetch",
        "2026.10.24",
        "fetch",
        {"url": "https://{host}/page"},
        "A page of the tests",
        asks=True,
        slow={"url": f"https://{{host}}{HANG}"},
    ),
    RealServer(
        "calculator",
        "mcp-server-calculator",
        "0.2.1",
        "calculate",
        {"expression": "2 + 3"},
        "5",
    ),
    RealServer(
        "sqlite",
        "mcp-server-sqlite",
        "2025.4.25",
        "read_query",
        {"query": "SELECT 6 * 7 AS answer"},
        "42",
        {"constraints": ["mcp<2"], "keeps": "tenant", "arguments": ["--db-path", "/data/notes.db"]},
        slow={"query": f"SELECT * FROM ({LONG_QUERY})"},
    ),
    RealServer(
        "excel",
        "excel-mcp-server",
        "2.2.2",
        "create_workbook",
        {"path": "/data/book.xlsx"},
        "book.xlsx",
        {"keeps": "tenant", "arguments": ["stdio", "--allow-dir", "/data"]},
        again={"path": "/data/another-book.xlsx"},
    ),
    RealServer(
        "duckdb",
        "mcp-server-duckdb",
        "1.1.0",
        "query",
        {"query": "SELECT 6 * 7 AS answer"},
        "42",
        {
            "constraints": ["mcp<2"],
            "keeps": "tenant",
            "arguments": ["--db-path", "/data/notes.duckdb"],
            # What it may take, which DuckDB would look for in /proc otherwise, where the box lets it see nothing.
            "environment": ["SLURM_CPUS_ON_NODE=1", "SLURM_MEM_PER_NODE=128M"],
        },
        slow={"query": LONG_QUERY},
    ),
)


def find_registry_networks(registry: str) -> list[str]:
    """A mirror in the network of these tests is one, too."""
    found = socket.getaddrinfo(urlsplit(registry).hostname, 443, family=socket.AF_INET)
    return sorted({f"{each[4][0]}/32" for each in found})


def write_lock(server: RealServer, place: Path) -> list[str]:
    """As the author's npm writes it; of a package of PyPI the hub finds it."""
    if server.name == server.package:
        return []
    (place / "package.json").write_text(json.dumps({"private": True, "dependencies": {server.name: server.version}}))
    options = ["--package-lock-only", "--ignore-scripts", "--no-audit", "--no-fund", "--lockfile-version", "3"]
    subprocess.run(["npm", "install", *options], cwd=place, check=True, capture_output=True)
    return read_package_lock((place / "package-lock.json").read_text())


def list_repository_files(place: Path) -> dict[str, bytes]:
    """A small repository of git and a text, at their paths in a box."""
    repository = place / "repository"
    repository.mkdir()

    def git(*words: str) -> None:
        who = ["-c", "user.name=Tests", "-c", "user.email=tests@example.org", "-c", "init.templateDir="]
        subprocess.run(["git", *who, *words], cwd=repository, check=True, capture_output=True)

    git("init", "--initial-branch=main")
    (repository / "a.txt").write_text("a word\n")
    git("add", "a.txt")
    git("commit", "--message", "the first of the tests")
    files = {f"/data/repository/{each.relative_to(repository)}": each.read_bytes() for each in _files_below(repository)}
    return files | {"/data/a.txt": b"a word\n"}


def _files_below(folder: Path) -> list[Path]:
    return sorted(each for each in folder.rglob("*") if each.is_file())


class StandIn:
    """A host that answers what these servers ask theirs for, by TLS; below ``/hang`` it says nothing."""

    def __init__(self, context: ssl.SSLContext) -> None:
        self.is_asked_to_hang = threading.Event()
        self._goes_on = threading.Event()
        stand_in = self

        class Handler(QuietHandler):
            def _answer(self) -> None:
                self.read_body()
                stand_in.answer(self)

            do_GET = do_POST = _answer  # noqa: N815  names of the library

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True, do_handshake_on_connect=False)
        self.port = self._server.server_port
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        self._thread.start()

    def answer(self, asked: QuietHandler) -> None:
        path, says = asked.path.partition("?")[0], "application/json"
        if path == HANG:
            self.is_asked_to_hang.set()
            self._goes_on.wait()
            return
        if path == "/page":
            content, says = (
                b"<!doctype html><title>A page of the tests</title><h1>A page of the tests</h1>",
                "text/html",
            )
        elif path == "/chart":
            content = json.dumps({"success": True, "resultObj": "https://pages.example.org/drawn.png"}).encode()
        elif path.startswith("/api/"):
            library = {"id": "/stand/in", "title": "Stand-in", "description": "Of the tests.", "totalSnippets": 1}
            content = json.dumps({"results": [library]}).encode()
        else:
            asked.write_answer(404, b"")
            return
        asked.write_answer(200, content, {"Content-Type": says})

    def close(self) -> None:
        self._goes_on.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


class SteeredSandbox:
    """Boxes as ever; but a call's time can be made short, and its caller can want it ended while it runs."""

    def __init__(self, boxes: DockerSandbox) -> None:
        self._boxes = boxes
        self.wall_ms = 0
        self.cancel: Callable[[], None] | None = None  # what its caller does meanwhile
        self.is_at_work: threading.Event | None = (
            None  # set by what the server has reached; None: it is enough that it runs
        )

    def __getattr__(self, name: str) -> Any:
        return getattr(self._boxes, name)

    def run(
        self, profile: Profile, call: SandboxCall, on_event: Callable[[RunEvent], None] | None = None
    ) -> RunOutcome:
        profile = replace(profile, limits=replace(profile.limits, wall_ms=self.wall_ms or PATIENCE_MS))
        if self.cancel is None:
            return self._boxes.run(profile, call, on_event)
        self.cancel()
        with self._killed_while_it_runs(call.name):
            return self._boxes.run(profile, call, on_event)

    @contextmanager
    def _killed_while_it_runs(self, name: str) -> Iterator[None]:
        over = threading.Event()
        thread = threading.Thread(target=self._kill_when_it_runs, args=(name, over))
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()

    def _kill_when_it_runs(self, name: str, over: threading.Event) -> None:
        """As the worker does that hears of the wish."""
        while not over.wait(0.001):
            run = self._boxes._running.get(name)
            talk = run._talk if run is not None else None
            if talk is not None and talk._called and (self.is_at_work is None or self.is_at_work.is_set()):
                self._boxes.kill(name)
                return
