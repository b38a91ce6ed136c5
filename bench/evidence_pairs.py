"""Evidence pairs: what it costs that PostgreSQL holds each call's pair. A process of its own; prints figures as JSON.

``python -m bench.evidence_pairs ROUNDS`` writes calls into the PostgreSQL database that the environment names (migrated): the row
with its Begin in one transaction, the final state with the End in another, by four writers, with and without the triggers in turn.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from datetime import UTC, datetime

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "toolhub.settings")
django.setup()

import psycopg  # noqa: E402
from django.db import connection, transaction  # noqa: E402  Django must be set up before models load

from access import services as access  # noqa: E402
from evidence import services as evidence  # noqa: E402
from evidence.kinds import Kind  # noqa: E402
from evidence.models import Fact  # noqa: E402
from invocations.end.end_record import build_caller_principal  # noqa: E402
from invocations.evidence_pairs.constraints import TRIGGERS  # noqa: E402
from invocations.models import Invocation, State  # noqa: E402
from kernel.ids import new_id  # noqa: E402
from kernel.principal import Principal  # noqa: E402

WRITERS, SECONDS = 4, 2.0


def make_first_call() -> Invocation:
    """The one that all others are copies of."""
    tenant = access.create_tenant(slug="bench", name="Bench")
    agent = access.create_agent(name="bench", by=Principal.system("bench", tenant_id=tenant.pk))
    call = Invocation(
        tenant=tenant,
        agent=agent,
        tool="a.b.c",
        state=State.QUEUED,
        arguments_fingerprint="x",
        created_at=datetime.now(UTC),
    )
    with transaction.atomic():
        call.save(force_insert=True)
        evidence.record(
            kind=Kind.INVOCATION_BEGAN, subject=call.wire_id, actor=build_caller_principal(call), invocation_id=call.pk
        )
    return call


def build_copy_statement(model: type[Invocation | Fact], **given: str) -> str:
    columns = [str(field.column) for field in model._meta.concrete_fields]
    taken = ", ".join(given.get(column, column) for column in columns)
    table = model._meta.db_table
    return f"INSERT INTO {table} ({', '.join(columns)}) SELECT {taken} FROM {table} WHERE id = %(like)s"


def write_calls(url: str, call: Invocation, begin: Fact, until: float, done: list[int]) -> None:
    rows = build_copy_statement(Invocation, id="%(id)s")
    began = build_copy_statement(Fact, id="%(fact)s", invocation_id="%(id)s")
    ended = build_copy_statement(
        Fact, id="%(fact)s", invocation_id="%(id)s", kind="'invocation.ended'", outcome="'failed'"
    )
    with psycopg.connect(url) as own:
        while time.monotonic() < until:
            id = new_id()
            with own.transaction():
                own.execute(rows, {"id": id, "like": call.pk})
                own.execute(began, {"id": id, "fact": new_id(), "like": begin.pk})
            with own.transaction():
                own.execute(
                    "UPDATE invocations_invocation SET state = 'failed', finished_at = now() WHERE id = %s", [id]
                )
                own.execute(ended, {"id": id, "fact": new_id(), "like": begin.pk})
            done.append(1)


def measure_rate(url: str, call: Invocation, begin: Fact, *, held: bool) -> float:
    with connection.cursor() as cursor:
        for each in TRIGGERS:
            cursor.execute(f"ALTER TABLE {each.table} {'ENABLE ALWAYS' if held else 'DISABLE'} TRIGGER {each.name}")
    done: list[int] = []
    until = time.monotonic() + SECONDS
    writers = [threading.Thread(target=write_calls, args=(url, call, begin, until, done)) for _ in range(WRITERS)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    return len(done) / SECONDS


def main() -> None:
    told = connection.settings_dict
    url = psycopg.conninfo.make_conninfo(
        host=told["HOST"], port=told["PORT"], dbname=told["NAME"], user=told["USER"], password=told["PASSWORD"]
    )
    call = make_first_call()
    begin = Fact.objects.get(invocation_id=call.pk)
    found: dict[str, list[float]] = {"held": [], "free": []}
    for number in range(int(sys.argv[1])):
        for name in ("held", "free") if number % 2 else ("free", "held"):
            found[name].append(measure_rate(url, call, begin, held=name == "held"))
    print(json.dumps(found))


if __name__ == "__main__":
    main()
