"""Hubs: the ones that are measured, fresh, in directories and databases of their own that go away afterwards."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
from psycopg import sql

from bench.figures import ROOT, CannotMeasure, MeasuredTimes
from invocations.stored_steps import read_stored_steps

if TYPE_CHECKING:
    from collections.abc import Iterator

START_S = 240
TOOL = "commerce.pricing.get_realtime_quote"
DURABLE = ("fsync", "synchronous_commit", "full_page_writes")  # off: a commit waits for nothing, and figures flatter
_NUMBERS = count(1)  # of the databases of this process
NOWHERE = "redis://127.0.0.1:1/0"  # settings ask for both or neither; a preflight rings no bell


@contextmanager
def make_fresh_data() -> Iterator[dict[str, str]]:
    """An environment with data of its own, and a copy of the tools: editing them meanwhile would change their build."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("TOOLHUB_")}
    if image := os.environ.get("TOOLHUB_SANDBOX_IMAGE"):
        env["TOOLHUB_SANDBOX_IMAGE"] = image
    with tempfile.TemporaryDirectory(prefix="toolhub-bench-") as folder:
        shutil.copytree(ROOT / "tools", Path(folder, "tools"))
        yield env | {
            "TOOLHUB_ENV_FILE": "",
            "TOOLHUB_DATA_DIR": f"{folder}/data",
            "TOOLHUB_TOOLS_PATH": f"{folder}/tools",
            "TOOLHUB_LOG_LEVEL": "ERROR",
        }


@contextmanager
def make_empty_database(url: str, name: str) -> Iterator[str]:
    """The address of a database of its own on this server, which goes away afterwards. ``name``: how its name begins."""
    own = f"{name}_{os.getpid()}"
    with psycopg.connect(url, autocommit=True) as server:
        server.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(own)))
    try:
        yield url.rpartition("/")[0] + "/" + own
    finally:
        with psycopg.connect(url, autocommit=True) as server:
            server.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(own)))


def run_python(env: dict[str, str], *words: str, checkout: Path = ROOT) -> str:
    done = subprocess.run([sys.executable, *words], cwd=checkout, env=env, capture_output=True, text=True)
    if done.returncode:
        raise CannotMeasure(f"{' '.join(words)} failed:\n{done.stderr[-2000:]}")
    return done.stdout


def measure_in(env: dict[str, str], module: str, *words: str) -> dict[str, list[float]]:
    """What ``module`` prints on a migrated database: name -> milliseconds."""
    Path(env["TOOLHUB_DATA_DIR"]).mkdir(parents=True, exist_ok=True)
    run_python(env, "manage.py", "migrate", "--no-input")
    found: dict[str, list[float]] = json.loads(run_python(env, "-m", module, *words).splitlines()[-1])
    return found


def measure_on_sqlite(module: str, *words: str) -> dict[str, list[float]]:
    with make_fresh_data() as env:
        return measure_in(env, module, *words)


def measure_on_postgresql(url: str, module: str, *words: str) -> dict[str, list[float]]:
    """On a fresh database of the server that ``url`` names."""
    with make_own_database(url) as env:
        return measure_in(env, module, *words)


def describe_database(url: str) -> list[tuple[str, str]]:
    """Which PostgreSQL is measured, for the table of the machine. Refuses one whose commits do not wait for the disk."""
    try:
        with psycopg.connect(url, connect_timeout=5) as server:
            version = server.info.parameter_status("server_version") or ""
            shown = {name: server.execute(f"SHOW {name}").fetchone() for name in DURABLE}
    except psycopg.Error as error:
        raise CannotMeasure(f"PostgreSQL at TOOLHUB_TEST_DATABASE_URL cannot be used: {error}") from error
    values = {name: row[0] if row else "" for name, row in shown.items()}
    if wrong := [f"{name} = {value}" for name, value in values.items() if value == "off"]:
        raise CannotMeasure(
            f"PostgreSQL does not wait for its disk ({', '.join(wrong)}), as the one of the tests does not. "
            "Type `make bench`, which starts one that does."
        )
    return [("PostgreSQL", f"{version}, {', '.join(f'{name} {value}' for name, value in values.items())}")]


@contextmanager
def make_own_database(url: str, *, checkout: Path = ROOT) -> Iterator[dict[str, str]]:
    """The environment of a hub with a database beside the one that ``url`` names. ``checkout``: where it runs from."""
    name = f"toolhub_bench_{os.getpid()}_{next(_NUMBERS)}"
    own = url.rpartition("/")[0] + "/" + name
    try:
        with psycopg.connect(url, autocommit=True, connect_timeout=5) as server:
            server.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
    except psycopg.Error as error:
        raise CannotMeasure(f"PostgreSQL at TOOLHUB_TEST_DATABASE_URL cannot be used: {error}") from error
    try:
        with make_fresh_data() as env:
            env |= {"TOOLHUB_DATABASE_URL": own, "TOOLHUB_REDIS_URL": NOWHERE}
            Path(env["TOOLHUB_DATA_DIR"]).mkdir(parents=True, exist_ok=True)
            run_python(
                env, "manage.py", "init", "--keys-only", checkout=checkout
            )  # the production shape makes none by itself
            yield env
    finally:
        with psycopg.connect(url, autocommit=True) as server:
            server.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


