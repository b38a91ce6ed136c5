"""Sink models: where a tenant's log goes, event by event, and how far it has got.

An :class:`EventSink` is a server or a folder of files. Its ``cursor`` is the index of the next leaf that it has not got, so what
was sent is known by one number. What the messages to a server are signed with is a :class:`SinkSecret`: two while one takes over.
"""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from evidence.deliveries.models import SigningSecret
from kernel.ids import encode, new_id


class SinkChannel(models.TextChoices):
    WEBHOOK = "webhook"
    FILE = "file"


class SinkMode(models.TextChoices):
    """How events are put into a request, in the words of CloudEvents."""

    STRUCTURED = "structured"  # one event a request
    BATCHED = "batched"


class SinkState(models.TextChoices):
    ACTIVE = "active"
    PAUSED = "paused"  # by a person, or because the server said 410: it wants nothing any more
    ENDED = "ended"


class EventSink(models.Model):
    """One consumer of the tenant's log."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    tenant_id = models.UUIDField()
    name = models.SlugField(max_length=40)
    channel = models.CharField(max_length=8, choices=SinkChannel)
    url = models.CharField(max_length=500, blank=True)
    mode = models.CharField(max_length=10, choices=SinkMode, default=SinkMode.STRUCTURED)
    kinds = models.JSONField(default=list)  # of facts; empty: all
    max_mb = models.PositiveIntegerField(default=64)  # a file that has grown so large is followed by another
    state = models.CharField(max_length=8, choices=SinkState, default=SinkState.ACTIVE)
    cursor = models.BigIntegerField(default=0)
    sent = models.BigIntegerField(default=0)  # events
    sent_at = models.DateTimeField(null=True)
    attempts = models.PositiveIntegerField(default=0)  # that failed, since the last that did not
    next_attempt_at = models.DateTimeField()  # who sends moves it ahead first: so only one does
    last_error = models.CharField(max_length=300, blank=True)
    failed_at = models.DateTimeField(null=True)
    created_by = models.CharField(max_length=64)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["tenant_id", "name"], condition=~Q(state="ended"), name="event_sink_name_once_in_use"
            )
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def wire_id(self) -> str:
        return encode("snk", self.id)

    @property
    def tenant_wire_id(self) -> str:
        return encode("ten", self.tenant_id)


class SinkSecret(SigningSecret):
    """One of a server's."""

    tenant_id = models.UUIDField()
    sink = models.ForeignKey(EventSink, models.CASCADE, related_name="secrets")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["sink"], condition=Q(ends_at=None), name="sink_secret_one_without_end")
        ]
