"""The keeper and witnesses: does a keeper show its log to witnesses, each a process of its own, and is a hub whose database was
set back found?
"""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from tests.e2e.processes import Process, clean_environment, python, run, until
from tests.support.migrated_databases import FILE, copy_migrated_sqlite
from tests.support.witness_processes import witness_process

if TYPE_CHECKING:
    from pathlib import Path

WRITE = "from tests.support.evidence_logs import write_facts; from kernel.ids import new_id; write_facts(new_id(), 5)"
VKEY = (
    "from evidence.log.reader import list_vkeys, load_origin; from evidence.models import GLOBAL_LOG; "
    "print(list_vkeys(load_origin(GLOBAL_LOG))[0])"
)


def asked(folder: Path, query: str) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(folder / "toolhub.sqlite3")) as database:
        return database.execute(query).fetchall()


def seen(folder: Path) -> int:
    """The size that a witness has cosigned; 0 before the first."""
    file = folder / "seen.json"
    return max((entry[0] for entry in json.loads(file.read_text()).values()), default=0) if file.exists() else 0


@pytest.mark.req("TOOLS-18")
def test_two_witnesses_cosign_and_refuse_the_hub_after_its_database_was_set_back(tmp_path: Path) -> None:
    hub, one, two = tmp_path / "hub", tmp_path / "one", tmp_path / "two"
    env = clean_environment(TOOLHUB_DATA_DIR=str(hub), TOOLHUB_OUTBOUND_NETWORKS="127.0.0.0/8")
    if not copy_migrated_sqlite(hub / FILE):
        run(python("manage.py", "migrate", "-v", "0"), env)
    run(python("manage.py", "shell", "-v", "0", "-c", WRITE), env)
    run(python("manage.py", "keep", "--once"), env)
    vkey = run(python("manage.py", "shell", "-v", "0", "-c", VKEY), env).strip().splitlines()[-1]
    with (
        witness_process(one, vkey, name="one.example") as first,
        witness_process(two, vkey, name="two.example") as second,
    ):
        env["TOOLHUB_WITNESSES"] = f"{first.setting} {second.setting}"
        keeper = Process(python("manage.py", "keep"), env, tmp_path / "keeper.log")
        keeper.wait_for(lambda: seen(one) and seen(two), "both have cosigned")
        keeper.stop()
        shutil.copytree(hub, tmp_path / "older")
        before = seen(one)
        run(python("manage.py", "shell", "-v", "0", "-c", WRITE), env)
        keeper = Process(python("manage.py", "keep"), env, tmp_path / "keeper2.log")
        keeper.wait_for(lambda: seen(one) > before and seen(two) > before, "both have seen more")
        keeper.stop()
        after = seen(one)

        shutil.rmtree(hub)
        shutil.copytree(tmp_path / "older", hub)
        keeper = Process(python("manage.py", "keep"), env, tmp_path / "keeper3.log")
        try:
            # An anchor that has what the hub has is asked again after minutes; a fact makes news at once.
            run(python("manage.py", "shell", "-v", "0", "-c", WRITE), env)
            query = "SELECT last_error FROM evidence_anchor WHERE refused_at IS NOT NULL"
            said = until(lambda: len(found := asked(hub, query)) == 2 and found, "both refuse")
        finally:
            keeper.stop()

    assert said
    for (error,) in said:
        assert "set back" in str(error) or "rewritten" in str(error)
    assert seen(one) == seen(two) == after
    [(facts,)] = asked(hub, "SELECT count(*) FROM evidence_fact WHERE kind = 'anchor.refused'")
    assert facts == 2
