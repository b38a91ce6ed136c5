"""Budgets: setting, raising once and ending one.

A budget is known by its scope, what it is of, its dimension and its window: setting it again changes its amount, so that
nobody gets what was used back by setting it anew.
"""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from django.db import transaction

from access.budgets.lines import MILLIONTHS, NOUNS, BudgetLine, budget_label, build_line, window_number
from access.models import Agent, Budget, BudgetScope, BudgetWindow, Dimension, Grant, Tenant
from access.problems import SelfApproval
from evidence import services as evidence
from evidence.kinds import Kind
from evidence.leaves.base import ABSENT
from evidence.leaves.controls import BudgetLimit
from kernel.database.connections import database_time
from kernel.principal import Principal
from kernel.problems import Conflict, SchemaInvalid, StateUnfit

if TYPE_CHECKING:
    from collections.abc import Iterable
    from uuid import UUID

DAY_S = 24 * 60 * 60
MAX_WINDOW_S = 366 * DAY_S
MAX_AMOUNT = 10**15
MAX_RATE = 1_000_000
MAX_TOOL = 128
OF_MANIFEST = "The manifest says how many calls of the tool may run at the same time."
NO_LIMIT = "The manifest no longer limits how many calls of the tool may run at the same time."


def in_currency(amount: int) -> Decimal:
    """An amount of money as people write it: 12.5, not 12500000 and not 12.500000."""
    plain = (Decimal(amount) / MILLIONTHS).normalize()
    return plain.quantize(Decimal(1)) if plain == plain.to_integral_value() else plain


def check_limit(dimension: str, amount: int, window_s: int) -> None:
    """A limit that can be counted: a window for all but concurrency, and a rate of at least one call."""
    if dimension not in Dimension.values:
        raise SchemaInvalid.at(
            "/dimension", f"There is no dimension {dimension}. There are {', '.join(Dimension.values)}."
        )
    if dimension == Dimension.CONCURRENCY and window_s:
        raise SchemaInvalid.at("/window_s", "Calls at the same time are counted as they are, without a window.")
    if dimension != Dimension.CONCURRENCY and not 1 <= window_s <= MAX_WINDOW_S:
        raise SchemaInvalid.at("/window_s", f"A window has 1 to {MAX_WINDOW_S:,} seconds.")
    if not 0 <= amount <= MAX_AMOUNT:
        raise SchemaInvalid.at("/amount", f"A budget is of 0 to {MAX_AMOUNT:,}.")
    if dimension == Dimension.RATE and not 1 <= amount <= MAX_RATE:
        raise SchemaInvalid.at(
            "/amount", f"A rate is of 1 to {MAX_RATE:,} calls a window. To allow none, use a budget of calls."
        )


def check_names_its_scope(scope: str, *, agent: Agent | None, tool: str, grant: Grant | None) -> None:
    if scope not in BudgetScope.values:
        raise SchemaInvalid.at("/scope", "A budget is for the tenant, an agent, a tool or a grant.")
    given = {"agent": agent is not None, "tool": bool(tool), "grant": grant is not None}
    for name, there in given.items():
        if there != (name == scope):
            raise SchemaInvalid.at(
                f"/{name}", f"Name the {name}." if name == scope else f"A budget for the {scope} names no {name}."
            )


