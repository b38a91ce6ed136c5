"""Snapshot model: the values of calls, which are nowhere else, and encrypted."""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from evidence.leaves import Commitment
from evidence.models.keys import SubjectKey
from kernel.ids import encode, new_id


class SnapshotKind(models.TextChoices):
    INPUT = "input"
    OUTPUT = "output"
    ERROR = "error"
    LOGS = "logs"
    SEGMENT = "segment"  # what a long run said since the one before; numbered
    REPLAY = "replay"  # what a run of it said that was made to compare; numbered
    WORDS = "words"  # what a person wrote about what they did; of a fact, whose id stands where that of the call does
    LIVE = "live"  # what a tool has said so far; the run's own end replaces it


class Snapshot(models.Model):
    """Values of a call, encrypted. ``commitment`` is SHA-256(salt ‖ bytes); the salt is inside the ciphertext."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    tenant_id = models.UUIDField()
    invocation_id = models.UUIDField()
    kind = models.CharField(max_length=8, choices=SnapshotKind)
    number = models.PositiveIntegerField(default=0)  # of a segment, from 1
    alg = models.CharField(max_length=16)
    commitment = models.CharField(max_length=71)
    size = models.PositiveIntegerField()  # bytes of the plaintext document
    # What wraps its key: the key of a person, or, of old rows, the master key of that name. A destroyed one is refused.
    subject_key = models.ForeignKey(
        SubjectKey, models.PROTECT, null=True, related_name="+", db_index=False, db_constraint=False
    )
    key_id = models.CharField(max_length=64, blank=True)
    wrapped_key = models.BinaryField()
    nonce = models.BinaryField(max_length=12)
    ciphertext = models.BinaryField()
    created_at = models.DateTimeField()

    any_type_is_read = True

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["invocation_id", "kind", "number"], name="snapshot_one_of_a_kind"),
            models.CheckConstraint(
                condition=Q(subject_key=None) & ~Q(key_id="") | Q(subject_key__isnull=False, key_id=""),
                name="snapshot_under_one_key",
            ),
        ]
        indexes = [models.Index(fields=["tenant_id", "kind", "created_at"], name="snapshot_oldest")]

    def __str__(self) -> str:
        return f"{self.kind} of {self.invocation_id}"

    def to_commitment(self) -> Commitment:
        """The commitment to these values, as a leaf has it."""
        return Commitment(commit=self.commitment, alg=self.alg, bytes=self.size, snapshot=self.wire_id)

    @property
    def wire_id(self) -> str:
        return encode("snp", self.id)
