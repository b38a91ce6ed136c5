"""Evidence search: how long a page of a search takes, with millions of facts. A process of its own; prints figures as JSON.

``python -m bench.evidence_search FACTS ROUNDS`` fills the PostgreSQL database that the environment names (migrated, otherwise empty)
and asks for pages through the view of the REST address (the query, the search and the answer) and through the console's (the same, and
the rows drawn). "Cold" is a question that was not asked before, by a connection that was just opened; of what it reads the system may
have parts in memory, PostgreSQL's own buffers as a rule not. "Warm" is the same question at once again.
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

from access.models import Tenant as TenantRow  # noqa: E402
from bench.evidence_dataset import AREAS, DAYS, RARE_CODE, DatasetTenant, DatasetWriter  # noqa: E402
from bench.figures import CannotMeasure  # noqa: E402
from evidence.search.api import FactListView  # noqa: E402
from evidence.search.pages import facts  # noqa: E402
from kernel.database.tenancy import acting_for  # noqa: E402
from kernel.principal import ActorKind, Principal  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Callable

TABLES = ("evidence_fact", "evidence_seal", "evidence_posting", "evidence_postingbucket", "evidence_indexblock")


def choose_queries(tenant: DatasetTenant, chosen: random.Random, *, days: int = DAYS) -> dict[str, dict[str, str]]:
    """§1.6 of the design record, and searches by qualifiers. Each time others, of the last ``days``."""

    def one(name: str) -> str:
        return chosen.choice(tenant.samples[name])

    begin = datetime.now(UTC) - timedelta(days=chosen.uniform(8, days - 1))
    week = f"after:{begin.isoformat()} before:{(begin + timedelta(days=7)).isoformat()}"
    other = one("tool")
    return {
        "newest of the tenant": {},
        "a page at any depth": {"after": one("fact")},
        "one call": {"q": f"call:{one('call')}"},
        "a trace": {"q": f"trace:{one('trace')}"},
        "an agent, newest": {"q": f"agent:{one('agent')}"},
        "failed or denied": {"q": "outcome:failed outcome:denied"},
        "a week": {"q": week},
        "a tool, failed, in a week": {"q": f"tool:{one('tool')} outcome:failed {week}"},
        "a tool at any depth": {"q": f"tool:{other}", "after": one("fact")},
        "tools of an area": {"q": f"tool:{chosen.choice(AREAS)}.*"},
        "a rare code, without a tool": {"q": f"-tool:{one('tool')} code:{RARE_CODE}"},
        "what no call has": {"q": f"tool:{one('tool')} agent:{one('agent')} code:{RARE_CODE} pii:any"},
        "neither Begin nor End": {"q": "-kind:invocation.began -kind:invocation.ended"},
        "personal data found": {"q": f"pii:phone tool:{one('tool')}"},
        "a hash by its first digits": {"q": f"hash:{one('hash')[7:19]}"},
        "a pasted id": {"q": one("call")},
        "a chain": {"q": f"chain:{one('chain')}"},
        "a consent": {"q": f"consent:{one('consent')}"},
        "denied under a policy": {"q": f"verdict:denied policy:{one('policy')}"},
        "a word": {"q": f"{one('tool').rpartition('.')[2]} -outcome:accepted"},
    }


def make_rest_request(tenant: DatasetTenant, query: dict[str, str]) -> Callable[[], int]:
    request = RequestFactory().get("/api/v1/evidence/facts", query)
    request._force_auth_user = Principal(  # type: ignore[attr-defined]
        ActorKind.USER, "usr_1", "bench", tenant.id, frozenset({"evidence.view"})
    )
    view = FactListView.as_view(authentication_classes=[])

    def ask() -> int:
        response = view(request)
        response.render()
        if response.status_code != 200:
            raise CannotMeasure(f"{query}: {response.data}")
        return len(response.data["data"]["facts"])

    return ask


def make_console_request(tenant: DatasetTenant, query: dict[str, str]) -> Callable[[], int]:
    request: Any = RequestFactory().get(
        "/evidence", query | {"view": "timeline"}, headers={"HX-Request": "true", "HX-Target": "rows"}
    )
    request.principal = Principal(ActorKind.USER, "usr_1", "bench", tenant.id, frozenset({"evidence.view"}))
    request.tenant, request.tenants, request.htmx = TenantRow(id=tenant.id), [], HtmxDetails(request)
    request.display = None
    request.user = get_user_model()(pk=1, username="bench")

    def ask() -> int:
        response = facts(request)
        if response.status_code != 200:
            raise CannotMeasure(f"{query}: {response.status_code}")
        return response.content.count(b"<li data-tone")

    return ask


def time_request(tenant: DatasetTenant, ask: Callable[[], int]) -> float:
    with acting_for(tenant.id):
        begun = time.perf_counter()
        ask()
        return (time.perf_counter() - begun) * 1000


def measure_pages(tenants: list[DatasetTenant], rounds: int) -> dict[str, list[float]]:
    chosen, found = random.Random(5), dict[str, list[float]]()
    for tenant in tenants[:3]:  # what is loaded and compiled once a process
        for query in choose_queries(tenant, random.Random(1)).values():
            time_request(tenant, make_rest_request(tenant, query))
            time_request(tenant, make_console_request(tenant, query))
    for _ in range(rounds):
        (tenant,) = chosen.choices(tenants, [each.size for each in tenants])
        for name, query in choose_queries(tenant, chosen).items():
            ask = make_rest_request(tenant, query)
            connection.close()
            connection.ensure_connection()
            found.setdefault(f"{name} · cold", []).append(time_request(tenant, ask))
            found.setdefault(f"{name} · warm", []).append(time_request(tenant, ask))
            found.setdefault(f"{name} · drawn", []).append(time_request(tenant, make_console_request(tenant, query)))
    return found


def measure_table_sizes() -> dict[str, list[float]]:
    """MiB of each table with its indexes."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT relname, pg_total_relation_size(oid) / 1048576.0 FROM pg_class WHERE relname = ANY(%s)",
            [list(TABLES)],
        )
        return {f"MiB of {name}": [float(size)] for name, size in cursor.fetchall()}


def measure_search(count: int, rounds: int) -> dict[str, list[float]]:
    connection.ensure_connection()
    tenants = DatasetWriter(connection.connection, count).run()
    with connection.cursor() as cursor:
        cursor.execute(f"VACUUM ANALYZE {', '.join(TABLES)}")
    return measure_pages(tenants, rounds) | measure_table_sizes()


if __name__ == "__main__":
    print(json.dumps(measure_search(int(sys.argv[1]), int(sys.argv[2]))))
