"""Evidence year: what is asked and written every day, in a database that is some days old. A process of its own.

``python -m bench.evidence_year fill CALLS DAYS FILE`` fills the PostgreSQL database that the environment names (migrated, otherwise
empty): facts, logs and index by COPY, and a row for each call. ``python -m bench.evidence_year ask FILE ROUNDS`` asks of it and writes
into it, and prints milliseconds as JSON. ``FILE``: what to ask for.
"""

from __future__ import annotations

import json
import os
import pickle
import random
import sys
import time
from contextlib import nullcontext
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "toolhub.settings")
django.setup()

from django.db import connection, transaction  # noqa: E402  Django must be set up before models load

from access.models import Agent, Tenant  # noqa: E402
from bench import call_search  # noqa: E402
from bench.evidence_dataset import DatasetTenant, DatasetWriter  # noqa: E402
from bench.evidence_months import make_months, prove_fact, read_fact, seal_dataset  # noqa: E402
from bench.evidence_search import choose_queries, make_console_request, make_rest_request  # noqa: E402
from bench.figures import CannotMeasure  # noqa: E402
from bench.year import FOUND, PROCESSOR  # noqa: E402
from evidence import services as evidence  # noqa: E402
from evidence.archives.leaves import ArchivedBundles  # noqa: E402
from evidence.integrity.tree_walk import PIECE, TreeWalk  # noqa: E402
from evidence.kinds import Kind  # noqa: E402
from evidence.log import reader, sealer  # noqa: E402
from evidence.models import Log  # noqa: E402
from evidence.months.partitions import TABLE  # noqa: E402
from evidence.search.indexer import index_tenant  # noqa: E402
from invocations.end.end_record import build_caller_principal  # noqa: E402
from invocations.models import Invocation, State  # noqa: E402
from kernel.database.tenancy import acting_for  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractContextManager

LATELY = 30  # days: searches by time ask of them, as people do
CALLS_A_ROUND = 50
CALLS = Invocation._meta.db_table


def fill_database(calls: int, days: int) -> list[DatasetTenant]:
    connection.ensure_connection()
    make_months(datetime.now(UTC) - timedelta(days=days))
    tenants = DatasetWriter(connection.connection, calls * 2, days=days).run()
    with connection.cursor() as cursor:
        cursor.execute(f"ALTER TABLE {TABLE} ENABLE TRIGGER USER")
    write_calls(tenants)
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE")
    seal_dataset()
    return tenants


def build_call(tenant: Tenant, agent: Agent, **more: Any) -> Invocation:
    return Invocation(tenant=tenant, agent=agent, tool="a.b.c", arguments_fingerprint="x", **more)


def write_calls(tenants: Sequence[DatasetTenant]) -> None:
    """A row for each call of which there are facts, as one that has ended."""
    with connection.cursor() as cursor:
        cursor.execute(f"ALTER TABLE {CALLS} DISABLE TRIGGER USER")  # which would look for the facts of each
        for number, each in enumerate(tenants):
            tenant = Tenant.objects.create(id=each.id, slug=f"bench-{number}", name=f"Bench {number}")
            agent = Agent.objects.create(tenant=tenant, name="bench")
            now = datetime.now(UTC)
            like = build_call(tenant, agent, state=State.SUCCEEDED, created_at=now, finished_at=now)
            like.save(force_insert=True)
            given = {
                "id": "f.invocation_id", "tool": "f.tool", "created_at": "f.occurred_at",
                "finished_at": "f.occurred_at + interval '240 ms'", "state": "f.outcome", "reason": "f.reason",
            }  # fmt: skip
            columns = [str(field.column) for field in Invocation._meta.concrete_fields]
            taken = ", ".join(given.get(column, f"c.{column}") for column in columns)
            cursor.execute(
                f"INSERT INTO {CALLS} ({', '.join(columns)}) SELECT {taken} FROM {TABLE} f JOIN {CALLS} c ON c.id = %s "
                "WHERE f.tenant_id = %s AND f.kind = 'invocation.ended' ORDER BY f.id",
                [like.pk, each.id],
            )
            like.delete()
        cursor.execute(f"ALTER TABLE {CALLS} ENABLE TRIGGER USER")


def prove_growth(tenant: DatasetTenant, chosen: random.Random) -> Callable[[], int]:
    size = chosen.randrange(1, tenant.size)
    return lambda: len(reader.build_consistency_proof(tenant.id, size))


