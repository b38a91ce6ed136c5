"""Policies: which policies and calls do tests make up?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kernel.canonical import compute_digest

if TYPE_CHECKING:
    from random import Random

    from access.policies.compiler import CompiledPolicy

CALL: dict[str, Any] = {
    "tool": "shop.prices.get", "group": "shop", "tool_major": 1, "tags": [], "side_effect": "Read", "safety_class": "Low",
    "domains": [], "agent": "agt_1", "agent_name": "assistant", "origin": "api", "dry_run": False, "user_present": False,
    "consent": False, "bytes_in": 100, "hour": 12, "weekday": 3, "trusted": False, "signed": False,
}  # fmt: skip
TOOLS = ["shop.prices.get", "shop.prices.set", "shop.stock.get", "web.pages.fetch", "other.a.b"]
# What a call may be, by attribute; None is absent. The rules below name some of these values and no others, and never all.
VALUES: dict[str, list[Any]] = {
    "tool": TOOLS,
    "tags": [[], ["new"], ["paid"], ["new", "paid"]],
    "side_effect": ["None", "Read", "Write", "Network", "Filesystem", "Browser", "Process"],
    "safety_class": ["Low", "Medium", "High"],
    "domains": [[], ["net"], ["fs"], ["fs", "net"]],
    "origin": ["api", "llm", "system"],
    "dry_run": [False, True],
    "model": [None, "m-1", "m-2", "m-3"],
    "model_compatible": [None, False, True],
    "client_app": [None, "cli", "ide", "app"],
    "agent_name": ["assistant", "robot", "else"],
    "bytes_in": [0, 99, 100, 101, 5000],
    "hour": list(range(24)),
    "weekday": list(range(1, 8)),
}
LIMITED = {"timeout_ms": [1000, 5000, 30_000], "max_bytes_in": [100, 2000]}
CAPABILITIES: list[dict[str, Any]] = [{}, {"tmp": 1024}, {"tmp": 4096}]


def atom(random: Random, name: str, *, depth: int = 0) -> dict[str, Any]:
    """A comparison that the attribute takes."""
    if depth < 2 and random.random() < 0.15:
        return {"not": atom(random, name, depth=depth + 1)}
    if random.random() < 0.1:
        return {"has": random.random() < 0.5}
    match name:
        case "tool":
            text = random.choice(
                ["shop.*", "shop.prices.*", "shop.prices.get", "web.* | tag:new", "shop.* & ~tag:paid", "~effect:Read",
                 "safety:High | effect:Write", "domain:net", "*", "~(shop.* | tag:new)"]
            )  # fmt: skip
            return random.choice([{"matches": text}, {"equals": random.choice(TOOLS)}, {"in": random.sample(TOOLS, 2)}])
        case "tags":
            return {"contains": random.choice(["new", "paid", ["new", "paid"]])}
        case "domains":
            return {"contains": random.choice(["net", "fs"])}
        case "hour":
            return random.choice([{"at_least": 9, "at_most": 17}, {"at_most": 6}, {"in": [0, 12, 23]}, {"equals": 12}])
        case "weekday":
            return random.choice([{"at_least": 6}, {"equals": 3}])
        case "bytes_in":
            return random.choice([{"at_least": 100}, {"at_most": 100}, {"equals": 100}])
        case "dry_run" | "model_compatible":
            return {"equals": random.random() < 0.5}
        case "group":
            return {"equals": random.choice(["shop", "web"])}
        case _:
            known = [value for value in VALUES[name] if value is not None][:2]
            return random.choice([{"equals": known[0]}, {"in": known}])


def rule(random: Random, id: str, names: list[str], effects: tuple[str, ...]) -> dict[str, Any]:
    effect = random.choice(effects)
    asked = random.sample(names, 0 if random.random() < 0.05 else random.randint(1, min(3, len(names))))
    found: dict[str, Any] = {"id": id, "effect": effect, "when": {name: atom(random, name) for name in asked}}
    match effect:
        case "consent":
            found["consent"] = {"mode": random.choice(["once", "period", "standing"]), "validity_s": 3600}
        case "ceiling":
            name = random.choice(list(LIMITED))
            found |= random.choice(
                [{"limits": {name: random.choice(LIMITED[name])}}, {"capabilities": random.choice(CAPABILITIES)}]
            )
        case "isolation":
            found["level"] = random.choice(["shared", "fresh", "single", "cold"])
            if id[-1] in "13579":
                found["untrusted"] = True
        case "oblige":
            found["obligations"] = [{"action": "redact", "pointer": random.choice(["/a", "/b"])}]
        case "price":
            found["amount_micros"] = random.choice([0, 10, 20])
    return found


EFFECTS = ("permit", "permit", "forbid", "forbid", "consent", "ceiling", "isolation", "oblige", "price")


def document(random: Random, names: list[str], rules: int, effects: tuple[str, ...] = EFFECTS) -> dict[str, Any]:
    return {"format": 1, "rules": [rule(random, f"r{index}", names, effects) for index in range(rules)]}


def call(random: Random, names: list[str]) -> dict[str, Any]:
    found = CALL | {name: random.choice(VALUES[name]) for name in names if name in VALUES}
    return found | {"group": found["tool"].partition(".")[0]}


def compiled(document: dict[str, Any], label: str = "tenant@1") -> CompiledPolicy:
    from access.policies.compiler import compile_policy

    return compile_policy(document, label, compute_digest(document))


def permits(*rules: dict[str, Any]) -> dict[str, Any]:
    """A policy that permits everything, and these rules."""
    return {"format": 1, "rules": [{"id": "all", "effect": "permit", "when": {}}, *rules]}
