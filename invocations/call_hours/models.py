"""Call hour model: how many calls of one tool, or by one agent, that were made within one hour are in one state."""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from access.models import Agent, Tenant
from kernel.ids import new_id


class CallHour(models.Model):
    """Written once the hour is over, and anew while calls of it have not ended. What it says can always be counted again.

    Of each hour there are rows by tool and, apart from them, rows by agent: of both at once there would be as many as there are calls.
    """

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    # Without indexes of their own: those of the constraints begin with the tenant.
    tenant = models.ForeignKey(Tenant, models.PROTECT, related_name="+", db_index=False)
    agent = models.ForeignKey(Agent, models.PROTECT, null=True, related_name="+", db_index=False)  # None: by tool
    hour = models.DateTimeField()  # its beginning
    tool = models.CharField(max_length=128, blank=True)  # empty: by agent
    state = models.CharField(max_length=16)
    reason = models.CharField(max_length=64, blank=True)
    calls = models.PositiveIntegerField()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["tenant", "hour", "tool", "state", "reason"],
                condition=Q(agent=None),
                name="call_hour_of_a_tool_counted_once",
            ),
            models.UniqueConstraint(
                fields=["tenant", "hour", "agent", "state", "reason"],
                condition=Q(tool=""),
                name="call_hour_of_an_agent_counted_once",
            ),
            models.CheckConstraint(
                condition=Q(agent=None) & ~Q(tool="") | Q(agent__isnull=False, tool=""),
                name="call_hour_is_of_a_tool_or_an_agent",
            ),
        ]
        indexes = [models.Index(fields=["hour"], name="call_hour_newest")]

    def __str__(self) -> str:
        return f"{self.calls} × {self.tool or self.agent_id} {self.state} at {self.hour}"
