"""A frozen keeper: does a keeper that is stopped in the middle of sealing, or whose host is gone, keep the others from it?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from django.db import connection

from tests.integration.evidence.log.test_sealer_crashes import begun, ended, process
from tests.support.background_runs import wait_for

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.django_db


def holds_the_lock(database: str) -> bool:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_locks l JOIN pg_database d ON d.oid = l.database WHERE l.locktype = 'advisory' AND datname = %s",
            [database],
        )
        return bool(cursor.fetchone()[0])


@pytest.mark.req("TOOLS-18")
def test_a_keeper_that_is_frozen_keeps_nobody_from_sealing(begun_database: str, tmp_path: Path) -> None:
    process(begun_database, tmp_path, "migrate", "write")
    wakes = tmp_path / "wakes"
    frozen = begun(begun_database, tmp_path, "seal", faults=f"seal.before_commit=stop:{wakes}")
    wait_for(lambda: holds_the_lock(begun_database))

    other = process(begun_database, tmp_path, "write", "seal", "check")
    wakes.touch()
    late = ended(frozen)
    after = process(begun_database, tmp_path, "seal", "check")

    assert other.stdout.strip() == after.stdout.strip() == "66 facts, 66 leaves, 0 pending", other.stderr + after.stderr
    assert "idle-in-transaction" in late.stderr
