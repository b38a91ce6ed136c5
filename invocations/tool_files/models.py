"""Tool files model: what the tools of one group keep from call to call, for one tenant, agent or person."""

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
    scope = models.CharField(max_length=8)  # tenant, agent or person
    owner = models.CharField(max_length=80, blank=True)  # which agent, or the person's fingerprint; empty: the tenant
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
                fields=["tenant", "group", "scope", "owner"], name="tool_files_once_for_each_owner"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.group} ({self.scope})"

    @property
    def wire_id(self) -> str:
        return encode("tlf", self.id)
