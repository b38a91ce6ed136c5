"""Servers of PyPI: are servers that others have written brought as they are, and do those that cannot run say why?"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import pytest

from invocations.decide.profiles import give_kept_files
from invocations.run.server_probe import describe_failure
from invocations.sandbox.base import BoxKey, Limits, Profile, RunStatus, TenantFile
from registry.dependencies import build_steps
from registry.versions.manifest_checks import validate_document
from tests.support.dependencies import SILENT
from tests.support.sandboxes import call_of
from unitools.brought_tools import ServerReach, Source, derive_group, draft_tools
from unitools.manifest import Manifest
from unitools.mcp_listings import Listing
from unitools.packages import check_code, zip_files

if TYPE_CHECKING:
    from pathlib import Path

    from invocations.sandbox.base import RunOutcome
    from invocations.sandbox.docker import DockerSandbox

pytestmark = pytest.mark.long  # each installs some 30 packages of an index
ROOMY = Limits(wall_ms=20_000, result_bytes=1 << 20, result_depth=64)


@dataclass(frozen=True)
class Served:
    """A package with one of its tools, what that is called with, and a piece of what comes of it."""

    package: str
    tool: str
    given: dict[str, Any]
    answer: str
    constraints: tuple[str, ...] = ()
    arguments: list[str] = field(default_factory=list)
    status: RunStatus = RunStatus.OK


SERVED = (
    Served("mcp-server-time==2026.10.19", "get_current_time", {"timezone": "Europe/Berlin"}, "Europe/Berlin"),
    Served("mcp-server-calculator==0.2.1", "calculate", {"expression": "2 + 3"}, "5"),
    Served(
        "mcp-server-sqlite==2025.4.25",
        "read_query",
        {"query": "SELECT 6 * 7 AS answer"},
        "42",
        constraints=("mcp<2",),
        arguments=["--db-path", ":memory:"],
    ),
    # Without a host in its manifest it reaches nothing, and says so itself.
    Served("mcp-server-fetch==2026.10.24", "fetch", {"url": "https://example.org/"}, "", status=RunStatus.DOMAIN_ERROR),
)


@pytest.fixture
def folders(tmp_path: Path, settings: Any) -> Path:
    tmp_path.chmod(0o755)
    settings.TOOLHUB_DEPENDENCY_DIR = str(tmp_path / "deps")
    return tmp_path


def build(package: str, constraints: tuple[str, ...] = ()) -> Path:
    lines = build_steps.resolve_requirements([package], talk=SILENT, constraints=constraints)
    return build_steps.build_folder(lines, [package], talk=SILENT)[0]


def run(
    sandbox: DockerSandbox,
    folder: Path,
    start: dict[str, Any],
    asks: dict[str, Any],
    *,
    level: str,
    pinned: bytes = b"{}",
    files: tuple[TenantFile, ...] = (),
    keeps: bool = False,
    **given: Any,
) -> RunOutcome:
    call = replace(
        call_of(zip_files([("pinned/listing.json", pinned)]), **given),
        dependencies=folder,
        key=BoxKey("tenant", json.dumps(start), dependencies=folder.name),
        server=start | {"package": start["script"]},  # these programs are called as their packages
        asks=asks,
        files=files,
    )
    return sandbox.run(give_kept_files(Profile(ROOMY, isolation=level), (20, 4 << 20) if keeps else None), call)


@pytest.mark.req("BRING-2")
@pytest.mark.parametrize("served", SERVED, ids=lambda served: served.package)
def test_a_server_is_listed_drafted_and_called_as_its_author_left_it(
    sandbox: DockerSandbox, folders: Path, served: Served
) -> None:
    name, _, version = served.package.partition("==")
    folder = build(served.package, served.constraints)
    start: dict[str, Any] = {"script": name, "arguments": served.arguments}

    listed = [run(sandbox, folder, start, {}, level="single") for _ in range(2)]
    listing = Listing.from_json(listed[0].value)
    draft = draft_tools(listing, Source(name, version, derive_group(name), start), [served.tool])[0].document
    manifest = Manifest(draft)
    outcomes = [
        run(sandbox, folder, start, manifest.server_request, level=level, pinned=listing.to_bytes(), **served.given)
        for level in ("fresh", "shared")
    ]

    assert Listing.from_json(listed[1].value).digest == listing.digest
    assert [each.message for each in validate_document(draft) if each.severity == "error"] == []
    check_code(manifest, {f"{manifest.package}/listing.json": listing.to_bytes()})
    for outcome in outcomes:
        assert (outcome.status, outcome.clean) == (served.status, True), outcome
        assert served.answer in json.dumps(outcome.value)


@dataclass(frozen=True)
class Keeping:
    """A package whose calls leave files for the next, how it is started, and calls of which the last finds what the others left."""

    package: str
    calls: tuple[tuple[str, dict[str, Any]], ...]
    arguments: tuple[str, ...]
    constraints: tuple[str, ...] = ()


BOOK = {"path": "/data/book.xlsx", "sheet": "Sheet1"}
KEEPING = (
    Keeping(
        "mcp-server-sqlite==2025.4.25",
        (
            ("create_table", {"query": "CREATE TABLE notes (word TEXT)"}),
            ("write_query", {"query": "INSERT INTO notes VALUES ('was kept')"}),
            ("read_query", {"query": "SELECT word FROM notes"}),
        ),
        ("--db-path", "/data/notes.db"),
        ("mcp<2",),
    ),
    Keeping(
        "excel-mcp-server==2.2.2",
        (
            ("create_workbook", {"path": "/data/book.xlsx"}),
            ("write_range", BOOK | {"at": "A1", "rows": [["was kept", 1]]}),
            ("read_range", BOOK),
        ),
        ("stdio", "--allow-dir", "/data"),
    ),
)


@pytest.mark.req("BRING-2")
@pytest.mark.parametrize("keeping", KEEPING, ids=lambda keeping: keeping.package)
def test_a_server_finds_the_files_that_its_earlier_calls_left(
    sandbox: DockerSandbox, folders: Path, keeping: Keeping
) -> None:
    name, _, version = keeping.package.partition("==")
    folder = build(keeping.package, keeping.constraints)
    start: dict[str, Any] = {"script": name, "arguments": list(keeping.arguments)}
    listed = run(sandbox, folder, start, {}, level="single", keeps=True)
    listing = Listing.from_json(listed.value)
    source = Source(name, version, derive_group(name), start, reach=ServerReach(keeps="tenant"))

    kept: dict[str, TenantFile] = {}
    for tool, given in keeping.calls:
        draft = draft_tools(listing, source, [tool])[0].document
        assert [each.message for each in validate_document(draft) if each.severity == "error"] == []
        files = tuple(kept.values())
        asks = Manifest(draft).server_request
        outcome = run(sandbox, folder, start, asks, level="fresh", files=files, keeps=True, **given)
        assert (outcome.status, outcome.skipped) == (RunStatus.OK, ()), outcome
        kept |= {each.path: each for each in outcome.files}

    assert "was kept" in json.dumps(outcome.value)


@pytest.mark.req("BRING-2")
@pytest.mark.parametrize(
    ("package", "arguments", "remedy"),
    [
        ("mcp-server-git==2026.10.19", [], "needs the program git"),
        ("mcp-server-sqlite==2025.4.25", ["--db-path", ":memory:"], "mcp<2"),
    ],
)
def test_a_server_that_cannot_run_names_the_remedy(
    sandbox: DockerSandbox, folders: Path, package: str, arguments: list[str], remedy: str
) -> None:
    start: dict[str, Any] = {"script": package.partition("==")[0], "arguments": arguments}

    failure = describe_failure(run(sandbox, build(package), start, {}, level="single"))

    assert failure.code == "server_unstartable"
    assert remedy in failure.remedy, failure
