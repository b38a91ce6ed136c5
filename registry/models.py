"""Registry models: what is in the catalogue.

A :class:`Tool` is a name within a tenant and the state in which callers find it. A :class:`ToolVersion` is one manifest with
the code that it names, and never changes. A :class:`Review` is one person's decision on one version, :class:`Dependencies` are
the packages of others that it needs. An :class:`Installation` is a tenant's own instance of a tool; its secrets are
:class:`Secret` rows that it refers to by name. Code that was uploaded is kept as a :class:`Capsule`
(:mod:`registry.capsules`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.db import models
from django.db.models import Q

from access.models import Tenant
from access.roles import ON_TOOL
from kernel.ids import encode, new_id
from registry.capsules.models import Capsule, PublisherKey, PublishingRules
from registry.imports.models import Import
from registry.model_prefixes.models import ModelPrefix
from registry.model_prices.models import ModelPrices
from registry.model_providers.models import ModelCircuit, ModelCircuitState, ModelProvider, ModelProviderState
from unitools.changes import find_worst_risk, is_breaking
from unitools.manifest import Manifest

if TYPE_CHECKING:
    from kernel.principal import Principal

__all__ = [
    "DEPENDENCY_TRANSITIONS",
    "INSTALLATION_TRANSITIONS",
    "LONG_FIELDS",
    "MAY_CHANGE",
    "TRANSITIONS",
    "Capsule",
    "Decision",
    "Dependencies",
    "DependencyState",
    "Import",
    "Installation",
    "InstallationState",
    "ModelCircuit",
    "ModelCircuitState",
    "ModelPrefix",
    "ModelPrices",
    "ModelProvider",
    "ModelProviderState",
    "PublisherKey",
    "PublishingRules",
    "Review",
    "Secret",
    "Tool",
    "ToolKind",
    "ToolState",
    "ToolVersion",
    "VersionState",
]


class ToolState(models.TextChoices):
    REGISTERED = "registered"
    ENABLED = "enabled"
    PAUSED = "paused"
    DEPRECATED = "deprecated"


TRANSITIONS: dict[str, frozenset[str]] = {
    ToolState.REGISTERED: frozenset({ToolState.ENABLED}),
    ToolState.ENABLED: frozenset({ToolState.PAUSED, ToolState.DEPRECATED}),
    ToolState.PAUSED: frozenset({ToolState.ENABLED, ToolState.DEPRECATED}),
    ToolState.DEPRECATED: frozenset(),
}


class ToolKind(models.TextChoices):
    TOOL = "tool"
    MODEL = "model"  # connected by the tenant, and answered by its provider (registry.model_providers)


class ToolQuerySet(models.QuerySet["Tool"]):
    def visible_to(self, principal: Principal) -> ToolQuerySet:
        return self.filter(tenant_id=principal.tenant_id)

    def of_kind(self, kind: ToolKind) -> ToolQuerySet:
        """Lists are of one kind: a model is in no list of tools."""
        return self.filter(kind=kind)


class Tool(models.Model):
    """A name that can be called. ``current`` is the version that calls get."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    tenant = models.ForeignKey(Tenant, models.PROTECT, related_name="tools")
    name = models.CharField(max_length=128)  # group.package.name: the id that callers use
    kind = models.CharField(max_length=8, choices=ToolKind, default=ToolKind.TOOL)
    state = models.CharField(max_length=16, choices=ToolState, default=ToolState.REGISTERED)
    current = models.ForeignKey("ToolVersion", models.PROTECT, null=True, blank=True, related_name="+")
    state_reason = models.CharField(max_length=500, blank=True)
    state_changed_at = models.DateTimeField(auto_now_add=True)
    state_changed_by = models.CharField(max_length=64)
    sunset_on = models.DateField(null=True, blank=True)
    successor = models.CharField(max_length=128, blank=True)  # the tool to use instead of a deprecated one
    shared = models.BooleanField(default=False)  # whether other tenants of this hub may install it
    created_at = models.DateTimeField(auto_now_add=True)

    objects = ToolQuerySet.as_manager()

    class Meta:
        permissions = [(permission, label) for permission, label in ON_TOOL.items()]
        constraints = [
            models.UniqueConstraint(fields=["tenant", "name"], name="tool_name_once_in_a_tenant"),
            models.CheckConstraint(
                condition=Q(state="registered") | Q(current__isnull=False), name="tool_in_use_has_a_current_version"
            ),
        ]
        indexes = [
            models.Index(fields=["tenant", "-id"], name="tool_newest"),
            models.Index(fields=["-id"], name="tool_shared_newest", condition=Q(shared=True)),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def urn(self) -> str:
        return f"soul:tool:{self.name}"

    @property
    def group(self) -> str:
        return self.name.partition(".")[0]


class VersionState(models.TextChoices):
    SUBMITTED = "submitted"
    APPROVED = "approved"
    REFUSED = "refused"


# Of a version, left out of lists.
LONG_FIELDS = ("manifest", "search", "title_words", "text_words", "changes", "warnings")
# What people decide about a version; nothing else of it is ever written again.
MAY_CHANGE = ({"review_state"}, {"yanked_at", "yanked_by", "yank_reason"}, {"trusted_at", "trusted_by"})


class ToolVersion(models.Model):
    """One manifest and the code that it names. Only what people decide about it is ever written to it."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    tool = models.ForeignKey(Tool, models.PROTECT, related_name="versions")
    version = models.CharField(max_length=64)
    manifest = models.JSONField()
    manifest_digest = models.CharField(max_length=71)
    build_digest = models.CharField(max_length=71)  # of the capsule, else of the package's files; empty: it is a model
    capsule = models.ForeignKey(
        Capsule, models.PROTECT, null=True, blank=True, related_name="versions"
    )  # empty: code of a tools root
    warnings = models.JSONField(default=list)
    base = models.ForeignKey(
        "self", models.PROTECT, null=True, blank=True, related_name="+"
    )  # what it was compared with
    changes = models.JSONField(default=list)  # unitools.changes: what differs from the base, and what that means
    review_state = models.CharField(max_length=16, choices=VersionState, default=VersionState.SUBMITTED)
    submitted_by = models.CharField(max_length=64)
    drafted_by = models.JSONField(default=list)  # ids of those who wrote in the manifest before it was submitted
    submitted_at = models.DateTimeField(auto_now_add=True)
    yanked_at = models.DateTimeField(null=True, blank=True)  # withdrawn: it is never chosen again
    yanked_by = models.CharField(max_length=64, blank=True)
    yank_reason = models.CharField(max_length=500, blank=True)
    trusted_at = models.DateTimeField(null=True, blank=True)  # SVC-11: may run without a sandbox
    trusted_by = models.CharField(max_length=64, blank=True)
    # Copies of manifest fields that lists filter by.
    side_effect = models.CharField(max_length=16)
    safety_class = models.CharField(max_length=8)
    display_name = models.CharField(max_length=80, blank=True)
    tags = models.CharField(max_length=1000, blank=True)  # " pricing quotes ": a space around each
    domains = models.CharField(max_length=40, blank=True)  # " fs net ": the capability domains that it asks for
    search = models.TextField(blank=True)  # what lists look for a text in
    title_words = models.TextField(blank=True)  # registry.discovery.search: of id, name and tags
    text_words = models.TextField(blank=True)  # of the description and of what it takes

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["tool", "version"], name="tool_version_once"),
            models.CheckConstraint(
                condition=Q(yanked_at=None, yanked_by="") | Q(yanked_at__isnull=False) & ~Q(yanked_by=""),
                name="version_yanked_at_and_by_together",
            ),
        ]
        indexes = [models.Index(fields=["review_state", "-id"], name="version_by_review_state")]

    def __str__(self) -> str:
        return f"{self.tool_id} {self.version}"

    @property
    def wire_id(self) -> str:
        return encode("tvn", self.id)

    @property
    def view(self) -> Manifest:
        return Manifest(self.manifest)

    @property
    def worst_risk(self) -> str:
        """Of what it changed when it was submitted; of a first version how carefully it is reviewed."""
        return find_worst_risk(self.changes) or self.safety_class

    @property
    def is_breaking(self) -> bool:
        return is_breaking(self.changes)

    @property
    def signer(self) -> PublisherKey | None:
        """Whose signature its capsule has, also when the key was revoked since. Asked without the bytes of the capsule."""
        return PublisherKey.objects.filter(capsules=self.capsule_id).first() if self.capsule_id else None

    def save(self, *args: Any, **kwargs: Any) -> None:
        if not self._state.adding and set(kwargs.get("update_fields") or ["all"]) not in MAY_CHANGE:
            raise RuntimeError("A tool version never changes. Submit another one.")
        super().save(*args, **kwargs)


class Decision(models.TextChoices):
    APPROVE = "approve"
    REFUSE = "refuse"


class Review(models.Model):
    """One person's decision on one version."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    version = models.ForeignKey(ToolVersion, models.PROTECT, related_name="reviews")
    decision = models.CharField(max_length=8, choices=Decision)
    note = models.CharField(max_length=1000, blank=True)
    acknowledged = models.JSONField(
        default=list
    )  # ids of the risky changes that the reviewer has confirmed to have seen
    decided_by = models.CharField(max_length=64)
    decided_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["version", "decided_by"], name="review_once_a_person")]

    def __str__(self) -> str:
        return f"{self.decision} by {self.decided_by}"

    @property
    def wire_id(self) -> str:
        return encode("rev", self.id)


