"""Budget lines: the budgets that a call counts against, and whether there is enough left in each.

A :class:`BudgetLine` is one budget with what its current window has used and reserved, as plain values: whoever reads them from
the database builds them. A :class:`Demand` is the most that a call may take; it is what a call reserves before it runs.
Nothing here decides for good: :mod:`access.budgets.ledger` does, when the call is accepted.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from django.db.models import Q

from access.models import Budget, BudgetScope, BudgetWindow, Dimension
from access.problems import QuotaExceeded, TooManyAtOnce
from kernel.http.rate_limit_fields import RateLimitState
from kernel.ids import encode

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable
    from uuid import UUID

MILLIONTHS = 1_000_000  # of the currency: what money is counted in
SOON_S = 1  # what running calls hold comes back when they end, which nobody can foretell
NOUNS = {
    Dimension.CALLS: "calls",
    Dimension.BYTES_IN: "bytes of arguments",
    Dimension.BYTES_OUT: "bytes of results",
    Dimension.CPU_MS: "milliseconds of CPU time",
    Dimension.TOKENS: "tokens",
    Dimension.MONEY: "millionths of the currency",
    Dimension.CONCURRENCY: "calls at the same time",
    Dimension.RATE: "calls",
}


@dataclass(frozen=True, slots=True)
class Demand:
    """The most that one call may take: bytes, milliseconds, tokens, millionths of the currency."""

    calls: int = 1
    bytes_in: int = 0
    bytes_out: int = 0
    cpu_ms: int = 0
    tokens: int = 0
    money: int = 0

    def of(self, dimension: str) -> int:
        """What it takes of a dimension. Its rate is not in any window, so it takes none of it."""
        if dimension == Dimension.CONCURRENCY:
            return 1
        return 0 if dimension == Dimension.RATE else int(getattr(self, dimension))


def window_number(window_s: int, now: datetime) -> int:
    """Windows begin at whole multiples of their length since 1970. Concurrency has one window, which never ends."""
    return number_at(int(now.timestamp()), window_s)


def number_at(second: int, window_s: int) -> int:
    """The same for who asks about many budgets at one moment: so many whole seconds since 1970."""
    return second // window_s if window_s else 0


class BudgetLine(NamedTuple):
    """One budget in its current window. ``amount`` is what this window allows, with what was added to it once."""

    budget_id: UUID
    scope: str
    label: str  # the agent's name, the tool's id or the grant's; empty for the tenant
    dimension: str
    amount: int
    window_s: int
    number: int
    used: int = 0
    reserved: int = 0
    grant_id: UUID | None = None  # for those of scope grant: they count for calls under this grant only

    @property
    def remaining(self) -> int:
        return max(0, self.amount - self.used - self.reserved)

    @property
    def wire_id(self) -> str:
        return encode("bud", self.budget_id)

    @property
    def resets_at(self) -> datetime | None:
        return datetime.fromtimestamp((self.number + 1) * self.window_s, UTC) if self.window_s else None

    @property
    def is_rate(self) -> bool:
        return self.dimension == Dimension.RATE

    def has_room_for(self, demand: Demand) -> bool:
        takes = demand.of(self.dimension)
        return takes == 0 or self.used + self.reserved + takes <= self.amount

    def to_json(self, demand: Demand) -> dict[str, Any]:
        said: dict[str, Any] = {
            "budget": self.wire_id,
            "scope": self.scope,
            "of": self.label or None,
            "dimension": self.dimension,
            "limit": self.amount,
            "window_s": self.window_s or None,
        }
        if self.is_rate:
            return said
        resets_at = self.resets_at
        return said | {
            "used": self.used,
            "reserved": self.reserved,
            "remaining": self.remaining,
            "takes": demand.of(self.dimension),
            "resets_at": resets_at.isoformat() if resets_at else None,
        }


def filter_by_grants(lines: Iterable[BudgetLine], grant_ids: Collection[UUID]) -> list[BudgetLine]:
    """The lines of a call under a grant and those that it was handed on from: all but those of other grants."""
    return [line for line in lines if line.grant_id is None or line.grant_id in grant_ids]


def lines_for(*, tenant_id: UUID, agent_id: UUID, tool: str, grant_id: UUID | None, now: datetime) -> list[BudgetLine]:
    """The budgets in force for a call, read in the plain way: preflight reads the same with its own one statement."""
    concerned = Q(scope=BudgetScope.TENANT) | Q(agent_id=agent_id) | Q(tool=tool)
    if grant_id is not None:
        concerned |= Q(grant_id=grant_id)
    budgets = list(
        Budget.objects.filter(concerned, tenant_id=tenant_id, ended_at=None).select_related("agent").order_by("id")
    )
    return [build_line(budget, window) for budget, window in with_windows(budgets, now)]


def with_windows(budgets: Iterable[Budget], now: datetime) -> list[tuple[Budget, BudgetWindow]]:
    """Each budget with its current window; one that nothing was taken from yet has an empty one, which is not stored."""
    current = {budget.pk: (budget, window_number(budget.window_s, now)) for budget in budgets}
    wanted = Q(pk=None)
    for pk, (_, number) in current.items():
        wanted |= Q(budget_id=pk, number=number)
    found = {window.budget_id: window for window in BudgetWindow.objects.filter(wanted)}
    return [
        (budget, found.get(pk) or BudgetWindow(budget=budget, number=number))
        for pk, (budget, number) in current.items()
    ]


def build_line(budget: Budget, window: BudgetWindow) -> BudgetLine:
    return BudgetLine(
        budget_id=budget.pk,
        scope=budget.scope,
        label=budget_label(budget),
        dimension=budget.dimension,
        amount=budget.amount + window.raised,
        window_s=budget.window_s,
        number=window.number,
        used=window.used,
        reserved=window.reserved,
        grant_id=budget.grant_id,
    )


def budget_label(budget: Budget) -> str:
    if budget.agent is not None:
        return budget.agent.name
    return encode("grt", budget.grant_id) if budget.grant_id else budget.tool


def seconds_until_room(line: BudgetLine, demand: Demand, now: datetime) -> int | None:
    """When the same call may fit: never, when running calls have ended, or when the window does. None means never."""
    takes = demand.of(line.dimension)
    if takes > line.amount:
        return None
    resets_at = line.resets_at
    if resets_at is None or line.used + takes <= line.amount:
        return SOON_S
    return min(line.window_s, max(1, math.ceil((resets_at - now).total_seconds())))


def build_quota_problem(line: BudgetLine, demand: Demand, now: datetime, who: str = "this call") -> QuotaExceeded:
    """The problem of a call for which this line has no room; ``who`` as it stands in a sentence."""
    takes, wait, whose = demand.of(line.dimension), seconds_until_room(line, demand, now), describe_line(line)
    details = {"budget": line.to_json(demand)}
    if line.dimension == Dimension.CONCURRENCY:
        if wait is None:
            return TooManyAtOnce(
                f"No call may run now: {whose} allows none.",
                details=details,
                remedy=f"Ask an operator to raise the budget {line.wire_id}.",
            )
        return TooManyAtOnce(
            f"{line.reserved} calls run or wait already; {whose} allows {line.amount:,} at the same time.",
            details=details,
            remedy="Try again when one of them has ended.",
            retry_after_s=wait,
        )
    noun = NOUNS[Dimension(line.dimension)]
    if wait is None:
        never = QuotaExceeded(
            f"{who[0].upper()}{who[1:]} may take {takes:,} {noun}; {whose} allows {line.amount:,} in each window.",
            details=details,
            remedy=f"Ask an operator to raise the budget {line.wire_id}; waiting does not help.",
        )
        never.limit = _used_up(line)
        return never
    held = f" and {line.reserved:,} are held by calls that run" if line.reserved else ""
    resets_at = line.resets_at
    used_up = QuotaExceeded(
        f"{whose[0].upper()}{whose[1:]} is used up: of {line.amount:,} {noun}, {line.used:,} are used{held}; "
        f"{who} may take {takes:,}.",
        details=details,
        remedy=f"Wait until {resets_at.isoformat() if resets_at else 'then'}, or ask an operator to raise the budget "
        f"{line.wire_id}.",
        retry_after_s=wait,
    )
    used_up.limit = _used_up(line, wait)
    return used_up


def _used_up(line: BudgetLine, wait_s: int | None = None) -> RateLimitState | None:
    """As limit of requests, where calls are what it counts."""
    if line.dimension != Dimension.CALLS:
        return None
    return RateLimitState(line.wire_id, line.amount, line.window_s, 0, wait_s)


def describe_line(line: BudgetLine) -> str:
    """As it stands in a sentence."""
    match line.scope:
        case BudgetScope.TENANT:
            return "the tenant's budget"
        case BudgetScope.MANIFEST:
            return f"the manifest of {line.label}"
        case scope:
            return f"the budget of the {scope} {line.label}"


def check_budgets(lines: Iterable[BudgetLine], demand: Demand, now: datetime) -> None:
    """Raise for the line that makes the call wait longest, when there are any without room."""
    short = [line for line in lines if not line.has_room_for(demand)]
    if short:
        never = float("inf")
        longest = max(short, key=lambda line: seconds_until_room(line, demand, now) or never)
        raise build_quota_problem(longest, demand, now)


def snapshot_lines(lines: Iterable[BudgetLine], demand: Demand) -> list[dict[str, Any]]:
    """What preflight and the stored call say about the budgets, before the call has taken anything."""
    return [line.to_json(demand) for line in lines]
