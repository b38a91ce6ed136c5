"""Servers of npm: are servers that others have written brought as they are, and called ready before their call?"""

from __future__ import annotations

import json
import socket
import subprocess
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest

from invocations.sandbox.base import Limits, RunStatus, TenantFile
from registry.dependencies import build_steps
from registry.versions.manifest_checks import validate_document
from tests.support.dependencies import SILENT
from tests.support.npm_packages import ask_server
from unitools.brought_npm import NpmSource, derive_npm_group
from unitools.brought_tools import ServerReach, draft_tools
from unitools.manifest import Manifest
from unitools.mcp_listings import Listing
from unitools.npm_locks import read_package_lock
from unitools.packages import check_code

if TYPE_CHECKING:
    from pathlib import Path

    from invocations.sandbox.docker import DockerSandbox

ROOMY = Limits(wall_ms=20_000, result_bytes=1 << 20, result_depth=64)
MODEL_CONTEXT = "@modelcontextprotocol"


@dataclass(frozen=True)
class Served:
    """A package with one of its tools, what that is called with, and a piece of what comes of it."""

    package: str
    tool: str
    given: dict[str, Any]
    answer: str
    version: str = "2026.8.31"
    script: str = ""
    arguments: list[str] = field(default_factory=list)
    status: RunStatus = RunStatus.OK

    @property
    def program(self) -> str:
        return self.script or f"mcp-{self.package.rpartition('/')[2]}"


EVERYTHING = Served(f"{MODEL_CONTEXT}/server-everything", "echo", {"message": "well"}, "Echo: well")
SERVED = (
    Served(f"{MODEL_CONTEXT}/server-filesystem", "list_allowed_directories", {}, "/w", arguments=["/w"]),
    # Where it keeps no files its graph is empty each time.
    Served(f"{MODEL_CONTEXT}/server-memory", "read_graph", {}, "entities"),
    Served(
        f"{MODEL_CONTEXT}/server-sequential-thinking",
        "sequentialthinking",
        {"thought": "a", "nextThoughtNeeded": False, "thoughtNumber": 1, "totalThoughts": 1},
        "thoughtNumber",
    ),
)


MEMORY = Served(f"{MODEL_CONTEXT}/server-memory", "read_graph", {}, "was kept")
FOUND = [{"name": "A note", "entityType": "note", "observations": ["was kept"]}]


@pytest.fixture
def place(tmp_path: Path, settings: Any) -> Path:
    tmp_path.chmod(0o755)
    settings.TOOLHUB_DEPENDENCY_DIR = str(tmp_path / "deps")
    host = urlsplit(settings.TOOLHUB_NPM_REGISTRY).hostname
    found = socket.getaddrinfo(host, 443, family=socket.AF_INET)  # a mirror of this network is one, too
    settings.TOOLHUB_OUTBOUND_NETWORKS = sorted({f"{each[4][0]}/32" for each in found})
    return tmp_path


def lock_of(served: Served, place: Path) -> list[str]:
    """As the author's npm writes it."""
    (place / "package.json").write_text(json.dumps({"private": True, "dependencies": {served.package: served.version}}))
    options = ["--package-lock-only", "--ignore-scripts", "--no-audit", "--no-fund"]
    subprocess.run(["npm", "install", *options], cwd=place, check=True, capture_output=True)
    return read_package_lock((place / "package-lock.json").read_text())


def check_served(sandbox: DockerSandbox, place: Path, served: Served) -> None:
    lock = lock_of(served, place)
    folder, _ = build_steps.build_folder(lock, (), talk=SILENT)
    start = {"script": served.program, "arguments": served.arguments}
    told = start | {"package": f"npm:{served.package}"}

    listed = [ask_server(sandbox, folder, "", limits=ROOMY, start=told) for _ in range(2)]
    listing = Listing.from_json(listed[0].value)
    source = NpmSource(served.package, served.version, derive_npm_group(served.package), start, tuple(lock))
    draft = draft_tools(listing, source, [served.tool])[0].document
    manifest = Manifest(draft)
    asks = manifest.server_request
    outcomes = [
        ask_server(
            sandbox, folder, served.tool, structured=asks["structured"], limits=ROOMY, start=told, **served.given
        )
        for _ in range(2)
    ]

    assert Listing.from_json(listed[1].value).digest == listing.digest
    assert [each.message for each in validate_document(draft) if each.severity == "error"] == []
    check_code(manifest, {f"{manifest.package}/listing.json": listing.to_bytes()})
    for outcome in outcomes:
        assert (outcome.status, outcome.clean, outcome.level) == (served.status, True, "single"), outcome
        assert served.answer in json.dumps(outcome.value)


@pytest.mark.req("BRING-2")
def test_the_server_of_everything_is_brought_and_called_as_its_author_left_it(
    sandbox: DockerSandbox, place: Path
) -> None:
    check_served(sandbox, place, EVERYTHING)


@pytest.mark.long
@pytest.mark.req("BRING-2")
@pytest.mark.parametrize("served", SERVED, ids=lambda served: served.package)
def test_a_server_is_listed_drafted_and_called_as_its_author_left_it(
    sandbox: DockerSandbox, place: Path, served: Served
) -> None:
    check_served(sandbox, place, served)


@pytest.mark.req("BRING-2")
def test_the_server_of_a_memory_finds_what_its_earlier_calls_left(sandbox: DockerSandbox, place: Path) -> None:
    lock = lock_of(MEMORY, place)
    folder, _ = build_steps.build_folder(lock, (), talk=SILENT)
    graph = {"name": "MEMORY_FILE_PATH", "value": "/data/memory.jsonl"}
    start: dict[str, Any] = {"script": MEMORY.program, "environment": [graph]}
    told = start | {"package": f"npm:{MEMORY.package}"}
    listing = Listing.from_json(ask_server(sandbox, folder, "", limits=ROOMY, start=told, keeps=True).value)
    group = derive_npm_group(MEMORY.package)
    source = NpmSource(MEMORY.package, MEMORY.version, group, start, tuple(lock), reach=ServerReach(keeps="tenant"))

    kept: dict[str, TenantFile] = {}
    for tool, given in (("create_entities", {"entities": FOUND}), (MEMORY.tool, MEMORY.given)):
        draft = draft_tools(listing, source, [tool])[0].document
        assert [each.message for each in validate_document(draft) if each.severity == "error"] == []
        assert draft["state"] == {"kind": "files", "scope": "tenant"}
        outcome = ask_server(
            sandbox,
            folder,
            tool,
            structured=Manifest(draft).server_request["structured"],
            limits=ROOMY,
            start=told,
            keeps=True,
            given={"files": tuple(kept.values())},
            **given,
        )
        assert (outcome.status, outcome.skipped, outcome.waited_ms) == (RunStatus.OK, (), None), outcome
        kept |= {each.path: each for each in outcome.files}

    assert MEMORY.answer in json.dumps(outcome.value)
    assert list(kept) == ["/data/memory.jsonl"]