def verify_piece(tenant: DatasetTenant, chosen: random.Random) -> Callable[[], int]:
    """A turn of the verifier, somewhere in the log."""
    start = chosen.randrange(tenant.size // PIECE) * PIECE if tenant.size > PIECE else 0
    stop = min(start + PIECE, tenant.size)

    def verify() -> int:
        if wrong := TreeWalk.begun_at(Log.objects.get(pk=tenant.id), start).go_on(stop, ArchivedBundles(tenant.id)):
            raise CannotMeasure(f"The data set does not verify: {wrong[:3]}")
        return stop - start

    return verify


def write_call(like: Invocation) -> None:
    """The two transactions of a call: its row with the Begin, its state with the End."""
    call = build_call(like.tenant, like.agent, state=State.QUEUED, created_at=datetime.now(UTC))
    by = build_caller_principal(call)
    with transaction.atomic():
        call.save(force_insert=True)
        evidence.record(kind=Kind.INVOCATION_BEGAN, subject=call.wire_id, actor=by, invocation_id=call.pk)
    with transaction.atomic():
        call.state, call.finished_at = State.FAILED, datetime.now(UTC)
        call.save(update_fields=["state", "finished_at"])
        evidence.record(
            kind=Kind.INVOCATION_ENDED, subject=call.wire_id, actor=by, invocation_id=call.pk, outcome="failed"
        )


def seal_all() -> None:
    while sealer.seal_pending()[0]:
        pass


class Figures:
    """Milliseconds by name: until it was done, and those in which a processor worked for it, here and in PostgreSQL. Of lists beside
    that how many facts were on them.
    """

    def __init__(self) -> None:
        self.found: dict[str, list[float]] = {}

    def time(
        self, name: str, scope: AbstractContextManager[None], work: Callable[[], Any], *, is_list: bool = False
    ) -> None:
        with scope:
            connection.ensure_connection()
            worked, begun = read_processor_ms(), time.perf_counter()
            listed = work()
            took = (time.perf_counter() - begun) * 1000
            self.found.setdefault(name, []).append(took)
            self.found.setdefault(name + PROCESSOR, []).append(read_processor_ms() - worked)
            if is_list:
                self.found.setdefault(name + FOUND, []).append(listed)


def read_processor_ms() -> float:
    """Of this process and of PostgreSQL's that serves it, which is on this machine."""
    server = Path(f"/proc/{connection.connection.info.backend_pid}/schedstat").read_text().split()[0]
    return time.process_time() * 1000 + int(server) / 1_000_000


def measure_questions(figures: Figures, tenant: DatasetTenant, chosen: random.Random) -> None:
    asked: dict[str, Callable[[], int]] = {
        "an inclusion proof": prove_fact(tenant, chosen),
        "a consistency proof": prove_growth(tenant, chosen),
        "what one fact says": read_fact(tenant, chosen),
        "a turn of the verifier": verify_piece(tenant, chosen),
    }
    lists: dict[str, Callable[[], int]] = {}
    for name, query in choose_queries(tenant, chosen, days=LATELY).items():
        lists[f"{name} · REST"] = make_rest_request(tenant, query)
        lists[f"{name} · page"] = make_console_request(tenant, query)
    row, day = Tenant.objects.get(pk=tenant.id), datetime.now(UTC) - timedelta(days=chosen.uniform(2, LATELY - 1))
    of_a_day = f"after:{day:%Y-%m-%dT%H:%M} before:{day + timedelta(days=1):%Y-%m-%dT%H:%M}"
    for name, words in {"newest": "", "that failed": "outcome:faulty", "of a day": of_a_day}.items():
        asked[f"calls, {name} · page"] = call_search.make_request(row, {"q": words} if words else {})
    for name, ask in (lists | asked).items():
        figures.time(name, acting_for(tenant.id), ask, is_list=name in lists)


def measure_writes(figures: Figures, tenant: DatasetTenant) -> None:
    """Of the tenant with the longest log; what a keeper does acts for nobody, as there."""
    like = Invocation.objects.select_related("tenant", "agent").filter(tenant_id=tenant.id).latest("id")
    for _ in range(CALLS_A_ROUND):
        figures.time("a call's two transactions", acting_for(tenant.id), lambda: write_call(like))
    figures.time(f"sealing the {2 * CALLS_A_ROUND} facts", nullcontext(), seal_all)
    figures.time("indexing them", nullcontext(), lambda: index_tenant(tenant.id))


def measure_days(tenants: Sequence[DatasetTenant], rounds: int) -> dict[str, list[float]]:
    chosen, figures = random.Random(), Figures()  # each process asks for something else
    largest = max(tenants, key=lambda each: each.size)
    all_asked = [each for each in tenants if {"chain", "consent"} <= each.samples.keys()]  # of others nothing can be
    for number in range(rounds + 1):
        (tenant,) = chosen.choices(all_asked, [each.size for each in all_asked])
        measure_questions(figures, tenant, chosen)
        measure_writes(figures, largest)
        if not number:  # what is compiled and loaded once
            figures = Figures()
    return figures.found


def main(what: str, *words: str) -> None:
    if what == "fill":
        calls, days, file = words
        Path(file).write_bytes(pickle.dumps(fill_database(int(calls), int(days))))
        print(json.dumps({}))
    else:
        file, rounds = words
        tenants = pickle.loads(Path(file).read_bytes())
        print(json.dumps(measure_days(tenants, int(rounds))))


if __name__ == "__main__":
    main(*sys.argv[1:])