class DependencyState(models.TextChoices):
    RESOLVING = "resolving"
    UNRESOLVED = "unresolved"
    LOCKED = "locked"
    QUEUED = "queued"
    BUILDING = "building"
    READY = "ready"
    FAILED = "failed"


DEPENDENCY_TRANSITIONS: dict[str, frozenset[str]] = {
    DependencyState.RESOLVING: frozenset({DependencyState.LOCKED, DependencyState.UNRESOLVED}),
    DependencyState.UNRESOLVED: frozenset({DependencyState.RESOLVING}),
    DependencyState.LOCKED: frozenset({DependencyState.QUEUED}),
    DependencyState.QUEUED: frozenset({DependencyState.BUILDING}),
    DependencyState.BUILDING: frozenset({DependencyState.READY, DependencyState.FAILED}),
    DependencyState.READY: frozenset({DependencyState.LOCKED}),
    DependencyState.FAILED: frozenset({DependencyState.QUEUED, DependencyState.LOCKED}),
}


class Dependencies(models.Model):
    """The packages of others that one version needs, and how far they are: locked, then built once somebody uses the version.

    ``lock`` is part of what is reviewed and is never changed once it is there. What is built lies in a folder of each host
    that is named by the lock (:mod:`registry.dependencies`).
    """

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    version = models.OneToOneField(ToolVersion, models.PROTECT, related_name="dependencies")
    state = models.CharField(max_length=16, choices=DependencyState)
    lock = models.JSONField(default=list)  # lines in normal form (unitools.dependency_locks); empty: not resolved yet
    lock_digest = models.CharField(max_length=71, blank=True)
    progress = models.JSONField(default=list)  # the last lines of what is being done
    failure = models.JSONField(default=dict)  # {code, message, remedy} of the last time
    size_bytes = models.BigIntegerField(null=True, blank=True)
    attempt = models.PositiveIntegerField(default=0)
    builder = models.CharField(max_length=100, blank=True)  # who is at it
    lease_until = models.DateTimeField(null=True, blank=True)
    changed_at = models.DateTimeField(auto_now_add=True)  # when the state did
    idle_since = models.DateTimeField(null=True, blank=True)  # no installation has had the version since

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(state__in=["resolving", "unresolved"], lock_digest="")
                | ~Q(state__in=["resolving", "unresolved"]) & ~Q(lock_digest=""),
                name="dependencies_built_from_a_lock",
            ),
        ]
        indexes = [models.Index(fields=["state", "changed_at"], name="dependencies_by_state")]

    def __str__(self) -> str:
        return f"{self.state} of {self.version_id}"


