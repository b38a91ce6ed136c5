"""The how-to on the production shape: does somebody who types what the page on the production shape says get a call that was
governed, sealed and verified?
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest

from scripts.provision.processes import free_port
from tests.crash.postgres import own_postgres
from tests.e2e.processes import Process, clean_environment
from tests.e2e.services import OwnRedis
from tests.e2e.tls_proxy import tls_proxy
from tests.e2e.wire import remove_boxes
from tests.support.how_to_follower import WITHIN_S, Block, Follower, blocks_of

if TYPE_CHECKING:
    from pathlib import Path

KEEPER = "the keeper's host"
PASSWORD = re.compile(r"password, shown this once: (\S+)")
# As a browser does it, which says where the form came from.
SIGN_IN = """
cd "$HERE"
curl -sS --fail -c cookies -o page https://hub.example.org/sign-in
TOKEN=$(sed -n 's/.*name="csrfmiddlewaretoken" value="\\([^"]*\\)".*/\\1/p' page | head -n 1)
curl -sS -b cookies -o answer -w '%{http_code}' https://hub.example.org/sign-in -H 'Origin: https://hub.example.org' \\
  -H 'Referer: https://hub.example.org/sign-in' -d "csrfmiddlewaretoken=$TOKEN" -d username=oona --data-urlencode 'password=PASSWORD'
"""


def until_ready(worker: Process) -> None:
    worker.wait_for(lambda: " ready." in worker.said(), "the worker is ready", within_s=WITHIN_S)


@pytest.mark.long
@pytest.mark.req("TOOLS-18", "TOOLS-22", "CARD-5")
def test_the_page_ends_with_a_governed_sealed_and_verified_call(tmp_path: Path) -> None:
    redis, port = OwnRedis(tmp_path), free_port()
    with own_postgres() as postgres, tls_proxy(tmp_path, "hub.example.org", port) as curl:
        server = re.match(r"postgresql://(?P<user>\w+):(?P<password>\w+)@(?P<host>[\w.]+):(?P<port>\d+)", postgres.url)
        assert server
        env = clean_environment(TOOLHUB_BIND=f"127.0.0.1:{port}", TOOLHUB_INSTANCE=str(tmp_path))
        env |= (
            {f"PG{name.upper()}": value for name, value in server.groupdict().items()}
            | {"PGDATABASE": "postgres"}
            | curl
        )
        words = {
            "@db:5432": f"@{server['host']}:{server['port']}",
            "redis://default:REDIS-PASSWORD@redis:6379/0": redis.url,
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
            printed += map(somebody.follow, blocks_of("run-the-production-shape.md", section="Connections"))
            password = next(found[1] for text in printed if (found := PASSWORD.search(text)))
            signed_in = somebody.follow(Block(KEEPER, False, SIGN_IN.replace("PASSWORD", password)))
        finally:
            somebody.stop()
            redis.stop()
            remove_boxes(str(tmp_path))

    assert json.loads(call.split("\n}")[0] + "\n}")["quantity"] == 2
    assert signed_in == "302"
    assert printed[-1].strip() == "ALTER SYSTEM"
    assert '"invocation.began"' in sealed
    assert '"invocation.ended"' in sealed
    assert not list((tmp_path / "web1").rglob("signing*")) + list((tmp_path / "worker1").rglob("signing*"))
    assert list(somebody.of(KEEPER).rglob("signing-keys.json"))
