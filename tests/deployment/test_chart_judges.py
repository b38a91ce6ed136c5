"""Judges of the chart: do Helm, the schemas of Kubernetes and a checker of policies take what it renders?"""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from scripts.provision import peers
from tests.support.rendered_chart import EXAMPLES, ROLES, helm, render

if TYPE_CHECKING:
    from pathlib import Path

VERSIONS = ("1.28", "1.33", "1.37")
# Of operators that a cluster may have; nobody but they themselves publishes their schemas.
OF_OPERATORS = {"PodMonitor", "PrometheusRule", "ScaledObject"}
VALIDATE = """
import sys, yaml, kubernetes_validate as judge
for path in sys.argv[2:]:
    for each in yaml.safe_load_all(open(path)):
        if each and each["kind"] not in {OF_OPERATORS}:
            for version in sys.argv[1].split(","):
                try:
                    judge.validate(each, version, strict=True)
                except Exception as error:
                    print(path, version, each["kind"], each["metadata"]["name"], str(error)[:400])
""".replace("{OF_OPERATORS}", repr(OF_OPERATORS))


def judged(judge: Path, *files: Path) -> str:
    words: list[str | Path] = [judge, "-c", VALIDATE, ",".join(VERSIONS), *files]
    done = subprocess.run(words, capture_output=True, text=True, check=True, timeout=240)
    return done.stdout


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The manifests of each example, as a file."""
    folder = tmp_path_factory.mktemp("manifests")
    found = []
    for example in EXAMPLES:
        path = folder / example.name
        path.write_text(render(example.stem))
        found.append(path)
    return found


def test_helm_finds_nothing_to_complain_of() -> None:
    done = helm("lint", ".", "--strict", *(f"--values={path}" for path in EXAMPLES[:1]))

    assert done.returncode == 0, done.stdout + done.stderr


def test_the_schemas_of_three_versions_of_kubernetes_take_all_of_it(written: list[Path], tmp_path: Path) -> None:
    judge = peers.ensure_python("schemas")
    broken = tmp_path / "broken.yaml"
    broken.write_text(render("minimal").replace("replicas: 2", "replicaz: 2", 1))

    said = judged(judge, *written)
    assert said == ""
    assert "replicaz" in judged(judge, broken), "and they would say so"


# Checks of checkov that are not met: why, and for which components.
SKIPPED: dict[str, tuple[str, set[str]]] = {
    "CKV_K8S_21": ("the namespace is the release's, which Helm sets and a manifest does not say", set()),
    "CKV_K8S_35": ("the hub reads addresses and keys from its environment; the signing key is a file", set(ROLES)),
    "CKV_K8S_43": ("an example names a tag; `image.digest` is there", set(ROLES)),
    "CKV_K8S_15": (
        "IfNotPresent lets a node start a pod while the registry is away; with a digest it is the same",
        set(ROLES),
    ),
    "CKV_K8S_27": ("the daemon of a sandbox host holds its node's engine, on nodes of their own", {"boxd"}),
}


@pytest.mark.long  # what it judges takes seconds; its 120 packages a minute
def test_a_checker_of_policies_finds_nothing_but_what_is_written_here(written: list[Path]) -> None:
    program = peers.ensure_python("checkov").with_name("checkov")
    words: list[str | Path] = [
        program,
        "--framework",
        "kubernetes",
        "--compact",
        "--quiet",
        "-o",
        "json",
        "--file",
        *written,
    ]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=300)
    report: Any = json.loads(done.stdout)
    failed = [(each["check_id"], each["resource"]) for each in report["results"]["failed_checks"]]

    assert report["summary"]["passed"] > 1000
    assert {check for check, _ in failed} == SKIPPED.keys(), "each that is written is still needed, and no other"
    for check, resource in failed:
        _, components = SKIPPED[check]
        of = resource.partition("toolhub-")[2].partition("-")[0]
        assert not components or of in components, (check, resource)
