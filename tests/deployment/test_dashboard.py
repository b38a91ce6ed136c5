"""The dashboard: is the file that is shipped what the code makes, and is each figure taken as it is meant?"""

from __future__ import annotations

import json
import re

import pytest

from invocations.metrics.hub_gauges import GAUGES
from scripts import dashboard
from tests.support.promql import load_shipped_expressions, read_expression


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


def test_names_and_labels_are_read_out_of_an_expression() -> None:
    found = read_expression('sum by (le, a) (rate(x_bucket{b="c[.]d", e=~"f|g"}[5m])) / max(y) > 3 or absent(z)')

    assert found.metrics == frozenset({"x_bucket", "y", "z"})
    assert found.labels == frozenset({"le", "a", "b", "e"})
