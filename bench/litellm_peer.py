"""LiteLLM peer: its proxy in an environment and a process of its own, before the same provider.

With a database it knows virtual keys and their budgets. Its client for databases (prisma) needs programs that it fetches when it is
set up; where they cannot be had, the proxy runs without a database, and what it does with budgets is not measured.
"""

from __future__ import annotations

import json
import os
import subprocess
import time
import urllib.request
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bench.figures import CannotMeasure
from bench.hubs import find_free_port, make_empty_database
from bench.model_callers import ModelDoor
from bench.model_provider import MODEL
from scripts.provision import peers, venv
from scripts.provision.console import SetupError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

START_S = 180
KEY = "sk-bench-master"
END = b"[DONE]"
GENERATE = """
import pathlib, sys, litellm.proxy
schema = pathlib.Path(litellm.proxy.__path__[0], "schema.prisma")
sys.argv = ["prisma", "generate", "--schema", str(schema)]
from prisma.cli import main
main()
"""


@dataclass(frozen=True, slots=True)
class LitellmProxy:
    host: str
    version: str
    without_database: str = ""  # why there is none

    def open_door(self, key: str = KEY) -> ModelDoor:
        return ModelDoor(f"LiteLLM {self.version}", self.host, "/v1/chat/completions", key, END)

    def make_key(self, usd: float) -> str:
        """A virtual key that may spend so much."""
        body = json.dumps({"max_budget": usd, "models": [MODEL]}).encode()
        headers = {"Authorization": f"Bearer {KEY}", "Content-Type": "application/json"}
        request = urllib.request.Request(f"http://{self.host}/key/generate", body, headers)
        with urllib.request.urlopen(request, timeout=60) as response:
            return str(json.load(response)["key"])


def _find_reason(python: Path, env: dict[str, str]) -> str:
    """Why the client for databases cannot be set up; empty where it can."""
    try:
        done = subprocess.run(
            [python, "-c", GENERATE], env=env, capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL
        )
    except subprocess.TimeoutExpired:
        return "prisma could not fetch its engines within two minutes"
    said = next((line for line in (done.stderr + done.stdout).splitlines() if "rror" in line), "it says no reason")
    return "" if done.returncode == 0 else f"prisma, its client for databases, cannot be set up ({said[-300:]})"


@contextmanager
def run_litellm(provider_url: str, database_url: str, folder: Path) -> Iterator[LitellmProxy]:
    """The proxy as its documentation starts it, one worker. Raises CannotMeasure where it cannot be installed or does not start."""
    try:
        python = peers.ensure_python("litellm")
    except SetupError as error:
        raise CannotMeasure(f"LiteLLM cannot be installed here: {error}") from error
    pins = venv.read_pins("tests/mcp_conformance/clients/litellm.txt")
    env = {name: value for name, value in os.environ.items() if not name.startswith(("TOOLHUB_", "DATABASE_"))}
    env |= {
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        "HOME": str(python.parent.parent),
        "PATH": f"{python.parent}:{env['PATH']}",
    }
    reason = _find_reason(python, env)
    with make_empty_database(database_url, "litellm_bench") as own:
        if not reason:
            env["DATABASE_URL"] = own
        host = f"127.0.0.1:{find_free_port()}"
        with _run_proxy(python, env, provider_url, host, folder):
            yield LitellmProxy(host, pins["litellm"], reason)


@contextmanager
def _run_proxy(python: Path, env: dict[str, str], provider_url: str, host: str, folder: Path) -> Iterator[None]:
    config, log = folder / "litellm.yaml", folder / "litellm.log"
    params = {"model": f"openai/{MODEL}", "api_base": f"{provider_url}/v1", "api_key": "sk-bench"}
    said = {
        "model_list": [{"model_name": MODEL, "litellm_params": params}],
        "litellm_settings": {"telemetry": False, "num_retries": 0},
        "general_settings": {"master_key": KEY},
    }
    config.write_text(json.dumps(said))  # JSON is YAML
    words: list[str | Path] = [
        python.parent / "litellm",
        "--config",
        config,
        "--host",
        "127.0.0.1",
        "--port",
        host.rpartition(":")[2],
    ]
    with log.open("wb") as output:
        process = subprocess.Popen(
            words, env=env, cwd=folder, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT
        )
    try:
        _wait(host, process, log)
        yield
    finally:
        process.terminate()
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait(host: str, process: subprocess.Popen[bytes], log: Path) -> None:
    until = time.monotonic() + START_S
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    while True:
        try:
            opener.open(f"http://{host}/health/liveliness", timeout=5).close()
            return
        except OSError:
            if process.poll() is not None or time.monotonic() > until:
                raise CannotMeasure(f"LiteLLM did not start:\n{log.read_text(errors='replace')[-2000:]}") from None
            time.sleep(0.2)
