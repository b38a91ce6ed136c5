"""Egress reports: what does evidence say of the connections of a call, and what does it keep to itself?"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from django.urls import reverse

from evidence import services as evidence
from evidence.kinds import Kind
from evidence.models import Fact, Snapshot
from invocations.decide import rules
from invocations.end.egress_report import MAX_BYTES, describe_denial_reason
from invocations.run import execution
from invocations.sandbox.base import ConnectionRecord, RunOutcome, RunStatus
from invocations.sandbox.docker import DockerSandbox
from invocations.sandbox.egress import EgressGate
from invocations.sandbox.egress.denial_reasons import DenialReason
from kernel.canonical import compute_digest
from tests.egress.world import PUBLIC, Names, origin, plain
from tests.support.calls import assert_problem, row_of
from tests.support.policies_in_force import permit, put_in_force
from tests.support.sandboxes import docker_sandbox

if TYPE_CHECKING:
    from collections.abc import Callable

    from registry.models import Tool
    from tests.conftest import Caller, Person
    from tests.support.calls import Bell, ScriptedSandbox

pytestmark = pytest.mark.django_db
CANARY = "canary-7c1e90"
NAMED = ConnectionRecord(
    "api.example.org", 443, allowed=True, rule="api.example.org", bytes_out=700, bytes_in=5_000_000, ms=81
)
MADE_UP = ConnectionRecord(f"{CANARY}.example.com", 443, allowed=True, rule="*.example.com", bytes_out=9, bytes_in=9)
ELSEWHERE = ConnectionRecord(f"{CANARY}.evil.org", 443, allowed=False, why=DenialReason.NOT_GRANTED)
INSIDE = ConnectionRecord(
    "intern.example.org", 443, allowed=False, why=DenialReason.PRIVATE_ADDRESS, rule="intern.example.org"
)


@pytest.fixture
def ends_with(
    caller: Caller, enable: Callable[..., Tool], grant: Callable[..., Any], bell: Bell, sandbox: ScriptedSandbox
) -> Callable[..., Any]:
    """``ends_with(*connections)``: the row of a call whose tool made them."""
    enable()
    grant()

    def call(*connections: ConnectionRecord) -> Any:
        sandbox.outcome = RunOutcome(RunStatus.OK, value={}, connections=connections)
        return row_of(caller.invoke("sample.tools.echo", {}))

    return call


def end_of(row: Any) -> dict[str, Any]:
    leaf = Fact.objects.get(invocation_id=row.pk, kind=Kind.INVOCATION_ENDED).leaf
    data: dict[str, Any] = json.loads(bytes(leaf))["data"]
    return data


@pytest.mark.req("TOOLS-16")
def test_the_end_names_a_host_as_the_rules_name_it_and_counts_the_rest(ends_with: Callable[..., Any]) -> None:
    end = end_of(ends_with(NAMED, MADE_UP, ELSEWHERE, INSIDE, ELSEWHERE))

    assert end["connections"] == [
        {"host": "api.example.org", "port": 443, "allowed": True, "why": "", "bytes_out": 700, "bytes_in": 5_000_000},
        {"host": "*.example.com", "port": 443, "allowed": True, "why": "", "bytes_out": 9, "bytes_in": 9},
        {"host": "intern.example.org", "port": 443, "allowed": False, "why": "private_address", "bytes_out": 0, "bytes_in": 0},
    ]  # fmt: skip
    assert end["connections_elsewhere"] == 2
    assert CANARY not in json.dumps(end)


@pytest.mark.req("TOOLS-16", "TOOLS-21")
def test_what_was_asked_for_is_sealed_with_the_logs(ends_with: Callable[..., Any]) -> None:
    row = ends_with(MADE_UP, ELSEWHERE)

    sealed = evidence.open_values(Snapshot.objects.get(invocation_id=row.pk, kind="logs"))

    assert [(each["host"], each["allowed"]) for each in sealed["connections"]] == [
        (f"{CANARY}.example.com", True),
        (f"{CANARY}.evil.org", False),
    ]


@pytest.mark.req("TOOLS-16")
def test_of_very_many_connections_the_first_are_named_and_all_are_bound(ends_with: Callable[..., Any]) -> None:
    end = end_of(ends_with(*[NAMED] * 500))

    assert len(json.dumps(end["connections"])) < 2 * MAX_BYTES
    assert 10 < len(end["connections"]) < 500
    assert end["all_connections"] == {"count": 500, "hash": compute_digest([end["connections"][0]] * 500)}


@pytest.mark.req("TOOLS-16")
def test_a_call_that_reached_for_nothing_says_nothing(ends_with: Callable[..., Any]) -> None:
    end = end_of(ends_with())

    assert not {"connections", "all_connections", "connections_elsewhere", "connections_known"} & set(end)


@pytest.mark.req("CARD-6")
def test_the_calls_page_shows_its_connections(ends_with: Callable[..., Any], developer: Person) -> None:
    row = ends_with(NAMED, MADE_UP, INSIDE, ELSEWHERE, ELSEWHERE)

    page = developer.client().get(reverse("invocation", args=[row.pk])).content.decode()

    assert "api.example.org" in page
    assert "*.example.com" in page
    assert "resolves to a private address" in page
    assert "2 attempts to reach hosts that no rule names were refused" in page
    assert CANARY not in page


@pytest.mark.req("CARD-6")
def test_the_page_of_a_call_without_connections_has_no_table(ends_with: Callable[..., Any], developer: Person) -> None:
    row = ends_with()

    assert 'id="connections' not in developer.client().get(reverse("invocation", args=[row.pk])).content.decode()


@pytest.mark.req("TOOLS-16")
def test_connections_that_nobody_knows_are_not_said_to_be_none(
    ends_with: Callable[..., Any], sandbox: ScriptedSandbox, caller: Caller, developer: Person
) -> None:
    ends_with()
    sandbox.outcome = RunOutcome(RunStatus.OK, value={}, connections_known=False)
    row = row_of(caller.invoke("sample.tools.echo", {}))

    assert end_of(row)["connections_known"] is False
    page = developer.client().get(reverse("invocation", args=[row.pk])).content.decode()
    assert "not known whether there were connections" in page


@pytest.mark.req("TOOLS-16")
def test_every_reason_has_its_words() -> None:
    assert [why for why in DenialReason if describe_denial_reason(why) == str(why)] == []
    assert describe_denial_reason("") == ""
    assert describe_denial_reason("of_a_later_version") == "of_a_later_version"


@pytest.mark.req("TOOLS-16")
def test_what_no_gate_can_enforce_is_refused_before_the_call_with_what_to_do(
    caller: Caller, enable: Callable[..., Tool], grant: Callable[..., Any], bell: Bell, monkeypatch: pytest.MonkeyPatch
) -> None:
    sandbox = DockerSandbox("no-image", "no-instance", engine_url="unix:///nowhere", gate=EgressGate())
    monkeypatch.setattr(rules, "current_sandbox", lambda: sandbox)
    put_in_force(permit())
    enable(side_effect="Network", capabilities={"net": [{"host": "api.example.org", "methods": ["GET"]}]})
    grant()

    body = assert_problem(caller.invoke("sample.tools.echo", {"text": "x"}), 403, "SANDBOX.CAPABILITY_BLOCKED")

    assert body["error"]["details"]["missing"] == ["net:https://api.example.org:443 GET"]
    assert "allow all methods of the host" in body["error"]["remedy"]


@pytest.mark.req("SVC-6", "TOOLS-16")
def test_a_tool_gets_where_it_was_granted_to_go_and_nowhere_else(
    caller: Caller, enable: Callable[..., Tool], grant: Callable[..., Any], bell: Bell, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = Names()
    names.say("api.example.org", [PUBLIC])
    sandbox = docker_sandbox(gate=EgressGate([f"{PUBLIC}/32"], resolve=names))
    for module in (execution, rules):
        monkeypatch.setattr(module, "current_sandbox", lambda: sandbox)
    with origin() as server:
        put_in_force(permit())
        enable("fetches", side_effect="Network", capabilities={"net": [plain("*.example.org", server.port)]})
        grant()
        reached = caller.invoke("sample.tools.fetches", {"text": f"http://api.example.org:{server.port}/"})
        refused = caller.invoke("sample.tools.fetches", {"text": f"http://{CANARY}.evil.org/"})
    sandbox.close()

    assert reached.json()["data"] == {"text": "hello"}
    (connection,) = end_of(row_of(reached))["connections"]
    assert (connection["host"], connection["port"], connection["allowed"]) == ("*.example.org", server.port, True)
    body = assert_problem(refused, 403, "SANDBOX.CAPABILITY_BLOCKED")
    assert body["error"]["details"] == {"capability": "net", "attempts": [f"net:{CANARY}.evil.org:80"]}
    end = end_of(row_of(refused))
    assert (end["blocked"], end["connections_elsewhere"]) == (["net"], 1)
    assert CANARY not in json.dumps(end)
