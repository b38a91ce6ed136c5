"""A database that was set back: is a hub whose database file was put back to an older one seen by people and by the documented
alert, as soon as it runs again?
"""

from __future__ import annotations

import re
import shutil
import sqlite3
import urllib.request
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from evidence.models import GLOBAL_LOG
from tests.e2e.console import Person
from tests.e2e.processes import until

if TYPE_CHECKING:
    from pathlib import Path

    from tests.e2e.conftest import Embedded

TITLE = "The log does not verify: the log of checkpoints, which all tenants share"
TOKEN = "for-the-scrape"
ECHO = "sample.tools.echo"


def kept(hub: Embedded) -> int:
    """How many leaves the checkpoint has that the keeper keeps beside the database."""
    path = hub.data / "checkpoint.kept"
    return int(path.read_text().splitlines()[1]) if path.exists() else 0


def failing(hub: Embedded) -> float:
    request = urllib.request.Request(f"{hub.url}/metrics", headers={"Authorization": f"Bearer {TOKEN}"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        lines = [line for line in answer.read().decode().splitlines() if not line.startswith("#")]
    return sum(float(line.split()[-1]) for line in lines if line.startswith("toolhub_evidence_verification_failures"))


def whole_copy(source: Path, copy: Path) -> None:
    """Of the database, as a backup is made."""
    with closing(sqlite3.connect(source)) as database, closing(sqlite3.connect(copy)) as target:
        database.backup(target)


def leaves_of(database: Path) -> int:
    """Of the log of checkpoints, which has one for each tenant's seal."""
    with closing(sqlite3.connect(database)) as connection:
        (size,) = connection.execute("SELECT size FROM evidence_log WHERE tenant_id = ?", [GLOBAL_LOG.hex]).fetchone()
    return int(size)


@pytest.mark.req("TOOLS-18", "CARD-6")
def test_a_database_file_that_was_put_back_is_seen_at_once(own_hub: Embedded, tmp_path: Path) -> None:
    hub, backup = own_hub, tmp_path / "backup.sqlite3"
    hub.env["TOOLHUB_METRICS_TOKEN"] = TOKEN
    assert hub.credentials
    database = hub.data / "toolhub.sqlite3"
    with hub.served():
        hub.agent.invoke(ECHO, {"text": "before"})  # whatever becomes of it, it is evidence
        until(lambda: kept(hub), "a checkpoint is kept")
        whole_copy(database, backup)
        hub.agent.invoke(ECHO, {"text": "after"})
        until(lambda: kept(hub) > leaves_of(backup), "a newer checkpoint is kept")
        assert failing(hub) == 0
    for each in hub.data.glob("toolhub.sqlite3*"):
        each.unlink()
    shutil.copy(backup, database)

    process = hub.start()
    try:
        until(lambda: failing(hub) == 1, "the alert fires")
        with Person(hub.url, "aaron", hub.credentials.password("aaron")) as auditor:
            for path in ("/", "/evidence/integrity"):
                assert TITLE in auditor.open(path)[1]
            found = re.search(r"/evidence/integrity/ver_\w+", auditor.open("/evidence/integrity")[1])
            assert found
            assert "log.rolled_back" in auditor.open(found[0])[1]
    finally:
        process.stop()
    assert process.said().count("log.rolled_back") <= 1
