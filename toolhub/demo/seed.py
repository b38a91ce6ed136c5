"""Seed: what a new hub holds, so that its first minute shows something real.

A demonstration tenant with the commerce tools: six reviewed, enabled and granted; ``create_draft_order`` enabled but
waiting for a person's consent. A tool in Node.js and one with a browser are enabled and granted to nobody. Everything
goes through the services, as if people had done it; doing it again changes nothing.
"""

from __future__ import annotations

import json
import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group

from access import services as access
from access.middleware import principal_of_user
from access.models import Agent, ApiKey, Grant, Tenant
from access.roles import AGENT_SCOPES, HUB_OWNERS, Role
from kernel.principal import Principal
from kernel.secret_files import write_once
from registry.models import Decision, Tool, ToolState, ToolVersion, VersionState
from registry.versions import services as registry
from registry.versions.bump import changes_now
from toolhub.demo import local_models
from toolhub.demo.scenes import build_scenes
from unitools.changes import compare_manifests, compute_needed_bump

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

TENANT = ("demo", "Northwind Trading")
OTHER_TENANT = ("other", "Contoso Labs")
PEOPLE = {
    "oona": ("Oona", "Owner", Role.OWNER),
    "olivia": ("Olivia", "Operator", Role.OPERATOR),
    "aaron": ("Aaron", "Auditor", Role.AUDITOR),
    "dana": ("Dana", "Developer", Role.DEVELOPER),
}
AGENT = "shopping-assistant"
CREDENTIALS = "demo-credentials.json"


@dataclass(frozen=True, slots=True)
class DemoCredentials:
    """What the person at the terminal needs. Kept in a file that only the owner can read; the database has hashes."""

    passwords: dict[str, str]
    api_key: str

    def curl(self) -> str:
        sku = first_example("commerce.pricing.get_realtime_quote")
        body = {"request_id": "my-first-call", "actor": {"type": "agent", "id": AGENT}, "arguments": sku}
        return self._format_curl("/api/v1/tools/commerce.pricing.get_realtime_quote/invoke", body)

    def question(self) -> str:
        """To a model of this machine; empty where there is none."""
        if not local_models.are_installed():
            return ""
        message = {"role": "user", "content": "What is the capital of France?"}
        return self._format_curl(
            "/v1/chat/completions", {"model": local_models.CHAT, "messages": [message], "max_tokens": 60}
        )

    def _format_curl(self, path: str, body: dict[str, Any]) -> str:
        return (
            f"curl -sS {settings.TOOLHUB_PUBLIC_URL}{path} \\\n"
            f"  -H 'Authorization: Bearer {self.api_key}' -H 'Content-Type: application/json' \\\n"
            f"  -d '{json.dumps(body)}'"
        )


def first_example(tool_id: str) -> dict[str, Any]:
    """Arguments that the tool answers with a value."""
    for root in settings.TOOLHUB_TOOLS_PATH:
        path = root / "commerce" / "examples.json"
        if path.exists():
            examples: list[dict[str, Any]] = json.loads(path.read_text())[tool_id]
            return next(example["arguments"] for example in examples if example["expect"] == "ok")
    raise FileNotFoundError("No tools root holds commerce/examples.json.")


def list_manifests() -> list[Path]:
    return sorted(path for root in settings.TOOLHUB_TOOLS_PATH for path in root.glob("*/manifests/*.json"))


def _people(tenant: Tenant, wanted: dict[str, str]) -> dict[str, Principal]:
    """The people of the demonstration, with the passwords of the credentials file."""
    setup, found = Principal.system("setup", tenant_id=tenant.pk), {}
    for username, (first, last, role) in PEOPLE.items():
        user, created = get_user_model().objects.get_or_create(
            username=username, defaults={"first_name": first, "last_name": last}
        )
        if created or not user.check_password(wanted[username]):
            user.set_password(wanted[username])
            user.save(update_fields=["password"])
        access.give_membership(tenant=tenant, user=user, role=role, by=setup)
        found[username] = principal_of_user(get_user_model().objects.get(pk=user.pk), tenant)
    return found


