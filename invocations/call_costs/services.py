"""Call costs: written with the End of a call that took money or tokens, in its transaction.

Budgets count the same figures, but only where there is a budget; a call may also count against several.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.dispatch import receiver

from access.models import Dimension
from invocations.call_costs.models import CallCost
from invocations.end.spent_budgets import compute_spending
from invocations.model_calls.model_facts import NOTHING_ANSWERED
from invocations.models import Invocation
from invocations.signals import call_ended
from kernel.database.rows import insert_row
from registry.model_prices.price_tables import VERSION_IN_FORCE, find_price_table

if TYPE_CHECKING:
    from uuid import UUID

    from invocations.end.endings import Ending
    from invocations.model_calls.model_facts import ModelReport


@receiver(call_ended, sender=Invocation)
def write_cost(*, invocation: Invocation, ending: Ending, **_: Any) -> None:
    """Nothing of a call that took nothing: most tools have no price."""
    spent, report = compute_spending(ending), ending.model
    if spent is None:
        return
    micros = find_reserved_money(invocation) if report is None else find_model_money(invocation, report)
    tokens = report.counted.input_tokens + report.counted.output_tokens if report is not None else 0
    if not micros and not tokens:
        return
    insert_row(
        CallCost(
            invocation_id=invocation.pk,
            tenant_id=invocation.tenant_id,
            agent_id=invocation.agent_id,
            tool=invocation.tool,
            micros=micros,
            currency=report.currency if report is not None else find_currency(invocation.tenant_id),
            input_tokens=report.counted.input_tokens if report is not None else 0,
            output_tokens=report.counted.output_tokens if report is not None else 0,
            made_at=invocation.created_at,
        )
    )


def find_reserved_money(invocation: Invocation) -> int:
    """What was reserved counts for a call whose price was known before it: the policy's price of a tool."""
    return max((each.get("takes", 0) for each in invocation.budget if each["dimension"] == Dimension.MONEY), default=0)


def find_model_money(invocation: Invocation, report: ModelReport) -> int | None:
    """None where there is no price: it never costs 0 for want of one."""
    if report.is_unpriced_answer:
        return find_reserved_money(invocation) or None
    if report.cost_micros is None and report.settled_by != NOTHING_ANSWERED:
        return report.surcharge_micros or None
    return report.money


def find_currency(tenant_id: UUID) -> str:
    """That of budgets, as it is now."""
    row = VERSION_IN_FORCE.first(tenant_id=tenant_id)
    return find_price_table(row.pk if row is not None else None).currency
