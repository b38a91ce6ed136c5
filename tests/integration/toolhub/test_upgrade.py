"""Does a hub of the release before become one of this release, with all that it holds?"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from importlib import import_module

import pytest
from django.conf import settings
from django.db import connection
from django.test.utils import CaptureQueriesContext

from invocations.models import Invocation


@pytest.mark.req("TOOLS-1")
def test_what_an_older_hub_holds_is_there_after_the_upgrade(empty_database: str) -> None:
    words = [sys.executable, "-m", "tests.support.older_hub", empty_database]
    done = subprocess.run(words, cwd=settings.BASE_DIR, capture_output=True, text=True)

    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {
        "sealed": [[0, "what an older hub did"]],
        "consents": [["^1", "requested"], ["^2", "approved"], ["^2", "requested"]],
        "budgets": [["grant", "shop.*", "calls", 100, 86_400, "usr_1"]],
        "windows": [[20_000, 7, 0, 0], [20_001, 9, 0, 0]],
        "grants": [["other.*", "unlimited"], ["shop.*", "limited"]],
        "installations": [["acme", "shop.prices.read", "1.0.0", "enabled"]],
        "versions": [[" pricing beta ", " net ", "shop.prices.read prices reads them. pricing beta"]],
    }


# Indexes of the largest table.


def indexes() -> dict[str, str | None]:
    of = {
        "postgresql": "SELECT relname, pg_get_indexdef(oid) FROM pg_class JOIN pg_index ON oid = indexrelid"
        " WHERE indrelid = 'invocations_invocation'::regclass AND indisvalid",
        "sqlite": "SELECT name, sql FROM sqlite_master WHERE type = 'index' AND tbl_name = 'invocations_invocation'",
    }
    with connection.cursor() as cursor:
        cursor.execute(of[connection.vendor])
        return dict(cursor.fetchall())


@pytest.mark.django_db(transaction=True)
def test_calls_go_on_while_their_indexes_are_made_and_an_interruption_is_made_good() -> None:
    migration = import_module("invocations.migrations.0009_indexes_of_the_row")
    of_model = {index.name for index in Invocation._meta.indexes}
    before = indexes()
    assert of_model <= set(before)
    assert not [each for each in before.values() if re.search(r'\("?(agent|tenant)_id"?\)$', each or "")]

    with connection.schema_editor(atomic=False) as editor:
        migration.backwards(None, editor)
    older = indexes()
    with CaptureQueriesContext(connection) as queries, connection.schema_editor(atomic=False) as editor:
        migration.forwards(None, editor)
    said = [query["sql"] for query in queries.captured_queries if re.match("CREATE|DROP|ALTER", query["sql"])]
    after = indexes()
    with connection.schema_editor(atomic=False) as editor:
        migration.forwards(None, editor)

    assert not migration.Migration.atomic
    assert len(older) == len(before) + 1  # without that of open calls, with those of agent and of tenant alone
    assert before == after == indexes()
    if connection.vendor == "postgresql":
        assert all("CONCURRENTLY" in each or each.startswith("ALTER INDEX") for each in said)
        instead = next(number for number, each in enumerate(said) if "CONCURRENTLY invocation_of_request_new" in each)
        assert instead < next(number for number, each in enumerate(said) if each.endswith(" invocation_of_request"))
