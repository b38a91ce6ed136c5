"""Erasure models: who was forgotten, and how long values are kept.

An :class:`Erasure` is one wish to forget a person and how far it has come; the person's keyed hash stands in it only until it
is done. A :class:`Retention` says after how many days one class of values goes.
"""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from evidence.models.keys import SubjectKey
from kernel.ids import encode, new_id


class ErasureState(models.TextChoices):
    ASKED = "asked"  # calls that go on are being ended
    ERASING = "erasing"  # the key is destroyed; the rows go in batches
    DONE = "done"


class Erasure(models.Model):
    """A wish to forget a person. ``counts``: what went, by the names of :mod:`evidence.erasures.holders`."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    tenant_id = models.UUIDField()
    state = models.CharField(max_length=8, choices=ErasureState, default=ErasureState.ASKED)
    subject = models.CharField(max_length=80, blank=True)
    key = models.ForeignKey(SubjectKey, models.PROTECT, null=True, related_name="+", db_index=False)  # destroyed by it
    reason = models.CharField(max_length=500)
    asked_by = models.CharField(max_length=64)
    asked_at = models.DateTimeField()
    erased_at = models.DateTimeField(null=True)  # from then nothing could be read any more
    finished_at = models.DateTimeField(null=True)
    counts = models.JSONField(default=dict)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["tenant_id", "subject"], condition=~Q(subject=""), name="erasure_one_at_a_time"
            ),
            models.CheckConstraint(
                condition=Q(state="done", subject="", finished_at__isnull=False)
                | ~Q(state="done") & ~Q(subject="") & Q(finished_at=None),
                name="erasure_forgets_its_subject",
            ),
        ]
        indexes = [models.Index(fields=["tenant_id", "-id"], name="erasure_newest")]

    def __str__(self) -> str:
        return f"{self.wire_id} ({self.state})"

    @property
    def wire_id(self) -> str:
        return encode("era", self.id)


class Retention(models.Model):
    """Values of one class go after so many days. Without a row they stay."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    tenant_id = models.UUIDField()
    name = models.CharField(max_length=16)  # of the class: evidence.erasures.holders
    days = models.PositiveIntegerField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["tenant_id", "name"], name="retention_once_a_class")]

    def __str__(self) -> str:
        return f"{self.name} {self.days} d"
