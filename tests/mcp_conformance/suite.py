"""The conformance suite: what does the official suite of MCP say about a server or a client, and what do we expect it to say?"""

from __future__ import annotations

import json
import re
import shlex
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import yaml

from scripts.provision import peers
from scripts.provision.processes import free_port

if TYPE_CHECKING:
    from collections.abc import Callable

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


def expected_failures(revision: str, role: str = "server") -> set[str]:
    """Scenarios, and ``scenario:check``, of the hub as a ``server`` or of our ``client``."""
    return set(yaml.safe_load(expected_of(revision).read_text()).get(role, ()))


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


def judge_authorization(issuer: str, program: dict[str, str], sign_in: Callable[[str], None], output: Path) -> Verdict:
    """Of an authorization server. ``program`` is what the suite is there, as its options; ``sign_in`` what a person does at the
    address that the suite says, and goes back to the suite.
    """
    words = ["authorization", "--url", issuer, *(f"--{name}={value}" for name, value in program.items())]
    words += ["--port", str(free_port()), "--output-dir", str(output)]
    said: list[str] = []
    with subprocess.Popen(
        _command(words), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, text=True
    ) as suite:
        assert suite.stdout is not None
        try:
            for line in suite.stdout:  # it ends when the suite does, which waits five minutes for an answer
                said.append(line)
                if line.startswith(issuer) and "response_type=code" in line:
                    sign_in(line.strip())
        finally:
            suite.kill()
    checks = _read_all(output, "authorization-server-")
    return Verdict(suite.returncode == 0, "".join(said)[-6000:], checks)


def judge_client(command: list[str], scenario: str, revision: str, output: Path) -> Verdict:
    """Of a client, which is told the suite's server as its last word."""
    words = ["client", "--command", shlex.join(command), "--scenario", scenario, "--spec-version", revision]
    done = _finish([*words, "--output-dir", str(output)])
    return Verdict(done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:], _read_all(output, ""))


def failures(checks: list[Check]) -> list[Check]:
    """What must and what should be is one to the suite when it is told what to expect."""
    return [check for check in checks if check.status in ("FAILURE", "WARNING")]


def _run(url: str, revision: str, output: Path, which: list[str]) -> Verdict:
    words = ["server", "--url", url, *which]
    words += ["--expected-failures", str(expected_of(revision)), "--output-dir", str(output)]
    done = _finish(words)
    return Verdict(done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:], _read_all(output, "server-"))


def _finish(words: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(_command(words), capture_output=True, text=True, timeout=PATIENCE_S, stdin=subprocess.DEVNULL)


def _command(words: list[str]) -> list[str]:
    program = peers.ensure_node_modules() / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"
    return [str(peers.find_node()), str(program), *words]


def _read_all(output: Path, prefix: str) -> list[Check]:
    return [check for file in sorted(output.glob(f"{prefix}*/checks.json")) for check in _read(file, prefix)]


def _read(file: Path, prefix: str) -> list[Check]:
    """The folder is ``<prefix><scenario>-<time>``."""
    scenario = TIME.sub("", file.parent.name.removeprefix(prefix))
    return [
        Check(scenario, each["id"], each["status"], each.get("errorMessage") or "")
        for each in json.loads(file.read_text())
    ]
