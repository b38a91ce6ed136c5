"""Which kinds of facts are there? Names are never changed: they are in leaves that people have verified."""

from __future__ import annotations

from django.db.models import TextChoices


class Kind(TextChoices):
    INVOCATION_BEGAN = "invocation.began"
    INVOCATION_ENDED = "invocation.ended"
    INVOCATION_REPLAYED = "invocation.replayed"

    TOOL_REGISTERED = "tool.registered"
    TOOL_REVIEWED = "tool.reviewed"
    TOOL_ENABLED = "tool.enabled"
    TOOL_PAUSED = "tool.paused"
    TOOL_DEPRECATED = "tool.deprecated"

    GRANT_GIVEN = "grant.given"
    GRANT_REVOKED = "grant.revoked"
    CONSENT_REQUESTED = "consent.requested"
    CONSENT_APPROVED = "consent.approved"
    CONSENT_DENIED = "consent.denied"
    CONSENT_REVOKED = "consent.revoked"
    CONSENT_EXPIRED = "consent.expired"

    TENANT_CREATED = "tenant.created"
    MEMBERSHIP_GIVEN = "membership.given"
    AGENT_CREATED = "agent.created"
    KEY_CREATED = "key.created"
    KEY_REVOKED = "key.revoked"

    SNAPSHOT_READ = "snapshot.read"


PAIR = (Kind.INVOCATION_BEGAN, Kind.INVOCATION_ENDED)
