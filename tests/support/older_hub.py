"""A hub of the release before: ``python -m tests.support.older_hub DATABASE`` makes one in an empty database, brings it up to date and
prints what has become of it.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import django
from django.conf import settings

FIRST = [(app, "0001_initial") for app in ("evidence", "access", "registry", "invocations")]
DAY_S = 86_400
NOW = datetime.fromtimestamp(20_000 * DAY_S, UTC)
MANIFEST = {
    "id": "shop.prices.read",
    "display_name": "Prices",
    "description": "Reads them.",
    "tags": ["pricing", "beta"],
    "capabilities": {"net": [{"host": "example.org"}], "fs": []},
}


def fill(apps: Any) -> None:
    """A grant with a limit that was used in two windows, requests and a consent for two majors of a tool, a tool in use."""
    tenant = apps.get_model("access", "Tenant").objects.create(slug="acme", name="Acme")
    agent = apps.get_model("access", "Agent").objects.create(tenant=tenant, name="assistant")
    said = {"kind": "tool.paused", "subject": "shop", "occurred_at": NOW, "actor_kind": "user", "actor_id": "usr_1"}
    leaf = b"what an older hub did"
    fact = apps.get_model("evidence", "Fact").objects.create(
        tenant_id=tenant.pk, leaf=leaf, leaf_hash=hashlib.sha256(b"\x00" + leaf).digest(), **said
    )
    apps.get_model("evidence", "Pending").objects.create(fact=fact, tenant_id=tenant.pk)
    give = apps.get_model("access", "Grant").objects.create
    said = {"tenant": tenant, "agent": agent, "given_by": "usr_1"}
    limited = give(tools="shop.*", calls_limit=100, window_s=DAY_S, reason="limited", **said)
    give(tools="other.*", reason="unlimited", **said)
    for day, used in enumerate((7, 9)):
        window = {"starts_at": NOW + timedelta(days=day), "used": used}
        apps.get_model("access", "QuotaWindow").objects.create(grant=limited, **window)
    for major, decision in ((1, {}), (2, {}), (2, {"state": "approved", "decided_by": "usr_1", "decided_at": NOW})):
        apps.get_model("access", "Consent").objects.create(
            tenant=tenant, agent=agent, tool=MANIFEST["id"], tool_major=major, purpose="x", validity_s=60, expires_at=NOW,
            requested_by="agt_1", **decision,
        )  # fmt: skip
    tools, versions = (apps.get_model("registry", name).objects for name in ("Tool", "ToolVersion"))
    tools.create(tenant=tenant, name="shop.prices.new", state_changed_by="usr_1")
    tool = tools.create(tenant=tenant, name=MANIFEST["id"], state_changed_by="usr_1")
    version = versions.create(
        tool=tool, version="1.0.0", manifest=MANIFEST, manifest_digest="x", build_digest="x", submitted_by="usr_1",
        side_effect="Read", safety_class="Low",
    )  # fmt: skip
    tools.filter(pk=tool.pk).update(current=version, state="enabled")


def found(apps: Any) -> dict[str, list[Any]]:
    def rows(app: str, model: str, *fields: str) -> list[Any]:
        return sorted(map(list, apps.get_model(app, model).objects.values_list(*fields)))

    return {
        "consents": rows("access", "Consent", "versions", "state"),
        "budgets": rows("access", "Budget", "scope", "grant__tools", "dimension", "amount", "window_s", "set_by"),
        "windows": rows("access", "BudgetWindow", "number", "used", "reserved", "raised"),
        "grants": rows("access", "Grant", "tools", "reason"),
        "installations": rows("registry", "Installation", "tenant__slug", "name", "version__version", "state"),
        "versions": rows("registry", "ToolVersion", "tags", "domains", "search"),
    }


def sealed() -> list[list[Any]]:
    """What the sealer of today makes of facts that were written before there was one."""
    from evidence.models import Seal
    from tests.support.evidence_logs import check_log, seal_everything, signing_with

    with signing_with():
        seal_everything()
    rows = list(Seal.objects.exclude(tenant_id=UUID(int=0)))
    for row in rows:
        check_log(row.tenant_id)
    return [[row.leaf_index, bytes(row.fact.leaf).decode()] for row in rows]


def main(database: str) -> None:
    os.environ["DJANGO_SETTINGS_MODULE"] = "tests.settings"
    settings.DATABASES["default"]["NAME"] = database
    django.setup()
    from django.db import connection
    from django.db.migrations.executor import MigrationExecutor

    executor = MigrationExecutor(connection)
    executor.migrate(FIRST)
    fill(executor.loader.project_state(FIRST).apps)
    executor = MigrationExecutor(connection)
    newest = executor.loader.graph.leaf_nodes()
    executor.migrate(newest)
    print(json.dumps({"sealed": sealed()} | found(executor.loader.project_state(newest).apps)))


if __name__ == "__main__":
    main(sys.argv[1])
