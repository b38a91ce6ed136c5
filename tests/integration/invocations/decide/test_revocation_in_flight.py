"""Revocation in flight: what happens to a call that was accepted, while people change what decided about it?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from access.agents import services as agents
from access.grants import services as grants
from access.halts import services as halts
from access.models import Reach
from evidence.models import Fact
from invocations.models import Invocation
from invocations.run_profiles.models import RunProfile
from kernel.canonical import compute_digest
from registry.tools import lifecycle
from tests.support.calls import PAIR, kinds_of, row_of
from tests.support.policies_in_force import forbid, permit, put_in_force

if TYPE_CHECKING:
    from collections.abc import Callable

    from registry.models import Tool
    from tests.conftest import Caller, Person
    from tests.support.calls import Bell

pytestmark = pytest.mark.django_db

ECHO = "sample.tools.echo"


@pytest.fixture
def accepted(
    caller: Caller, enable: Callable[..., Tool], grant: Callable[..., Any], bell: Bell
) -> tuple[Invocation, Any]:
    """A call that waits for a worker, and the grant that it was accepted under."""
    enable()
    given = grant()
    answer = caller.invoke(ECHO, {"text": "x"}, headers={"Prefer": "respond-async"})
    assert answer.status_code == 202, answer.json()
    return Invocation.objects.get(), given


@pytest.mark.req("TOOLS-10", "TOOLS-31")
def test_a_call_keeps_the_policy_that_it_was_accepted_under(
    accepted: tuple[Invocation, Any], caller: Caller, bell: Bell
) -> None:
    row, _ = accepted
    put_in_force(permit(), forbid("no-echo", tool={"equals": ECHO}))

    bell.deliver()
    following = caller.invoke(ECHO, {"text": "x"})

    row.refresh_from_db()
    assert (row.state, row.policy_version) == ("succeeded", "builtin@2")
    assert following.json()["error"]["reason"] == "POLICY.DENY_TOOL"
    began = Fact.objects.get(invocation_id=row.pk, kind="invocation.began")
    assert b'"version":"builtin@2"' in bytes(began.leaf)


def kill_switch(operator: Person, **_: Any) -> str:
    halts.throw_halt(reach=Reach.TENANT, reason="for a test", by=operator.by)
    return "POLICY.HALTED"


def pause(operator: Person, **_: Any) -> str:
    lifecycle.pause_tool(name=ECHO, reason="for a test", by=operator.by)
    return "TOOL.PAUSED"


def yank(operator: Person, row: Invocation, **_: Any) -> str:
    assert row.version_id is not None
    lifecycle.yank_version(version_id=row.version_id, reason="for a test", by=operator.by)
    return "TOOL.YANKED"


def revoke(operator: Person, given: Any, **_: Any) -> str:
    grants.revoke_grant(grant_id=given.pk, reason="for a test", by=operator.by)
    return "AUTH.NO_GRANT"


def disable(operator: Person, caller: Caller, **_: Any) -> str:
    agents.disable_agent(agent_id=caller.agent.pk, reason="for a test", by=operator.by)
    return "AUTH.FORBIDDEN"


def revoke_key(operator: Person, row: Invocation, **_: Any) -> str:
    assert row.key_id is not None
    agents.revoke_key(key_id=row.key_id, by=operator.by)
    return "AUTH.FORBIDDEN"


@pytest.mark.req("TOOLS-15", "TOOLS-18")
@pytest.mark.parametrize("change", [kill_switch, pause, yank, revoke, disable, revoke_key])
def test_what_was_taken_back_stops_a_call_that_has_not_begun(
    change: Callable[..., str], accepted: tuple[Invocation, Any], caller: Caller, operator: Person, bell: Bell
) -> None:
    row, given = accepted

    reason = change(operator=operator, row=row, given=given, caller=caller)
    bell.deliver()

    row.refresh_from_db()
    assert (row.state, row.reason) == ("cancelled", reason)
    assert Fact.objects.filter(invocation_id=row.pk, kind="invocation.ended").count() == 1


def change_document(row: Invocation, document: Any) -> None:
    """As another version of the hub would have written it, under its own digest."""
    RunProfile.objects.create(tenant_id=row.tenant_id, digest=compute_digest(document), document=document)
    Invocation.objects.filter(pk=row.pk).update(profile_hash=compute_digest(document))


@pytest.mark.req("TOOLS-14")
@pytest.mark.parametrize(
    "profile",
    [
        {},
        {"net": ["example.org"], "limits": {"seconds": 5}},  # of another shape
        {"limits": {"wall_ms": 5000, "invented": 1}},
        {"limits": 5},
        [],
    ],
)
def test_a_call_that_an_older_version_has_queued_ends_with_what_happened(
    profile: Any, accepted: tuple[Invocation, Any], caller: Caller, bell: Bell
) -> None:
    row, _ = accepted
    change_document(row, profile)

    bell.deliver()

    assert_not_run(row, caller, because="This call was accepted by another version of the hub")


@pytest.mark.req("TOOLS-14")
@pytest.mark.parametrize("taken_away", [True, False], ids=["taken away", "widened"])
def test_a_call_whose_profile_is_not_the_one_of_its_digest_does_not_run(
    taken_away: bool, accepted: tuple[Invocation, Any], caller: Caller, bell: Bell
) -> None:
    row, _ = accepted
    kept = RunProfile.objects.get(tenant_id=row.tenant_id, digest=row.profile_hash)
    found = RunProfile.objects.filter(tenant_id=kept.tenant_id, digest=kept.digest)
    wider = kept.document | {"net": [{"hosts": ["*"]}]}
    assert found.delete()[0] if taken_away else found.update(document=wider)

    bell.deliver()

    assert_not_run(row, caller, because="What this call may reach is not what was decided")


@pytest.mark.req("TOOLS-14")
def test_a_changed_profile_is_put_right_by_the_next_call_under_it(
    accepted: tuple[Invocation, Any], caller: Caller, bell: Bell
) -> None:
    row, _ = accepted
    kept = RunProfile.objects.filter(tenant_id=row.tenant_id, digest=row.profile_hash)
    document = kept.get().document
    kept.update(document=document | {"net": [{"hosts": ["*"]}]})

    following = caller.invoke(ECHO, {"text": "x"})

    assert row_of(following).state == "succeeded", following.json()
    assert kept.get().document == document


def assert_not_run(row: Invocation, caller: Caller, *, because: str) -> None:
    row.refresh_from_db()
    assert (row.state, row.reason) == ("cancelled", "REQUEST.CANCELLED")
    error = caller.get(f"/invocations/{row.wire_id}").json()["error"]
    assert error["message"].startswith(because)
    assert error["remedy"].startswith("Make a new call")
    assert kinds_of(row) == PAIR
