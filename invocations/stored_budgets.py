"""Stored budgets: how those that a call counts against are written in its row in few bytes.

In memory a budget is a dict (:meth:`access.budgets.lines.BudgetLine.to_json`). Stored, all of a call are one text: of each a list of
what it says, without what follows from the rest. As text, since PostgreSQL keeps names and numbers within JSON in three times the
bytes. Rows of before have the dicts.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

from django.db import models

OF_RATES = ("budget", "scope", "of", "dimension", "limit", "window_s")
OF_OTHERS = (*OF_RATES, "used", "reserved", "takes")
FOLLOWING = {"remaining", "resets_at"}


def pack_budgets(budgets: list[dict[str, Any]]) -> str | list[dict[str, Any]]:
    """As they are, where one says anything else."""
    rows = [_list_values(each) for each in budgets]
    if not rows or any(row is None or _read_values(row) != each for row, each in zip(rows, budgets, strict=True)):
        return budgets
    return json.dumps(rows, separators=(",", ":"), ensure_ascii=False)


def _list_values(budget: dict[str, Any]) -> list[Any] | None:
    if budget.keys() == set(OF_RATES):
        return [budget[name] for name in OF_RATES]
    if budget.keys() == {*OF_OTHERS, *FOLLOWING}:
        ends = budget["resets_at"]
        return [*(budget[name] for name in OF_OTHERS), int(datetime.fromisoformat(ends).timestamp()) if ends else None]
    return None


def _read_values(values: list[Any]) -> dict[str, Any]:
    if len(values) == len(OF_RATES):
        return dict(zip(OF_RATES, values, strict=True))
    found, ends = dict(zip(OF_OTHERS, values[:-1], strict=True)), values[-1]
    return found | {
        "remaining": max(0, found["limit"] - found["used"] - found["reserved"]),
        "resets_at": datetime.fromtimestamp(ends, UTC).isoformat() if ends else None,
    }


def read_stored_budgets(stored: str | list[dict[str, Any]]) -> list[dict[str, Any]]:
    """``stored``: what the JSON of the column says."""
    return [_read_values(each) for each in json.loads(stored)] if isinstance(stored, str) else stored


class BudgetsField(models.JSONField):
    """A list of budgets, packed; the column is one of JSON, which also holds what was stored before they were."""

    def get_prep_value(self, value: Any) -> Any:
        return pack_budgets(value) if isinstance(value, list) else value

    def from_db_value(self, value: Any, expression: Any, connection: Any) -> Any:
        return read_stored_budgets(super().from_db_value(value, expression, connection))
