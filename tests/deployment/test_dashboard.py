"""The dashboard: is the file that is shipped what the code makes, and is each figure taken as it is meant?"""

from __future__ import annotations

import json
import re
import subprocess
from typing import TYPE_CHECKING

import pytest
import yaml

from invocations.metrics.hub_gauges import GAUGES
from scripts import dashboard
from scripts.provision import peers
from tests.support.promql import load_shipped_expressions, read_expression

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.req("OPS-3")
def test_the_file_is_what_the_code_makes() -> None:
    assert dashboard.FILE.read_text() == dashboard.render_dashboard(), "type: python -m scripts.dashboard"


@pytest.mark.req("OPS-3")
def test_it_has_ten_panels_that_say_what_they_show() -> None:
    panels = json.loads(dashboard.FILE.read_text())["panels"]

    assert len(panels) == 10
    assert all(panel["title"] and panel["description"] and panel["targets"] for panel in panels)
    assert {panel["datasource"]["uid"] for panel in panels} == {"${datasource}"}, "whichever Prometheus Grafana has"


@pytest.mark.req("OPS-3")
def test_what_is_the_same_from_each_process_is_never_summed() -> None:
    of_the_hub = {name.replace(".", "_") for name in GAUGES}
    for expression in load_shipped_expressions():
        for metric in expression.metrics:
            if metric.removesuffix("_seconds") in of_the_hub:
                around = re.findall(rf"(\w+)\s*(?:by \([^)]*\)\s*)?\({metric}\b", expression.text)
                assert set(around) <= {"max", "min", "absent"}, expression.text


@pytest.mark.req("OPS-3")
def test_prometheus_itself_reads_every_expression_that_is_shipped(tmp_path: Path) -> None:
    """As recording rules, which is how its tool takes expressions. Grafana puts a time in the place of its variable."""
    rules = [
        {"record": f"shipped:expression:{at}", "expr": expression.text.replace("$__rate_interval", "5m")}
        for at, expression in enumerate(load_shipped_expressions())
    ]
    file = tmp_path / "rules.yml"

    def check(*more: dict[str, str]) -> subprocess.CompletedProcess[str]:
        file.write_text(yaml.safe_dump({"groups": [{"name": "shipped", "rules": [*rules, *more]}]}))
        words: list[str | Path] = [peers.ensure_promtool(), "check", "rules", file]
        return subprocess.run(words, capture_output=True, text=True, check=False, timeout=120)

    assert len(rules) > 40
    said = check()
    assert said.returncode == 0, said.stdout + said.stderr
    assert check({"record": "wrong", "expr": "sum by (le (x)"}).returncode != 0


def test_names_and_labels_are_read_out_of_an_expression() -> None:
    found = read_expression('sum by (le, a) (rate(x_bucket{b="c[.]d", e=~"f|g"}[5m])) / max(y) > 3 or absent(z)')

    assert found.metrics == frozenset({"x_bucket", "y", "z"})
    assert found.labels == frozenset({"le", "a", "b", "e"})
