"""Web, worker and keeper: is each line of their logs an object, and can a request be found in it?"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

from scripts.provision.processes import free_port
from tests.e2e.processes import Process, clean_environment, python, run
from tests.e2e.services import own_database
from tests.e2e.wire import answers, request

if TYPE_CHECKING:
    from pathlib import Path

GREETINGS = ("Serving on", "Stopped", "A signing key was made")
KEYS = {"time", "level", "logger", "message", "request_id", "call_id", "tenant", "trace_id"}


def objects_of(process: Process) -> list[dict[str, str]]:
    """Every line that is not the program's own greeting: that is no line of a log."""
    lines = [line for line in process.said().splitlines() if line.startswith("{")]
    return [json.loads(line) for line in lines]


def test_every_process_logs_objects_and_a_request_is_found_in_them(tmp_path: Path) -> None:
    with own_database() as database:
        env = clean_environment(
            TOOLHUB_DATABASE_URL=database,
            TOOLHUB_REDIS_URL=os.environ["TOOLHUB_TEST_REDIS_URL"],
            TOOLHUB_DATA_DIR=str(tmp_path),
            TOOLHUB_SECRET_KEY="x" * 50,
            TOOLHUB_SANDBOX="fake",
            TOOLHUB_BIND=f"127.0.0.1:{free_port()}",
            TOOLHUB_LOG_FORMAT="json",
        )
        run(python("manage.py", "init"), env)
        web = Process(python("manage.py", "serve"), env, tmp_path / "web.log")
        worker = Process(
            python("-m", "celery", "-A", "toolhub", "worker", "--loglevel", "INFO"), env, tmp_path / "w.log"
        )
        keeper = Process(python("manage.py", "keep"), env, tmp_path / "keeper.log")
        url = f"http://{env['TOOLHUB_BIND']}"
        try:
            web.wait_for(lambda: answers(f"{url}/readyz"), "the web process is ready")
            worker.wait_for(lambda: " ready." in worker.said(), "the worker is ready")
            answer = request("GET", f"{url}/api/v1/tools", headers={"X-Request-ID": "request-of-a-test"})
            strange = request("GET", f"{url}/sign-in", headers={"Host": "evil.example"})
            # Whatever the keeper wrote by then is looked at below.
        finally:
            for process in (web, worker, keeper):
                process.stop()

    assert (answer.status, strange.status) == (401, 400)
    for line in [*objects_of(web), *objects_of(worker), *objects_of(keeper)]:
        assert line.keys() >= KEYS, line
    said = objects_of(web)
    (access,) = (line for line in said if line["logger"] == "uvicorn.access" and "/api/v1/tools" in line["message"])
    assert access["request_id"] == "request-of-a-test" == answer.headers["x-request-id"]
    assert len(access["trace_id"]) == 32
    (host,) = (line for line in said if line["logger"] == "django.security.DisallowedHost")
    assert (host["level"], "exc_info" in host) == ("WARNING", False)
    assert any(line["logger"].startswith("celery.") for line in objects_of(worker))
    for process in (web, keeper):
        others = [line for line in process.said().splitlines() if line and not line.startswith("{")]
        assert [line for line in others if not line.startswith(GREETINGS)] == []
