"""Call search: how long the page of calls takes, with a million of them. A process of its own; prints figures as JSON.

``python -m bench.call_search CALLS ROUNDS`` fills the database that the environment names (migrated, otherwise empty) with calls of
one tenant over 30 days and asks for the page as HTMX does: the query, the rows, the counts, the histogram, and all of it drawn.
"""

from __future__ import annotations

import json
import os
import random
import sys
import time
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "toolhub.settings")
django.setup()

from django.contrib.auth import get_user_model  # noqa: E402  Django must be set up before models load
from django.db import connection  # noqa: E402
from django.test import RequestFactory  # noqa: E402
from django_htmx.middleware import HtmxDetails  # noqa: E402

from access.models import Agent, Tenant  # noqa: E402
from access.roles import PERMISSIONS  # noqa: E402
from bench.figures import CannotMeasure  # noqa: E402
from evidence.services import compute_fingerprint  # noqa: E402
from invocations.call_costs.models import CallCost  # noqa: E402
from invocations.call_hours.rollup import HOUR, count_hour, floor_to_hour  # noqa: E402
from invocations.call_search.pages import invocation_list  # noqa: E402
from invocations.models import Invocation, Origin, State  # noqa: E402
from kernel.database.tenancy import acting_for  # noqa: E402
from kernel.ids import encode, lowest_id  # noqa: E402
from kernel.principal import ActorKind, Principal  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Callable
    from uuid import UUID

DAYS, BATCH = 30, 2_000
AREAS = ("shop", "mail", "web", "files", "crm", "maps", "code", "data")
VERBS = ("list", "read", "find", "create", "update", "send", "check", "quote", "order", "cancel", "rate", "sum")
ENDS = (
    *[(State.SUCCEEDED, "")] * 930,
    *[(State.DENIED, "AUTH.NO_GRANT")] * 25,
    *[(State.DENIED, "POLICY.DENY_TOOL")] * 10,
    *[(State.FAILED, "TOOL.EXECUTION_FAILED")] * 15,
    *[(State.FAILED, "DOMAIN.OUT_OF_STOCK")] * 12,
    *[(State.TIMED_OUT, "SANDBOX.TIMEOUT")] * 6,
    *[(State.OUTCOME_UNKNOWN, "SANDBOX.WORKER_LOST")] * 1,
    (State.DENIED, "QUOTA.EXCEEDED"),
)
STEPS = [
    {"name": f"step.{n}", "begin_ms": n * 1.5, "end_ms": n * 1.5 + 1, "kind": "control", "status": "ok", "note": ""}
    for n in range(12)
]


def write_calls(tenant: Tenant, agents: list[Agent], tools: list[str], count: int) -> None:
    chosen, now = random.Random(7), datetime.now(UTC)
    begin = now - timedelta(days=DAYS)
    every = timedelta(days=DAYS) / count
    users = [compute_fingerprint(f"user {n}".encode(), tenant_id=tenant.pk) for n in range(500)]
    calls, costs = list[Invocation](), list[CallCost]()
    for n in range(count):
        made_at = begin + every * n
        state, reason = chosen.choice(ENDS)
        call = Invocation(
            id=_id_at(made_at, chosen),
            tenant=tenant,
            agent=chosen.choice(agents),
            tool=chosen.choice(tools),
            origin=chosen.choice(Origin.values),
            state=state,
            reason=reason,
            request_id=f"request-{n:07}",
            user_fingerprint=chosen.choice(users),
            idempotency_key=f"key-{n:07}",
            arguments_fingerprint=users[0],
            steps=STEPS,
            attempt=int(state != State.DENIED),
            created_at=made_at,
            finished_at=made_at + timedelta(milliseconds=chosen.expovariate(1 / 400)),
        )
        calls.append(call)
        if n % 20 == 0:
            amount = int(chosen.expovariate(1 / 20_000))
            costs.append(
                CallCost(
                    invocation=call,
                    tenant=tenant,
                    agent=call.agent,
                    tool=call.tool,
                    micros=amount,
                    currency="EUR",
                    made_at=made_at,
                )
            )
        if len(calls) == BATCH or n == count - 1:
            Invocation.objects.bulk_create(calls)
            CallCost.objects.bulk_create(costs)
            calls, costs = [], []


def _id_at(moment: datetime, chosen: random.Random) -> UUID:
    lowest = lowest_id(moment)
    return type(lowest)(int=lowest.int | (7 << 76) | (2 << 62) | chosen.getrandbits(60))


