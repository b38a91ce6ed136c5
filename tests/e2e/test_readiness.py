"""Readiness: does each process say whether it lives and can do its work, and does a web process say that it ends before it does?"""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

import psycopg
import pytest

from evidence.keys.check_values import FOREIGN
from evidence.keys.key_file import make_key_file
from scripts.provision.processes import free_port
from tests.e2e.processes import Process, clean_environment, python, run, until
from tests.e2e.services import OwnRedis, own_database
from tests.e2e.wire import request
from tests.support.migrated_databases import find_migrated_postgresql

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

AWAY = "DELETE FROM django_migrations WHERE app = 'invocations' RETURNING name"
BACK = "INSERT INTO django_migrations (app, name, applied) VALUES ('invocations', %s, now())"


def checks(url: str) -> tuple[int, dict[str, str]]:
    """The status of a probe and what it found; 0 while nobody answers."""
    try:
        answer = request("GET", url)
    except OSError:
        return 0, {}
    return answer.status, answer.json().get("checks", {})


@pytest.fixture(scope="module")
def env(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """Of a hub that is set up, with a database and a Redis of its own."""
    folder = tmp_path_factory.mktemp("readiness")
    redis = OwnRedis(folder)
    redis.start()
    with own_database(like=find_migrated_postgresql()) as url:
        settings = clean_environment(
            TOOLHUB_DATABASE_URL=url,
            TOOLHUB_REDIS_URL=redis.url,
            TOOLHUB_DATA_DIR=str(folder),
            TOOLHUB_INSTANCE=str(folder),
            TOOLHUB_BIND=f"127.0.0.1:{free_port()}",
            TOOLHUB_PROBE_BIND=f"127.0.0.1:{free_port()}",
            TOOLHUB_DRAIN_S="600",
        )
        run(python("manage.py", "init"), settings)
        yield settings
    redis.stop()


@pytest.fixture
def web(env: dict[str, str], tmp_path: Path) -> Iterator[Process]:
    process = Process(python("manage.py", "serve"), env, tmp_path / "web.log")
    try:
        process.wait_for(lambda: checks(f"http://{env['TOOLHUB_BIND']}/readyz")[0] == 200, "the web process is ready")
        yield process
    finally:
        process.kill()


@pytest.mark.req("TOOLS-18")
def test_a_web_process_that_was_told_to_end_says_so_and_goes_on_serving(web: Process, env: dict[str, str]) -> None:
    url = f"http://{env['TOOLHUB_BIND']}"

    web.send(signal.SIGTERM)

    until(lambda: checks(f"{url}/readyz")[0] == 503, "it is not ready any more")
    assert checks(f"{url}/readyz")[1]["process"] == "ending"
    assert request("GET", f"{url}/healthz").status == 200
    web.send(signal.SIGTERM)
    assert web.ended() == 0


@pytest.mark.req("TOOLS-18")
def test_a_web_process_is_not_ready_while_a_migration_or_a_key_is_missing(
    web: Process, env: dict[str, str], tmp_path: Path
) -> None:
    ready, key_file = f"http://{env['TOOLHUB_BIND']}/readyz", f"{env['TOOLHUB_DATA_DIR']}/keys.json"
    with psycopg.connect(env["TOOLHUB_DATABASE_URL"], autocommit=True) as database:
        made = database.execute(AWAY).fetchall()
        status, found = checks(ready)
        database.cursor().executemany(BACK, made)
    assert (status, found["migrations"], found["database"]) == (503, "not all are applied", "ok")
    kept = tmp_path / "keys.json"
    run(["mv", key_file, str(kept)], env)
    assert checks(ready) == (503, checks(ready)[1] | {"keys": "missing or not readable"})
    run(["mv", str(kept), key_file], env)
    assert checks(ready)[0] == 200


WORKER, KEEP, UPKEEP = ("-m", "celery", "-A", "toolhub", "worker"), ("manage.py", "keep"), ("manage.py", "upkeep")


@pytest.mark.req("SPEC-10")
@pytest.mark.parametrize("command", [("manage.py", "serve"), WORKER, KEEP, UPKEEP], ids=" ".join)
def test_no_process_starts_with_the_key_file_of_another_hub(
    command: tuple[str, ...], env: dict[str, str], tmp_path: Path
) -> None:
    foreign = tmp_path / "keys.json"
    make_key_file(foreign)
    process = Process(python(*command), env | {"TOOLHUB_KEY_FILE": str(foreign)}, tmp_path / "process.log")
    try:
        assert process.ended() != 0
    finally:
        process.kill()
    assert "toolhub does not start. " + FOREIGN.format("k1") in process.said()


@pytest.mark.req("TOOLS-18")
@pytest.mark.parametrize(
    ("command", "loops"),
    [(KEEP, {"sealer", "verifier"}), (UPKEEP, {"sender", "callbacks"}), (WORKER, {"sweeper", "canceller"})],
)
def test_a_process_without_requests_answers_both_probes(
    command: tuple[str, ...], loops: set[str], env: dict[str, str], tmp_path: Path
) -> None:
    address = env["TOOLHUB_PROBE_BIND"]
    process = Process(python(*command), env, tmp_path / "process.log")
    try:
        process.wait_for(lambda: checks(f"http://{address}/readyz")[0] == 200, "it is ready")
        status, found = checks(f"http://{address}/healthz")
        assert (status, loops <= found.keys(), set(found.values())) == (200, True, {"ok"})
        assert '"ok": true' in run(python("-ISB", "toolhub/probes/client.py", "readyz", address), env)
    finally:
        process.kill()
