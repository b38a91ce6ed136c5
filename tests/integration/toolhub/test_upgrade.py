"""Upgrade: does a hub of the release before become one of this release, with all that it holds?"""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from django.conf import settings
from django.core.management import call_command
from django.core.management.base import CommandError, SystemCheckError
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.recorder import MigrationRecorder

from kernel.canonical import compute_digest
from tests.support.older_hub import PROFILE, STEP
from toolhub.database.migration_state import find_missing_migrations
from toolhub.management.commands import doctor
from toolhub.management.commands.serve import check_database
from toolhub.probes.readiness import check_readiness


@pytest.mark.req("TOOLS-1")
def test_what_an_older_hub_holds_is_there_after_the_upgrade(empty_database: str) -> None:
    words = [sys.executable, "-m", "tests.support.older_hub", empty_database]
    done = subprocess.run(words, cwd=settings.BASE_DIR, capture_output=True, text=True)

    assert done.returncode == 0, done.stderr
    several = connection.vendor == "postgresql"  # processes: the web of before serves meanwhile
    assert json.loads(done.stdout) == {
        "lacks": [],
        "sealed": [[0, "what an older hub did"]],
        "calls": [["r-1", "2023-11-14 22:13:20+00:00", [{"dimension": "calls"}]]],
        "steps": [[STEP]],
        "meanwhile": ["r-1", "r-2", ["queued", "quick"]] if several else [],
        "waiting": ["queued"],
        "profiles": [[compute_digest(PROFILE), PROFILE]],
    }


@pytest.mark.django_db
def test_a_hub_of_the_commit_before_the_steps_became_one_has_nothing_to_do() -> None:
    recorder = MigrationRecorder(connection)
    for app, name in recorder.applied_migrations():
        if name == "0001_squashed":
            recorder.record_unapplied(app, name)

    executor = MigrationExecutor(connection)
    assert executor.migration_plan(executor.loader.graph.leaf_nodes()) == []


@pytest.mark.django_db
def test_a_database_that_is_too_old_for_one_step_is_told_which_to_take_first() -> None:
    call_command("check", databases=[connection.alias])
    MigrationRecorder(connection).record_unapplied("evidence", "0014_facts_of_erased_words")

    with pytest.raises(SystemCheckError) as caught:
        call_command("migrate", verbosity=0, skip_checks=False)
    assert "evidence lacks 0014_facts_of_erased_words" in str(caught.value)
    assert "git log -S 0014_facts_of_erased_words -- evidence/migrations/0001_squashed.py" in str(caught.value)


@pytest.mark.django_db
@pytest.mark.parametrize(
    "step", [("access", "0009_reservation_index"), ("invocations", "0011_indexes_of_rare_columns")]
)
def test_nothing_serves_from_a_database_that_lacks_one_of_the_steps(step: tuple[str, str]) -> None:
    assert find_missing_migrations() == frozenset()
    MigrationRecorder(connection).record_unapplied(*step)

    assert find_missing_migrations() == {step}
    assert check_readiness()["migrations"] == "not all are applied"
    with pytest.raises(CommandError, match="not up to date"):
        check_database()
    with pytest.raises(LookupError, match="1 migrations are not applied"):
        doctor.database()