class InstallationState(models.TextChoices):
    ENABLED = "enabled"
    PAUSED = "paused"
    REMOVED = "removed"


INSTALLATION_TRANSITIONS: dict[str, frozenset[str]] = {
    InstallationState.ENABLED: frozenset({InstallationState.PAUSED, InstallationState.REMOVED}),
    InstallationState.PAUSED: frozenset({InstallationState.ENABLED, InstallationState.REMOVED}),
    InstallationState.REMOVED: frozenset({InstallationState.ENABLED}),
}


class InstallationQuerySet(models.QuerySet["Installation"]):
    def visible_to(self, principal: Principal) -> InstallationQuerySet:
        return self.filter(tenant_id=principal.tenant_id)

    def of_kind(self, kind: ToolKind) -> InstallationQuerySet:
        """Lists are of one kind: a model is in no list of tools."""
        return self.filter(tool__kind=kind)


class Installation(models.Model):
    """A tenant's own instance of a tool: what its agents call. The publisher's tenant has one as well.

    ``version`` is what calls get now. It is chosen when something changes, never during a call: the tool's current version,
    or the newest approved one within ``pin`` (a SemVer range; unitools.semver).
    """

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    tenant = models.ForeignKey(Tenant, models.PROTECT, related_name="installations")
    tool = models.ForeignKey(Tool, models.PROTECT, related_name="installations")
    name = models.CharField(max_length=128)  # the tool's; once in a tenant, whoever publishes it
    version = models.ForeignKey(ToolVersion, models.PROTECT, null=True, blank=True, related_name="installations")
    pin = models.CharField(max_length=120, blank=True)
    state = models.CharField(max_length=8, choices=InstallationState, default=InstallationState.ENABLED)
    config = models.JSONField(default=dict)  # valid against the manifest's config_schema
    config_digest = models.CharField(max_length=71, blank=True)
    hosts = models.JSONField(null=True, blank=True)  # allow-list of host patterns; null: what the manifest asks
    paths = models.JSONField(null=True, blank=True)  # allow-list of file trees; null: what the manifest asks
    secrets = models.JSONField(default=dict)  # the manifest's name of a secret → the tenant's name of it
    reason = models.CharField(max_length=500, blank=True)
    # When what a server somewhere else lists was last held against what was reviewed.
    listing_held_at = models.DateTimeField(null=True, editable=False)
    changed_by = models.CharField(max_length=64)
    changed_at = models.DateTimeField(auto_now=True)
    created_at = models.DateTimeField(auto_now_add=True)

    objects = InstallationQuerySet.as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["tenant", "name"], name="installation_name_once_in_a_tenant")]
        indexes = [
            models.Index(fields=["tenant", "-id"], name="installation_newest")
        ]  # pages, however large the hub is

    def __str__(self) -> str:
        return f"{self.name} in {self.tenant_id}"

    @property
    def wire_id(self) -> str:
        return encode("ins", self.id)


class Secret(models.Model):
    """A value that tools need and nobody sees: encrypted, named, replaced as a whole, opened only for a run."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    tenant = models.ForeignKey(Tenant, models.PROTECT, related_name="secrets")
    name = models.CharField(max_length=80)
    number = models.PositiveIntegerField(default=1)  # counts replacements; evidence names it
    key_id = models.CharField(max_length=64)
    wrapped_key = models.BinaryField()
    nonce = models.BinaryField()
    ciphertext = models.BinaryField()
    set_by = models.CharField(max_length=64)
    set_at = models.DateTimeField(auto_now=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["tenant", "name"], name="secret_name_once_in_a_tenant")]

    def __str__(self) -> str:
        return self.name

    @property
    def wire_id(self) -> str:
        return encode("sec", self.id)