def align_version(document: dict[str, Any], by: Principal) -> dict[str, Any]:
    """The manifest with the version number under which this content is, or will be, in the catalogue.

    A newer checkout brings other content under the same number, and versions never change: it becomes the next version that
    says what differs.
    """
    newest = ToolVersion.objects.filter(tool__tenant_id=by.tenant_id, tool__name=document["id"]).order_by("-pk").first()
    if newest is None:
        return document
    same = document | {"version": newest.version}
    if newest.manifest == same and newest.build_digest == registry.examine_manifest(same)[1]:
        return same
    major, minor, patch = (int(part) for part in newest.version.split("."))
    match compute_needed_bump(compare_manifests(newest.manifest, document)):
        case "major":
            following = (major + 1, 0, 0)
        case "minor":
            following = (major, minor + 1, 0)
        case _:
            following = (major, minor, patch + 1)
    return document | {"version": ".".join(str(part) for part in following)}


def _tools(people: dict[str, Principal]) -> None:
    """Submitted by the developer, reviewed and enabled by the operator."""
    for path in list_manifests():
        document = align_version(json.loads(path.read_text()), people["dana"])
        version = registry.submit_version(document=document, by=people["dana"])
        if (
            version.review_state == VersionState.SUBMITTED
            and not version.reviews.filter(decided_by=people["olivia"].id).exists()
        ):
            registry.review_version(
                version_id=version.pk,
                decision=Decision.APPROVE,
                note="Part of the demonstration pack.",
                acknowledged=[change["id"] for change in changes_now(version)[1]],
                by=people["olivia"],
            )
            version.refresh_from_db()
        tool = Tool.objects.get(pk=version.tool_id)
        fresh = tool.state == ToolState.REGISTERED or (
            tool.state == ToolState.ENABLED and tool.current_id != version.pk
        )
        if fresh and version.review_state == VersionState.APPROVED:
            registry.enable_tool(
                name=tool.name, version_id=version.pk, reason="Part of the demonstration pack.", by=people["olivia"]
            )


def _key_works(agent: Agent, text: str, scopes: Sequence[str]) -> bool:
    if not text:
        return False
    key = ApiKey.objects.filter(agent=agent, lookup=text.split("_")[2], revoked_at=None).first()
    return key is not None and set(scopes) <= set(key.scopes)


def seed_demo() -> DemoCredentials:
    """Make the demonstration, or find it made; returns how to sign in."""
    path = settings.TOOLHUB_DATA_DIR / CREDENTIALS
    fresh = {"passwords": {name: f"{name}-{secrets.token_hex(4)}" for name in PEOPLE}, "api_key": ""}
    kept = json.loads(write_once(path, json.dumps(fresh, indent=2)))
    if set(PEOPLE) - set(kept["passwords"]):  # made by an older version, which had fewer people
        kept["passwords"] = fresh["passwords"] | kept["passwords"]
        path.write_text(json.dumps(kept, indent=2))
    tenant = Tenant.objects.filter(slug=TENANT[0]).first() or access.create_tenant(slug=TENANT[0], name=TENANT[1])
    other = Tenant.objects.filter(slug=OTHER_TENANT[0]).first() or access.create_tenant(
        slug=OTHER_TENANT[0], name=OTHER_TENANT[1]
    )
    people = _people(tenant, kept["passwords"])
    operator = people["olivia"]
    _tools(people)
    # Nobody of the cast makes the agent: who makes one cannot approve what it asks for.
    setup = Principal.system("setup", tenant_id=tenant.pk)
    agent = Agent.objects.filter(tenant=tenant, name=AGENT).first() or access.create_agent(name=AGENT, by=setup)
    if not Grant.objects.filter(agent=agent, tools="commerce.*").exists():
        access.give_grant(
            agent_id=agent.pk,
            tools="commerce.*",
            reason="The demonstration agent sells goods.",
            calls_limit=10_000,
            by=operator,
        )
    scopes: tuple[str, ...] = AGENT_SCOPES
    if local_models.are_installed():
        local_models.connect_local_models(agent, by=operator)
        scopes = (*AGENT_SCOPES, local_models.SCOPE)
    if not _key_works(agent, kept["api_key"], scopes):
        _, kept["api_key"] = access.create_key(agent=agent, scopes=scopes, by=setup)
        path.write_text(json.dumps(kept, indent=2))
    owner = get_user_model().objects.get(username="oona")
    owner.groups.add(Group.objects.get_or_create(name=HUB_OWNERS)[0])
    access.give_membership(tenant=other, user=owner, role=Role.OWNER, by=Principal.system("setup", tenant_id=other.pk))
    build_scenes(tenant, other, agent, operator=operator, neighbour=owner)
    return DemoCredentials(passwords=kept["passwords"], api_key=kept["api_key"])
