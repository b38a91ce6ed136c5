"""Discovery: how long an agent waits for a page of the catalogue, however large the hub is.

``python -m bench.discovery COUNT`` fills the PostgreSQL database that the environment names (migrated, otherwise empty) with
10,000 tools and 1,000 tenants of about 200 installations each, asks for pages under every filter of TOOLS-11, and prints
milliseconds of server time as JSON, by filter.
"""

from __future__ import annotations

import json
import os
import random
import sys
import time
from typing import Any

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "toolhub.settings")
django.setup()

from django.db import connection  # noqa: E402
from django.test import RequestFactory  # noqa: E402
from django.test.utils import CaptureQueriesContext  # noqa: E402

from access.models import Agent, Tenant  # noqa: E402
from access.roles import SCOPES  # noqa: E402
from kernel.database.tenancy import acting_for  # noqa: E402
from kernel.principal import ActorKind, Principal  # noqa: E402
from registry.models import Installation, Tool, ToolVersion  # noqa: E402
from registry.tools.api import ToolListView  # noqa: E402

TOOLS, TENANTS, INSTALLED = 10_000, 1_000, 200
BATCH = 5_000
GROUPS = ("shop", "bank", "mail", "maps", "docs", "chat", "code", "data")
EFFECTS = ("None", "Read", "Write", "Network")
CLASSES = ("Low", "Medium", "High")
DOMAINS = ("", " fs ", " net ", " fs net ", " browser ")
WORDS = ("price", "route", "stock", "invoice", "weather", "address", "ticket", "order", "search", "report")


def build_manifest(number: int, random: random.Random) -> dict[str, Any]:
    name = f"{random.choice(GROUPS)}.pack{number % 97}.tool{number}"
    word, other = random.sample(WORDS, 2)
    properties = {f"field_{each}": {"type": "string", "maxLength": 100} for each in range(12)}
    return {
        "id": name,
        "version": "1.0.0",
        "display_name": f"{word.title()} {number}",
        "description": f"Gives the {word} of a thing, by its {other}. " * 4,
        "tags": [f"tag{number % 50}", word],
        "input_schema": {"type": "object", "properties": properties},
        "output_schema": {"type": "object"},
        "side_effect": random.choice(EFFECTS),
        "safety_class": random.choice(CLASSES),
        "implementation": {"module": "bench.none"},
    }


def fill_database() -> list[Tenant]:
    """Deterministic. Publishers are the first ten tenants; every tenant installs some of everybody's."""
    chosen = random.Random(17)
    tenants = [Tenant(slug=f"tenant-{number}", name=f"Tenant {number}") for number in range(TENANTS)]
    Tenant.objects.bulk_create(tenants, batch_size=BATCH)
    Agent.objects.bulk_create([Agent(tenant=tenant, name="reader") for tenant in tenants], batch_size=BATCH)
    documents = [build_manifest(number, chosen) for number in range(TOOLS)]
    tools = [
        Tool(tenant=tenants[number % 10], name=document["id"], shared=True, state_changed_by="usr_1")
        for number, document in enumerate(documents)
    ]
    Tool.objects.bulk_create(tools, batch_size=BATCH)
    versions = [
        ToolVersion(
            tool=tool,
            version="1.0.0",
            manifest=document,
            manifest_digest="sha256:" + "0" * 64,
            build_digest="sha256:" + "0" * 64,
            review_state="approved",
            submitted_by="usr_1",
            side_effect=document["side_effect"],
            safety_class=document["safety_class"],
            display_name=document["display_name"],
            tags=f" {' '.join(document['tags'])} ",
            domains=chosen.choice(DOMAINS),
            search=f"{document['id']} {document['display_name']} {document['description']}".lower(),
        )
        for tool, document in zip(tools, documents, strict=True)
    ]
    ToolVersion.objects.bulk_create(versions, batch_size=BATCH)
    for tool, version in zip(tools, versions, strict=True):
        tool.current, tool.state = version, "enabled"
    Tool.objects.bulk_update(tools, ["current", "state"], batch_size=BATCH)
    for tenant in tenants:
        picked = chosen.sample(range(TOOLS), INSTALLED)
        Installation.objects.bulk_create(
            Installation(tenant=tenant, tool=tools[at], name=tools[at].name, version=versions[at], changed_by="usr_1")
            for at in picked
        )
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
    return tenants


def request_page(tenant: Tenant, agent: Agent, query: dict[str, str]) -> tuple[float, dict[str, object]]:
    """One page through the view, authentication left out."""
    request = RequestFactory().get("/api/v1/tools", query)
    request.principal = None  # type: ignore[attr-defined]
    principal = Principal(ActorKind.AGENT, agent.wire_id, agent.name, tenant.pk, frozenset(SCOPES), agent.pk)
    view = ToolListView.as_view(authentication_classes=[])
    request._force_auth_user = principal  # type: ignore[attr-defined]
    with acting_for(tenant.pk):
        begun = time.perf_counter()
        response = view(request)
        response.render()
        spent = (time.perf_counter() - begun) * 1000
    if response.status_code != 200:
        raise SystemExit(f"{query}: {response.data}")
    return spent, response.data["data"]


def choose_queries(random: random.Random) -> dict[str, dict[str, str]]:
    return {
        "no filter": {},
        "group": {"group": random.choice(GROUPS)},
        "tag": {"tag": f"tag{random.randrange(50)}"},
        "safety class": {"safety_class": random.choice(CLASSES)},
        "side effect": {"side_effect": random.choice(EFFECTS)},
        "capability domain": {"capability": random.choice(["fs", "net", "browser"])},
        "state": {"state": random.choice(["enabled", "paused", "deprecated"])},
        "one keyword": {"q": random.choice(WORDS)},
        "two keywords that nothing has": {"q": "zebra price"},
        "keyword, class and capability": {"q": random.choice(WORDS), "safety_class": "Low", "capability": "net"},
        "for models": {"view": "llm"},
    }


def measure_discovery(count: int) -> dict[str, list[float]]:
    tenants = fill_database()
    agents = {agent.tenant_id: agent for agent in Agent.objects.all()}
    chosen = random.Random(3)
    found: dict[str, list[float]] = {}
    for _ in range(count):
        for name, query in choose_queries(chosen).items():
            tenant = chosen.choice(tenants)
            spent, page = request_page(tenant, agents[tenant.pk], query)
            found.setdefault(name, []).append(spent)
            if name == "no filter":
                spent, _ = request_page(tenant, agents[tenant.pk], {"after": str(page["next"])})
                found.setdefault("second page", []).append(spent)
    with CaptureQueriesContext(connection) as seen:
        request_page(tenants[0], agents[tenants[0].pk], {"q": "price"})
    if any("COUNT(" in each["sql"] for each in seen):
        raise SystemExit("A page counts.")
    connection.close()
    return found


if __name__ == "__main__":
    print(json.dumps(measure_discovery(int(sys.argv[1]))))
