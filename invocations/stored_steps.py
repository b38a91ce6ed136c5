"""Stored steps: how the steps of a call are written in its row in few bytes.

In memory a step is a dict (:mod:`invocations.step_log`). Stored, all of a call are one text: of each step a list of what it is, how
many microseconds after the beginning of the one before it began, how long it took, and, where there is anything to say, its note and
its status. As text because PostgreSQL keeps numbers within JSON in three times the bytes. Rows of before have the dicts.
"""

from __future__ import annotations

import json
from typing import Any

from django.db import models

from invocations.step_log import PASSED

# What a step is, by its number: names are added at the end, and none is ever taken away or moved, since rows refer to them.
KNOWN = (
    ("preflight.tool", "control"),
    ("preflight.input_schema", "control"),
    ("preflight.grant", "control"),
    ("preflight.quota", "control"),
    ("preflight.consent", "control"),
    ("preflight.profile", "control"),
    ("preflight.sandbox_guard", "control"),
    ("consent.wait", "person"),
    ("queue.wait", "control"),
    ("worker.recheck", "control"),
    ("sandbox.prepare", "control"),
    ("sandbox.execute", "tool"),
    ("sandbox.wait", "tool"),
    ("sandbox.load", "tool"),
    ("sandbox.run", "tool"),
    ("sandbox.collect", "tool"),
    ("output.validate", "control"),
    ("output.repair", "control"),
    ("output.obligations", "control"),
    ("artifacts.describe", "control"),
    ("model.ask", "tool"),
)
_NUMBERS = {each: number for number, each in enumerate(KNOWN)}


def pack_steps(steps: list[dict[str, Any]]) -> str:
    rows, before = [], 0
    for step in steps:
        what = (step["name"], step["kind"])
        begin, end = round(step["begin_ms"] * 1000), round(step["end_ms"] * 1000)
        row: list[Any] = [_NUMBERS.get(what, what), begin - before, end - begin]
        if step["status"] != PASSED:
            row += [step["note"], step["status"]]
        elif step["note"]:
            row.append(step["note"])
        rows.append(row)
        before = begin
    return json.dumps(rows, separators=(",", ":"))


def unpack_steps(packed: str) -> list[dict[str, Any]]:
    steps, begin = [], 0
    for what, after, took, *said in json.loads(packed):
        name, kind = KNOWN[what] if isinstance(what, int) else what
        begin += after
        steps.append(
            {
                "name": name,
                "kind": kind,
                "begin_ms": begin / 1000,
                "end_ms": (begin + took) / 1000,
                "status": said[1] if len(said) > 1 else PASSED,
                "note": said[0] if said else "",
            }
        )
    return steps


def read_stored_steps(stored: str | list[dict[str, Any]]) -> list[dict[str, Any]]:
    """``stored``: what the JSON of the column says."""
    return unpack_steps(stored) if isinstance(stored, str) else stored


class StepsField(models.JSONField):
    """A list of steps, packed; the column is one of JSON, which also holds what was stored before they were."""

    def get_prep_value(self, value: Any) -> Any:
        return pack_steps(value) if isinstance(value, list) else value

    def from_db_value(self, value: Any, expression: Any, connection: Any) -> Any:
        return read_stored_steps(super().from_db_value(value, expression, connection))
