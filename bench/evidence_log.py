"""Evidence log: how fast facts get into the log, and how long proofs take. A process of its own; prints figures as JSON.

``python -m bench.evidence_log FACTS SECONDS`` works on the empty database of PostgreSQL that the environment names. Appending is
measured by `pgbench`, which takes next to nothing of the processors itself: the variants in turn, so that what else the machine
does falls on all of them.
"""

from __future__ import annotations

import json
import os
import random
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "toolhub.settings")
django.setup()

from django.db import close_old_connections, connection, transaction  # noqa: E402  Django must be set up before models load

from bench.figures import CannotMeasure  # noqa: E402
from evidence import services as evidence  # noqa: E402
from evidence.kinds import Kind  # noqa: E402
from evidence.log import reader, sealer  # noqa: E402
from evidence.log.signer import make_signing_key  # noqa: E402
from evidence.models import Fact, Pending, Seal  # noqa: E402
from evidence.packed_leaves import pack_leaf  # noqa: E402
from evidence.verify import merkle  # noqa: E402
from evidence.verify.notes import open_checkpoint  # noqa: E402
from evidence.verify.wholelog import check_log  # noqa: E402
from kernel.ids import new_id  # noqa: E402
from kernel.principal import Principal  # noqa: E402

if TYPE_CHECKING:
    from uuid import UUID

WRITERS, ROUNDS = 16, 5
TENANT = new_id()
PROOFS = 500
EVENTS_PER_S = 500

COLUMNS = (
    "id, tenant_id, kind, subject, occurred_at, actor_kind, actor_id, tool, outcome, reason, trace_id, leaf, leaf_hash"
)
# As UUIDv7 is: nearly in the order of time. (No colon in what follows but variables and casts, which pgbench tells apart.)
_DRAW = "\\set n :n + 1\n\\set r random(0, 4611686018427387903)\n"
_ID = "(lpad(to_hex(:n::bigint), 16, '0') || lpad(to_hex(:r::bigint), 16, '0'))::uuid"
_LEAF = "decode(repeat('6162', 300), 'hex')"
_NEW = f"""INSERT INTO evidence_fact ({COLUMNS})
SELECT {_ID}, '{{tenant}}'::uuid, 'tool.paused', 'a.b.c', now(), 'system', 'bench', 'a.b.c', '', '', '',
    {_LEAF}, sha256('')"""
_PENDING = f"INSERT INTO evidence_pending (fact_id, tenant_id) VALUES ({_ID}, '{{tenant}}'::uuid)"
# The head of a chain is one row of the tenant: who appends waits for whoever appended before, to the end of the commit. A program that
# hashes has to read the head first; that PostgreSQL hashes in the same statement is the best that can be done for a chain.
_HEAD = "SELECT encode(hash, 'hex') AS head FROM bench_head WHERE tenant_id = '{tenant}' FOR UPDATE \\gset\n"
_NEXT = f"sha256(decode(:head::text, 'hex') || {_LEAF})"
_LINKED = _NEW.replace("sha256('')", _NEXT)
_MOVED = f"UPDATE bench_head SET hash = {_NEXT} WHERE tenant_id = '{{tenant}}'"
_CHAINED = f"""WITH head AS (UPDATE bench_head SET hash = sha256(hash || {_LEAF}) WHERE tenant_id = '{{tenant}}' RETURNING hash)
{_NEW.replace("sha256('')", "hash")} FROM head"""


def _in_one_message(*statements: str) -> str:
    """As the hub sends it: nothing waits for an answer before the commit's."""
    return "\\startpipeline\n" + ";\n".join((*statements, "COMMIT")) + ";\n\\endpipeline\n"


PLAIN, PENDING = "a plain insert", "with its pending row"
CHAIN, CHAIN_OF_SQL = "in a chain", "in a chain that PostgreSQL hashes"
VARIANTS = {
    PLAIN: _in_one_message("BEGIN", _NEW),
    PENDING: _in_one_message("BEGIN", _NEW, _PENDING),
    CHAIN: f"BEGIN;\n{_HEAD}{_in_one_message(_LINKED, _MOVED)}",
    CHAIN_OF_SQL: _in_one_message("BEGIN", _CHAINED),
}


def _pgbench(script: Path, seconds: float, first: int) -> float:
    program = shutil.which("pgbench")
    if program is None:
        raise CannotMeasure("pgbench is not installed; it comes with PostgreSQL.")
    words = [
        program,
        "--no-vacuum",
        "--protocol=prepared",
        f"--client={WRITERS}",
        "--jobs=2",
        f"--time={max(1, round(seconds))}",
        f"--define=n={first}",
    ]
    done = subprocess.run(
        [*words, f"--file={script}", os.environ["TOOLHUB_DATABASE_URL"]], capture_output=True, text=True
    )
    found = re.search(r"tps = ([0-9.]+)", done.stdout)
    if found is None:
        raise CannotMeasure(f"pgbench failed:\n{done.stderr[-2000:]}")
    return float(found[1])


def measure_appends(seconds: float) -> dict[str, list[float]]:
    """Transactions per second of each variant, round by round."""
    found: dict[str, list[float]] = {name: [] for name in VARIANTS}
    with connection.cursor() as cursor:
        cursor.execute("CREATE TABLE bench_head (tenant_id uuid PRIMARY KEY, hash bytea)")
        cursor.execute("INSERT INTO bench_head VALUES (%s, sha256(''))", [TENANT])
    with tempfile.TemporaryDirectory() as folder:
        for name, text in VARIANTS.items():
            Path(folder, name).write_text(_DRAW + text.replace("{tenant}", str(TENANT)))
        for number in range(ROUNDS * len(VARIANTS)):
            name = list(VARIANTS)[number % len(VARIANTS)]
            found[name].append(_pgbench(Path(folder, name), seconds, number * 10**9))
    with connection.cursor() as cursor:
        cursor.execute("DROP TABLE bench_head")
    return found


