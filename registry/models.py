"""What is in the catalogue?

A :class:`Tool` is a name within a tenant and the state in which callers find it. A :class:`ToolVersion` is one manifest with
the code that it names, and never changes. A :class:`Review` is one person's decision on one version.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.db import models
from django.db.models import Q

from access.models import Tenant
from toolhub.kernel.ids import encode, new_id
from unitools.manifest import Manifest

if TYPE_CHECKING:
    from toolhub.kernel.principal import Principal


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


class ToolQuerySet(models.QuerySet["Tool"]):
    def visible_to(self, principal: Principal) -> ToolQuerySet:
        return self.filter(tenant_id=principal.tenant_id)


class Tool(models.Model):
    """A name that can be called. ``current`` is the version that calls get."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    tenant = models.ForeignKey(Tenant, models.PROTECT, related_name="tools")
    name = models.CharField(max_length=128)  # group.package.name: the id that callers use
    state = models.CharField(max_length=16, choices=ToolState, default=ToolState.REGISTERED)
    current = models.ForeignKey("ToolVersion", models.PROTECT, null=True, blank=True, related_name="+")
    state_reason = models.CharField(max_length=500, blank=True)
    state_changed_at = models.DateTimeField(auto_now_add=True)
    state_changed_by = models.CharField(max_length=64)
    sunset_on = models.DateField(null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    objects = ToolQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["tenant", "name"], name="tool_name_once_in_a_tenant"),
            models.CheckConstraint(
                condition=Q(state="registered") | Q(current__isnull=False), name="tool_in_use_has_a_current_version"
            ),
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


class ToolVersion(models.Model):
    """One manifest and the code that it names. Only the outcome of its review is ever written to it."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    tool = models.ForeignKey(Tool, models.PROTECT, related_name="versions")
    version = models.CharField(max_length=64)
    manifest = models.JSONField()
    manifest_digest = models.CharField(max_length=71)
    build_digest = models.CharField(max_length=71)
    warnings = models.JSONField(default=list)
    review_state = models.CharField(max_length=16, choices=VersionState, default=VersionState.SUBMITTED)
    submitted_by = models.CharField(max_length=64)
    submitted_at = models.DateTimeField(auto_now_add=True)
    # Copies of manifest fields that lists filter by.
    side_effect = models.CharField(max_length=16)
    safety_class = models.CharField(max_length=8)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["tool", "version"], name="tool_version_once")]
        indexes = [models.Index(fields=["review_state", "-id"], name="version_by_review_state")]

    def __str__(self) -> str:
        return f"{self.tool_id} {self.version}"

    @property
    def wire_id(self) -> str:
        return encode("tvn", self.id)

    @property
    def view(self) -> Manifest:
        return Manifest(self.manifest)

    def save(self, *args: Any, **kwargs: Any) -> None:
        if not self._state.adding and list(kwargs.get("update_fields") or []) != ["review_state"]:
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
    decided_by = models.CharField(max_length=64)
    decided_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["version", "decided_by"], name="review_once_a_person")]

    def __str__(self) -> str:
        return f"{self.decision} by {self.decided_by}"

    @property
    def wire_id(self) -> str:
        return encode("rev", self.id)
