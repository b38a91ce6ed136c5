"""Budget models: how much may be used, and how much has been.

A :class:`Budget` limits one dimension for one scope in windows of time. What calls have taken is in :class:`BudgetWindow`
rows that only conditional updates change; a :class:`Reservation` is what one call holds until it is settled.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from django.db import models
from django.db.models import F, Q

from access.models.grants import Grant
from access.models.people import Agent, Tenant
from kernel.ids import encode, new_id

if TYPE_CHECKING:
    from kernel.principal import Principal


class Dimension(models.TextChoices):
    CALLS = "calls"
    BYTES_IN = "bytes_in"
    BYTES_OUT = "bytes_out"
    CPU_MS = "cpu_ms"
    TOKENS = "tokens"  # of models: what a call of one sends and gets
    MONEY = "money"  # millionths of the hub's currency; the price of a call is in the policy
    CONCURRENCY = "concurrency"  # calls at the same time; has no window
    RATE = "rate"  # calls a window, evenly (GCRA): kept outside the database


class BudgetScope(models.TextChoices):
    TENANT = "tenant"
    AGENT = "agent"
    TOOL = "tool"
    GRANT = "grant"
    MANIFEST = "manifest"  # of a tool, like `tool`; set by what its manifest says, not by a person


class BudgetQuerySet(models.QuerySet["Budget"]):
    def visible_to(self, principal: Principal) -> BudgetQuerySet:
        return self.filter(tenant_id=principal.tenant_id)


class Budget(models.Model):
    """At most ``amount`` of ``dimension`` in each window of ``window_s`` seconds, for everything in the scope together."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    tenant = models.ForeignKey(Tenant, models.PROTECT, related_name="budgets")
    scope = models.CharField(max_length=8, choices=BudgetScope)
    agent = models.ForeignKey(Agent, models.PROTECT, null=True, blank=True, related_name="budgets")
    tool = models.CharField(max_length=128, blank=True)  # a tool id
    grant = models.ForeignKey(Grant, models.PROTECT, null=True, blank=True, related_name="budgets")
    dimension = models.CharField(max_length=12, choices=Dimension)
    amount = models.BigIntegerField()
    window_s = models.PositiveIntegerField()  # 0 for concurrency; windows begin at whole multiples since 1970
    reason = models.CharField(max_length=500, blank=True)
    set_by = models.CharField(max_length=64)
    set_at = models.DateTimeField(auto_now_add=True)
    ended_at = models.DateTimeField(null=True, blank=True)
    ended_by = models.CharField(max_length=64, blank=True)

    objects = BudgetQuerySet.as_manager()

    class Meta:
        constraints = [
            models.CheckConstraint(condition=Q(amount__gte=0), name="budget_amount_is_not_negative"),
            models.CheckConstraint(
                condition=Q(dimension="concurrency", window_s=0) | ~Q(dimension="concurrency") & Q(window_s__gt=0),
                name="budget_window_unless_concurrency",
            ),
            models.CheckConstraint(
                condition=Q(scope="tenant", agent=None, grant=None, tool="")
                | Q(scope="agent", agent__isnull=False, grant=None, tool="")
                | Q(scope__in=["tool", "manifest"], agent=None, grant=None) & ~Q(tool="")
                | Q(scope="grant", agent=None, grant__isnull=False, tool=""),
                name="budget_names_what_its_scope_says",
            ),
        ]
        indexes = [models.Index(fields=["tenant", "scope"], name="budget_in_force", condition=Q(ended_at=None))]

    def __str__(self) -> str:
        return f"{self.amount} {self.dimension} a {self.scope}"

    @property
    def wire_id(self) -> str:
        return encode("bud", self.id)


class BudgetWindow(models.Model):
    """What was used and is reserved in one window. ``number``: seconds since 1970 divided by the window's length.

    ``raised`` is what a person added to this window once.
    """

    budget = models.ForeignKey(Budget, models.CASCADE, related_name="windows")
    number = models.BigIntegerField()
    used = models.BigIntegerField(default=0)
    reserved = models.BigIntegerField(default=0)
    raised = models.BigIntegerField(default=0)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["budget", "number"], name="budget_window_once"),
            models.CheckConstraint(
                condition=Q(used__gte=0, reserved__gte=0, raised__gte=0), name="budget_window_never_below_zero"
            ),
        ]

    @property
    def began_at(self) -> datetime:
        return datetime.fromtimestamp(self.number * self.budget.window_s, UTC)

    def __str__(self) -> str:
        return f"{self.used} used and {self.reserved} reserved in window {self.number}"


class Reservation(models.Model):
    """What one call holds of one window until it ends. ``settled`` is what it took in the end."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    tenant = models.ForeignKey(Tenant, models.PROTECT, related_name="+", db_index=False)  # nothing is looked for by it
    invocation_id = models.UUIDField()  # access knows no invocations
    window = models.ForeignKey(BudgetWindow, models.CASCADE, related_name="reservations")
    amount = models.BigIntegerField()
    settled = models.BigIntegerField(null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["invocation_id", "window"], name="reservation_once"),
            models.CheckConstraint(condition=Q(amount__gte=0), name="reservation_is_not_negative"),
        ]
        indexes = [models.Index(F("created_at"), name="reservation_open", condition=Q(settled=None))]

    def __str__(self) -> str:
        return f"{self.amount} for {self.invocation_id}"
