"""Which kinds of facts are there? Names are never changed: they are in leaves that people have verified."""

from __future__ import annotations

from django.db.models import TextChoices


class Kind(TextChoices):
    INVOCATION_BEGAN = "invocation.began"
    INVOCATION_ENDED = "invocation.ended"
    DRY_RUN_BEGAN = "dry_run.began"
    DRY_RUN_ENDED = "dry_run.ended"
    INVOCATION_PREFLIGHTED = "invocation.preflighted"
    INVOCATION_HELD = "invocation.held"
    INVOCATION_RESUMED = "invocation.resumed"
    INVOCATION_CANCEL_ASKED = "invocation.cancel_asked"
    INVOCATION_REPLAYED = "invocation.replayed"
    INVOCATION_RETRIED = "invocation.retried"
    INVOCATION_RESOLVED = "invocation.resolved"
    REQUEST_REJECTED = "request.rejected"
    INVOCATION_SEGMENT = "invocation.segment"

    CALLBACK_MADE = "callback.made"
    CALLBACK_ROTATED = "callback.rotated"
    CALLBACK_DISABLED = "callback.disabled"
    CALLBACK_DELIVERED = "callback.delivered"
    CALLBACK_FAILED = "callback.failed"
    CALLBACK_REDELIVERED = "callback.redelivered"
    CHAIN_BEGAN = "chain.began"
    CHAIN_ENDED = "chain.ended"
    CHAIN_REFUSED = "chain.refused"
    CHAIN_CANCEL_ASKED = "chain.cancel_asked"

    TOOL_REGISTERED = "tool.registered"
    TOOL_REVIEWED = "tool.reviewed"
    TOOL_ENABLED = "tool.enabled"
    TOOL_PAUSED = "tool.paused"
    TOOL_DEPRECATED = "tool.deprecated"
    TOOL_SHARED = "tool.shared"
    TOOL_UNSHARED = "tool.unshared"
    VERSION_STAGED = "version.staged"
    VERSION_YANKED = "version.yanked"
    VERSION_TRUSTED = "version.trusted"
    VERSION_DISTRUSTED = "version.distrusted"
    DEPENDENCIES_LOCKED = "dependencies.locked"
    DEPENDENCIES_UNRESOLVED = "dependencies.unresolved"
    DEPENDENCIES_QUEUED = "dependencies.queued"
    DEPENDENCIES_STARTED = "dependencies.started"
    DEPENDENCIES_BUILT = "dependencies.built"
    DEPENDENCIES_FAILED = "dependencies.failed"
    DEPENDENCIES_RETRIED = "dependencies.retried"
    DEPENDENCIES_RELEASED = "dependencies.released"
    INSTALLATION_CHANGED = "installation.changed"
    INSTALLATION_MOVED = "installation.moved"
    SECRET_SET = "secret.set"  # noqa: S105  the name of a kind
    SECRET_REMOVED = "secret.removed"  # noqa: S105

    FILE_STORED = "file.stored"
    FILE_READ = "file.read"
    FILE_REMOVED = "file.removed"

    ARTIFACT_READ = "artifact.read"
    ARTIFACT_REMOVED = "artifact.removed"

    HALT_THROWN = "halt.thrown"
    HALT_LIFTED = "halt.lifted"
    POLICY_DRAFTED = "policy.drafted"
    POLICY_DISCARDED = "policy.discarded"
    POLICY_SIMULATED = "policy.simulated"
    POLICY_PUBLISHED = "policy.published"
    BUDGET_SET = "budget.set"
    BUDGET_ENDED = "budget.ended"

    GRANT_GIVEN = "grant.given"
    GRANT_EXTENDED = "grant.extended"
    GRANT_REVOKED = "grant.revoked"
    DELEGATION_GIVEN = "delegation.given"
    DELEGATION_REVOKED = "delegation.revoked"
    CONSENT_REQUESTED = "consent.requested"
    CONSENT_APPROVED = "consent.approved"
    CONSENT_DENIED = "consent.denied"
    CONSENT_REVOKED = "consent.revoked"
    CONSENT_EXPIRED = "consent.expired"
    CONSENT_USED = "consent.used"
    GRANT_REQUESTED = "grant.requested"
    GRANT_DECLINED = "grant.declined"

    TENANT_CREATED = "tenant.created"
    MEMBERSHIP_GIVEN = "membership.given"
    MEMBERSHIP_ENDED = "membership.ended"
    PERMISSION_GIVEN = "permission.given"
    PERMISSION_TAKEN = "permission.taken"
    PERSON_INVITED = "person.invited"
    AGENT_CREATED = "agent.created"
    AGENT_DISABLED = "agent.disabled"
    AGENT_ENABLED = "agent.enabled"
    KEY_CREATED = "key.created"
    KEY_ROTATED = "key.rotated"
    KEY_REVOKED = "key.revoked"
    ISSUER_TRUSTED = "issuer.trusted"
    ISSUER_CHANGED = "issuer.changed"
    ISSUER_DISTRUSTED = "issuer.distrusted"
    IDENTITY_MAPPED = "identity.mapped"
    IDENTITY_UNMAPPED = "identity.unmapped"
    NOTIFICATION_SET = "notification.set"
    NOTIFICATION_ENDED = "notification.ended"
    MASTER_KEYS_ROTATED = "master_keys.rotated"
    CONFIGURATION_APPLIED = "configuration.applied"
    CONFIGURATION_EXPORTED = "configuration.exported"

    SNAPSHOT_READ = "snapshot.read"


# Of each call one of both: of a real one the first, of a dry run the second.
BEGINS = (Kind.INVOCATION_BEGAN, Kind.DRY_RUN_BEGAN)
ENDS = (Kind.INVOCATION_ENDED, Kind.DRY_RUN_ENDED)
PAIR = BEGINS + ENDS
