"""Gates, servers and names for the checks of the way out."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from invocations.files.services import store_file
from invocations.sandbox.base import BoxKey, Limits, Profile, RunOutcome
from invocations.sandbox.egress import EgressGate
from invocations.sandbox.egress.connection_handler import EgressCaps
from invocations.sandbox.remote.sandbox import RemoteSandbox
from registry.installations import services as installations
from registry.installations.services import Setup
from registry.models import Decision, ToolVersion
from registry.secrets import services as secrets
from registry.versions import services as registry
from tests.egress.recorded_boxes import RecordedBoxes
from tests.egress.services import Service, serving
from tests.egress.shop import NOTES, TOKEN, TOOL
from tests.egress.world import HOST, PUBLIC, Authority, Names, Origin, box_folder, opened, origin
from tests.support.calls import run_calls_here, run_calls_in
from tests.support.policies_in_force import permit, put_in_force
from tests.support.sandbox_hosts import TLS, open_host
from tests.support.sandboxes import call_of, docker_sandbox, package_of
from unitools.capabilities import Capabilities

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Iterator

    from invocations.models import StoredFile
    from invocations.sandbox.base import Sandbox
    from invocations.sandbox.docker import DockerSandbox
    from invocations.sandbox.egress import EgressDoor
    from tests.conftest import Caller, Person


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture
def trust(authority: Authority) -> ssl.SSLContext:
    return authority.client_context()


@pytest.fixture
def names() -> Names:
    found = Names()
    found.say(HOST, [PUBLIC])
    return found


@pytest.fixture
def gate(names: Names) -> Iterator[EgressGate]:
    gate = EgressGate([f"{PUBLIC}/32"], resolve=names)
    yield gate
    gate.close()


@pytest.fixture
def door(gate: EgressGate) -> Iterator[EgressDoor]:
    with opened(gate) as door:
        yield door


@pytest.fixture
def narrow(names: Names) -> Iterator[Callable[..., EgressDoor]]:
    """``narrow(head_s=0.1)``: a door of a gate with other caps."""
    gates = []
    with box_folder() as folder:

        def make(**caps: float) -> EgressDoor:
            gates.append(EgressGate([f"{PUBLIC}/32"], resolve=names, caps=EgressCaps(**caps)))  # type: ignore[arg-type]
            return gates[-1].open(folder)

        yield make
        for gate in gates:
            gate.close()


@pytest.fixture
def secure(authority: Authority) -> Iterator[Origin]:
    """A server for ``HOST`` and names below it, over TLS."""
    with origin(context=authority.server_context(HOST, "*.example.org")) as found:
        yield found


@pytest.fixture
def open_server() -> Iterator[Origin]:
    """A server that speaks plain http."""
    with origin() as found:
        yield found


# Real boxes.


@pytest.fixture(scope="module")
def named() -> Names:
    found = Names()
    found.say(HOST, [PUBLIC])
    found.say("inside.example.org", ["169.254.169.254"])
    return found


@pytest.fixture(scope="module")
def engine_boxes(named: Names, authority: Authority) -> Iterator[DockerSandbox]:
    """Whoever has the engine, and the gate."""
    gate = EgressGate([f"{PUBLIC}/32"], resolve=named, ca_file=authority.roots)
    boxes = docker_sandbox(gate=gate)
    yield boxes
    boxes.close()
    gate.close()


@pytest.fixture(scope="module", params=["here", pytest.param(TLS, marks=pytest.mark.long)])
def sandbox(engine_boxes: DockerSandbox, request: pytest.FixtureRequest) -> Iterator[Sandbox]:
    """Asked in this process, or as a worker asks a sandbox host."""
    if request.param == "here":
        yield engine_boxes
        return
    with open_host(request.param, engine_boxes) as host:
        remote = RemoteSandbox([host.connect()], load_s=60)
        yield remote
        remote.close()


@pytest.fixture
def run(
    sandbox: Sandbox, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Callable[..., RunOutcome]:
    """``run(source, capabilities, level, **arguments)``: calls of one test may share a box."""
    packages: dict[str, bytes] = {}

    def run(source: str, capabilities: dict[str, Any], level: str = "fresh", **arguments: Any) -> RunOutcome:
        if source not in packages:
            packages[source] = package_of(tmp_path_factory.mktemp("tool"), main=source)
        profile = Profile(Limits(wall_ms=20_000), Capabilities.from_json(capabilities), isolation=level)
        call = call_of(packages[source], **arguments)
        return sandbox.run(profile, replace(call, key=BoxKey("tenant", f"{request.node.name}/{hash(source)}")))

    return run


@pytest.fixture
def trusting(names: Names, authority: Authority) -> Iterator[EgressDoor]:
    gate = EgressGate([f"{PUBLIC}/32"], resolve=names, ca_file=authority.roots)
    with opened(gate) as door:
        yield door
    gate.close()


@pytest.fixture
def service(authority: Authority) -> Iterator[Service]:
    with serving(authority.server_context(HOST)) as found:
        yield found


# Operations of a service in a hub.


@pytest.fixture
def shop_boxes(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch, settings: Any) -> RecordedBoxes:
    """Calls run in boxes, in the thread of who waits for them."""
    found = RecordedBoxes(sandbox)
    run_calls_in(found, monkeypatch)
    run_calls_here(monkeypatch, settings)
    return found


@pytest.fixture
def bring_operation(
    caller: Caller, developer: Person, operator: Person, grant: Callable[..., Any]
) -> Callable[..., ToolVersion]:
    """``bring_operation(document)``: uploaded as a manifest alone, reviewed, enabled, set up and granted."""

    def make(document: dict[str, Any], token: str = TOKEN, **granted: Any) -> ToolVersion:
        put_in_force(permit())
        answer = caller.post("/tools", document)
        assert answer.status_code in (200, 201), answer.content.decode()
        version = ToolVersion.objects.get(tool__name=TOOL, version=document["version"])
        registry.review_version(version_id=version.pk, decision=Decision.APPROVE, note="", by=operator.by)
        registry.enable_tool(name=TOOL, version_id=version.pk, reason="x", by=operator.by)
        secrets.set_secret(name="token", value=token, by=operator.by)
        values = Setup(secrets={"TOKEN": "token"})
        installations.configure_installation(name=TOOL, values=values, reason="x", by=operator.by)
        grant(tools="service.*", **granted)
        return version

    return make


@pytest.fixture
def notes(operator: Person) -> StoredFile:
    return store_file(path="/data/reports/june.csv", content=NOTES, by=operator.by)[0]
