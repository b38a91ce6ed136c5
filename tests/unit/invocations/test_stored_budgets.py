"""Stored budgets: are they read as they were written, in few bytes, also those that were stored before, and what is no budget?"""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from access.budgets.lines import BudgetLine, Demand
from access.models import Dimension
from invocations.stored_budgets import pack_budgets, read_stored_budgets
from kernel.ids import new_id

AMOUNT = st.integers(0, 10**15)
LINES = st.builds(
    BudgetLine,
    budget_id=st.builds(new_id),
    scope=st.sampled_from(["tenant", "agent", "tool", "grant"]),
    label=st.text(max_size=20),
    dimension=st.sampled_from([str(each) for each in Dimension]),
    amount=AMOUNT,
    window_s=st.sampled_from([0, 60, 86_400, 2_592_000]),
    number=st.integers(0, 400),
    used=AMOUNT,
    reserved=AMOUNT,
)
DEMAND = Demand(bytes_in=12)


@given(st.lists(LINES, max_size=6))
def test_budgets_are_read_as_they_were_written(lines: list[BudgetLine]) -> None:
    budgets = [line.to_json(DEMAND) for line in lines]

    packed = pack_budgets(budgets)

    assert isinstance(packed, str) == bool(budgets)
    assert read_stored_budgets(json.loads(json.dumps(packed))) == budgets


def test_a_budget_takes_a_hundred_bytes() -> None:
    line = BudgetLine(new_id(), "agent", "购物助手", "calls", 10**12, 86_400, 20_422, used=1216, reserved=2)

    assert len(str(pack_budgets([line.to_json(DEMAND)])).encode()) <= 110


@given(st.lists(st.one_of(LINES.map(lambda line: line.to_json(DEMAND)), st.just({"dimension": "calls"})), min_size=1))
def test_what_says_anything_else_stays_as_it_is(budgets: list[dict[str, Any]]) -> None:
    odd = [*budgets, budgets[0] | {"more": 1}]

    assert pack_budgets(odd) == odd
    assert read_stored_budgets(odd) == odd
