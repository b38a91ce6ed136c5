"""Expressions of PromQL: which metrics and labels do they name? No more is understood than ours need."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path

import yaml

SHIPPED = Path(__file__).resolve().parents[2] / "packaging" / "chart" / "observability"
PAGE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "watch-calls.md"
OF_PROMETHEUS = {"instance", "job"}  # labels that it adds by itself
WORDS = {
    *(
        "absent",
        "and",
        "by",
        "histogram_quantile",
        "increase",
        "max",
        "min",
        "min_over_time",
        "or",
        "rate",
        "sum",
        "topk",
    ),
}


@dataclass(frozen=True, slots=True)
class Expression:
    """``labels``: those that it selects or groups by."""

    text: str
    metrics: frozenset[str]
    labels: frozenset[str]


def read_expression(text: str) -> Expression:
    selected = re.findall(r"(\w+)\s*(?:=~|!~|!=|=)\s*\"", text)
    grouped = [name.strip() for names in re.findall(r"\bby\s*\(([^)]*)\)", text) for name in names.split(",")]
    bare = re.sub(r"\{[^}]*\}|\[[^\]]*\]|\bby\s*\([^)]*\)", " ", text)
    metrics = set(re.findall(r"\b[a-z_]\w*", bare)) - WORDS
    return Expression(text, frozenset(metrics), frozenset(selected + grouped))


def load_shipped_expressions() -> list[Expression]:
    """Of the dashboard, the alerts and the page on watching calls."""
    dashboard = json.loads((SHIPPED / "dashboard.json").read_text())
    [group] = yaml.safe_load((SHIPPED / "alerts.yml").read_text())["groups"]
    texts = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    texts += [rule["expr"] for rule in group["rules"]]
    section = PAGE.read_text().partition("| question | PromQL |")[2]
    texts += re.findall(r"^\| [^|]+ \| `([^`]+)` \|$", section, re.MULTILINE)
    return [read_expression(text) for text in texts]
