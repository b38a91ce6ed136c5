"""The page on metrics: does the page on watching calls name every metric that a process sends?"""

from __future__ import annotations

import re
from pathlib import Path

from kernel import names

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "watch-calls.md"
METRICS = {value for name, value in vars(names).items() if name.startswith("METRIC_")}


def metrics_of_the_page() -> set[str]:
    """In the first column of the table; ``.age`` beside a name is in the place of that one's last word."""
    section = PAGE.read_text().partition("\n## Metrics\n")[2].partition("\n## ")[0]
    found = set()
    for first in re.findall(r"^\| (`[^|]+) \|", section, re.MULTILINE):
        whole = ""
        for name in re.findall(r"`([^`]+)`", first):
            whole = whole.rpartition(".")[0] + name if name.startswith(".") else name
            found.add(whole)
    return found


def test_every_metric_stands_on_the_page_and_no_other() -> None:
    assert len(METRICS) > 30
    assert metrics_of_the_page() == METRICS
