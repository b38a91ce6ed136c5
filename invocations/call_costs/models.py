"""Call cost model: what one call has taken in money, written with its End and never changed."""

from __future__ import annotations

from django.db import models

from access.models import Agent, Tenant
from kernel.ids import new_id


class CallCost(models.Model):
    """``micros``: millionths of ``currency``, as budgets count them; None: a model answered that nobody knows the price of.

    ``made_at`` is when the call was made, by which lists of calls are filtered.
    """

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    invocation = models.OneToOneField("invocations.Invocation", models.PROTECT, related_name="cost")
    # Without indexes of their own: the one below begins with the tenant, and nobody asks for an agent of all times.
    tenant = models.ForeignKey(Tenant, models.PROTECT, related_name="+", db_index=False)
    agent = models.ForeignKey(Agent, models.PROTECT, related_name="+", db_index=False)
    tool = models.CharField(max_length=128)  # of a model its id
    micros = models.BigIntegerField(null=True)
    currency = models.CharField(max_length=3)
    input_tokens = models.BigIntegerField(default=0)
    output_tokens = models.BigIntegerField(default=0)
    made_at = models.DateTimeField()

    class Meta:
        indexes = [models.Index(fields=["tenant", "-made_at"], name="call_cost_newest")]

    def __str__(self) -> str:
        return f"{self.micros} {self.currency} of {self.tool}"