@transaction.atomic
def set_budget(
    *,
    scope: str,
    dimension: str,
    amount: int,
    by: Principal,
    window_s: int = DAY_S,
    agent_id: UUID | None = None,
    tool: str = "",
    grant_id: UUID | None = None,
    reason: str = "",
) -> Budget:
    """Allow at most ``amount`` in each window; changes the amount of a budget that is there already."""
    # Two who set the same budget at once come one after the other. Calls refer to the tenant, and are not held up.
    Tenant.objects.select_for_update(no_key=True).get(pk=by.tenant_id)
    agent = Agent.objects.get(pk=agent_id, tenant_id=by.tenant_id) if agent_id else None
    grant = Grant.objects.get(pk=grant_id, tenant_id=by.tenant_id) if grant_id else None
    if scope == BudgetScope.MANIFEST:
        raise SchemaInvalid.at("/scope", "That limit comes from the tool's manifest. Set a budget of the tool.")
    check_limit(dimension, amount, window_s)
    check_names_its_scope(scope, agent=agent, tool=tool, grant=grant)
    check_is_not_ones_own(agent, grant, by=by)
    if len(tool) > MAX_TOOL:
        raise SchemaInvalid.at("/tool", "No tool has so long a name.")
    what = {"scope": scope, "agent": agent, "tool": tool, "grant": grant, "dimension": dimension, "window_s": window_s}
    return _set(what, amount=amount, reason=reason.strip(), by=by)


def set_calls_limit(grant: Grant, amount: int | None, *, window_s: int, reason: str, by: Principal) -> None:
    """The budget that a grant is given with; ``None`` gives it none."""
    if amount is not None:
        set_budget(
            scope="grant",
            dimension="calls",
            amount=amount,
            window_s=window_s,
            grant_id=grant.pk,
            reason=reason,
            by=by,
        )


@transaction.atomic
def change_budget(*, budget_id: UUID, amount: int, reason: str, by: Principal) -> Budget:
    """Another amount from the next call on; what was used stays used."""
    budget = Budget.objects.select_for_update(no_key=True).get(pk=budget_id, tenant_id=by.tenant_id)
    check_can_change(budget, by=by)
    check_limit(budget.dimension, amount, budget.window_s)
    return _change(budget, amount=amount, reason=reason.strip(), by=by)


def _set(what: dict[str, Any], *, amount: int, reason: str, by: Principal) -> Budget:
    budget = Budget.objects.filter(tenant_id=by.tenant_id, ended_at=None, **what).order_by("id").first()
    return _change(budget or Budget(tenant_id=by.tenant_id, **what), amount=amount, reason=reason, by=by)


def _change(budget: Budget, *, amount: int, reason: str, by: Principal) -> Budget:
    is_new = budget._state.adding
    before = None if is_new else budget.amount
    if before == amount and budget.reason == reason:
        return budget
    budget.amount, budget.reason, budget.set_by, budget.set_at = amount, reason, by.id, datetime.now(UTC)
    if is_new:
        budget.save(force_insert=True)
    else:
        budget.save(update_fields=["amount", "reason", "set_by", "set_at"])
    _record(budget, by=by, amount=amount, was=before, reason=reason)
    return budget


def _record(
    budget: Budget,
    *,
    by: Principal,
    reason: str,
    amount: int,
    kind: Kind = Kind.BUDGET_SET,
    was: int | None = ABSENT,
    raised_by: int | None = None,
    window: int | None = None,
) -> None:
    evidence.record(
        kind=kind,
        subject=budget.wire_id,
        actor=by,
        tool=budget.tool,
        data=BudgetLimit(
            scope=budget.scope,
            of=budget_label(budget),
            dimension=budget.dimension,
            window_s=budget.window_s,
            reason=reason,
            amount=amount,
            was=was,
            raised_by=raised_by,
            window=window,
        ),
    )


def check_is_not_ones_own(agent: Agent | None, grant: Grant | None, *, by: Principal) -> None:
    """An agent sets no budget that is for itself."""
    mine = by.agent_id is not None and by.agent_id in (agent and agent.pk, grant and grant.agent_id)
    if mine:
        raise SelfApproval("An agent cannot change its own budget.", remedy="Ask an operator to change it.")


def check_can_change(budget: Budget, *, by: Principal) -> None:
    check_is_not_ones_own(budget.agent, budget.grant, by=by)
    if budget.ended_at:
        raise Conflict("This budget has ended.", remedy="Set a new one.")
    if budget.scope == BudgetScope.MANIFEST:
        raise Conflict(
            "This limit is in the tool's manifest and changes with its versions.",
            remedy="Set a budget of the tool, which holds beside it.",
        )


