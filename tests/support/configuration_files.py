"""Configuration files: which configuration files do tests apply, and how?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from joserfc.jwk import ECKey

from toolhub.configuration import services
from toolhub.configuration.document import read_document

if TYPE_CHECKING:
    from kernel.principal import Principal
    from kernel.problems import Problem
    from toolhub.configuration.plan import ConfigurationPlan
    from toolhub.configuration.services import AppliedConfiguration

ECHO = "sample.tools.echo"
REGION = {
    "type": "object",
    "additionalProperties": False,
    "required": ["region"],
    "properties": {"region": {"type": "string", "maxLength": 20}, "ratio": {"type": "number"}},
}
TOKEN = [{"name": "API_TOKEN", "description": "What the service asks for."}]
ISSUER = "https://idp.example"
KEYS = {"keys": [ECKey.generate_key("P-256", parameters={"use": "sig"}).as_dict(private=False)]}
POLICY = {
    "format": 1,
    "rules": [
        {"id": "all", "effect": "permit", "when": {}},
        {"id": "no-writes", "effect": "forbid", "when": {"side_effect": {"equals": "Write"}}},
    ],
}


def whole(**sections: Any) -> dict[str, Any]:
    """A file with something in every section; ``sections`` replace some, None takes one out."""
    document: dict[str, Any] = {
        "format": 1,
        "tenant": "acme",
        "agents": [{"name": "buyer"}, {"name": "old one", "disabled": True}],
        "installations": [
            {
                "tool": ECHO,
                "pin": "^1",
                "config": {"region": "north", "ratio": 0.5},
                "hosts": ["*.example.com"],
                "paths": [],
                "secrets": {"API_TOKEN": "token"},
                "state": "paused",
            }
        ],
        "model_providers": [
            {
                "name": "shop",
                "kind": "scripted",
                "address": "https://models.example/v1",
                "secret": "token",
                "settings": {"timeouts": {"total_s": 30}, "retries": 1},
                "data_classes": ["personal"],
                "state": "paused",
            }
        ],
        "models": [
            {
                "provider": "shop",
                "alias": "main",
                "model": "shop-1",
                "window_tokens": 4096,
                "features": {"tools": "passed"},
                "unpriced": "count",
                "state": "paused",
            }
        ],
        "model_prefix": {"text": "Never promise a price."},
        "model_prices": {
            "currency": "EUR",
            "rates": [{"effective_from": "2026-12-01", "rate": "0.92"}],
            "prices": [{"provider": "shop", "model": "shop-1", "effective_from": "2026-12-01", "input": "2.50"}],
        },
        "grants": [
            {
                "agent": "buyer",
                "tools": "tag:pricing | commerce.*",
                "capabilities": {"net": [{"host": "shop.example"}]},
                "scopes": [{"resource": "soul:order:1", "action": "*"}],
                "conditions": [
                    {"pointer": "/currency", "op": "equals", "value": "EUR"},
                    {"pointer": "/a", "op": "present"},
                ],
                "calls_limit": 50,
                "window_s": 3600,
                "limits": [{"dimension": "money", "amount": 5_000_000}, {"dimension": "concurrency", "amount": 2}],
                "expires_at": "2099-01-31T12:00:00+02:00",
                "reason": "Buys for the kitchen.",
            },
            {"agent": "*", "tools": "sample.*", "reason": "Samples are for all."},
            {"agent": "old one", "tools": "sample.*", "reason": "From before."},
        ],
        "budgets": [
            {"scope": "tenant", "dimension": "calls", "amount": 1000, "reason": "For all."},
            {"scope": "agent", "agent": "buyer", "dimension": "concurrency", "amount": 3},
            {"scope": "tool", "tool": ECHO, "dimension": "rate", "amount": 10, "window_s": 60},
        ],
        "issuers": [{"issuer": ISSUER, "audience": "hub", "jwks": KEYS}],
        "identities": [
            {"issuer": ISSUER, "subject": "job-1", "agent": "buyer", "scopes": ["invocations:create", "tools:read"]}
        ],
        "notifications": [
            {"channel": "email", "target": "ops@example.com", "events": ["halt.thrown", "consent.requested"]}
        ],
        "policy": POLICY,
        "members": [{"user": "dana", "roles": ["developer", "reviewer"]}],
    }
    return {name: value for name, value in (document | sections).items() if value is not None}


def plan(value: Any, by: Principal, *, prune_all: bool = False) -> ConfigurationPlan:
    return services.plan_configuration(read_document(value, prune_all=prune_all), by=by)


def apply(value: Any, by: Principal, *, prune_all: bool = False) -> AppliedConfiguration:
    """Planned, and applied as planned."""
    document = read_document(value, prune_all=prune_all)
    digest = services.plan_configuration(document, by=by).digest
    return services.apply_configuration(document=document, plan_digest=digest, by=by)


def doing(found: ConfigurationPlan) -> list[tuple[str, str, str]]:
    return [(change.section, str(change.action), change.key) for change in found.doing]


def give(**terms: Any) -> dict[str, Any]:
    """A file with one grant."""
    return {"format": 1, "grants": [{"agent": "assistant", "tools": "sample.*", "reason": "why"} | terms]}


def findings(problem: Problem) -> list[str]:
    """The places of the file that a problem is about."""
    return [each["pointer"] for each in problem.details["findings"]]
