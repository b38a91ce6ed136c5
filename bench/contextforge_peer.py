"""ContextForge peer: a gateway that passes calls on to MCP servers, in an environment and processes of its own.

It stands before an echo tool of FastMCP, keeps what it keeps in a database of its own on the server that the hub uses, and is one
process, as the hub's web is. It knows who asks and whether they may; the tool runs wherever its server does, in no sandbox, and
nothing is witnessed.
"""

from __future__ import annotations

import http.client
import json
import os
import secrets
import subprocess
import time
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bench.figures import CannotMeasure
from bench.hubs import START_S, find_free_port, make_empty_database
from scripts.provision import peers, venv
from scripts.provision.console import SetupError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

GATEWAY, SERVER = "gateway", "its MCP server"
_PACKAGE, _ADMIN = "mcp-contextforge-gateway", "admin@example.com"
_SERVE = """
import sys
from mcp.server.fastmcp import FastMCP

server = FastMCP("bench", host="127.0.0.1", port=int(sys.argv[1]), stateless_http=True, json_response=True, log_level="ERROR")

@server.tool()
def echo(text: str) -> dict:
    return {"text": text}

server.run(transport="streamable-http")
"""
_CALL = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "tools/call",
    "params": {"name": "bench-echo", "arguments": {"text": "x"}},
}


@dataclass(frozen=True, slots=True)
class ForgeGateway:
    """``database``: its own; ``processes``: by what they are."""

    host: str
    version: str
    token: str
    database: str
    processes: dict[str, int]


class ForgeCaller:
    """One connection that is kept, as a client library does."""

    def __init__(self, gateway: ForgeGateway) -> None:
        self._connection = http.client.HTTPConnection(gateway.host, timeout=60)
        self._headers = {"Authorization": f"Bearer {gateway.token}", "Content-Type": "application/json"}

    def call(self) -> tuple[int, float]:
        """(status, milliseconds). The status is 0 where the tool did not answer."""
        begun = time.perf_counter()
        status, answer = self.ask("POST", "/rpc", _CALL)
        took_ms = (time.perf_counter() - begun) * 1000
        return (status if not answer.get("result", {}).get("isError", True) else 0), took_ms

    def ask(self, method: str, path: str, body: dict[str, Any] | None = None) -> tuple[int, dict[str, Any]]:
        try:
            self._connection.request(method, path, json.dumps(body) if body else None, self._headers)
            response = self._connection.getresponse()
            said = json.loads(response.read())
        except Exception:
            self._connection.close()
            raise
        return response.status, said if isinstance(said, dict) else {}


@contextmanager
def run_contextforge(database_url: str, folder: Path) -> Iterator[ForgeGateway]:
    """The gateway as its documentation starts it. Raises CannotMeasure where it cannot be installed or does not start."""
    try:
        python = peers.ensure_python("contextforge")
    except SetupError as error:
        raise CannotMeasure(f"ContextForge cannot be installed here: {error}") from error
    version = venv.read_pins("tests/mcp_conformance/clients/contextforge.txt")[_PACKAGE]
    port, server_port = find_free_port(), find_free_port()
    with ExitStack() as stack:
        database = stack.enter_context(make_empty_database(database_url, "contextforge_bench"))
        env = _build_environment(database, port)
        server = stack.enter_context(_run([python, "-c", _SERVE, str(server_port)], env, folder / "server.log"))
        words: list[str | Path] = [python.parent / "mcpgateway", "--host", "127.0.0.1", "--port", str(port)]
        process = stack.enter_context(_run(words, env, folder / "contextforge.log"))
        gateway = ForgeGateway(
            f"127.0.0.1:{port}",
            version,
            _make_token(python, env),
            database,
            {GATEWAY: process.pid, SERVER: server.pid},
        )
        _register(gateway, server_port, process, folder / "contextforge.log")
        yield gateway


def _build_environment(database: str, port: int) -> dict[str, str]:
    """Secrets of its own: it starts with none that is easily guessed."""
    env = {name: value for name, value in os.environ.items() if not name.startswith(("TOOLHUB_", "DATABASE_"))}
    chosen = ("JWT_SECRET_KEY", "AUTH_ENCRYPTION_SECRET", "BASIC_AUTH_PASSWORD")
    passwords = ("PLATFORM_ADMIN_PASSWORD", "DEFAULT_USER_PASSWORD")
    return (
        env
        | {name: secrets.token_urlsafe(48) for name in chosen}
        | {name: f"{secrets.token_urlsafe(24)}!aA1" for name in passwords}
        | {
            "DATABASE_URL": database.replace("postgresql://", "postgresql+psycopg://", 1),
            "PLATFORM_ADMIN_EMAIL": _ADMIN,
            "BASIC_AUTH_USER": "admin",
            "AUTH_REQUIRED": "true",
            "CACHE_TYPE": "memory",  # for one process
            "MCPGATEWAY_UI_ENABLED": "false",
            "MCPGATEWAY_ADMIN_API_ENABLED": "false",
            "SSRF_ALLOW_LOCALHOST": "true",
            "LOG_LEVEL": "ERROR",
            "HOST": "127.0.0.1",
            "PORT": str(port),
        }
    )


@contextmanager
def _run(words: Sequence[str | Path], env: dict[str, str], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    with log.open("wb") as output:
        process = subprocess.Popen(
            words, cwd=log.parent, env=env, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT
        )
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _make_token(python: Path, env: dict[str, str]) -> str:
    words = ["--username", _ADMIN, "--exp", "1440", "--admin", "--secret", env["JWT_SECRET_KEY"]]
    done = subprocess.run(
        [python, "-m", "mcpgateway.utils.create_jwt_token", *words], env=env, capture_output=True, text=True
    )
    if done.returncode or not done.stdout.strip():
        raise CannotMeasure(f"ContextForge gave no token:\n{done.stderr[-2000:]}")
    return done.stdout.split()[-1]


def _register(gateway: ForgeGateway, server_port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    """Tell it of its server, and wait until a call is answered."""
    server = {"name": "bench", "url": f"http://127.0.0.1:{server_port}/mcp", "transport": "STREAMABLEHTTP"}
    caller, until, registered, last = ForgeCaller(gateway), time.monotonic() + START_S, False, ""
    while time.monotonic() < until and process.poll() is None:
        try:
            if not registered:
                status, said = caller.ask("POST", "/gateways", server)
                registered, last = status < 300, f"{status} {said}"
            elif caller.call()[0] == 200:
                return
        except (OSError, http.client.HTTPException, ValueError) as error:
            last = str(error)
        time.sleep(0.5)
    raise CannotMeasure(f"ContextForge did not start: {last[-500:]}\n{log.read_text(errors='replace')[-2000:]}")