def check_can_raise(budget: Budget, *, by: Principal) -> None:
    check_can_change(budget, by=by)
    if budget.dimension in (Dimension.CONCURRENCY, Dimension.RATE):
        raise Conflict(
            f"A limit on {NOUNS[Dimension(budget.dimension)]} has no window that could be raised once.",
            remedy="Set it to another amount.",
        )


@transaction.atomic
def raise_budget_once(*, budget_id: UUID, by_amount: int, reason: str, by: Principal) -> BudgetWindow:
    """Allow more in the window that runs now, and in no other."""
    budget = Budget.objects.select_for_update(no_key=True).get(pk=budget_id, tenant_id=by.tenant_id)
    check_can_raise(budget, by=by)
    if not reason.strip():
        raise SchemaInvalid.at("/reason", "Say why more is needed now; the reason is kept as evidence.")
    if not 1 <= by_amount <= MAX_AMOUNT:
        raise SchemaInvalid.at("/by_amount", f"Raise it by 1 to {MAX_AMOUNT:,}.")
    number = window_number(budget.window_s, database_time())
    BudgetWindow.objects.get_or_create(budget=budget, number=number)
    window = BudgetWindow.objects.select_for_update(no_key=True).get(budget=budget, number=number)
    if budget.amount + window.raised + by_amount > MAX_AMOUNT:
        raise StateUnfit.at("/by_amount", f"A budget is of 0 to {MAX_AMOUNT:,}.")
    window.raised += by_amount
    window.save(update_fields=["raised"])
    _record(budget, by=by, reason=reason.strip(), amount=budget.amount, raised_by=by_amount, window=number)
    return window


@transaction.atomic
def end_budget(*, budget_id: UUID, reason: str, by: Principal) -> Budget:
    """Limit nothing by it any more. What was used stays on record; calls that hold some of it settle it all the same."""
    budget = Budget.objects.select_for_update(no_key=True).get(pk=budget_id, tenant_id=by.tenant_id)
    check_can_change(budget, by=by)
    if not reason.strip():
        raise SchemaInvalid.at("/reason", "Say why the budget ends; the reason is kept as evidence.")
    _end(budget, reason=reason.strip(), by=by)
    return budget


def _end(budget: Budget, *, reason: str, by: Principal) -> None:
    budget.ended_at, budget.ended_by = datetime.now(UTC), by.id
    budget.save(update_fields=["ended_at", "ended_by"])
    _record(budget, by=by, reason=reason, kind=Kind.BUDGET_ENDED, amount=budget.amount)


@transaction.atomic(savepoint=False)
def keep_manifest_limit(
    lines: Iterable[BudgetLine], *, tenant_id: UUID, tool: str, limit: int | None
) -> list[BudgetLine]:
    """The lines of a call, with what the manifest says about calls at the same time as one of them.

    ``limit`` is that of the version that the call gets. The budget that holds it is made with the first call and follows
    the manifest; as a rule it is there already and this only looks at it.
    """
    others = [line for line in lines if line.scope != BudgetScope.MANIFEST]
    mine = [line for line in lines if line.scope == BudgetScope.MANIFEST]
    if [line.amount for line in mine] == ([] if limit is None else [limit]):
        return [*others, *mine]
    by = Principal.system("manifest", tenant_id=tenant_id)
    Tenant.objects.select_for_update(no_key=True).get(pk=tenant_id)
    what = {"scope": BudgetScope.MANIFEST, "tool": tool, "dimension": Dimension.CONCURRENCY, "window_s": 0}
    if limit is None:
        for budget in Budget.objects.filter(tenant_id=tenant_id, ended_at=None, **what):
            _end(budget, reason=NO_LIMIT, by=by)
        return others
    budget = _set(what, amount=limit, reason=OF_MANIFEST, by=by)
    return [*others, build_line(budget, BudgetWindow(budget=budget, number=0))]
