"""Anchor model: who outside the hub has seen its log, and how far.

An :class:`Anchor` is a witness, a file or a repository that keeps checkpoints of the global log, out of the hub's reach. What a
witness signs is put below the checkpoint itself.
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
