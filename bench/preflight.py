"""Preflight: how long the decision about a call takes. A process of its own for each database; prints milliseconds as JSON.

``python -m bench.preflight COUNT`` works on the database that the environment names, which must be migrated. The
decision is made as the hub does, and in the plain way: the same questions, an ORM query each, a validator in Python.
"""

from __future__ import annotations

import json
import os
import sys
import time
from datetime import UTC, datetime
from functools import lru_cache
from typing import TYPE_CHECKING

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "toolhub.settings")
django.setup()

from django.db import connection  # noqa: E402  Django must be set up before models load
from django.db.models import Q  # noqa: E402
from jsonschema import Draft202012Validator  # noqa: E402

from access.authentication.bearer import resolve_key_principal  # noqa: E402
from access.budgets.lines import Demand, check_budgets, lines_for  # noqa: E402
from access.grants.matcher import CallRequirements, GrantValue, check_granted  # noqa: E402
from access.models import ApiKey, Consent, Grant, Halt, PolicyState, PolicyVersion  # noqa: E402
from access.policies.compiler import CompiledPolicy, compile_policy  # noqa: E402
from access.policies.verdict import evaluate_policies  # noqa: E402
from bench.worst_case_tenant import switch_everything_on  # noqa: E402
from invocations import services  # noqa: E402
from invocations.calls import CallRequest  # noqa: E402
from kernel.http.envelopes import RequestEnvelope  # noqa: E402
from kernel.ids import encode  # noqa: E402
from registry.models import Installation, Secret  # noqa: E402
from registry.versions.compiler import compiled_version  # noqa: E402
from toolhub.demo import seed  # noqa: E402
from unitools.capabilities import Capabilities, effective  # noqa: E402
from unitools.expressions import build_subject  # noqa: E402

if TYPE_CHECKING:
    from uuid import UUID

    from kernel.principal import Principal

TOOL = "commerce.pricing.get_realtime_quote"
BLOCK = 50  # both ways in turn, and so many of each that neither finds the processor's caches filled by the other


@lru_cache(maxsize=8)
def _policy(pk: UUID) -> CompiledPolicy:
    version = PolicyVersion.objects.get(pk=pk)
    return compile_policy(version.document, version.label, version.digest)


def decide_naively(call: CallRequest, by: Principal) -> None:
    """The plain way. What never changes is compiled once here too; the rest is asked one noun at a time."""
    now = datetime.now(UTC)
    assert by.key_id is not None
    key = ApiKey.objects.select_related("agent").get(pk=by.key_id)
    assert key.revoked_at is None and key.expires_at > now and key.agent.disabled_at is None
    row = Installation.objects.select_related("tool", "version").get(tenant_id=by.tenant_id, name=call.tool)
    assert row.version is not None
    list(Halt.objects.filter(Q(tenant=None) | Q(tenant_id=by.tenant_id), lifted_at=None))
    list(Secret.objects.filter(tenant_id=by.tenant_id).values_list("name", flat=True))
    manifest = row.version.view
    assert not list(Draft202012Validator(manifest.input_schema).iter_errors(call.arguments))
    held = Grant.objects.in_force(now).filter(Q(agent_id=by.agent()) | Q(agent=None), tenant_id=by.tenant_id)
    values = [GrantValue(each.pk, each.tools, each.agent_id, each.capabilities) for each in held]
    wanted = CallRequirements(build_subject(manifest), by.agent(), by.name, call.arguments)
    grant = check_granted(values, wanted, now=now)[0]
    list(Consent.objects.valid(now).filter(agent_id=by.agent(), tool=call.tool))
    in_force = PolicyVersion.objects.filter(Q(tenant=None) | Q(tenant_id=by.tenant_id), state=PolicyState.IN_FORCE)
    layers = [_policy(pk) for pk in in_force.values_list("pk", flat=True)]
    attributes = compiled_version(row.version.pk).attributes | {
        "agent": encode("agt", key.agent_id),
        "agent_name": key.agent.name,
        "origin": str(call.origin),
        "dry_run": False,
        "user_present": False,
        "consent": True,
        "bytes_in": 100,
        "hour": now.hour,
        "weekday": now.isoweekday(),
        "trusted": row.version.trusted_at is not None,
        "signed": False,
    }
    verdict = evaluate_policies(layers, attributes)
    assert verdict.allowed
    lines = lines_for(tenant_id=by.tenant_id, agent_id=by.agent(), tool=call.tool, grant_id=grant.id, now=now)
    check_budgets(lines, Demand(bytes_in=100), now)
    effective(Capabilities.of_manifest(manifest), policy=verdict.capabilities)


def measure_preflight(count: int) -> dict[str, list[float]]:
    """``whole``: one statement, then every step. Then what this process computed, each step by its name, and the naive way."""
    by = resolve_key_principal(seed.seed_demo().api_key)
    switch_everything_on(by, TOOL)
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("ANALYZE")
    envelope = RequestEnvelope(request_id="bench-preflight", actor={"type": "agent", "id": seed.AGENT})
    call = CallRequest(tool=TOOL, arguments=seed.first_example(TOOL), envelope=envelope)
    found: dict[str, list[float]] = {}

    def whole() -> None:
        begun, cpu = time.perf_counter(), time.process_time()
        verdict, log = services.preflight_call(call, by=by)
        found.setdefault("whole", []).append((time.perf_counter() - begun) * 1000)
        found.setdefault("of it CPU time of this process", []).append((time.process_time() - cpu) * 1000)
        for step in log.steps:
            found.setdefault(step["name"], []).append(step["end_ms"] - step["begin_ms"])
        if verdict.problem is not None:
            raise SystemExit(f"The preflight refused: {verdict.problem}")

    def plain() -> None:
        begun = time.perf_counter()
        decide_naively(call, by)
        found.setdefault("naive", []).append((time.perf_counter() - begun) * 1000)

    for number in range(count // BLOCK + 1):
        if number == 1:
            found.clear()  # the first block of each warms up
        for way in (whole, plain):
            for _ in range(BLOCK):
                way()
    connection.close()
    return found


if __name__ == "__main__":
    print(json.dumps(measure_preflight(int(sys.argv[1]))))