def put_rules_aside() -> None:
    """The database refuses a call without its facts, and these have none."""
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute("ALTER TABLE invocations_invocation DISABLE TRIGGER USER")
            return
        cursor.execute("SELECT name FROM sqlite_master WHERE type = 'trigger' AND tbl_name = 'invocations_invocation'")
        for (name,) in cursor.fetchall():
            cursor.execute(f'DROP TRIGGER "{name}"')


def fill_database(count: int) -> tuple[Tenant, list[Agent], list[str]]:
    tenant = Tenant.objects.create(slug="bench", name="Bench")
    agents = [Agent.objects.create(tenant=tenant, name=f"agent-{n:02}") for n in range(40)]
    tools = [f"{area}.tools.{verb}" for area in AREAS for verb in VERBS]
    put_rules_aside()
    write_calls(tenant, agents, tools, count)
    hour = floor_to_hour(datetime.now(UTC)) - timedelta(days=DAYS)
    while hour < floor_to_hour(datetime.now(UTC)):
        count_hour(hour)
        hour += HOUR
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE" if connection.vendor == "postgresql" else "ANALYZE")
    return tenant, agents, tools


def choose_queries(
    agents: list[Agent], tools: list[str], count: int, chosen: random.Random
) -> dict[str, dict[str, str]]:
    """Each time others."""
    tool, agent, number = chosen.choice(tools), chosen.choice(agents).name, chosen.randrange(count)
    day = datetime.now(UTC) - timedelta(days=chosen.uniform(2, DAYS - 1))
    one_day = f"after:{day:%Y-%m-%dT%H:%M} before:{day + timedelta(days=1):%Y-%m-%dT%H:%M}"
    deep = datetime.now(UTC) - timedelta(days=chosen.uniform(1, DAYS - 1))
    return {
        "newest": {},
        "a page at any depth": {"after": encode("inv", lowest_id(deep))},
        "a tool": {"q": f"tool:{tool}"},
        "an agent": {"q": f"agent:{agent}"},
        "a word": {"q": tool.rpartition(".")[2]},
        "words of a problem": {"q": "grant"},
        "failed": {"q": "outcome:faulty"},
        "a rare problem": {"q": "code:QUOTA.*"},
        "a tool that failed": {"q": f"tool:{tool} outcome:faulty"},
        "a day": {"q": one_day},
        "failed on a day": {"q": f"outcome:faulty {one_day}"},
        "a person": {"q": f'user:"user {number % 500}"'},
        "a request id": {"q": f"request-{number:07}"},
        "an idempotency key": {"q": f"key-{number:07}"},
        "slow ones": {"q": "took:>2s"},
        "slow ones of a day": {"q": f"took:>2s {one_day}"},
        "dear ones": {"q": "cost:>0.08"},
        "nothing is so slow": {"q": "took:>1h"},
        "nothing is so slow, of a week": {"q": "took:>1h after:7d"},
        "equal calls together": {"q": "outcome:faulty", "view": "groups"},
    }


def make_request(tenant: Tenant, query: dict[str, str]) -> Callable[[], int]:
    request: Any = RequestFactory().get("/invocations", query, headers={"HX-Request": "true", "HX-Target": "rows"})
    request.principal = Principal(ActorKind.USER, "usr_1", "bench", tenant.pk, frozenset(PERMISSIONS))
    request.tenant, request.tenants, request.htmx = tenant, [], HtmxDetails(request)
    request.display = None
    request.user = get_user_model()(pk=1, username="bench")

    def ask() -> int:
        response = invocation_list(request)
        if response.status_code != 200:
            raise CannotMeasure(f"{query}: {response.status_code}")
        return len(response.content)

    return ask


def measure_pages(count: int, rounds: int) -> dict[str, list[float]]:
    tenant, agents, tools = fill_database(count)
    chosen, found = random.Random(5), dict[str, list[float]]()
    for turn in range(rounds + 1):  # the first loads and compiles
        for name, query in choose_queries(agents, tools, count, chosen).items():
            with acting_for(tenant.pk):
                begun = time.perf_counter()
                make_request(tenant, query)()
                took = (time.perf_counter() - begun) * 1000
            if turn:
                found.setdefault(name, []).append(took)
    return found


if __name__ == "__main__":
    print(json.dumps(measure_pages(int(sys.argv[1]), int(sys.argv[2]))))
