"""Real servers in a hub: are those that the design record names brought as they are, called, denied, timed out and cancelled?

Each comes from its registry by the way that the console takes: locked, started in a box, drafted, submitted, tried, reviewed, enabled.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from access.consents import services as consents
from evidence.models import Fact
from invocations.files import services as files
from invocations.models import Invocation, State
from invocations.run import cancellation, server_probe
from invocations.run.package_lists import list_package
from invocations.sandbox.egress import EgressGate
from invocations.sandbox.pool.slots import PoolCaps
from registry.dependencies.builder import Builder
from registry.imports import services as imports
from registry.imports import submissions
from registry.imports.lister import ImportLister
from registry.imports.models import Import, ImportState
from registry.models import Decision
from registry.reviews import services as reviews
from registry.tools import lifecycle
from tests.egress.world import PUBLIC, Authority, Names
from tests.support.calls import PAIR, assert_problem, kinds_of, row_of, run_calls_here, run_calls_in
from tests.support.dependencies import facts_of
from tests.support.policies_in_force import BUILTIN_LIMITS, ceiling, permit, put_in_force
from tests.support.real_servers import (
    HOST,
    SERVERS,
    RealServer,
    StandIn,
    SteeredSandbox,
    find_registry_networks,
    list_repository_files,
    write_lock,
)
from tests.support.sandboxes import docker_sandbox

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from registry.models import ToolVersion
    from tests.conftest import Caller, Person

pytestmark = pytest.mark.django_db
AT_ONCE = (
    "time",
    "everything",
    "git",
)  # one of each image, in each run of the tests; the others take longer than CI should
TIME_S = 3600


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[StandIn, SteeredSandbox]]:
    """A host that stands in for those of the servers, and boxes that may reach it as if it were a public one."""
    authority, names = Authority(tmp_path_factory.mktemp("authority")), Names()
    names.say(HOST, [PUBLIC])
    stand_in = StandIn(authority.server_context(HOST))
    gate = EgressGate([f"{PUBLIC}/32"], ca_file=authority.roots, resolve=names)
    boxes = docker_sandbox(gate=gate, caps=PoolCaps(load_s=600))  # an import on a host that is loaded takes long, too
    yield stand_in, SteeredSandbox(boxes)
    boxes.close()
    stand_in.close()


@pytest.fixture
def boxes(
    world: tuple[StandIn, SteeredSandbox], monkeypatch: pytest.MonkeyPatch, settings: Any, tmp_path: Path
) -> SteeredSandbox:
    tmp_path.chmod(0o755)  # tools are nobody
    settings.TOOLHUB_DEPENDENCY_DIR = str(tmp_path / "deps")
    settings.TOOLHUB_OUTBOUND_NETWORKS = find_registry_networks(settings.TOOLHUB_NPM_REGISTRY)
    run_calls_in(world[1], monkeypatch, server_probe)
    run_calls_here(monkeypatch, settings)
    settings.TOOLHUB_LEASE_S = TIME_S  # a call of a host that is loaded takes longer than a heartbeat
    return world[1]


def put_host(said: Any, host: str) -> Any:
    return json.loads(json.dumps(said).replace("{host}", host))


def bring(server: RealServer, host: str, place: Path, *, by: Person) -> ToolVersion:
    """From its registry to a version that was tried."""
    row = imports.import_package(
        package=server.package,
        version=server.version,
        lock=write_lock(server, place),
        hosts=[HOST] if server.asks else [],
        wanted=[server.tool],
        by=by.by,
        **put_host(server.start, host),
    )
    build_all()
    row = Import.objects.get(pk=row.pk)
    assert row.state == ImportState.READ, row.failure
    [draft] = row.drafts
    if server.asks:  # a public one would be asked at 443, as the draft says
        document = draft["document"]
        document["capabilities"]["net"] = [{"host": HOST, "port": int(host.rpartition(":")[2])}]
        imports.edit_draft(import_id=row.pk, tool=draft["id"], document=document, reason="", by=by.by)
    [version] = submissions.submit_import(import_id=row.pk, by=by.by)
    build_all()
    return version


def build_all() -> None:
    builder = Builder(probe=server_probe.probe_server, errand=ImportLister(list_package))
    while builder.pass_once():
        pass


def enable(version: ToolVersion, *, by: Person) -> None:
    reviews.review_version(version_id=version.pk, decision=Decision.APPROVE, note="", by=by.by)
    lifecycle.enable_tool(name=version.tool.name, version_id=version.pk, reason="x", by=by.by)
    build_all()


def allow(version: ToolVersion, caller: Caller, grant: Any, *, by: Person) -> None:
    """A policy that lets it have what its manifest names, a grant, and where it needs one a consent."""
    reach = version.view.capabilities
    named = {name: reach[name] for name in ("net", "proc", "browser") if name in reach}
    narrow = {"tmp": 1 << 28, "fs": [{"path": "/data", "actions": ["create", "delete", "list", "read", "write"]}]}
    put_in_force(permit(), ceiling("box", narrow | named, **BUILTIN_LIMITS | {"memory_bytes": 1 << 30}))
    grant(tools="mcp.*")
    if version.view.needs_consent:
        asked = consents.request_consent(
            tool=version.tool.name, versions="^1", purpose="a test", validity_s=TIME_S, by=caller.by
        )
        consents.approve_consent(consent_id=asked.pk, reason="For a test.", by=by.by)


def outcome_of(answer: Any) -> str:
    """What the End of a call says."""
    return str(Fact.objects.get(invocation_id=row_of(answer).pk, kind="invocation.ended").outcome)


@pytest.mark.req("BRING-2")
@pytest.mark.parametrize(
    "server",
    [pytest.param(each, id=each.key, marks=() if each.key in AT_ONCE else pytest.mark.long) for each in SERVERS],
)
def test_a_server_is_brought_as_it_is_and_called_denied_timed_out_and_cancelled(
    server: RealServer,
    world: tuple[StandIn, SteeredSandbox],
    boxes: SteeredSandbox,
    caller: Caller,
    developer: Person,
    operator: Person,
    grant: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stand_in = world[0]
    host = f"{HOST}:{stand_in.port}"
    given, slow = put_host(server.given, host), put_host(server.slow or server.given, host)
    version = bring(server, host, tmp_path, by=developer)
    assert facts_of(version) == ["locked"], version
    enable(version, by=operator)
    tool = version.tool.name
    if server.repository:
        for path, content in list_repository_files(tmp_path).items():
            files.store_file(path=path, content=content, by=operator.by)

    denied = caller.invoke(tool, given)
    allow(version, caller, grant, by=operator)
    called = caller.invoke(tool, given)
    with monkeypatch.context() as steered:
        steered.setattr(boxes, "wall_ms", 1)
        late = caller.invoke(tool, slow)
    with monkeypatch.context() as steered:
        steered.setattr(boxes, "cancel", lambda: cancel_running(caller))
        steered.setattr(boxes, "is_at_work", stand_in.is_asked_to_hang if server.asks and server.slow else None)
        stand_in.is_asked_to_hang.clear()
        cancelled = caller.invoke(tool, slow)
    after = caller.invoke(tool, server.again or given)

    assert_problem(denied, 403, "AUTH.NO_GRANT")
    for answer in (called, after):
        assert answer.status_code == 200, answer.json()
        assert server.answer in json.dumps(answer.json()["data"]), answer.json()
    assert_problem(late, 504, "SANDBOX.TIMEOUT")
    assert_problem(cancelled, 409, "REQUEST.CANCELLED")
    assert [kinds_of(row_of(each)) for each in (called, late, after)] == [PAIR] * 3
    assert kinds_of(row_of(cancelled)) == [PAIR[0], "invocation.cancel_asked", PAIR[1]]
    assert [outcome_of(each) for each in (called, late, cancelled, after)] == [
        "succeeded",
        "timed_out",
        "cancelled",
        "succeeded",
    ]


def cancel_running(caller: Caller) -> None:
    """The caller's wish, as it is written down."""
    [row] = Invocation.objects.filter(state=State.RUNNING)
    assert cancellation.request_cancellation(invocation=row, by=caller.by)
