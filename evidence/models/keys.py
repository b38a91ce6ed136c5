"""Key models: the keys that values are sealed under.

Three layers: the master key, which only the key store has, wraps one :class:`TenantKey` per tenant; that wraps the
:class:`SubjectKey` of each person whom calls are made for; and that wraps the key of each value. To forget a person is to destroy
one small key. What is wrapped by the master key directly is older than these, or of no call.
"""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from kernel.ids import new_id


class MasterKey(models.Model):
    """By what a master key is recognised (:mod:`evidence.keys.check_values`). The key itself is in the key store only."""

    key_id = models.CharField(max_length=64, primary_key=True)
    check_value = models.CharField(max_length=71)
    added_at = models.DateTimeField()

    def __str__(self) -> str:
        return self.key_id


class TenantKey(models.Model):
    """The key of one tenant, wrapped by the master key ``key_id``."""

    tenant_id = models.UUIDField(primary_key=True)
    key_id = models.CharField(max_length=64)
    wrapped_key = models.BinaryField()
    created_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"key of {self.tenant_id}"


class SubjectKey(models.Model):
    """The key of one person's values, or of an agent's calls for nobody in one month. Destroyed, it leaves only its row.

    ``subject`` is the keyed hash of the caller's ``user_id``, or ``agt_… 2026-11``. The database refuses values under a key that
    is destroyed.
    """

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    tenant_key = models.ForeignKey(TenantKey, models.PROTECT, related_name="+", db_index=False)
    tenant_id = models.UUIDField()
    subject = models.CharField(max_length=80)
    wrapped_key = models.BinaryField()
    created_at = models.DateTimeField()
    destroyed_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["tenant_id", "subject"], condition=Q(destroyed_at=None), name="subject_key_one_in_use"
            ),
            models.CheckConstraint(
                condition=Q(destroyed_at=None) & ~Q(subject="") & ~Q(wrapped_key=b"")
                | Q(destroyed_at__isnull=False, subject="", wrapped_key=b""),
                name="subject_key_destroyed_as_a_whole",
            ),
        ]

    def __str__(self) -> str:
        return f"key {self.id}"