def seed_hub(env: dict[str, str], *, checkout: Path = ROOT) -> str:
    """Migrate the database and set up the demonstration with the tools that cost nothing; the API key of its agent."""
    run_python(env, "manage.py", "migrate", "--no-input", checkout=checkout)
    shutil.copytree(ROOT / "tests/tools/sample", Path(env["TOOLHUB_TOOLS_PATH"], "sample"))
    said = run_python(env, "manage.py", "seed_demo", checkout=checkout)
    run_python(env, "-m", "bench.hub_setup", checkout=checkout)
    if database := env.get("TOOLHUB_DATABASE_URL"):
        vacuum_database(database)
    return said.split("API key")[1].split()[0]


def vacuum_database(url: str) -> None:
    """What PostgreSQL does by itself within minutes of a migration. Its catalogs change by that, and every connection plans all its
    statements anew: 10 ms of a call or two, which a hub in use does not see.
    """
    with psycopg.connect(url, autocommit=True) as server:
        server.execute("VACUUM (ANALYZE)")


def find_free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _post(base: str, path: str, key: str, body: dict[str, Any]) -> tuple[float, dict[str, Any]]:
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    request = urllib.request.Request(base + path, data=json.dumps(body).encode(), headers=headers)
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    begun = time.perf_counter()
    try:
        with opener.open(request, timeout=60) as response:
            answer = json.loads(response.read())
    except urllib.error.HTTPError as error:
        raise CannotMeasure(f"{path} answered {error.code}: {error.read().decode()[:500]}") from error
    return (time.perf_counter() - begun) * 1000, answer


def wait_until_it_answers(base: str, process: subprocess.Popen[bytes], log: Path) -> None:
    until = time.monotonic() + START_S
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    while True:
        try:
            opener.open(f"{base}/healthz", timeout=2).close()
            return
        except OSError:
            if process.poll() is not None or time.monotonic() > until:
                raise CannotMeasure(f"The hub did not start:\n{log.read_text()[-2000:]}") from None
            time.sleep(0.1)


@contextmanager
def run_embedded_hub(*, checkout: Path = ROOT, **settings: str) -> Iterator[tuple[str, dict[str, str], int]]:
    """The embedded hub in a process of its own: (address, its environment, its process). Its log is ``bench.log``."""
    with make_fresh_data() as env:
        env |= settings
        base = f"127.0.0.1:{find_free_port()}"
        data = Path(env["TOOLHUB_DATA_DIR"])
        data.mkdir(parents=True)
        log = data / "bench.log"
        with log.open("wb") as output:
            process = subprocess.Popen(
                [sys.executable, "scripts/start_hub.py"],
                cwd=checkout,
                env=env | {"TOOLHUB_BIND": base},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            try:
                wait_until_it_answers(f"http://{base}", process, log)
                yield f"http://{base}", env, process.pid
            finally:
                process.send_signal(signal.SIGINT)
                try:
                    process.wait(30)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()


def measure_calls(count: int) -> tuple[list[MeasuredTimes], list[MeasuredTimes]]:
    """Over HTTP: (whole call and preflight as the caller sees them, the call's parts by its recorded steps)."""
    with run_embedded_hub() as (base, env, _):
        data = Path(env["TOOLHUB_DATA_DIR"])
        key = json.loads((data / "demo-credentials.json").read_text())["api_key"]
        body = {"actor": {"type": "agent", "id": "bench"}, "arguments": {"sku": "HEADPHONES-ANC", "quantity": 2}}
        whole, decided = [], []
        for number in range(-1, count):
            ms, answer = _post(base, f"/api/v1/tools/{TOOL}/invoke", key, body | {"request_id": f"bench-{number:06}"})
            asked, _ = _post(base, f"/api/v1/tools/{TOOL}/preflight", key, body | {"request_id": f"bench-{number:06}"})
            if answer["data"] is None:
                raise CannotMeasure(f"The call had no value: {json.dumps(answer['error'])}")
            if number >= 0:
                whole.append(ms)
                decided.append(asked)
        with sqlite3.connect(f"file:{data}/toolhub.sqlite3?mode=ro", uri=True) as database:
            rows = database.execute("SELECT steps FROM invocations_invocation ORDER BY id DESC LIMIT ?", [count])
            logs = [read_stored_steps(json.loads(row[0])) for row in rows][::-1]
    return [MeasuredTimes("call", whole), MeasuredTimes("preflight only", decided)], split_steps(whole, logs)


def split_steps(whole: list[float], logs: list[list[dict[str, Any]]]) -> list[MeasuredTimes]:
    """Each recorded step; those of the preflight as one; what no step covers as the rest."""
    found: dict[str, list[float]] = {}
    for ms, steps in zip(whole, logs, strict=True):
        parts: dict[str, float] = {}
        for step in steps:
            name = "preflight, all steps" if step["name"].startswith("preflight.") else step["name"]
            if name == "sandbox.execute":
                continue  # its parts follow it
            parts[name] = parts.get(name, 0.0) + step["end_ms"] - step["begin_ms"]
        parts["rest: HTTP, key, facts, sealing, commits"] = ms - sum(parts.values())
        for name, value in parts.items():
            found.setdefault(name, []).append(value)
    return [MeasuredTimes(name, values) for name, values in found.items()]
