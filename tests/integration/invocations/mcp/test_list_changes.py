"""List changes: is it found out of all that happens in a hub whose list of tools is another one?"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from django.db import OperationalError
from django.utils import timezone

from access import services as access
from access.halts import services as halts
from access.models import Connection, Grant, Reach
from evidence.kinds import Kind
from invocations.mcp import list_watch
from invocations.mcp.list_changes import OF_ALL_TENANTS, OF_ONE_TENANT, ChangeReader, ListChanges
from invocations.mcp.list_digests import ListOwner, compute_list_digests
from invocations.mcp.list_watch import DigestReader
from invocations.mcp.tool_list import list_tools_after
from kernel.database.connections import database_time
from kernel.principal import UsedConnection
from registry.installations import services as installations
from registry.tools import lifecycle
from tests.conftest import make_caller
from tests.support.connections import make_connection

if TYPE_CHECKING:
    from collections.abc import Callable

    from registry.models import Tool
    from tests.conftest import Caller, Person

pytestmark = pytest.mark.django_db
ECHO, PLANS = "sample.tools.echo", "sample.tools.plans"
# What is done to these changes no list of tools.
ELSEWHERE = {
    "account_server", "agent_run", "anchor", "artifact", "assertion_rule", "budget", "callback", "capsule", "chain", "client",
    "configuration", "connection_rule", "consent",
    "dependencies", "dry_run", "erasure", "export", "file", "identity", "import", "invocation", "issuer", "key", "log", "log_key",
    "master_keys", "membership", "model", "model_meter", "model_prefix", "model_prices", "model_provider",
    "notification", "permission", "person", "playground", "playground_message", "policy", "publisher_key",
    "publishing", "replay", "request", "retention", "server_account", "sink", "snapshot", "subject", "tenant", "verification", "words",
}  # fmt: skip


@pytest.mark.req("CONN-4")
def test_every_kind_of_fact_is_known_to_change_lists_or_not_to() -> None:
    nouns = {str(kind).partition(".")[0] for kind in Kind}

    assert nouns == OF_ALL_TENANTS | OF_ONE_TENANT | ELSEWHERE
    assert not ELSEWHERE & (OF_ALL_TENANTS | OF_ONE_TENANT)


class Watched:
    """Two agents of a tenant who listen; the first may call both tools, the other one of them."""

    def __init__(self, one: Caller, two: Caller) -> None:
        self.owners = {"one": ListOwner.of(one.by), "two": ListOwner.of(two.by)}
        self._reader, self._told = DigestReader(), {}
        self._told = self._reader.read(self.owners.values(), self.owners.values()).digests

    def changed(self) -> set[str]:
        found = self._reader.read(self.owners.values(), ()).digests
        new = {name for name, owner in self.owners.items() if found.get(owner, self._told[owner]) != self._told[owner]}
        self._told |= found
        return new

    def let_it_be_due(self) -> None:
        """As if the time had come to look anyway. Clocks of the process are left alone: others keep what they have read."""
        self._reader._due = dict.fromkeys(self._reader._due, 0.0)


@pytest.fixture
def watched(enable: Callable[..., Tool], caller: Caller, grant: Callable[..., Any], operator: Person) -> Watched:
    enable("echo")
    enable("plans")
    grant()
    other = make_caller(operator.by, "other")
    access.give_grant(agent_id=other.agent.pk, tools=PLANS, reason="x", by=operator.by)
    return Watched(caller, other)


@pytest.mark.req("CONN-4")
def test_only_those_are_told_whose_list_is_another_one(watched: Watched, caller: Caller, operator: Person) -> None:
    by = operator.by
    assert watched.changed() == set()

    installations.pause_installation(name=ECHO, reason="for a test", by=by)
    assert watched.changed() == {"one"}
    assert watched.changed() == set()
    installations.resume_installation(name=ECHO, reason="for a test", by=by)
    assert watched.changed() == {"one"}

    lifecycle.pause_tool(name=PLANS, reason="for a test", by=by)
    assert watched.changed() == {"one", "two"}
    lifecycle.enable_tool(name=PLANS, reason="for a test", by=by)
    assert watched.changed() == {"one", "two"}

    given = access.give_grant(agent_id=caller.agent.pk, tools=ECHO, reason="more of the same", by=by)
    assert watched.changed() == set()
    access.revoke_grant(grant_id=given.pk, reason="x", by=by)
    assert watched.changed() == set()


@pytest.mark.req("CONN-4")
def test_what_stops_an_agent_or_the_tenant_empties_lists(watched: Watched, caller: Caller, operator: Person) -> None:
    stopped = halts.throw_halt(reach=Reach.AGENT, target=caller.agent.wire_id, reason="for a test", by=operator.by)
    assert watched.changed() == {"one"}
    halts.lift_halt(halt_id=stopped.pk, reason="for a test", by=operator.by)
    assert watched.changed() == {"one"}

    halts.throw_halt(reach=Reach.TENANT, reason="for a test", by=operator.by)
    assert watched.changed() == {"one", "two"}
    access.disable_agent(agent_id=caller.agent.pk, reason="x", by=operator.by)
    assert watched.changed() == set()  # it was empty


@pytest.mark.req("CONN-4")
def test_a_grant_that_runs_out_and_what_was_missed_are_found_by_and_by(watched: Watched, caller: Caller) -> None:
    until = database_time() + timedelta(hours=1)
    Grant.objects.filter(agent=caller.agent).update(expires_at=until)
    found = compute_list_digests(caller.by.tenant_id, watched.owners.values())
    assert found.changes_at == until

    Grant.objects.filter(agent=caller.agent).update(
        revoked_at=database_time(), revoked_by="usr_1"
    )  # by something that writes no fact
    assert watched.changed() == set()
    watched.let_it_be_due()
    assert watched.changed() == {"one"}


@pytest.mark.req("CONN-4")
@pytest.mark.parametrize(
    "failure",
    [
        OperationalError("away"),
        pytest.param(ValueError("a manifest that cannot be read"), marks=pytest.mark.unmapped),
    ],
)
def test_a_change_that_could_not_be_looked_at_is_told_by_the_next_look(
    failure: Exception, watched: Watched, caller: Caller, operator: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> Any:
        raise failure

    lifecycle.pause_tool(name=ECHO, reason="for a test", by=operator.by)
    with monkeypatch.context() as patch, suppress(OperationalError):
        patch.setattr(list_watch, "compute_list_digests", fail)
        assert watched.changed() == set()

    if isinstance(failure, ValueError):
        assert watched.changed() == set()  # it is tried again after a moment
        watched.let_it_be_due()
    assert watched.changed() == {"one"}
    assert watched.changed() == set()


@pytest.mark.req("CONN-4")
def test_what_happened_between_two_looks_is_found_however_far_apart_they_are(
    watched: Watched, enable: Callable[..., Tool], caller: Caller, operator: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = ChangeReader()
    reader.read_changes()
    access.give_grant(agent_id=None, tools=ECHO, reason="x", by=operator.by)

    for later, found in (
        (30, ListChanges(tenants=frozenset({operator.by.tenant_id}))),
        (3600, ListChanges(everywhere=True)),
    ):
        moment = timezone.now() + timedelta(seconds=later)
        monkeypatch.setattr("invocations.mcp.list_changes.timezone.now", lambda moment=moment: moment)
        assert reader.read_changes() == found
        assert reader.read_changes() == ListChanges()
        monkeypatch.undo()


@pytest.mark.req("CONN-4")
def test_each_fact_is_read_once_and_says_how_far_it_reaches(
    enable_by_review: Callable[..., Tool], caller: Caller, operator: Person, foreign_caller: Caller
) -> None:
    reader = ChangeReader()
    reader.read_changes()
    enable_by_review("echo")
    assert reader.read_changes() == ListChanges(everywhere=True, tenants=frozenset({operator.by.tenant_id}))
    assert reader.read_changes() == ListChanges()

    access.give_grant(agent_id=None, tools=ECHO, reason="x", by=operator.by)
    assert reader.read_changes() == ListChanges(tenants=frozenset({operator.by.tenant_id}))


@pytest.mark.req("CONN-4")
def test_a_program_is_told_of_the_tools_that_were_chosen_for_it(
    watched: Watched, caller: Caller, operator: Person
) -> None:
    connection = make_connection(agent=caller.agent, member=operator.user, name="program")
    Connection.objects.update(tools=[ECHO])
    by = replace(caller.by, key_id=None, connection=UsedConnection(connection.pk, "program", operator.by.id))
    mine = ListOwner.of(by)

    def digest() -> str:
        return compute_list_digests(caller.by.tenant_id, [mine, *watched.owners.values()]).digests[mine]

    before = digest()
    (shown,) = list_tools_after("", by=by, modern=True).tools
    assert shown.meta == {"toolhub/tool": ECHO}
    lifecycle.pause_tool(name=PLANS, reason="for a test", by=operator.by)
    assert digest() == before
    lifecycle.pause_tool(name=ECHO, reason="for a test", by=operator.by)
    assert digest() != before
