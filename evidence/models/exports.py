"""Export models: what was taken out of the evidence, in which format, and how far it is.

An :class:`ExportJob` says what somebody asked for; its content is made by a keeper, piece by piece, as :class:`ExportChunk` rows: the
position in the log is written with each piece, so whichever keeper goes on doubles and loses nothing. Content is encrypted with a key
of the job. When the job expires the pieces and the key go, and the job stays.
"""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from kernel.ids import encode, new_id


class ExportFormat(models.TextChoices):
    JSONL = "jsonl"
    CSV = "csv"
    BUNDLE = "bundle"


class ExportState(models.TextChoices):
    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"
    EXPIRED = "expired"


OPEN = (ExportState.QUEUED, ExportState.RUNNING)
EXPORT_TRANSITIONS: dict[str, frozenset[str]] = {
    ExportState.QUEUED: frozenset({ExportState.RUNNING, ExportState.FAILED, ExportState.CANCELLED}),
    ExportState.RUNNING: frozenset({ExportState.DONE, ExportState.FAILED, ExportState.CANCELLED}),
    ExportState.DONE: frozenset({ExportState.EXPIRED}),
    ExportState.FAILED: frozenset(),
    ExportState.CANCELLED: frozenset(),
    ExportState.EXPIRED: frozenset(),
}


class ExportJob(models.Model):
    """The leaves ``start`` … ``stop`` - 1 of a tenant's log that ``query`` selects. ``position``: the next leaf to look at."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    tenant_id = models.UUIDField()
    actor_kind = models.CharField(max_length=8)
    actor_id = models.CharField(max_length=64)
    query = models.CharField(max_length=1000, blank=True)
    start = models.BigIntegerField()
    stop = models.BigIntegerField()
    format = models.CharField(max_length=8, choices=ExportFormat)
    opens = models.BooleanField(default=False)  # holds the values of calls, opened for somebody who may reveal them
    reason = models.CharField(max_length=500, blank=True)
    state = models.CharField(max_length=16, choices=ExportState, default=ExportState.QUEUED)
    position = models.BigIntegerField()
    rows = models.BigIntegerField(default=0)
    size = models.BigIntegerField(default=0)  # bytes so far
    chunks = models.PositiveIntegerField(default=0)
    progress = models.JSONField(default=dict)  # what the format must remember between pieces
    digest = models.CharField(max_length=71, blank=True)  # of the whole content, once it is done
    problem = models.CharField(max_length=300, blank=True)  # why it failed
    key_id = models.CharField(max_length=64, blank=True)
    wrapped_key = models.BinaryField(default=bytes)
    exporter = models.CharField(max_length=80, blank=True)  # who is at it, until the lease runs out
    lease_until = models.DateTimeField(null=True)
    created_at = models.DateTimeField()
    finished_at = models.DateTimeField(null=True)
    expires_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(start__gte=0, stop__gte=models.F("start"), position__gte=models.F("start"))
                & Q(position__lte=models.F("stop")),
                name="export_position_within_its_range",
            ),
        ]
        indexes = [
            models.Index(fields=["tenant_id", "-id"], name="export_newest"),
            models.Index(
                fields=["lease_until"], name="export_to_do", condition=Q(state__in=[str(state) for state in OPEN])
            ),
        ]

    def __str__(self) -> str:
        return f"{self.format} of {self.tenant_id}"

    @property
    def wire_id(self) -> str:
        return encode("exp", self.id)

    @property
    def percent(self) -> int:
        length = self.stop - self.start
        return 100 * (self.position - self.start) // length if length else 100


class ExportChunk(models.Model):
    """Bytes ``offset`` … ``offset + size - 1`` of an export, encrypted."""

    job = models.ForeignKey(ExportJob, models.CASCADE, related_name="pieces")
    number = models.PositiveIntegerField()
    offset = models.BigIntegerField()
    size = models.PositiveIntegerField()
    nonce = models.BinaryField(max_length=12)
    ciphertext = models.BinaryField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["job", "number"], name="export_chunk_each_number_once")]

    def __str__(self) -> str:
        return f"piece {self.number} of {self.job_id}"
