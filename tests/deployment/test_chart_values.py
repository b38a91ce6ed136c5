"""Values of the chart: which may be given, and which are refused?"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from kernel.variables import BOXD
from tests.support.rendered_chart import CHART, EXAMPLES, helm, read
from toolhub.variables import VARIABLES

if TYPE_CHECKING:
    from pathlib import Path

# No values of the chart, and why.
NOT_OFFERED = {
    "TOOLHUB_SANDBOX": "without walls is for tests",
    "TOOLHUB_DOCKER_URL": "the engine is the node's",
    "TOOLHUB_KEY_FILE": "master keys come from a Secret or a key service",
    "TOOLHUB_SECRET_KEY_FILE": "the same",
    "TOOLHUB_OWNER_PASSWORD_FILE": "the same",
}
CAN_BE_OTHER = {"TOOLHUB_KEYSTORE", "TOOLHUB_LOG_FORMAT"}  # defaults of the chart


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("settings.TOOLHUB_SECRET_KEY=x", "TOOLHUB_SECRET_KEY"),
        ("settings.TOOLHUB_LOG_LEVL=DEBUG", "TOOLHUB_LOG_LEVL"),
        ("settings.TOOLHUB_DIRECT=true", "/settings/TOOLHUB_DIRECT"),  # the hub reads 0 and 1
        ("publicUrl=hub.example.org", "/publicUrl"),
        ("sandboxHosts.image=", "/sandboxHosts/image"),
        ("workers.all=null", "/workers"),
        ("workerDefaults.workClasses={slow}", "/workerDefaults/workClasses"),
        ("workerDefaults.resources.limits=null", "/workerDefaults/resources"),
        ("keeper.replica=2", "replica"),
        ("keeper.signer=hsm", "/keeper/signer"),
        ("keeper.signer=token", "keeper.token"),
        ("keeper.signer=transit", "keeper.transit.url"),
        ("keeper.token=pkcs11:token=a?module-path=/x&pin-value=1234", "/keeper/token"),
        ("sandboxHosts.hosts.boxes-1=null", "/sandboxHosts/hosts"),
        ("sandboxHosts.hosts.Boxes={}", "/sandboxHosts/hosts"),
        ("sandboxHosts.hostDefaults.settings.TOOLHUB_BOXD_BIND=0.0.0.0:1", "TOOLHUB_BOXD_BIND"),
        ("sandboxHosts.workers={}", "/sandboxHosts/workers"),
        ("workerDefaults.autoscaling.kind=keda", "needs metrics.enabled"),
    ],
)
def test_values_that_cannot_be_meant_are_refused(given: str, said: str) -> None:
    done = helm("template", "toolhub", ".", "--values", CHART / "examples/minimal.yaml", "--set", given)

    assert done.returncode != 0
    assert said in done.stderr


def test_a_setting_may_be_given_unless_it_is_a_secret_or_the_chart_decides_it() -> None:
    definitions = json.loads((CHART / "values.schema.json").read_text())["definitions"]
    every = [each for path in EXAMPLES for each in read(path.stem).workloads]
    told = {name for path in EXAMPLES for name in list_given_settings(path)}
    decided = {name for each in every for name in each.environment} - told - CAN_BE_OTHER
    rows = [row for row in VARIABLES.rows.values() if not row.secret and not row.elsewhere]
    offered = {row.name for row in rows if row.roles != (BOXD,)}
    offered |= {row.name for row in VARIABLES.rows.values() if row.roles == ("OpenTelemetry",)}

    assert definitions["settings"]["propertyNames"]["enum"] == sorted(offered - decided - NOT_OFFERED.keys())
    of_boxes = {row.name for row in rows if BOXD in row.roles} - decided - NOT_OFFERED.keys()
    assert definitions["boxSettings"]["propertyNames"]["enum"] == sorted(of_boxes)


def list_given_settings(example: Path) -> list[str]:
    """The names that an example sets, wherever it does."""
    found: list[str] = []

    def walk(value: Any) -> None:
        if isinstance(value, dict):
            found.extend(value.get("settings", {}))
            for each in value.values():
                walk(each)

    walk(yaml.safe_load(example.read_text()))
    return found


def test_there_are_five_examples_and_the_page_names_each() -> None:
    page = (CHART.parents[1] / "docs/how-to/deploy-on-kubernetes.md").read_text()

    assert len(EXAMPLES) == 5
    assert [path.name for path in EXAMPLES if f"`{path.name}`" not in page] == []
    assert set(re.findall(r"`(\w+\.yaml)`", page)) >= {path.name for path in EXAMPLES}
