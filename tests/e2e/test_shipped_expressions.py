"""Shipped expressions: does a hub export each metric and label that the dashboard, the alerts and the page on watching calls name?"""

from __future__ import annotations

import urllib.request
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest
from prometheus_client.parser import text_string_to_metric_families

from scripts.provision.processes import free_port
from tests.e2e.processes import Process, python, run, until
from tests.e2e.production import Production, production_at
from tests.support.promql import OF_PROMETHEUS, load_shipped_expressions

if TYPE_CHECKING:
    from pathlib import Path

TOKEN = "for-the-scrape"
SINK = """
from django.contrib.auth import get_user_model
from access.middleware import principal_of_user
from access.models import Tenant
from evidence.sinks.services import make_sink
olivia = principal_of_user(get_user_model().objects.get(username="olivia"), Tenant.objects.get(slug="demo"))
make_sink(name="files", channel="file", from_beginning=True, by=olivia)
"""
# There when a provider of models fails, which nothing here asks.
ELSEWHERE = {"toolhub_models_circuits"}


def scrape(address: str) -> dict[str, set[str]]:
    """The labels of each series' name."""
    request = urllib.request.Request(f"http://{address}/metrics", headers={"Authorization": f"Bearer {TOKEN}"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        text = answer.read().decode()
    found: dict[str, set[str]] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            found.setdefault(sample.name, set()).update(sample.labels)
    return found


def use_all(hub: Production) -> None:
    """A call of each kind of end: with a value, refused, stopped by its time limit."""
    agent = hub.agent
    assert agent.invoke("sample.tools.echo", {"text": "x"}).status == 200
    assert agent.invoke("sample.tools.echo", {"text": 7}).status == 422
    assert agent.invoke("sample.tools.short_sleep", {"text": "x"}).reason == "SANDBOX.TIMEOUT"


@pytest.mark.req("OPS-3")
def test_a_hub_exports_every_metric_and_label_that_is_shipped_with_it(tmp_path: Path) -> None:
    binds = {name: f"127.0.0.1:{free_port()}" for name in ("worker", "upkeep", "keeper")}
    settings = {
        "TOOLHUB_METRICS_TOKEN": TOKEN,
        "TOOLHUB_METRICS_BIND": binds["worker"],
        "TOOLHUB_EVENTS_DIR": str(tmp_path / "events"),
        "TOOLHUB_ANCHOR_FILE": str(tmp_path / "anchor.jsonl"),
    }
    (tmp_path / "events").mkdir()
    with production_at(tmp_path, **settings) as hub, ExitStack() as beside:
        run(python("manage.py", "shell", "-v", "0", "-c", SINK), hub.env)
        for name, command in (("upkeep", "upkeep"), ("keeper", "keep")):
            env = hub.env | {"TOOLHUB_METRICS_BIND": binds[name]}
            process = Process(python("manage.py", command), env, tmp_path / f"{name}.log")
            beside.callback(process.stop)
        use_all(hub)
        until(lambda: (tmp_path / "anchor.jsonl").exists(), "a checkpoint was anchored")
        until(lambda: can_be_asked(binds["upkeep"]), "upkeep serves its metrics")
        by_process = {name: scrape(address) for name, address in (binds | {"web": hub.env["TOOLHUB_BIND"]}).items()}

    there: dict[str, set[str]] = {}
    for found in by_process.values():
        for name, labels in found.items():
            there.setdefault(name, set()).update(labels)
    for expression in load_shipped_expressions():
        metrics = expression.metrics - ELSEWHERE - {"up"}
        assert metrics <= there.keys(), expression.text
        if metrics:
            known = set().union(*(there[name] for name in metrics))
            assert expression.labels - OF_PROMETHEUS <= known, expression.text
    for found in by_process.values():
        assert {"toolhub_queue_length", "toolhub_queue_age_seconds", "db_client_connection_count"} <= found.keys()
    assert "toolhub_evidence_findings_total" in by_process["keeper"], "before there is a finding"


def can_be_asked(address: str) -> bool:
    try:
        return bool(scrape(address))
    except OSError:
        return False
