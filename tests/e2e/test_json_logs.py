"""Web, worker and keeper: is each line of their logs an object, and can a call be found in it?"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.e2e.processes import Process, python
from tests.e2e.production import production_at
from tests.e2e.wire import request

if TYPE_CHECKING:
    from pathlib import Path

KEYS = {"time", "level", "logger", "message", "request_id", "call_id", "tenant", "trace_id"}


def objects_of(process: Process) -> list[dict[str, str]]:
    """Every line that is not the program's own greeting: that is no line of a log."""
    lines = [line for line in process.said().splitlines() if line.startswith("{")]
    return [json.loads(line) for line in lines]


@pytest.mark.req("TOOLS-27")
def test_every_process_logs_objects_and_a_call_is_found_in_them(tmp_path: Path) -> None:
    with production_at(tmp_path, TOOLHUB_LOG_FORMAT="json", TOOLHUB_LOG_LEVEL="INFO") as hub:
        keeper = Process(python("manage.py", "keep"), hub.env, tmp_path / "keeper.log")
        try:
            assert hub.web is not None
            assert hub.worker is not None
            answer = hub.agent.invoke("sample.tools.crashes", {"text": "x"}, {"X-Request-ID": "request-of-a-test"})
            assert answer.status == 502
            strange = request("GET", f"{hub.url}/sign-in", headers={"Host": "evil.example"})
            assert strange.status == 400
            keeper.wait_for(lambda: hub.count("SELECT count(*) FROM evidence_log WHERE size > 0") > 0, "it has sealed")
        finally:
            keeper.stop()
        web, worker = objects_of(hub.web), objects_of(hub.worker)

    for line in [*web, *worker, *objects_of(keeper)]:
        assert line.keys() >= KEYS, line
    (access,) = (line for line in web if line["logger"] == "uvicorn.access" and "/invoke" in line["message"])
    assert access["request_id"] == "request-of-a-test" == answer.headers["x-request-id"]
    assert access["call_id"] == answer.call_id
    assert access["tenant"]
    assert len(access["trace_id"]) == 32
    assert any(line["logger"].startswith("celery.") for line in worker)
    (host,) = (line for line in web if line["logger"] == "django.security.DisallowedHost")
    assert (host["level"], "exc_info" in host) == ("WARNING", False)
    said = [line for line in hub.web.said().splitlines() if line]
    assert [
        line for line in said if not line.startswith("{") and "Serving on" not in line and "Stopped" not in line
    ] == []
