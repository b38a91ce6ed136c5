"""Rows that receivers of messages have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import models

from kernel.ids import new_id

if TYPE_CHECKING:
    from datetime import datetime


class SigningSecret(models.Model):
    """What the messages to one receiver are signed with, until ``ends_at``."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    key_id = models.CharField(max_length=64)  # of the master key that wraps it
    wrapped_key = models.BinaryField()
    ends_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        abstract = True

    def __str__(self) -> str:
        return f"secret {self.id}"


def message_state(*, delivered_at: datetime | None, next_attempt_at: datetime | None) -> str:
    if delivered_at:
        return "delivered"
    return "trying" if next_attempt_at else "given_up"
