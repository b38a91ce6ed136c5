"""Evidence months: pages, searches and proofs before and after the leaves of old months have left PostgreSQL.

``python -m bench.evidence_months CALLS ROUNDS`` fills a year in the PostgreSQL database that the environment names (migrated,
otherwise empty, thrown away afterwards), seals and archives it into a folder, and asks the same before and after all months that are
over were dropped. A process of its own; prints figures as JSON.
"""

from __future__ import annotations

import json
import os
import random
import sys
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "toolhub.settings")
django.setup()

from django.conf import settings  # noqa: E402  Django must be set up before models load
from django.db import connection, transaction  # noqa: E402
from django.utils import timezone  # noqa: E402

from bench.evidence_dataset import DatasetTenant, DatasetWriter  # noqa: E402
from bench.evidence_search import choose_queries, make_console_request, make_rest_request, time_request  # noqa: E402
from evidence.archives.object_stores import FolderStore  # noqa: E402
from evidence.archives.services import archive_log, list_archived_logs  # noqa: E402
from evidence.log import reader, sealer  # noqa: E402
from evidence.log.checkpoints import publish_checkpoint  # noqa: E402
from evidence.log.signer import make_signing_key  # noqa: E402
from evidence.log.signing_keys import register_keys  # noqa: E402
from evidence.log.tree import append_hashes  # noqa: E402
from evidence.models import Anchor, AnchorKind, Fact, Seal  # noqa: E402
from evidence.months.drops import drop_archived_months  # noqa: E402
from evidence.months.partitions import FIRST, TABLE, add_months, first_of_month, list_months  # noqa: E402
from kernel.ids import decode, lowest_id  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

DAYS = 365
AT_ONCE = 50_000


def make_months(since: datetime) -> None:
    """As if the hub had begun then: a table for each month, where a new one has none for what is over."""
    with transaction.atomic(), connection.cursor() as cursor:
        for month in list_months(cursor):
            cursor.execute(f"ALTER TABLE {TABLE} DETACH PARTITION {month.table}")
            if month.table != FIRST:
                cursor.execute(f"DROP TABLE {month.table}")
        bound = lowest_id(first_of_month(since))
        cursor.execute(f"ALTER TABLE {TABLE} ATTACH PARTITION {FIRST} FOR VALUES FROM (MINVALUE) TO ('{bound}')")
    add_months(connection)


def seal_dataset() -> None:
    """The trees of the logs that the data set has, and their checkpoints, as the sealer would have made them."""
    make_signing_key()
    keys = register_keys()
    for tenant_id in Seal.objects.order_by().values_list("tenant_id", flat=True).distinct():
        tree, size = sealer._log_of(tenant_id), Seal.objects.filter(tenant_id=tenant_id).count()
        for at in range(0, size, AT_ONCE):
            with transaction.atomic():
                rows = reader.select_leaves(tenant_id, at, min(at + AT_ONCE, size))
                hashes = [bytes(hash) for hash in rows.values_list("leaf_hash", flat=True)]
                publish_checkpoint(tree, append_hashes(tree, hashes), keys)
    while sealer.seal_pending()[0]:
        pass


def archive_all(store: FolderStore) -> None:
    for log in list_archived_logs():
        archive_log(log, store)
    while sealer.seal_pending()[0]:
        pass
    Anchor.objects.create(name="file", kind=AnchorKind.FILE, size=2**40, next_attempt_at=timezone.now())


def prove_fact(tenant: DatasetTenant, chosen: random.Random) -> Callable[[], int]:
    id = decode("fct", chosen.choice(tenant.samples["fact"]))
    return lambda: len(reader.build_inclusion_proof(Fact.objects.get(pk=id)))


def read_fact(tenant: DatasetTenant, chosen: random.Random) -> Callable[[], int]:
    id = decode("fct", chosen.choice(tenant.samples["fact"]))
    return lambda: len(Fact.objects.get(pk=id).text)


def measure_questions(tenants: Sequence[DatasetTenant], rounds: int) -> dict[str, list[float]]:
    """The same questions each time that this is called."""
    chosen, found = random.Random(5), dict[str, list[float]]()
    for number in range(rounds + 1):
        (tenant,) = chosen.choices(tenants, [each.size for each in tenants])
        asked: dict[str, Callable[[], int]] = {
            "a proof": prove_fact(tenant, chosen),
            "what one fact says": read_fact(tenant, chosen),
        }
        for name, query in choose_queries(tenant, chosen).items():
            asked[f"{name} · REST"] = make_rest_request(tenant, query)
            asked[f"{name} · page"] = make_console_request(tenant, query)
        for name, ask in asked.items():
            took = time_request(tenant, ask)
            if number:  # the first time is that of what is compiled and loaded once
                found.setdefault(name, []).append(took)
    return found


def measure_facts() -> int:
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT sum(pg_total_relation_size(relid)) FROM pg_partition_tree('{TABLE}') WHERE isleaf")
        return int(cursor.fetchone()[0])


def measure_months(calls: int, rounds: int, folder: Path) -> dict[str, list[float]]:
    connection.ensure_connection()
    begun = time.monotonic()
    make_months(datetime.now(UTC) - timedelta(days=DAYS))
    tenants = DatasetWriter(connection.connection, calls * 2, days=DAYS).run()
    connection.connection.execute(f"ALTER TABLE {TABLE} ENABLE TRIGGER USER")
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE")
    filled = time.monotonic()
    seal_dataset()
    store, settings.TOOLHUB_ARCHIVE_URL = FolderStore(folder), f"file://{folder}"
    settings.TOOLHUB_ANCHOR_FILE = str(folder / "anchors")
    archive_all(store)
    archived, bytes_before = time.monotonic(), measure_facts()
    before = measure_questions(tenants, rounds)
    asked = time.monotonic()
    dropped = [float(month.leaves) for month in drop_archived_months(store)]
    ended, bytes_after = time.monotonic(), measure_facts()
    after = measure_questions(tenants, rounds)
    in_archive = sum(each.stat().st_size for each in folder.rglob("*") if each.is_file())
    return {
        "s to fill, archive, drop": [filled - begun, archived - filled, ended - asked],
        "leaves dropped by month": dropped,
        "bytes of facts a call before, after, in the archive": [
            bytes_before / calls,
            bytes_after / calls,
            in_archive / calls,
        ],
        **{f"{name} · before": ms for name, ms in before.items()},
        **{f"{name} · after": ms for name, ms in after.items()},
    }


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as kept:
        print(json.dumps(measure_months(int(sys.argv[1]), int(sys.argv[2]), Path(kept))))
