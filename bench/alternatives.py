"""Alternatives: the cost of parts that somebody would put together instead, such as a container per call or a bare queue.

The MCP server is FastMCP of the SDK, installed from the package index into an environment of its own, and asked over HTTP on a
connection that is kept, as the hub is. The queue is Celery on the Redis of the test environment, asked for its result.
"""

from __future__ import annotations

import http.client
import json
import os
import subprocess
import sys
import tempfile
import time
import uuid
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from celery import Celery

from bench import sandbox_levels
from bench.figures import ROOT, CannotMeasure
from bench.hubs import START_S, find_free_port
from bench.llm_sandbox_peer import create_environment

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

DOCKER, MCP, CELERY = "docker run --rm, for each call", "a bare FastMCP tool, over HTTP", "a bare Celery round trip"
PACKAGE = "mcp==1.26.0"
_SERVE = """
import sys
from mcp.server.fastmcp import FastMCP

server = FastMCP("bench", host="127.0.0.1", port=int(sys.argv[1]), stateless_http=True, json_response=True, log_level="ERROR")

@server.tool()
def echo(text: str) -> dict:
    return {"text": text}

server.run(transport="streamable-http")
"""
_CALL = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "echo", "arguments": {"text": "x"}}}
_HEADERS = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}

REDIS_URL = os.environ.get("BENCH_REDIS_URL")
app = Celery("bench", broker=REDIS_URL, backend=REDIS_URL, set_as_current=False)  # the hub's stays the current one
app.conf.task_default_queue = os.environ.get("BENCH_QUEUE", "bench")


@app.task(name="bench.echo")
def echo_text(text: str) -> dict[str, str]:
    return {"text": text}


@contextmanager
def _process(words: list[str], folder: Path, **env: str) -> Iterator[Path]:
    log = folder / f"{uuid.uuid4().hex}.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            words, cwd=ROOT, env=os.environ | env, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT
        )
    try:
        yield log
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _until_it_answers(ask: Callable[[], object], log: Path) -> None:
    until = time.monotonic() + START_S
    while True:
        try:
            ask()
        except Exception as error:
            if time.monotonic() > until:
                raise CannotMeasure(f"{error}\n{log.read_text()[-1000:]}") from error
            time.sleep(0.2)
        else:
            return


@contextmanager
def _mcp(folder: Path) -> Iterator[Callable[[], None]]:
    port = find_free_port()
    python = create_environment(folder / "venv", PACKAGE)
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)

    def ask() -> None:
        try:
            connection.request("POST", "/mcp", json.dumps(_CALL), _HEADERS)
            answer: dict[str, Any] = json.loads(connection.getresponse().read())
        except Exception:
            connection.close()
            raise
        if answer["result"].get("isError"):
            raise CannotMeasure(f"FastMCP answered {answer}")

    with _process([python, "-c", _SERVE, str(port)], folder) as log:
        _until_it_answers(ask, log)
        yield ask


@contextmanager
def _celery(folder: Path, redis_url: str) -> Iterator[Callable[[], None]]:
    env = {"BENCH_REDIS_URL": redis_url, "BENCH_QUEUE": f"bench-{os.getpid()}"}
    app.conf.update(broker_url=redis_url, result_backend=redis_url, task_default_queue=env["BENCH_QUEUE"])
    words = [
        sys.executable,
        "-m",
        "celery",
        "-A",
        "bench.alternatives",
        "worker",
        "--pool",
        "threads",
        "-c",
        "5",
        "-l",
        "ERROR",
    ]

    def ask() -> None:
        if echo_text.delay("x").get(timeout=20) != {"text": "x"}:
            raise CannotMeasure("Celery had the wrong answer.")

    with _process(words, folder, **env) as log:
        _until_it_answers(ask, log)
        yield ask


@contextmanager
def open_alternatives(redis_url: str) -> Iterator[dict[str, Callable[[], object]]]:
    """By name: what makes one call."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="toolhub-others-")))
        found: dict[str, Callable[[], object]] = {
            DOCKER: sandbox_levels.run_docker,
            CELERY: stack.enter_context(_celery(folder, redis_url)),
        }
        try:
            found[MCP] = stack.enter_context(_mcp(folder))
        except CannotMeasure as error:
            print(f"\nFastMCP is NOT measured: {error}")
        yield found
