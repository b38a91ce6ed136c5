"""Spent budgets: what the end of a call takes of the budgets that its Begin names."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from access.budgets import ledger
from evidence.leaves.call_ends import SpentBudget
from kernel.ids import encode

if TYPE_CHECKING:
    from uuid import UUID

    from invocations.end.endings import Ending
    from invocations.models import Invocation


def compute_spending(ending: Ending) -> ledger.CallUsage | None:
    """None: nothing ran, so nothing is taken. What was never measured counts as reserved."""
    if not ending.ran:
        return None
    outcome, model = ending.outcome, ending.model
    if model is not None:
        return ledger.CallUsage(bytes_out=model.result_bytes, tokens=model.tokens, money=model.money)
    if outcome is None:
        return ledger.CallUsage()
    cpu_ms = None if outcome.cpu_ms is None else math.ceil(outcome.cpu_ms)
    return ledger.CallUsage(bytes_out=outcome.result_bytes, cpu_ms=cpu_ms)


def build_spent_budget(ending: Ending) -> SpentBudget:
    """What is taken of the budgets that the Begin names; what is not named here counts as it was reserved."""
    spent = compute_spending(ending)
    if spent is None:
        return SpentBudget(spent={}, released=True)
    apart = {encode("bud", budget): took for budget, took in _list_apart(ending).items()}
    return SpentBudget(
        spent=_list_measured(spent),
        not_of=sorted(budget for budget, took in apart.items() if took is ledger.NOTHING) or None,
        parts={budget: _list_measured(took) for budget, took in apart.items() if took is not ledger.NOTHING} or None,
    )


def settle_budgets(invocation: Invocation, ending: Ending) -> None:
    """Count what the call has taken, last in the transaction of its End."""
    spent = compute_spending(ending)
    if spent is None:
        ledger.settle_at_commit(invocation_id=invocation.pk, spent=ledger.NOTHING)
    else:
        ledger.settle_at_commit(invocation_id=invocation.pk, spent=spent, apart=_list_apart(ending))


def _list_apart(ending: Ending) -> dict[UUID, ledger.CallUsage]:
    return ending.model.apart if ending.model is not None else {}


def _list_measured(spent: ledger.CallUsage) -> dict[str, int]:
    measured = {
        "bytes_out": spent.bytes_out,
        "cpu_ms": spent.cpu_ms,
        "tokens": spent.tokens,
        "money": spent.money,
    }
    return {name: amount for name, amount in measured.items() if amount is not None}
