"""Tool files model: what the tools of one group and package keep from call to call, for one tenant, agent, or agent and person."""

from __future__ import annotations

from django.db import models

from access.models import Tenant
from evidence.models import SubjectKey
from kernel.ids import encode, new_id


class ToolFiles(models.Model):
    """All files of one owner, encrypted as one whole and replaced as one whole."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    tenant = models.ForeignKey(Tenant, models.PROTECT, related_name="tool_files")
    group = models.CharField(max_length=128)  # the first two segments of the tools' ids
    package = models.CharField(max_length=260)  # whose code keeps them; of another tenant's with its id before it
    scope = models.CharField(max_length=8)  # tenant, agent or person
    # Which agent; of a person also the person's fingerprint, since who it is only the agent says. Empty: the tenant.
    owner = models.CharField(max_length=128, blank=True)
    names = models.JSONField(default=list)  # [path, size] of each file
    size = models.PositiveBigIntegerField()
    fingerprint = models.CharField(max_length=80)  # keyed, of the whole
    subject_key = models.ForeignKey(SubjectKey, models.PROTECT, null=True, related_name="+")  # of the person
    key_id = models.CharField(max_length=64, blank=True)
    wrapped_key = models.BinaryField()
    nonce = models.BinaryField()
    ciphertext = models.BinaryField()
    changed_by = models.CharField(max_length=64)  # the call
    changed_at = models.DateTimeField(auto_now=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["tenant", "group", "package", "scope", "owner"], name="tool_files_once_for_each_owner"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.group} ({self.scope})"

    @property
    def wire_id(self) -> str:
        return encode("tlf", self.id)

    @property
    def agent(self) -> str:
        """The agent that alone gets them; empty: every agent of the tenant does."""
        return self.owner.partition(" ")[0]
