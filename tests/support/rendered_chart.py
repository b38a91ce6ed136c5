"""Rendered chart: what does Helm make of the chart and the values of an example?"""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from kernel.variables import BOXD, INIT, KEEPER, UPKEEP, WEB, WORKER
from scripts.provision import peers

CHART = Path(__file__).resolve().parents[2] / "packaging" / "chart"
EXAMPLES = sorted((CHART / "examples").glob("*.yaml"))
ROLES = {"web": WEB, "worker": WORKER, "upkeep": UPKEEP, "keeper": KEEPER, "boxd": BOXD, "init": INIT}
WITH_PODS = ("Deployment", "DaemonSet", "StatefulSet", "Job")


def helm(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [peers.ensure_helm(), *arguments], cwd=CHART, capture_output=True, text=True, check=False, timeout=60
    )


@cache
def render(example: str) -> str:
    """The manifests of one of the examples, in a release and a namespace of their own."""
    done = helm("template", "toolhub", ".", "--namespace", "hub", "--values", CHART / "examples" / f"{example}.yaml")
    assert done.returncode == 0, done.stderr
    return done.stdout


@dataclass(frozen=True, slots=True)
class Workload:
    """What makes pods of one component."""

    kind: str
    name: str
    component: str
    spec: dict[str, Any]  # of the workload
    labels: dict[str, str]  # of its pods

    @property
    def pod(self) -> dict[str, Any]:
        found: dict[str, Any] = self.spec["template"]["spec"]
        return found

    @property
    def container(self) -> dict[str, Any]:
        [found] = self.pod["containers"]
        return dict(found)

    @property
    def environment(self) -> dict[str, str | dict[str, Any]]:
        """The value of each variable, or where it comes from."""
        rows = self.container["env"]
        found = {row["name"]: row.get("value", row.get("valueFrom")) for row in rows}
        assert len(found) == len(rows), "a name stands twice"
        return found

    @property
    def secrets(self) -> set[tuple[str, str]]:
        """(Secret, key) that it is given, in its environment or as files."""
        by_environment = {
            (row["secretKeyRef"]["name"], row["secretKeyRef"]["key"])
            for row in self.environment.values()
            if isinstance(row, dict) and "secretKeyRef" in row
        }
        by_file = {
            (volume["secret"]["secretName"], item["key"])
            for volume in self.pod["volumes"]
            if "secret" in volume
            for item in volume["secret"]["items"]
        }
        return by_environment | by_file


@dataclass(frozen=True, slots=True)
class Rendered:
    """The objects that an example makes."""

    example: str
    objects: tuple[dict[str, Any], ...]

    def of(self, *kinds: str) -> list[dict[str, Any]]:
        return [each for each in self.objects if each["kind"] in kinds]

    @property
    def workloads(self) -> list[Workload]:
        return [
            Workload(
                each["kind"],
                each["metadata"]["name"],
                each["metadata"]["labels"]["app.kubernetes.io/component"],
                each["spec"],
                each["spec"]["template"]["metadata"]["labels"],
            )
            for each in self.of(*WITH_PODS)
        ]

    def component(self, name: str) -> list[Workload]:
        return [each for each in self.workloads if each.component == name]


def read(example: str) -> Rendered:
    return Rendered(example, tuple(each for each in yaml.safe_load_all(render(example)) if each))