def insert_facts(tenant_id: UUID, count: int) -> None:
    """Facts with leaves of 600 bytes, pending, by COPY."""
    ids = [new_id() for _ in range(count)]
    connection.ensure_connection()
    raw: Any = connection.connection
    with raw.cursor() as cursor:
        with cursor.copy(f"COPY evidence_fact ({COLUMNS}) FROM STDIN") as copy:
            for n, id in enumerate(ids):
                leaf = json.dumps({"n": n, "id": str(id), "data": "x" * 540}).encode()
                row = (
                    id,
                    tenant_id,
                    "tool.paused",
                    "soul:tool:a.b.c",
                    "now",
                    "system",
                    "system:bench",
                    "a.b.c",
                    "",
                    "",
                    "",
                )
                copy.write_row((*row, pack_leaf(leaf), merkle.leaf_hash(leaf)))
        with cursor.copy("COPY evidence_pending (fact_id, tenant_id) FROM STDIN") as copy:
            for id in ids:
                copy.write_row((id, tenant_id))
        cursor.execute("ANALYZE evidence_fact, evidence_pending")


def measure_sealing() -> float:
    """Leaves per second until nothing is pending."""
    count, begun = Pending.objects.count(), time.perf_counter()
    while sealer.seal_pending()[1]:
        pass
    return count / (time.perf_counter() - begun)


def measure_proofs(tenant_id: UUID, size: int) -> dict[str, list[float]]:
    """Milliseconds, each from the database anew."""
    chosen = random.Random(6)
    included, continued = [], []
    for index in (chosen.randrange(size) for _ in range(PROOFS)):
        fact = Fact.objects.get(seal__tenant_id=tenant_id, seal__leaf_index=index)
        begun = time.perf_counter()
        reader.build_inclusion_proof(fact)
        included.append((time.perf_counter() - begun) * 1000)
        begun = time.perf_counter()
        reader.build_consistency_proof(tenant_id, index + 1)
        continued.append((time.perf_counter() - begun) * 1000)
    return {"inclusion": included, "consistency": continued}


def measure_verification(tenant_id: UUID, size: int) -> dict[str, list[float]]:
    """Seconds, and by how many MiB the process grew."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    begun = time.perf_counter()
    newest = reader.checkpoint_at(tenant_id)
    origin = reader.load_origin(tenant_id)
    checkpoint = open_checkpoint(newest.note, reader.list_vkeys(origin), origin=origin)
    wrong = list(check_log(reader.iter_leaves(tenant_id, 0, size), [checkpoint]))
    if wrong or checkpoint.size != size:
        raise CannotMeasure(f"The log does not verify: {wrong[:3]}")
    seconds = time.perf_counter() - begun
    return {"verify": [seconds], "grew": [(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024]}


def measure_lag(seconds: float) -> dict[str, list[float]]:
    """Milliseconds from a fact's commit to the commit of a checkpoint that holds it, the sealer's loop running."""
    stop, tenants = threading.Event(), [new_id() for _ in range(20)]
    thread = threading.Thread(target=sealer.run_sealer, args=(stop,))
    thread.start()
    written: dict[UUID, float] = {}
    found: list[float] = []
    begun = time.monotonic()
    number = 0
    while time.monotonic() - begun < seconds:
        due = int((time.monotonic() - begun) * EVENTS_PER_S)
        with transaction.atomic():
            facts = [
                evidence.record(
                    kind=Kind.TOOL_PAUSED,
                    subject="soul:tool:a.b.c",
                    actor=Principal.system("bench", tenant_id=tenants[each % len(tenants)]),
                )
                for each in range(number, due)
            ]
        number = due
        written |= dict.fromkeys([fact.pk for fact in facts], time.monotonic())
        found += _sealed_by_now(written)
        time.sleep(0.01)
    while written and time.monotonic() - begun < seconds + 30:
        found += _sealed_by_now(written)
        time.sleep(0.01)
    stop.set()
    thread.join()
    close_old_connections()
    if written:
        raise CannotMeasure(f"{len(written)} facts were not sealed.")
    return {"lag": found, "written": [number / seconds]}


def _sealed_by_now(written: dict[UUID, float]) -> list[float]:
    sealed = Seal.objects.filter(pk__in=list(written)[:5000]).values_list("pk", flat=True)
    now = time.monotonic()
    return [(now - written.pop(id)) * 1000 for id in sealed]


def main() -> None:
    count, seconds = int(sys.argv[1]), float(sys.argv[2])
    make_signing_key()
    found = {f"append {name}": rates for name, rates in measure_appends(seconds).items()}
    tenant_id = new_id()
    with connection.cursor() as cursor:  # what was measured so far is no part of what follows
        cursor.execute("DELETE FROM evidence_pending")
    insert_facts(tenant_id, count)
    found["seal"] = [measure_sealing()]
    found |= measure_proofs(tenant_id, count)
    found |= measure_verification(tenant_id, count)
    found |= measure_lag(seconds * 5)
    print(json.dumps({name: [round(each, 3) for each in values] for name, values in found.items()}))


if __name__ == "__main__":
    main()
