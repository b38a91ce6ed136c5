"""Examples for the rules about side effects, safety, consent and retries."""

from __future__ import annotations

from tests.mistakes.base import KEY, NET, PLAIN, READ, WRITE, Mistake, files

EFFECTS: dict[str, list[Mistake]] = {
    "effect.none_with_capability": [
        Mistake("a network", {"capabilities": {"net": [PLAIN]}}, "/capabilities/net", NET),
        Mistake(
            "an address", {"capabilities": {"cidr": [{"cidr": "10.1.0.0/16", "ports": ["443"]}]}}, "/capabilities/cidr"
        ),
        Mistake(
            "a browser", {"capabilities": {"browser": True}}, "/capabilities/browser", {"capabilities": {"tmp": 5}}
        ),
    ],
    "effect.read_that_writes": [
        Mistake(action, files("/a", action) | READ, "/side_effect", files("/a", "read", "list") | READ)
        for action in ("write", "create", "delete")
    ],
    "effect.read_that_sends": [
        Mistake("every method", NET | READ, "/capabilities/net/0", READ | {"capabilities": {"net": [PLAIN]}}),
        Mistake(
            "a method that writes",
            READ | {"capabilities": {"net": [PLAIN, PLAIN | {"host": "b.example", "methods": ["GET", "POST"]}]}},
            "/capabilities/net/1",
            NET,
        ),
    ],
    "effect.hidden_process": [
        Mistake("a program", NET | {"capabilities": NET["capabilities"] | {"proc": ["/bin/tar"]}}, "/side_effect", NET),
        Mistake(
            "files to run",
            files("/a", "exec"),
            "/side_effect",
            {"side_effect": "Process", "safety_class": "High", "capabilities": {"proc": ["/bin/tar"]}},
        ),
    ],
    "effect.more_than_said": [
        Mistake(
            "a network that writes files",
            NET | {"capabilities": NET["capabilities"] | {"fs": [{"path": "/a", "actions": ["write"]}]}},
            "/capabilities/fs/0",
            NET | {"capabilities": NET["capabilities"] | {"fs": [{"path": "/a", "actions": ["read"]}]}},
        ),
        Mistake(
            "files and a network",
            {
                "side_effect": "Filesystem",
                "capabilities": {"fs": [{"path": "/a", "actions": ["write"]}], "net": [PLAIN]},
            },
            "/capabilities/net",
            files("/a", "write"),
        ),
        Mistake(
            "reading with a browser",
            READ | {"capabilities": {"browser": True, "net": [PLAIN]}},
            "/capabilities/browser",
            {"side_effect": "Browser", "capabilities": {"browser": True, "net": [PLAIN]}},
        ),
    ],
    "effect.without_capability": [
        Mistake("a network", {"side_effect": "Network"}, "/capabilities/net", NET),
        Mistake(
            "a network by address",
            {"side_effect": "Network"},
            "/capabilities/net",
            {"side_effect": "Network", "capabilities": {"cidr": [{"cidr": "10.1.0.0/16", "ports": ["443"]}]}},
        ),
        Mistake("files", {"side_effect": "Filesystem"}, "/capabilities/fs", files("/a", "read")),
        Mistake("programs", {"side_effect": "Process", "safety_class": "High"}, "/capabilities/proc"),
    ],
    "effect.outside_sandbox": [
        Mistake("a writer", WRITE | {"requires_sandbox": False}, "/requires_sandbox", WRITE),
        Mistake(
            "nothing to wall in", WRITE | {"requires_sandbox": False}, "/requires_sandbox", {"requires_sandbox": False}
        ),
    ],
    "effect.secrets_outside_sandbox": [
        Mistake("a key", {"secrets": [KEY], "requires_sandbox": False}, "/requires_sandbox", {"secrets": [KEY]})
    ],
    "safety.low_but_grave": [
        Mistake("a writer", WRITE | {"safety_class": "Low"}, "/safety_class", WRITE),
        Mistake("unsaid", WRITE | {"safety_class": None}, "/safety_class", WRITE | {"safety_class": "High"}),
    ],
    "safety.low_but_sensitive": [
        Mistake(
            "health",
            {"data_classes": ["personal", "health"]},
            "/safety_class",
            {"data_classes": ["health"], "safety_class": "Medium"},
        )
    ],
    "consent.contradicted": [
        Mistake(
            "a writer",
            WRITE | {"consent": {"required": False}},
            "/consent/required",
            WRITE | {"consent": {"required": True}},
        ),
        Mistake(
            "a High tool",
            {"safety_class": "High", "consent": {"required": False}},
            "/consent/required",
            {"safety_class": "Medium", "consent": {"required": False}},
        ),
    ],
    "consent.unused": [
        Mistake(
            "a validity of nothing",
            {"consent": {"validity_seconds": 60}},
            "/consent/validity_seconds",
            {"consent": {"required": True, "validity_seconds": 60}},
        ),
        Mistake(
            "a scope of nothing",
            {"consent": {"scope": "once"}},
            "/consent/scope",
            WRITE | {"consent": {"scope": "once"}},
        ),
    ],
    "consent.standing_for_high": [
        Mistake(
            "for ever",
            {"safety_class": "High", "consent": {"scope": "standing"}},
            "/consent/scope",
            {"safety_class": "High", "consent": {"scope": "period"}},
        )
    ],
    "consent.standing_with_validity": [
        Mistake(
            "for ever and a day",
            {"consent": {"required": True, "scope": "standing", "validity_seconds": 86400}},
            "/consent/validity_seconds",
            {"consent": {"required": True, "scope": "standing"}},
        )
    ],
    "write.not_keyed": [Mistake("no key", WRITE | {"idempotency": "none"}, "/idempotency", WRITE)],
    "dry_run.without_effect": [
        Mistake("nothing to leave out", {"dry_run": True}, "/dry_run", WRITE | {"dry_run": True}),
        Mistake("reading", READ | {"dry_run": True}, "/dry_run", READ | {"dry_run": False}),
    ],
}
