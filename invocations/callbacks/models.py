"""Callback models: where an agent is told that its calls have ended, and what became of each message.

A :class:`CallbackEndpoint` is set up by a person; a call names it and never an address. What its messages are signed with is a
:class:`CallbackSecret`: two of them while one takes over from the other. A :class:`CallbackDelivery` is one message, written with
the End that it tells of; a :class:`CallbackAttempt` is one try to bring it there.
"""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from access.models import Agent, Tenant
from evidence.deliveries.models import SigningSecret, message_state
from kernel.ids import encode, new_id


class CallbackEndpoint(models.Model):
    """An address of an agent's owner, by a name that calls use."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    tenant = models.ForeignKey(Tenant, models.PROTECT, related_name="callback_endpoints")
    agent = models.ForeignKey(Agent, models.PROTECT, related_name="callback_endpoints")
    name = models.SlugField(max_length=40)
    url = models.CharField(max_length=500)
    include_answer = models.BooleanField(default=False)  # or only what ended, and where its answer is
    disabled_at = models.DateTimeField(null=True)
    created_by = models.CharField(max_length=64)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["agent", "name"], condition=Q(disabled_at=None), name="callback_endpoint_name_once_in_use"
            )
        ]

    def __str__(self) -> str:
        return f"{self.name} of {self.agent_id}"

    @property
    def wire_id(self) -> str:
        return encode("cbe", self.id)


class CallbackSecret(SigningSecret):
    """One of an endpoint's."""

    tenant = models.ForeignKey(Tenant, models.PROTECT, related_name="+")
    endpoint = models.ForeignKey(CallbackEndpoint, models.CASCADE, related_name="secrets")

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["endpoint"], condition=Q(ends_at=None), name="callback_secret_one_without_end"
            )
        ]


class CallbackDelivery(models.Model):
    """One message about one call: tried with growing pauses until it arrives or is given up."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    tenant = models.ForeignKey(Tenant, models.PROTECT, related_name="+")
    endpoint = models.ForeignKey(CallbackEndpoint, models.PROTECT, related_name="deliveries")
    invocation = models.ForeignKey("invocations.Invocation", models.PROTECT, related_name="callbacks")
    round = models.PositiveIntegerField(default=0)  # how often a person has asked for it to be sent again
    attempts = models.PositiveIntegerField(default=0)  # in this round
    next_attempt_at = models.DateTimeField(null=True)  # None: delivered, or given up
    delivered_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["invocation"], name="callback_delivery_once_a_call")]
        indexes = [
            models.Index(fields=["next_attempt_at"], name="callback_due", condition=Q(next_attempt_at__isnull=False)),
            models.Index(fields=["tenant", "-id"], name="callback_newest"),
            models.Index(fields=["endpoint", "-id"], name="callback_of_endpoint"),
        ]

    def __str__(self) -> str:
        return f"{self.invocation_id} to {self.endpoint_id}"

    @property
    def wire_id(self) -> str:
        return encode("cbd", self.id)

    @property
    def state(self) -> str:
        return message_state(delivered_at=self.delivered_at, next_attempt_at=self.next_attempt_at)


class CallbackAttempt(models.Model):
    """One try: what was answered, how fast, and what was wrong."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    tenant = models.ForeignKey(Tenant, models.PROTECT, related_name="+")
    delivery = models.ForeignKey(CallbackDelivery, models.CASCADE, related_name="tries")
    at = models.DateTimeField()
    status = models.PositiveIntegerField(null=True)  # None: nobody answered
    ms = models.PositiveIntegerField()
    error = models.CharField(max_length=300, blank=True)

    def __str__(self) -> str:
        return f"{self.delivery_id} at {self.at}"
