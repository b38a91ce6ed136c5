"""Playground models: the agent that people of a tenant talk through, and what they have sent.

Nothing of a conversation's words is here: the question is sealed with each of its runs, the answers with their calls. So what is
erased, or kept no longer, is gone from a conversation as well, and its rows say when something was asked, and by whom.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import models
from django.db.models import Exists, OuterRef, Q

from access.models import Agent, Consent, Tenant
from invocations.agent_runs.models import AgentRun, AgentRunStep
from kernel.ids import encode, new_id

if TYPE_CHECKING:
    from kernel.principal import Principal


class Playground(models.Model):
    """Of one tenant. What people may do here is what its agent may do."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    tenant = models.OneToOneField(Tenant, models.PROTECT, related_name="playground")
    agent = models.OneToOneField(Agent, models.PROTECT, related_name="playground")
    created_by = models.CharField(max_length=64)
    created_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return self.wire_id

    @property
    def wire_id(self) -> str:
        return encode("plg", self.id)


class PlaygroundConversationQuerySet(models.QuerySet["PlaygroundConversation"]):
    def visible_to(self, principal: Principal) -> PlaygroundConversationQuerySet:
        """One's own. Who decides on consents also sees those in which a call has asked for one.

        By the call that has asked: a consent of before, which lets a call through, opens no conversation.
        """
        mine = self.filter(tenant_id=principal.tenant_id)
        own = Q(person=principal.id)
        if not principal.may("consents.decide"):
            return mine.filter(own)
        wanted = Consent.objects.filter(tenant_id=principal.tenant_id, invocation_id__isnull=False)
        asked = AgentRunStep.objects.filter(
            run__playground_side__message__conversation=OuterRef("pk"),
            calls__pk__in=wanted.values("invocation_id"),
        )
        return mine.filter(own | Exists(asked))


class PlaygroundConversation(models.Model):
    """What one person and the models have said to each other."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    # Without an index of its own: the one below begins with it.
    tenant = models.ForeignKey(Tenant, models.PROTECT, related_name="+", db_index=False)
    person = models.CharField(max_length=64)
    created_at = models.DateTimeField(auto_now_add=True)

    objects = PlaygroundConversationQuerySet.as_manager()

    class Meta:
        indexes = [models.Index(fields=["tenant", "person", "-id"], name="conversation_newest")]

    def __str__(self) -> str:
        return self.wire_id

    @property
    def wire_id(self) -> str:
        return encode("plc", self.id)


class PlaygroundMessage(models.Model):
    """One message, which went to one model or to two."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    conversation = models.ForeignKey(PlaygroundConversation, models.PROTECT, related_name="messages", db_index=False)
    number = models.PositiveIntegerField()  # from 1
    token = models.UUIDField(unique=True)  # of the form that it was written in, so that it is sent once
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["conversation", "number"], name="message_number_once")]

    def __str__(self) -> str:
        return f"{self.number} of {self.conversation_id}"

    @property
    def wire_id(self) -> str:
        return encode("plm", self.id)

    def list_sides(self) -> list[PlaygroundSide]:
        return sorted(self.sides.all(), key=lambda side: side.place)

    @property
    def is_open(self) -> bool:
        """Whether it is still being answered."""
        return any(side.run is not None and not side.run.is_final for side in self.sides.all())


class PlaygroundSide(models.Model):
    """What became of a message at one of its models: a run, or a refusal."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    message = models.ForeignKey(PlaygroundMessage, models.PROTECT, related_name="sides", db_index=False)
    place = models.PositiveSmallIntegerField()  # 1 or 2
    model = models.CharField(max_length=128)
    run = models.OneToOneField(AgentRun, models.PROTECT, null=True, related_name="playground_side")
    reason = models.CharField(max_length=64, blank=True)  # of the problem that refused it

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["message", "place"], name="side_place_once"),
            models.CheckConstraint(
                condition=Q(run__isnull=True) & ~Q(reason="") | Q(run__isnull=False, reason=""),
                name="side_run_or_reason",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.place} of {self.message_id} ({self.model})"
