"""Halts: does a kill switch stop exactly what it says, at once?"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from django.urls import reverse

from access.halts import services as halts
from access.halts.services import check_not_halted, halt_problem
from access.models import Halt, Reach
from access.problems import Halted
from evidence.models import Fact
from evidence.services import open_free_text
from kernel.ids import encode, new_id
from kernel.problems import Conflict, Forbidden, SchemaInvalid
from registry.installations import services as installations
from registry.tools import lifecycle
from tests.support.calls import PAIR, assert_problem, kinds_of, row_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from kernel.principal import Principal
    from registry.models import Tool
    from tests.conftest import Caller, Person
    from tests.support.calls import Bell

ECHO = "sample.tools.echo"


@pytest.fixture
def owner(operator: Person) -> Principal:
    """Somebody who manages the whole hub."""
    return replace(operator.by, allowed=operator.by.allowed | {"hub.manage"})


@pytest.fixture
def target_of(caller: Caller) -> Callable[[Reach, Tool], str]:
    def find(reach: Reach, tool: Tool) -> str:
        assert tool.current is not None
        targets = {Reach.AGENT: caller.agent.wire_id, Reach.TOOL: tool.name, Reach.VERSION: tool.current.wire_id}
        return targets.get(reach, "")

    return find


@pytest.mark.req("TOOLS-7", "TOOLS-31")
@pytest.mark.parametrize("reach", list(Reach))
def test_a_thrown_switch_refuses_the_next_call_and_a_lifted_one_lets_it_through(
    reach: Reach,
    enable: Callable[..., Tool],
    grant: Callable[..., Any],
    caller: Caller,
    owner: Principal,
    target_of: Callable[[Reach, Tool], str],
    bell: Bell,
) -> None:
    tool = enable()
    grant()
    assert caller.invoke(ECHO, {}).status_code == 200

    halt = halts.throw_halt(reach=reach, target=target_of(reach, tool), reason="something is on fire", by=owner)
    refused = caller.invoke(ECHO, {})

    body = assert_problem(refused, 403, "POLICY.HALTED")
    assert "something is on fire" in body["detail"]
    assert body["error"]["details"]["reach"] == reach
    assert kinds_of(row_of(refused)) == PAIR
    halts.lift_halt(halt_id=halt.pk, reason="put out", by=owner)
    assert caller.invoke(ECHO, {}).status_code == 200


@pytest.mark.req("TOOLS-22")
@pytest.mark.parametrize("reach", [each for each in Reach if each is not Reach.HUB])
def test_a_tenant_stops_nobody_elses_calls(
    reach: Reach,
    enable: Callable[..., Tool],
    grant: Callable[..., Any],
    caller: Caller,
    stranger: Person,
    foreign_caller: Caller,
    target_of: Callable[[Reach, Tool], str],
    bell: Bell,
) -> None:
    tool = enable()
    grant()
    target = foreign_caller.agent.wire_id if reach is Reach.AGENT else target_of(reach, tool)
    halts.throw_halt(reach=reach, target=target, reason="mine", by=stranger.by)

    assert caller.invoke(ECHO, {}).status_code == 200


@pytest.mark.req("TOOLS-22")
def test_a_publisher_stops_its_tool_for_everybody_who_installed_it(
    enable: Callable[..., Tool], operator: Person, stranger: Person
) -> None:
    tool = enable()
    assert tool.current is not None
    lifecycle.share_tool(name=ECHO, reason="x", by=operator.by)
    installations.install_tool(name=ECHO, publisher="acme", reason="x", by=stranger.by)
    there: dict[str, Any] = {
        "publisher_id": tool.tenant_id,
        "agent_id": None,
        "tool": ECHO,
        "version_id": tool.current.pk,
    }
    check_not_halted(tenant_id=stranger.by.tenant_id, **there)

    halts.throw_halt(reach=Reach.TOOL, target=ECHO, reason="it leaks", by=operator.by)

    for tenant_id in (operator.by.tenant_id, stranger.by.tenant_id):
        with pytest.raises(Halted, match="it leaks"):
            check_not_halted(tenant_id=tenant_id, **there)
    elsewhere = there | {"publisher_id": stranger.by.tenant_id}
    check_not_halted(tenant_id=stranger.by.tenant_id, **elsewhere)  # a tool of theirs with the same name


def test_the_widest_switch_is_the_one_that_is_told_of() -> None:
    rows = [Halt(reach=reach, target="", reason=f"because of the {reach}") for reach in reversed(Reach)]

    assert halt_problem([]) is None
    told = halt_problem(rows)
    assert told is not None
    assert "because of the hub" in told.detail
    narrower = halt_problem([row for row in rows if row.reach in (Reach.VERSION, Reach.AGENT)])
    assert narrower is not None
    assert "because of the agent" in narrower.detail


@pytest.mark.parametrize("by", ["operator", "caller"])
def test_the_hub_is_stopped_by_its_owners_only(by: str, request: pytest.FixtureRequest, owner: Principal) -> None:
    who = request.getfixturevalue(by).by

    with pytest.raises(Forbidden):
        halts.throw_halt(reach=Reach.HUB, reason="x", by=who)
    thrown = halts.throw_halt(reach=Reach.HUB, reason="x", by=owner)
    with pytest.raises(Forbidden):
        halts.lift_halt(halt_id=thrown.pk, reason="x", by=who)
    assert Halt.objects.get().lifted_at is None


@pytest.mark.parametrize(
    ("reach", "target", "pointer"),
    [
        (Reach.TOOL, "", "/target"),
        (Reach.TOOL, "echo", "/target"),
        (Reach.TOOL, "A.b.c", "/target"),
        (Reach.AGENT, "agt_x", "/target"),
        (Reach.AGENT, encode("agt", new_id()), "/target"),
        (Reach.VERSION, encode("agt", new_id()), "/target"),
        (Reach.TENANT, ECHO, "/target"),
    ],
)
def test_a_switch_names_what_its_reach_says(reach: Reach, target: str, pointer: str, operator: Person) -> None:
    with pytest.raises(SchemaInvalid) as caught:
        halts.throw_halt(reach=reach, target=target, reason="x", by=operator.by)

    assert caught.value.details["findings"][0]["pointer"] == pointer
    assert not Halt.objects.exists()


@pytest.mark.req("TOOLS-22")
def test_a_tenant_neither_stops_nor_releases_the_agent_of_another(
    caller: Caller, operator: Person, stranger: Person
) -> None:
    with pytest.raises(SchemaInvalid):
        halts.throw_halt(reach=Reach.AGENT, target=caller.agent.wire_id, reason="x", by=stranger.by)
    mine = halts.throw_halt(reach=Reach.AGENT, target=caller.agent.wire_id, reason="x", by=operator.by)
    with pytest.raises(Halt.DoesNotExist):
        halts.lift_halt(halt_id=mine.pk, reason="x", by=stranger.by)


def test_a_switch_is_thrown_once_and_lifted_once_and_each_is_a_fact(operator: Person) -> None:
    thrown = halts.throw_halt(reach=Reach.TENANT, reason="a drill", by=operator.by)
    with pytest.raises(Conflict):
        halts.throw_halt(reach=Reach.TENANT, reason="again", by=operator.by)
    halts.lift_halt(halt_id=thrown.pk, reason="the drill is over", by=operator.by)
    with pytest.raises(Conflict):
        halts.lift_halt(halt_id=thrown.pk, reason="again", by=operator.by)
    halts.throw_halt(reach=Reach.TENANT, reason="another drill", by=operator.by)

    told = Fact.objects.filter(kind__startswith="halt.").order_by("pk")
    assert [fact.kind for fact in told] == ["halt.thrown", "halt.lifted", "halt.thrown"]
    assert open_free_text(told[1]) == {"reason": "the drill is over"}


@pytest.mark.parametrize("reason", ["", "  ", "x" * 501])
def test_a_switch_is_thrown_and_lifted_with_a_reason(reason: str, operator: Person) -> None:
    with pytest.raises(SchemaInvalid):
        halts.throw_halt(reach=Reach.TENANT, reason=reason, by=operator.by)
    thrown = halts.throw_halt(reach=Reach.TENANT, reason="x", by=operator.by)
    with pytest.raises(SchemaInvalid):
        halts.lift_halt(halt_id=thrown.pk, reason=reason, by=operator.by)


@pytest.mark.req("TOOLS-19")
def test_an_agent_lifts_only_what_it_threw_itself_at_something_else(caller: Caller, operator: Person) -> None:
    at_it = halts.throw_halt(reach=Reach.AGENT, target=caller.agent.wire_id, reason="it runs wild", by=operator.by)
    own = halts.throw_halt(reach=Reach.TOOL, target=ECHO, reason="x", by=caller.by)

    refused = caller.post(f"/halts/{at_it.wire_id}/lift", {"reason": "x"})

    assert_problem(refused, 403, "AUTH.FORBIDDEN")
    assert halts.lift_halt(halt_id=own.pk, reason="x", by=caller.by).lifted_by == caller.by.id
    halts.lift_halt(halt_id=at_it.pk, reason="x", by=operator.by)
    at_itself = halts.throw_halt(reach=Reach.AGENT, target=caller.agent.wire_id, reason="x", by=caller.by)
    with pytest.raises(Forbidden):
        halts.lift_halt(halt_id=at_itself.pk, reason="x", by=caller.by)


# Over REST and in the console.


def test_a_switch_is_thrown_and_lifted_over_rest(
    enable: Callable[..., Tool], grant: Callable[..., Any], caller: Caller, bell: Bell
) -> None:
    enable()
    grant()

    thrown = caller.post("/halts", {"reach": "tool", "target": ECHO, "reason": "x"})

    assert thrown.status_code == 201
    assert_problem(caller.invoke(ECHO, {}), 403, "POLICY.HALTED")
    assert [each["id"] for each in caller.get("/halts").json()["data"]["halts"]] == [thrown.json()["data"]["id"]]
    lifted = caller.post(f"/halts/{thrown.json()['data']['id']}/lift", {"reason": "x"})
    assert lifted.json()["data"]["lifted_by"] == caller.agent.wire_id
    assert caller.invoke(ECHO, {}).status_code == 200
    assert_problem(caller.post("/halts", {"reach": "hub", "reason": "x"}), 403, "AUTH.FORBIDDEN")


def test_what_is_neither_published_nor_installed_here_is_not_said_to_be_stopped(
    enable: Callable[..., Tool], foreign_caller: Caller, caller: Caller, operator: Person
) -> None:
    tool = enable()
    version = encode("tvn", tool.versions.get().pk)
    misspelt = {"reach": "tool", "target": "sample.tools.ehco", "reason": "x"}

    assert_problem(caller.post("/halts", misspelt), 409, "STATE.UNFIT")
    assert (
        "neither publishes nor has installed"
        in operator.client().post(reverse("halts_throw"), misspelt | {"tool": misspelt["target"]}).content.decode()
    )
    assert_problem(foreign_caller.post("/halts", misspelt | {"target": ECHO}), 409, "STATE.UNFIT")
    for found in (version, encode("tvn", new_id())):
        asked = {"reach": "version", "target": found, "reason": "x"}
        assert caller.post("/halts", asked).status_code == (201 if found == version else 409)
    assert_problem(foreign_caller.post("/halts", asked | {"target": version}), 409, "STATE.UNFIT")


@pytest.mark.parametrize(("reach", "word"), [("tenant", "acme"), ("tool", "")])
def test_what_stops_much_is_confirmed_by_a_typed_name(
    reach: str, word: str, enable: Callable[..., Tool], operator: Person
) -> None:
    enable()
    client = operator.client()
    typed = {"reach": reach, "tool": ECHO, "reason": "a drill"}
    if word:
        refused = client.post(reverse("halts_throw"), typed | {"confirm": "acm"})
        assert refused.status_code == 422
        assert "a drill" in refused.content.decode()
        assert not Halt.objects.exists()

    done = client.post(reverse("halts_throw"), typed | {"confirm": word})

    assert done.status_code == 302
    assert Halt.objects.get().reach == reach
    page = client.get(reverse("halts")).content.decode()
    assert "a drill" in page
    assert "Lift" in page


def test_lifting_in_the_console_takes_a_reason(operator: Person) -> None:
    thrown = halts.throw_halt(reach=Reach.TENANT, reason="a drill", by=operator.by)
    client, address = operator.client(), reverse("halts_lift", args=[thrown.pk])

    assert client.post(address, {"reason": ""}).status_code == 422
    assert client.post(address, {"reason": "over"}).status_code == 302
    assert Halt.objects.get().lifted_by == operator.by.id


def test_the_switch_of_the_hub_is_offered_to_its_owners_only(operator: Person) -> None:
    client = operator.client()

    assert 'value="hub"' not in client.get(reverse("halts")).content.decode()
    refused = client.post(reverse("halts_throw"), {"reach": "hub", "reason": "x", "confirm": "everything"})
    assert refused.status_code == 422
    assert not Halt.objects.exists()
