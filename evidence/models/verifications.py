"""Verification models: whether the log was held against the facts, how far, and what was found.

A :class:`Verification` without ``asked_by`` is a pass of the continuous verifier: it follows its log as it grows, until the next pass
begins again at the first leaf. One that somebody asked for looks at a range and ends.
"""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from kernel.ids import encode, new_id


class VerificationState(models.TextChoices):
    RUNNING = "running"
    PASSED = "passed"
    FAILED = "failed"


class Verification(models.Model):
    """Leaves ``start`` … ``position`` - 1 were looked at. ``findings``: {index, code, said} each, the first ones only."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    tenant_id = models.UUIDField()  # whose log
    asked_by = models.CharField(max_length=64, blank=True)
    start = models.BigIntegerField(default=0)
    stop = models.BigIntegerField(null=True)  # None: as far as the log goes
    position = models.BigIntegerField(default=0)
    frontier = models.BinaryField(default=bytes)  # of the tree of the leaves before ``position``, made from their bytes
    last_fact_id = models.UUIDField(null=True)  # up to which it was asked whether a log has them
    checkpoints = models.BigIntegerField(default=0)  # how many were verified
    state = models.CharField(max_length=8, choices=VerificationState, default=VerificationState.RUNNING)
    findings = models.JSONField(default=list)
    found = models.BigIntegerField(default=0)  # how many, those that are not listed included
    first_bad = models.BigIntegerField(null=True)  # the lowest leaf index that something is wrong at
    found_at = models.DateTimeField(null=True)  # the last time that something new was found, by the database's clock
    # The look at the whole log, begun after ``found_at``, that found nothing of it.
    closed_by = models.ForeignKey("self", models.SET_NULL, null=True, related_name="closes")
    checker = models.CharField(max_length=80, blank=True)
    tries = models.PositiveIntegerField(default=0)  # of the next piece; a keeper that was killed in it has tried it too
    stopped_by = models.CharField(max_length=64, blank=True)  # the class of the error that ended the last try
    lease_until = models.DateTimeField(null=True)
    begun_at = models.DateTimeField()
    checked_at = models.DateTimeField(null=True)  # the last time that it was at the end of the log
    finished_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["tenant_id"],
                condition=Q(asked_by="", state="running"),
                name="verification_one_continuous_of_a_log",
            ),
        ]
        indexes = [
            models.Index(fields=["tenant_id", "-id"], name="verification_newest"),
            models.Index(fields=["tenant_id"], name="verification_bad", condition=Q(found__gt=0, closed_by=None)),
            models.Index(fields=["lease_until"], name="verification_to_do", condition=Q(state="running")),
        ]

    def __str__(self) -> str:
        return f"{self.state} at {self.position} of {self.tenant_id}"

    @property
    def is_whole(self) -> bool:
        """Whether it looks at all that a log has, so that what others found before and it does not is there no more."""
        return self.start == 0 and self.stop is None

    @property
    def wire_id(self) -> str:
        return encode("ver", self.id)
