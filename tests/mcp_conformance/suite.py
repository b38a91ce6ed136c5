"""The conformance suite: what does the official conformance suite of MCP say about a server, and what do we expect it to say?"""

from __future__ import annotations

import json
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

import yaml

from scripts.provision import peers

PATIENCE_S = 240.0
TIME = re.compile(r"-20\d\d-\d\d-\d\dT[\d\-]+Z?$")
EXPECTED = Path(__file__).parent / "expected"


@dataclass(frozen=True, slots=True)
class Check:
    scenario: str
    id: str
    status: str  # SUCCESS, FAILURE, WARNING, SKIPPED, INFO
    message: str

    @property
    def name(self) -> str:
        return f"{self.scenario}:{self.id}"

    def __str__(self) -> str:
        return f"{self.name} {self.status} {self.message}"


@dataclass(frozen=True, slots=True)
class Verdict:
    """``accepted``: the suite's own, over the scenarios that the revision requires."""

    accepted: bool
    said: str
    checks: list[Check]


def expected_of(revision: str) -> Path:
    """The suite's own form of a file of expected failures."""
    return EXPECTED / f"{revision}.yml"


def expected_failures(revision: str) -> set[str]:
    """Scenarios, and ``scenario:check``."""
    return set(yaml.safe_load(expected_of(revision).read_text())["server"])


def judge(url: str, revision: str, output: Path) -> Verdict:
    """What surprises is asked once more by itself: the suite gives some calls half a second, which a busy machine may not have."""
    first = _run(url, revision, output / "all", ["--requirements", revision])
    expected = expected_failures(revision)
    again = sorted({check.scenario for check in failures(first.checks) if not expected & {check.scenario, check.name}})
    verdicts = [_run(url, revision, output / name, ["--scenario", name, "--spec-version", revision]) for name in again]
    checks = [check for check in first.checks if check.scenario not in again]
    checks += [check for verdict in verdicts for check in verdict.checks]
    judged = verdicts or [first]
    return Verdict(all(each.accepted for each in judged), "\n".join(each.said for each in judged), checks)


def failures(checks: list[Check]) -> list[Check]:
    """What must and what should be is one to the suite when it is told what to expect."""
    return [check for check in checks if check.status in ("FAILURE", "WARNING")]


def _run(url: str, revision: str, output: Path, which: list[str]) -> Verdict:
    program = peers.ensure_node_modules() / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"
    words = [str(peers.find_node()), str(program), "server", "--url", url, *which]
    words += ["--expected-failures", str(expected_of(revision)), "--output-dir", str(output)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE_S, stdin=subprocess.DEVNULL)
    checks = [check for file in sorted(output.glob("server-*/checks.json")) for check in _read(file)]
    return Verdict(done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:], checks)


def _read(file: Path) -> list[Check]:
    """The folder is ``server-<scenario>-<time>``."""
    scenario = TIME.sub("", file.parent.name.removeprefix("server-"))
    return [
        Check(scenario, each["id"], each["status"], each.get("errorMessage") or "")
        for each in json.loads(file.read_text())
    ]
