"""Capsule models: what is kept of capsules, and of the keys that sign them."""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from access.models import Tenant
from kernel.ids import encode, new_id


class PublisherKey(models.Model):
    """A public Ed25519 key whose signatures count for what a tenant publishes. A revoked one never counts again."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    tenant = models.ForeignKey(Tenant, models.PROTECT, related_name="publisher_keys")
    name = models.CharField(max_length=80)
    key_id = models.CharField(max_length=64)  # hexadecimal; made from the key itself, so it cannot be chosen
    public_key = models.CharField(max_length=500)  # PEM
    added_by = models.CharField(max_length=64)
    added_at = models.DateTimeField(auto_now_add=True)
    revoked_at = models.DateTimeField(null=True, blank=True)
    revoked_by = models.CharField(max_length=64, blank=True)
    revoke_reason = models.CharField(max_length=500, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["tenant", "key_id"], name="publisher_key_once_in_a_tenant"),
            models.UniqueConstraint(fields=["tenant", "name"], name="publisher_key_name_once_in_a_tenant"),
            models.CheckConstraint(
                condition=Q(revoked_at=None, revoked_by="") | Q(revoked_at__isnull=False) & ~Q(revoked_by=""),
                name="publisher_key_revoked_at_and_by_together",
            ),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def wire_id(self) -> str:
        return encode("pbk", self.id)


class Capsule(models.Model):
    """The bytes of an archive that versions were registered from, by their digest. It is read back only if they still have it."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    tenant = models.ForeignKey(Tenant, models.PROTECT, related_name="capsules")
    digest = models.CharField(max_length=71)
    package = models.CharField(max_length=255)
    size = models.PositiveIntegerField()
    content = models.BinaryField()
    envelope = models.TextField(blank=True)  # DSSE, as it was sent; empty: nobody signed it
    signed_by = models.ForeignKey(PublisherKey, models.PROTECT, null=True, blank=True, related_name="capsules")
    uploaded_by = models.CharField(max_length=64)
    uploaded_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["tenant", "digest"], name="capsule_once_in_a_tenant"),
            models.CheckConstraint(
                condition=Q(signed_by=None, envelope="") | Q(signed_by__isnull=False) & ~Q(envelope=""),
                name="capsule_signer_and_envelope_together",
            ),
        ]

    def __str__(self) -> str:
        return self.digest

    @property
    def wire_id(self) -> str:
        return encode("cap", self.id)


class PublishingRules(models.Model):
    """What a tenant asks of capsules before it takes them. No row: nothing."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    tenant = models.OneToOneField(Tenant, models.PROTECT, related_name="publishing_rules")
    signatures_required = models.BooleanField(default=False)
    changed_by = models.CharField(max_length=64)
    changed_at = models.DateTimeField(auto_now=True)

    def __str__(self) -> str:
        return f"{self.tenant_id}: signatures {'required' if self.signatures_required else 'not required'}"
