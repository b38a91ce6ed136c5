"""Who outside the hub has seen its log, and how far?

An :class:`Anchor` is a witness, a file or a repository that keeps checkpoints of the global log, out of the hub's reach. A
:class:`Cosignature` is what a witness answered: it has seen this checkpoint, and it continues all that it had seen before.
"""

from __future__ import annotations

from django.db import models


class AnchorKind(models.TextChoices):
    WITNESS = "witness"
    FILE = "file"
    GIT = "git"


class Anchor(models.Model):
    """One of those that the settings name, and what became of the last try to reach it."""

    name = models.CharField(max_length=255, primary_key=True)
    kind = models.CharField(max_length=8, choices=AnchorKind)
    size = models.BigIntegerField(default=0)  # of the newest checkpoint that it keeps
    anchored_at = models.DateTimeField(null=True)
    next_attempt_at = models.DateTimeField()
    attempts = models.PositiveIntegerField(default=0)  # that failed, since the last that did not
    last_error = models.CharField(max_length=300, blank=True)
    refused_at = models.DateTimeField(null=True)  # it has seen another history: an alarm until it agrees again

    def __str__(self) -> str:
        return self.name


class Cosignature(models.Model):
    """The signature line of one witness below the global log's checkpoint of one size."""

    witness = models.CharField(max_length=255)
    size = models.BigIntegerField()
    line = models.TextField()
    at = models.DateTimeField()  # when the witness says that it saw it

    class Meta:
        constraints = [models.UniqueConstraint(fields=["witness", "size"], name="cosignature_each_size_once")]

    def __str__(self) -> str:
        return f"{self.witness} at {self.size}"
