"""Call hour model: how many calls of one tool by one agent, made within one hour, are in one state."""

from __future__ import annotations

from django.db import models

from access.models import Agent, Tenant
from kernel.ids import new_id


class CallHour(models.Model):
    """Written once the hour is over, and anew while calls of it have not ended. What it says can always be counted again."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    # Without indexes of their own: the constraint's begins with the tenant.
    tenant = models.ForeignKey(Tenant, models.PROTECT, related_name="+", db_index=False)
    agent = models.ForeignKey(Agent, models.PROTECT, related_name="+", db_index=False)
    hour = models.DateTimeField()  # its beginning
    tool = models.CharField(max_length=128)
    state = models.CharField(max_length=16)
    reason = models.CharField(max_length=64, blank=True)
    calls = models.PositiveIntegerField()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["tenant", "hour", "tool", "agent", "state", "reason"], name="call_hour_counted_once"
            )
        ]
        indexes = [models.Index(fields=["hour"], name="call_hour_newest")]

    def __str__(self) -> str:
        return f"{self.calls} × {self.tool} {self.state} at {self.hour}"
