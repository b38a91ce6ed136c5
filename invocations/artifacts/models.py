"""Artifact model: what a call has left, and where it is kept.

An :class:`Artifact` belongs to one call; an :class:`ArtifactContent` is its bytes, encrypted, once for all artifacts of a person that
are the same. It goes when the last of them does.
"""

from __future__ import annotations

from django.db import models

from access.models import Tenant
from evidence.models import SubjectKey
from kernel.ids import encode, new_id


class ArtifactContent(models.Model):
    """Bytes under their keyed fingerprint."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    tenant = models.ForeignKey(Tenant, models.PROTECT, related_name="artifact_contents")
    fingerprint = models.CharField(max_length=80)
    size = models.PositiveBigIntegerField()
    subject_key = models.ForeignKey(SubjectKey, models.PROTECT, null=True, related_name="+", db_index=False)
    key_id = models.CharField(max_length=64, blank=True)
    wrapped_key = models.BinaryField()
    nonce = models.BinaryField()
    ciphertext = models.BinaryField()
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["tenant", "fingerprint"], name="artifact_content_once_in_a_tenant")
        ]

    def __str__(self) -> str:
        return self.fingerprint


class Artifact(models.Model):
    """One thing that one call left. ``summary`` counts and measures, and holds no value of it."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    tenant = models.ForeignKey(Tenant, models.PROTECT, related_name="artifacts")
    invocation = models.ForeignKey("invocations.Invocation", models.PROTECT, related_name="artifacts")
    name = models.CharField(max_length=120)
    media_type = models.CharField(max_length=120)
    content = models.ForeignKey(ArtifactContent, models.PROTECT, related_name="artifacts")
    thumbnail = models.ForeignKey(ArtifactContent, models.PROTECT, null=True, related_name="thumbnails")
    summary = models.JSONField(default=dict)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["invocation", "name"], name="artifact_name_once_in_a_call")]
        indexes = [models.Index(fields=["tenant", "-id"], name="artifact_newest")]

    def __str__(self) -> str:
        return self.name

    @property
    def wire_id(self) -> str:
        return encode("art", self.id)
