"""Policy: how long it takes to decide, to be tried on past calls, to be compared. Prints milliseconds as JSON.

``python -m bench.policy CALLS`` works on the database that the environment names, which must be migrated; it fills it with
the Begin facts of that many calls.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import sys
import time
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import TYPE_CHECKING, Any

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "toolhub.settings")
django.setup()

from django.db import connection  # noqa: E402  Django must be set up before models load

from access.policies.compiler import BUILTIN, compile_policy  # noqa: E402
from access.policies.impact import previews  # noqa: E402
from access.policies.impact.analysis import SILENT_DOCUMENT, analyse_change  # noqa: E402
from access.policies.impact.simulation import OutcomeChange, simulate_calls  # noqa: E402
from access.policies.verdict import evaluate_policies  # noqa: E402
from evidence.kinds import Kind  # noqa: E402
from evidence.models import Fact  # noqa: E402
from kernel.canonical import canonicalize, compute_digest  # noqa: E402
from kernel.ids import encode, new_id  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Iterator
    from uuid import UUID

RULES = 50
DECISIONS = 20_000
COMPARISONS = 5
BATCH = 5_000
GROUPS = ["commerce", "web", "files", "crm", "mail"]
TOOLS = [
    f"{group}.{package}.{name}" for group in GROUPS for package in ("a", "b", "c") for name in ("get", "set", "list")
]
TAGS = ["beta", "paid", "internal", "personal", "slow"]
EFFECTS = ["None", "Read", "Write", "Network", "Filesystem", "Browser", "Process"]
ASKED = [
    "tool",
    "side_effect",
    "safety_class",
    "agent_name",
    "origin",
    "dry_run",
    "model",
    "bytes_in",
    "hour",
    "weekday",
]
ASKED += ["tags", "client_app", "trusted", "user_present"]


def choose_condition(chosen: random.Random, name: str) -> dict[str, Any]:
    match name:
        case "tool":
            group = chosen.choice(GROUPS)
            wide = [f"{group}.*", f"{group}.a.*", f"{group}.* & ~tag:{chosen.choice(TAGS)}", f"{group}.b.set"]
            return {"matches": chosen.choice(wide)}
        case "side_effect":
            return {"in": chosen.sample(EFFECTS, 2)}
        case "safety_class":
            return {"equals": chosen.choice(["Medium", "High"])}
        case "agent_name":
            return {"equals": f"agent-{chosen.randrange(8)}"}
        case "origin":
            return {"equals": chosen.choice(["api", "llm"])}
        case "model":
            return {"has": True, "in": [f"model-{chosen.randrange(6)}", f"model-{chosen.randrange(6)}"]}
        case "bytes_in":
            return {"at_least": chosen.choice([1_000, 10_000, 100_000])}
        case "hour":
            return {"not": {"at_least": chosen.randrange(4, 9), "at_most": chosen.randrange(17, 22)}}
        case "weekday":
            return {"at_least": 6}
        case "tags":
            return {"contains": chosen.choice(TAGS)}
        case "client_app":
            return {"has": True, "equals": f"app-{chosen.randrange(3)}"}
        case _:
            return {"equals": chosen.random() < 0.5}


SAYS: dict[str, dict[str, Any]] = {
    "consent": {"consent": {"mode": "once", "validity_s": 3600}},
    "ceiling": {"limits": {"timeout_ms": 5_000}, "capabilities": {"tmp": 1_048_576}},
    "isolation": {"level": "fresh"},
    "oblige": {"obligations": [{"action": "mask", "detector": "email"}]},
    "price": {"amount_micros": 2_500},
}


def choose_rule(chosen: random.Random, id: str) -> dict[str, Any]:
    effect = chosen.choice(["permit", "forbid", "forbid", "forbid", *SAYS])
    names = chosen.sample(ASKED, chosen.choice([2, 3, 4]))
    return {
        "id": id,
        "effect": effect,
        "when": {name: choose_condition(chosen, name) for name in names},
        **SAYS.get(effect, {}),
    }


def choose_policy(chosen: random.Random) -> dict[str, Any]:
    rules = [{"id": "all", "effect": "permit", "when": {}}, *(choose_rule(chosen, f"r{n}") for n in range(RULES - 1))]
    return {"format": 1, "rules": rules}


def edit_policy(chosen: random.Random, document: dict[str, Any]) -> dict[str, Any]:
    """As a person edits: one rule gone, one changed, one new."""
    rules = list(document["rules"])
    del rules[7]
    rules[20] = choose_rule(chosen, rules[20]["id"])
    return {"format": 1, "rules": [*rules, choose_rule(chosen, "new")]}


def choose_attributes(chosen: random.Random) -> dict[str, Any]:
    """As calls are: some agents and tools are used much more than others, and the tool says most of the rest."""
    number = min(int(chosen.expovariate(0.15)), len(TOOLS) - 1)
    agent = min(int(chosen.expovariate(0.5)), 7)
    tool = TOOLS[number]
    found = {
        "tool": tool,
        "group": tool.partition(".")[0],
        "tool_major": 1,
        "tags": TAGS[number % 4 : number % 4 + 2],
        "side_effect": EFFECTS[number % len(EFFECTS)],
        "safety_class": ["Low", "Low", "Medium", "High"][number % 4],
        "domains": ["net"] if number % 3 else [],
        "agent": f"agt_{agent}",
        "agent_name": f"agent-{agent}",
        "origin": "llm" if agent % 2 else "api",
        "dry_run": chosen.random() < 0.02,
        "user_present": agent % 3 == 0,
        "consent": chosen.random() < 0.3,
        "bytes_in": int(chosen.lognormvariate(6, 1)),
        "hour": int(chosen.gauss(13, 4)) % 24,
        "weekday": chosen.choice([1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 7]),
        "trusted": False,
        "signed": False,
    }
    return found | ({"model": f"model-{agent % 6}"} if agent % 2 else {})


def build_facts(chosen: random.Random, tenant: UUID, count: int) -> Iterator[Fact]:
    """Begin facts with as much beside the decision as real ones have."""
    at = datetime.now(UTC) - timedelta(seconds=count)
    for number in range(count):
        invocation, attributes = new_id(), choose_attributes(chosen)
        allowed = evaluate_policies([BUILTIN], attributes)
        leaf = canonicalize(
            {
                "v": 1,
                "kind": Kind.INVOCATION_BEGAN,
                "at": (at + timedelta(seconds=number)).isoformat(),
                "tenant": encode("ten", tenant),
                "subject": encode("inv", invocation),
                "invocation": encode("inv", invocation),
                "tool": attributes["tool"],
                "outcome": "accepted",
                "data": {
                    "decision_input": attributes,
                    "decision": {"allowed": allowed.allowed, "consent": False, "rules": allowed.rules},
                    "input": {
                        "alg": "sha256-jcs",
                        "commit": compute_digest(number),
                        "bytes": 264,
                        "shape": {"sku": "string(14)"},
                    },
                    "tool": {
                        "name": attributes["tool"],
                        "build": compute_digest(attributes["tool"]),
                        "version": "1.0.0",
                    },
                    "policy": {"hash": compute_digest("hub"), "version": "builtin@2"},
                    "profile": compute_digest("profile"),
                },
            }
        )
        yield Fact(
            tenant_id=tenant,
            kind=Kind.INVOCATION_BEGAN,
            subject=encode("inv", invocation),
            invocation_id=invocation,
            occurred_at=at + timedelta(seconds=number),
            actor_kind="agent",
            actor_id=attributes["agent"],
            tool=attributes["tool"],
            outcome="accepted",
            leaf=leaf,
            leaf_hash=hashlib.sha256(b"\x00" + leaf).digest(),
        )


def insert_facts(count: int) -> UUID:
    tenant = new_id()
    made = build_facts(random.Random(1), tenant, count)
    with connection.cursor() as cursor:
        # As somebody who owns the tables may, in a database that is thrown away: there are no calls behind the facts.
        cursor.execute("ALTER TABLE evidence_fact DISABLE TRIGGER USER")
    while batch := list(islice(made, BATCH)):
        Fact.objects.bulk_create(batch)
    return tenant


def measure_policy(count: int) -> dict[str, list[float]]:
    chosen = random.Random(2)
    document = choose_policy(chosen)
    compiled = compile_policy(document, "tenant@1", compute_digest(document))
    found: dict[str, list[float]] = {}

    def measured(name: str, begun: float) -> None:
        found.setdefault(name, []).append((time.perf_counter() - begun) * 1000)

    calls = [choose_attributes(chosen) for _ in range(1_000)]
    for number in range(DECISIONS):
        attributes = calls[number % len(calls)]
        begun = time.perf_counter()
        evaluate_policies([BUILTIN, compiled], attributes)
        measured(f"decide, {RULES} rules and the built-in ones", begun)
    for _ in range(COMPARISONS):
        other = edit_policy(chosen, document)
        begun = time.perf_counter()
        analyse_change(document, other)
        measured(f"analyse an edit of {RULES} rules", begun)
        other = choose_policy(chosen)
        begun = time.perf_counter()
        analyse_change(SILENT_DOCUMENT, other)
        measured(f"analyse {RULES} rules, all of them new", begun)
    tenant = insert_facts(count)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
    for _ in range(3):
        begun, cpu = time.perf_counter(), time.process_time()
        done = simulate_calls(previews.past_calls(tenant, count), lambda _: (BUILTIN, compiled))
        done.to_json()
        measured(f"try a draft on {count:,} calls", begun)
        found.setdefault("of it CPU time of this process", []).append((time.process_time() - cpu) * 1000)
        if done.calls != count or done.counts[OutcomeChange.SAME] in (0, count):
            raise SystemExit(f"The simulation saw {done.calls} calls: {done.counts}")
    connection.close()
    return found


if __name__ == "__main__":
    print(json.dumps(measure_policy(int(sys.argv[1]))))
