"""A hub of the release before: ``python -m tests.support.older_hub DATABASE`` makes one in an empty database, brings it up to date and
prints what has become of it.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import django
from django.conf import settings
from django.db import transaction

from kernel.canonical import compute_digest
from kernel.ids import new_id

BEFORE = [(app, "0001_squashed") for app in ("evidence", "access", "registry", "invocations")]
NOW = datetime.fromtimestamp(1_700_000_000, UTC)
LEAF = b"what an older hub did"
PROFILE = {"limits": {"wall_ms": 5000}}
STEP = {"name": "queue.wait", "kind": "control", "begin_ms": 0.0, "end_ms": 1.5, "status": "ok", "note": ""}


def fill(apps: Any) -> None:
    """A call that is due, with what it may reach, and a fact that nobody has sealed."""
    tenant = apps.get_model("access", "Tenant").objects.create(slug="acme", name="Acme")
    agent = apps.get_model("access", "Agent").objects.create(tenant=tenant, name="assistant")
    digest = compute_digest(PROFILE)
    apps.get_model("invocations", "RunProfile").objects.create(tenant_id=tenant.pk, digest=digest, document=PROFILE)
    apps.get_model("invocations", "Invocation").objects.create(
        tenant=tenant, agent=agent, tool="shop.prices.read", state="queued", request_id="r-1", notified_at=NOW, created_at=NOW,
        budget=[{"dimension": "calls"}], profile_hash=digest, steps=[STEP],
    )  # fmt: skip
    fact = apps.get_model("evidence", "Fact").objects.create(
        tenant_id=tenant.pk, kind="tool.paused", subject="shop", occurred_at=NOW, actor_kind="user", actor_id="usr_1",
        leaf=LEAF, leaf_hash=hashlib.sha256(b"\x00" + LEAF).digest(),
    )  # fmt: skip
    apps.get_model("evidence", "Pending").objects.create(fact=fact, tenant_id=tenant.pk)


def write_meanwhile(apps: Any) -> list[Any]:
    """What the web of before writes and reads while the tables are new already, and whether workers of today find its call: on
    PostgreSQL, where others than it migrate.
    """
    calls = apps.get_model("invocations", "Invocation").objects
    from invocations.unfinished_calls.models import UnfinishedCall

    with transaction.atomic():
        last = calls.get(request_id="r-1")
        last.pk, last.request_id = new_id(), "r-2"
        last.save(force_insert=True)
        found: list[Any] = [each.request_id for each in calls.order_by("request_id")]
        waits = UnfinishedCall.objects.filter(pk=last.pk).values_list("state", "work_class")
        found += [list(each) for each in waits]
        transaction.set_rollback(True)  # a call that stays needs its facts
    return found


def find(apps: Any) -> dict[str, list[Any]]:
    calls = apps.get_model("invocations", "Invocation").objects
    return {
        "calls": list(calls.filter(request_id="r-1").values_list("request_id", "notified_at", "budget")),
        "steps": list(calls.values_list("steps", flat=True)),
        "waiting": sorted(apps.get_model("invocations", "UnfinishedCall").objects.values_list("state", flat=True)),
        "profiles": list(apps.get_model("invocations", "RunProfile").objects.values_list("digest", "document")),
    }


def sealed() -> list[list[Any]]:
    """What the sealer of today makes of facts that were written before; the upgrade has written its own after them."""
    from evidence.models import Seal
    from tests.support.evidence_logs import check_log, seal_everything, signing_with

    with signing_with():
        seal_everything()
    rows = list(Seal.objects.exclude(tenant_id=UUID(int=0)))
    for row in rows:
        check_log(row.tenant_id)
    return [[row.leaf_index, bytes(row.fact.leaf).decode()] for row in rows if row.fact.kind == "tool.paused"]


def main(database: str) -> None:
    os.environ["DJANGO_SETTINGS_MODULE"] = "tests.settings"
    settings.DATABASES["default"]["NAME"] = database
    django.setup()
    from django.core.management import call_command
    from django.db import connection
    from django.db.migrations.executor import MigrationExecutor
    from django.db.migrations.recorder import MigrationRecorder

    executor = MigrationExecutor(connection)
    executor.migrate(BEFORE)
    before = executor.loader.project_state(BEFORE).apps
    fill(before)
    # The hub of then knows the steps, not what they became.
    MigrationRecorder.Migration.objects.using("default").filter(name="0001_squashed").delete()

    call_command("migrate", verbosity=0)
    loader = MigrationExecutor(connection).loader
    newest = loader.graph.leaf_nodes()
    applied = {
        "lacks": [list(each) for each in newest if each not in MigrationRecorder(connection).applied_migrations()]
    }
    meanwhile = write_meanwhile(before) if connection.vendor == "postgresql" else []
    print(
        json.dumps(
            applied | {"sealed": sealed(), "meanwhile": meanwhile} | find(loader.project_state(newest).apps),
            default=str,
        )
    )


if __name__ == "__main__":
    main(sys.argv[1])
