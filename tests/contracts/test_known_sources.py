"""Known sources: is what the console offers of real servers and services what those have, and does each draft pass a hub's checks?"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

from bench.service_documents import DOCUMENTS, fetch_documents
from invocations.run.package_lists import list_package
from registry.dependencies import build_steps
from registry.imports.known_sources import KNOWN_SOURCES
from registry.imports.models import Import, ImportKind
from registry.imports.sources import (
    build_brought_source,
    build_choices,
    read_document_choices,
    read_package_source,
    read_reach,
)
from registry.versions.manifest_checks import validate_document
from tests.support.dependencies import SILENT
from tests.support.real_servers import find_registry_networks
from tests.support.sandboxes import docker_sandbox
from unitools.brought_operations import draft_operations
from unitools.brought_tools import draft_tools
from unitools.openapi.documents import read_document

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from invocations.sandbox.docker import DockerSandbox
    from registry.imports.known_sources import KnownSource

pytestmark = pytest.mark.long  # documents of npm, and some 30 packages of an index each
SERVICES = [each for each in KNOWN_SOURCES if each.kind == "openapi"]
SERVERS = [each for each in KNOWN_SOURCES if each.kind == "package"]


# What proves who is asking, however it is called; not what turns pages.
CREDENTIAL = re.compile(
    r"(?!(?:next_?|page_?|continuation_?|sync_?)+token$).*(?:token|secret|password|passwd|credential|authorization|bearer|cookie|"
    r"(?:api|access|auth|private|secret|app)[-_]?key)s?|client_?id",
    re.IGNORECASE,
)

# Of a meeting that is made: the people who are invited type it.
NO_CREDENTIALS = {"service.zoom.meetingcreate": {"password"}}


def list_credential_arguments(document: dict[str, Any]) -> list[str]:
    """Names of arguments, at any depth, that a model would write a credential into."""
    known = NO_CREDENTIALS.get(document["id"], set())
    found, waiting = [], [document["input_schema"]]
    while waiting:
        each = waiting.pop()
        if isinstance(each, dict):
            if isinstance(properties := each.get("properties"), dict):
                found += [name for name in properties if CREDENTIAL.fullmatch(name) and name not in known]
            waiting += each.values()
        elif isinstance(each, list):
            waiting += each
    return found


def list_errors(document: dict[str, Any]) -> list[str]:
    return [each.message for each in validate_document(document) if each.severity == "error"]


@pytest.fixture(scope="module")
def files() -> Iterator[dict[str, Path]]:
    names = {str(each.title) for each in SERVICES}
    with fetch_documents([each for each in DOCUMENTS if each.name in names]) as found:
        yield found


@pytest.mark.req("BRING-1")
@pytest.mark.parametrize("known", SERVICES, ids=lambda known: known.key)
def test_each_operation_of_a_known_service_is_in_its_document_and_drafted(
    files: dict[str, Path], known: KnownSource
) -> None:
    document = read_document(files[str(known.title)].read_bytes())
    choices = read_document_choices(servers=list(known.servers), secrets=list(known.secrets), idempotency_header="")

    found = draft_operations(
        document, document.select(known.wanted), known.group, build_choices({"choices": choices}, known.group)
    )

    assert found.refusals == []
    chosen = [
        each.document
        | {
            name: getattr(choice, name)
            for name in ("side_effect", "safety_class")
            if (choice := known.effects.get(each.document["origin"]["operation"]))
        }
        for each in found.drafts
    ]
    assert [list_errors(each) for each in chosen] == [[]] * len(known.wanted)
    assert known.effects.keys() <= set(known.wanted)
    secrets = {each.partition("=")[0] for each in known.secrets}
    assert {each["name"] for draft in found.drafts for each in draft.document.get("secrets", [])} == secrets
    asked = {each.document["id"]: list_credential_arguments(each.document) for each in found.drafts}
    assert {id: names for id, names in asked.items() if names} == {}


@pytest.mark.req("BRING-2")
@pytest.mark.parametrize("known", SERVERS, ids=lambda known: known.key)
def test_a_known_server_starts_in_a_box_and_lists_what_is_taken_of_it(
    known: KnownSource, tmp_path: Path, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    tmp_path.chmod(0o755)
    settings.TOOLHUB_DEPENDENCY_DIR = str(tmp_path / "deps")
    source = read_package_source(
        package=known.package,
        version=known.version,
        constraints=list(known.constraints),
        script=known.script,
        arguments=list(known.arguments),
        environment=list(known.environment),
        secrets=[],
        lock=known.read_lock(),
        reach=read_reach(keeps=known.keeps, programs=known.programs, trees=known.trees, browser=known.browser),
    )
    wanted = [] if known.read_lock() else [f"{known.package}=={known.version}"]
    lines = known.read_lock() or build_steps.resolve_requirements(wanted, talk=SILENT, constraints=known.constraints)
    settings.TOOLHUB_OUTBOUND_NETWORKS = find_registry_networks(settings.TOOLHUB_NPM_REGISTRY)
    folder, _ = build_steps.build_folder(lines, wanted, talk=SILENT)
    sandbox: DockerSandbox = docker_sandbox()
    monkeypatch.setattr("invocations.run.server_probe.current_sandbox", lambda: sandbox)
    try:
        found = list_package(source, folder, lambda: None)
    finally:
        sandbox.close()

    row = Import(kind=ImportKind.PACKAGE, group=known.group, source=source)
    row.source |= {"found": {"version": found.version, "start": found.start}}
    drafts = draft_tools(found.listing, build_brought_source(row, found.listing.protocol), list(known.wanted))

    assert found.version == known.version
    assert [list_errors(each.document) for each in drafts] == [[]] * len(known.wanted)
    assert [list_credential_arguments(each.document) for each in drafts] == [[]] * len(known.wanted)
    assert known.effects.keys() <= set(known.wanted)
