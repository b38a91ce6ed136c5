"""Web, worker and keeper: is each line of their logs an object, and can a request and its call be found in it?"""

from __future__ import annotations

import json
import os
import shutil
from typing import TYPE_CHECKING

import psycopg

from kernel.ids import decode
from scripts.provision.processes import free_port
from tests.e2e.conftest import TOOLS_PATH, Credentials
from tests.e2e.processes import Process, clean_environment, python, until
from tests.e2e.production import arranged
from tests.e2e.services import own_database
from tests.e2e.wire import Agent, answers, request

if TYPE_CHECKING:
    from pathlib import Path

ECHO = "sample.tools.echo"
GREETINGS = ("Serving on", "Stopped", "A signing key was made", "worker: Warm shutdown")
KEYS = {"time", "level", "logger", "message", "request_id", "call_id", "tenant", "trace_id"}


def objects_of(process: Process) -> list[dict[str, str]]:
    """Every line that is not the program's own greeting: that is no line of a log."""
    lines = [line for line in process.said().splitlines() if line.startswith("{")]
    return [json.loads(line) for line in lines]


def make_unreadable(database: str, call_id: str) -> str:
    """The call's profile, so that the worker says something about its run; returns the tenant of the call."""
    with psycopg.connect(database) as connection:
        changed = "UPDATE invocations_invocation SET profile_hash = 'sha256:none' WHERE id = %s RETURNING tenant_id"
        row = connection.execute(changed, [decode("inv", call_id)]).fetchone()
    assert row
    return str(row[0])


def test_every_process_logs_objects_and_a_call_is_found_in_them(tmp_path: Path) -> None:
    prepared = arranged()
    with own_database(like=prepared.database_url) as database:
        env = clean_environment(
            TOOLHUB_DATABASE_URL=database,
            TOOLHUB_REDIS_URL=os.environ["TOOLHUB_TEST_REDIS_URL"],
            TOOLHUB_DATA_DIR=str(shutil.copytree(str(prepared.folder), tmp_path / "data")),
            TOOLHUB_SECRET_KEY="x" * 50,
            TOOLHUB_SANDBOX="fake",
            TOOLHUB_TOOLS_PATH=TOOLS_PATH,
            TOOLHUB_BIND=f"127.0.0.1:{free_port()}",
            TOOLHUB_LOG_FORMAT="json",
        )
        url = f"http://{env['TOOLHUB_BIND']}"
        processes = [web := Process(python("manage.py", "serve"), env, tmp_path / "web.log")]
        try:
            web.wait_for(lambda: answers(f"{url}/readyz"), "the web process is ready")
            answer = request("GET", f"{url}/api/v1/tools", headers={"X-Request-ID": "request-of-a-test"})
            strange = request("GET", f"{url}/sign-in", headers={"Host": "evil.example"})
            agent = Agent(url, Credentials(prepared.said).key)
            asked = {"Prefer": "respond-async", "X-Request-ID": "request-of-a-call"}
            made = agent.invoke(ECHO, {"text": "hello"}, asked)
            tenant = make_unreadable(database, made.call_id)
            # Quiet, or Celery greets in a form of its own; and without Python's own warning that tests run as root.
            command = python("-m", "celery", "-A", "toolhub", "--quiet", "worker", "--loglevel", "INFO")
            processes.append(worker := Process(command, env | {"PYTHONWARNINGS": "ignore"}, tmp_path / "worker.log"))
            processes.append(Process(python("manage.py", "keep"), env, tmp_path / "keeper.log"))
            until(lambda: agent.state(made.call_id) == "cancelled", "the call has ended")
            # Whatever the keeper wrote by then is looked at below.
        finally:
            for process in processes:
                process.stop()

    assert (answer.status, strange.status, made.status) == (401, 400, 202)
    for process in processes:
        assert [line for line in objects_of(process) if not line.keys() >= KEYS] == []
        others = [line for line in process.said().splitlines() if line and not line.startswith("{")]
        assert [line for line in others if not line.startswith(GREETINGS)] == []
    said = objects_of(web)
    (access,) = (line for line in said if line["logger"] == "uvicorn.access" and "/api/v1/tools " in line["message"])
    assert access["request_id"] == "request-of-a-test" == answer.headers["x-request-id"]
    assert len(access["trace_id"]) == 32
    (host,) = (line for line in said if line["logger"] == "django.security.DisallowedHost")
    assert (host["level"], "exc_info" in host) == ("WARNING", False)
    assert any(line["logger"].startswith("celery.") for line in objects_of(worker))
    (called,) = (line for line in said if line["logger"] == "uvicorn.access" and "/invoke " in line["message"])
    (about,) = (
        line for line in objects_of(worker) if line["logger"] == "toolhub.worker" and "profile" in line["message"]
    )
    for line in (called, about):
        found = (line["request_id"], line["call_id"], line["tenant"])
        assert found == ("request-of-a-call", made.call_id, tenant)
