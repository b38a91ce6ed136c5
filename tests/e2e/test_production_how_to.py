"""Does somebody who types what the page on the production shape says get a call that was governed, sealed and verified?"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest

from scripts.provision.processes import free_port
from tests.crash.postgres import own_postgres
from tests.e2e.processes import Process, clean_environment
from tests.e2e.services import OwnRedis
from tests.e2e.wire import remove_boxes
from tests.how_to import WITHIN_S, Follower, blocks_of

if TYPE_CHECKING:
    from pathlib import Path

KEEPER = "the keeper's host"


def until_ready(worker: Process) -> None:
    worker.wait_for(lambda: " ready." in worker.said(), "the worker is ready", within_s=WITHIN_S)


@pytest.mark.long
@pytest.mark.req("TOOLS-18", "TOOLS-22", "CARD-5")
def test_the_page_ends_with_a_governed_sealed_and_verified_call(tmp_path: Path) -> None:
    redis, port = OwnRedis(tmp_path), free_port()
    with own_postgres() as postgres:
        server = re.match(r"postgresql://(?P<user>\w+):(?P<password>\w+)@(?P<host>[\w.]+):(?P<port>\d+)", postgres.url)
        assert server
        env = clean_environment(TOOLHUB_BIND=f"127.0.0.1:{port}", TOOLHUB_INSTANCE=str(tmp_path))
        env |= {f"PG{name.upper()}": value for name, value in server.groupdict().items()} | {"PGDATABASE": "postgres"}
        words = {
            "@db:5432": f"@{server['host']}:{server['port']}",
            "redis://default:REDIS-PASSWORD@redis:6379/0": redis.url,
            "https://hub.example.org": f"http://127.0.0.1:{port}",
            "hub.example.org": "127.0.0.1",
            "127.0.0.1:8000": f"127.0.0.1:{port}",
        }
        somebody = Follower(tmp_path, env, words)
        redis.start()
        try:
            printed = []
            for block in blocks_of("run-the-production-shape.md", section="By hand"):
                printed.append(somebody.follow(block))
                if block.service and "celery" in block.text:
                    until_ready(somebody.services[-1])
            call, sealed = printed[-2:]
        finally:
            somebody.stop()
            redis.stop()
            remove_boxes(str(tmp_path))

    assert json.loads(call.split("\n}")[0] + "\n}")["quantity"] == 2
    assert '"invocation.began"' in sealed
    assert '"invocation.ended"' in sealed
    assert not list((tmp_path / "web1").rglob("signing*")) + list((tmp_path / "worker1").rglob("signing*"))
    assert list(somebody.of(KEEPER).rglob("signing-keys.json"))
