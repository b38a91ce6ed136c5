"""Tables: the data that an answer rests on, in which version, and what of it is in force on a given day."""

from __future__ import annotations

import csv
import json
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from unitools import runtime

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

PRICE_LIST = "price_list.json"
STOCK = "stock.json"
EXCHANGE_RATES = "exchange_rates.json"
COUPONS = "coupons.json"
CARRIERS = "carriers.json"
ADDRESSES = "addresses.json"
TAX_RULES = "duty_tax_rules.json"
COMPLIANCE_RULES = "compliance_rules.json"
ARTICLES = "articles.json"


@cache
def read(name: str) -> dict[str, Any]:
    """The parsed JSON document ``data/<name>``. Treat it as read-only: it is shared by all calls of this process."""
    text = (files("commerce") / "data" / name).read_text(encoding="utf-8")
    document: dict[str, Any] = json.loads(text)
    return document


@cache
def read_rows(name: str) -> tuple[dict[str, str], ...]:
    """The rows of ``data/<name>``, a CSV file with a header line."""
    text = (files("commerce") / "data" / name).read_text(encoding="utf-8")
    return tuple(csv.DictReader(text.splitlines()))


def version(name: str) -> str:
    return str(read(name)["version"])


def cite(source_type: str, *names: str) -> None:
    """Put the tables' names and versions into the evidence of the current call."""
    for name in names:
        table = read(name)
        runtime.used_source(source_type, name=str(table["name"]), version=str(table["version"]))


def is_in_force(rule: Mapping[str, Any], at: datetime) -> bool:
    """Whether ``at`` lies in the rule's ``effective_from`` .. ``effective_to`` (whole UTC days, both included)."""
    day = at.astimezone(UTC).date().isoformat()
    return bool(rule.get("effective_from", "") <= day <= rule.get("effective_to", "9999-12-31"))


def in_force(rules: Iterable[dict[str, Any]], at: datetime) -> list[dict[str, Any]]:
    return [rule for rule in rules if is_in_force(rule, at)]


def timestamp(at: datetime) -> str:
    """RFC 3339 in UTC with seconds, for example ``2026-11-20T10:00:00Z``."""
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
