"""The hub of the suite: which tenant, tools and agents does the conformance suite of MCP find? Run with the environment of a hub.

A tenant of its own, in which everything went through the services: the fixture tools that the suite calls by name are submitted by
one person, reviewed and enabled by another; an agent is granted them and nothing else. Prints the agent's key, and how tokens of an
issuer on this machine (``argv[1]``: where its keys are) get through as the same agent, as one JSON object. People sign in at that
issuer, too, and it may vouch for them.
"""

from __future__ import annotations

import json
import os
import secrets
import sys
from typing import Any

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "toolhub.settings")
django.setup()  # models can be imported only from here on

from allauth.socialaccount.models import SocialAccount  # noqa: E402
from django.contrib.auth import get_user_model  # noqa: E402
from django.core.management import call_command  # noqa: E402

from access import services as access  # noqa: E402
from access.clients.services import enter_client  # noqa: E402
from access.connections.resources import tenant_mcp_resource  # noqa: E402
from access.issuers import services as issuers  # noqa: E402
from access.issuers.assertion_rules import set_assertion_rule  # noqa: E402
from access.middleware import principal_of_user  # noqa: E402
from access.roles import AGENT_SCOPES, Role  # noqa: E402
from kernel.principal import Principal  # noqa: E402
from registry.models import Decision  # noqa: E402
from registry.versions import services as registry  # noqa: E402
from tests.support.manifests import manifest  # noqa: E402
from unitools.dialects.tool_names import derive_tool_name  # noqa: E402

SPARE = "spare"  # it is paused and resumed where the suite wants a list to change
PREFIX, NAMED = "conformance.tools.", "conformance_tools_"  # of ids, and of names
AUDIENCE = "the-hub"  # of the issuer's tokens
SUBJECT = "conformance-client"
REDIRECT_URI = "http://127.0.0.1:53219/callback"  # of the program that is entered by hand
REALM, PERSON = "/realms/people", "u-1"  # of the same server: where people sign in, and one of them
SCHEMA_2020_12: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}


def _takes(*required: str, **properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}


CONSENT: dict[str, Any] = {"side_effect": "Write", "safety_class": "Medium", "consent": {"required": True}}
TEXT, NUMBER = {"type": "string", "maxLength": 200}, {"type": "number", "minimum": 0, "maximum": 60}
LEAVES = {"limits": {"artifacts": 2}}
# By the suite's names: (the function, what differs from a tool without arguments).
TOOLS: dict[str, tuple[str, dict[str, Any]]] = {
    "test_simple_text": ("simple_text", {}),
    "test_error_handling": ("error_handling", {}),
    "test_tool_with_progress": ("with_progress", {}),
    "test_logging_tool": ("logs_and_reports", {}),
    "test_streaming_elicitation": ("logs_and_reports", {}),  # asks for nothing: a tool of the hub has nobody to ask
    "test_image_content": ("image_content", LEAVES),
    "test_audio_content": ("audio_content", LEAVES),
    "test_embedded_resource": ("embedded_resource", LEAVES),
    "test_multiple_content_types": ("multiple_content_types", LEAVES),
    "json_schema_2020_12_tool": ("json_schema_2020_12_tool", {"input_schema": SCHEMA_2020_12}),
    "greet": ("greet", {"input_schema": _takes("name", name=TEXT)}),
    "slow_compute": (
        "slow_compute",
        {"input_schema": _takes(seconds=NUMBER, label=TEXT), "async": True, "timeout_ms": 70_000},
    ),
    "failing_job": ("failing_job", {"async": True}),
    "confirm_delete": ("confirm_delete", {"input_schema": _takes("filename", filename=TEXT)} | CONSENT),
    # Ask for nothing themselves: the hub asks for a consent.
    "test_elicitation": ("json_schema_2020_12_tool", {"input_schema": _takes(message=TEXT)} | CONSENT),
    "test_input_required_result_elicitation": ("simple_text", CONSENT),
    SPARE: ("simple_text", {}),
}
LISTED = [
    derive_tool_name(f"{PREFIX}{name}") for name in sorted(TOOLS)
]  # their names, in the order of the hub: that of their ids


def document_of(name: str) -> dict[str, Any]:
    entry, changes = TOOLS[name]
    return manifest(
        name,
        id=f"{PREFIX}{name}",
        tags=["conformance"],
        implementation={"module": "conformance.tools", "entry": entry},
        **({"input_schema": _takes()} | changes),
    )


def main(jwks_url: str) -> None:
    call_command("init")
    tenant = access.create_tenant(slug="conformance", name="Conformance")
    setup = Principal.system("setup", tenant_id=tenant.pk)
    people: dict[Role, Principal] = {}
    password = secrets.token_hex()
    for role in (Role.DEVELOPER, Role.OPERATOR, Role.OWNER):
        user = get_user_model().objects.create_user(username=f"conformance-{role}", password=password)
        access.give_membership(tenant=tenant, user=user, role=role, by=setup)
        people[role] = principal_of_user(get_user_model().objects.get(pk=user.pk), tenant)
    operator = people[Role.OPERATOR]
    for name in TOOLS:
        version = registry.submit_version(document=document_of(name), by=people[Role.DEVELOPER])
        registry.review_version(version_id=version.pk, decision=Decision.APPROVE, note="", by=operator)
        registry.enable_tool(name=version.tool.name, version_id=version.pk, reason="For a test.", by=operator)
    agent = access.create_agent(name="conformance", by=setup)
    access.give_grant(agent_id=agent.pk, tools=f"{PREFIX}*", reason="For a test.", by=operator)
    _, key = access.create_key(agent=agent, scopes=AGENT_SCOPES, by=setup)
    _, operates = access.create_key(agent=agent, scopes=("tools:operate",), by=setup)
    issuer = issuers.trust_issuer(
        issuer=jwks_url.rpartition("/")[0], audience=AUDIENCE, jwks_url=jwks_url, by=people[Role.OWNER]
    )
    issuers.map_identity(
        issuer_id=issuer.pk, subject=SUBJECT, agent_id=agent.pk, scopes=AGENT_SCOPES, by=people[Role.OWNER]
    )
    theirs = issuers.trust_issuer(
        issuer=jwks_url.rpartition("/")[0] + REALM,
        audience=tenant_mcp_resource(tenant.slug),
        jwks_url=jwks_url,
        by=people[Role.OWNER],
    )
    issuers.map_identity(
        issuer_id=theirs.pk, subject=PERSON, agent_id=agent.pk, scopes=AGENT_SCOPES, by=people[Role.OWNER]
    )
    SocialAccount.objects.create(user_id=operator.id.removeprefix("usr_"), provider="oidc", uid=PERSON)
    set_assertion_rule(
        issuer_id=issuer.pk,
        agent_id=agent.pk,
        scopes=AGENT_SCOPES,
        tools=None,
        token_minutes=5,
        by=people[Role.OWNER],
    )
    entered, secret = enter_client(name="By hand", redirect_uris=[REDIRECT_URI], confidential=True, by=operator)
    found = {"key": key, "operates": operates, "agent": agent.wire_id, "password": password}
    print(json.dumps(found | {"client_id": entered.client_id, "client_secret": secret}))


if __name__ == "__main__":
    main(sys.argv[1])
