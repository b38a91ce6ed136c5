"""Halt notices: is what a kill switch has stopped seen wherever people are, and only by whom it concerns?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from access.halts import services as halts
from access.models import Halt, Reach
from access.roles import Role
from access.templatetags.stops import SHOWN
from kernel.ids import encode, new_id
from registry.halt_notices import MOST, HaltNotices
from registry.installations import services as installations
from registry.models import Installation
from registry.tools import lifecycle
from tests.conftest import make_person

if TYPE_CHECKING:
    from collections.abc import Callable

    from access.models import Tenant
    from registry.models import Tool
    from tests.conftest import Caller, Person

ECHO = "sample.tools.echo"
WHY = "Orders are doubled."


def read(person: Person, page: str, *args: Any) -> str:
    response = person.client().get(reverse(page, args=args))
    assert response.status_code == 200, response
    return str(response.content.decode())


@pytest.mark.req("TOOLS-7", "CARD-3")
@pytest.mark.parametrize("role", list(Role))
def test_each_role_sees_on_its_first_page_what_is_stopped_by_whom_and_why(
    role: Role, enable: Callable[..., Tool], tenant: Tenant, operator: Person
) -> None:
    enable()
    halts.throw_halt(reach=Reach.TOOL, target=ECHO, reason=WHY, by=operator.by)
    person = make_person(tenant, f"sees-{role}", role)

    page = person.client().get("/", follow=True).content.decode()

    strip = page.partition('<section class="stops"')[2].partition("</section>")[0]
    assert ECHO in strip
    assert WHY in strip
    assert "<time" in strip
    assert (f'action="{reverse("halts_lift", args=[Halt.objects.get().pk])}' in strip) == person.by.may("halts.throw")


@pytest.mark.req("TOOLS-7")
@pytest.mark.parametrize("reach", [Reach.TOOL, Reach.VERSION, Reach.AGENT, Reach.TENANT])
def test_what_is_stopped_is_called_so_in_lists_and_on_its_page(
    reach: Reach, enable: Callable[..., Tool], caller: Caller, operator: Person
) -> None:
    tool = enable()
    assert tool.current is not None
    targets = {Reach.AGENT: caller.agent.wire_id, Reach.TOOL: ECHO, Reach.VERSION: tool.current.wire_id}
    pages: dict[str, list[Any]] = {
        "tools": [],
        "tool": [ECHO],
        "tool_versions": [ECHO],
        "version": [tool.current.pk],
        "installations": [],
        "installation": [ECHO],
        "agents": [],
        "agent": [caller.agent.pk],
    }
    of_agents = {"agents", "agent"}
    stopped = "</svg>Stopped</span>"
    assert not [page for page, args in pages.items() if stopped in read(operator, page, *args)]

    halts.throw_halt(reach=reach, target=targets.get(reach, ""), reason=WHY, by=operator.by)

    expected = set(pages) if reach is Reach.TENANT else of_agents if reach is Reach.AGENT else set(pages) - of_agents
    assert {page for page, args in pages.items() if stopped in read(operator, page, *args)} == expected


@pytest.mark.req("TOOLS-22")
@pytest.mark.parametrize("reach", [Reach.TOOL, Reach.VERSION])
def test_a_publisher_s_stop_is_seen_where_its_tool_is_installed_and_lifted_by_the_publisher(
    reach: Reach, enable: Callable[..., Tool], operator: Person, stranger: Person
) -> None:
    tool = enable()
    assert tool.current is not None
    lifecycle.share_tool(name=ECHO, reason="x", by=operator.by)
    target = ECHO if reach is Reach.TOOL else tool.current.wire_id
    halts.throw_halt(reach=reach, target=target, reason=WHY, by=operator.by)
    assert WHY not in read(stranger, "overview")

    installations.install_tool(name=ECHO, publisher="acme", reason="x", by=stranger.by)

    assert WHY in read(stranger, "overview")
    assert "Stopped</span>" in read(stranger, "installations")
    assert [notice.may_lift for notice in HaltNotices(stranger.by).rows] == [False]


@pytest.mark.req("TOOLS-22")
@pytest.mark.parametrize("reach", [Reach.TENANT, Reach.AGENT, Reach.TOOL])
def test_what_another_tenant_stops_for_itself_is_not_seen(
    reach: Reach, enable: Callable[..., Tool], foreign_caller: Caller, operator: Person, stranger: Person
) -> None:
    enable()
    targets = {Reach.AGENT: foreign_caller.agent.wire_id, Reach.TOOL: ECHO}

    halts.throw_halt(reach=reach, target=targets.get(reach, ""), reason=WHY, by=stranger.by)

    assert WHY not in read(operator, "overview")
    assert HaltNotices(operator.by).rows == []


def test_a_page_asks_once_what_is_stopped(enable: Callable[..., Tool], operator: Person) -> None:
    enable()
    halts.throw_halt(reach=Reach.TENANT, reason=WHY, by=operator.by)
    client = operator.client()

    with CaptureQueriesContext(
        connection,
    ) as queries:
        page = client.get(reverse("tools")).content.decode()

    assert len([each for each in queries if "access_halt" in each["sql"]]) == 1
    assert page.count(WHY) == 1
    count = page.partition('data-count="job.operations"')[2].partition("</a>")[0]
    assert ('data-tone="bad"' in count, "<span data-n>1</span>" in count, "stopped" in count) == (True, True, True)


def test_many_stops_are_folded_behind_the_widest(enable: Callable[..., Tool], caller: Caller, operator: Person) -> None:
    tool = enable()
    assert tool.current is not None
    halts.throw_halt(reach=Reach.VERSION, target=tool.current.wire_id, reason=WHY, by=operator.by)
    for reach, target in ((Reach.TOOL, ECHO), (Reach.AGENT, caller.agent.wire_id), (Reach.TENANT, "")):
        halts.throw_halt(reach=reach, target=target, reason=f"because of the {reach}", by=operator.by)

    shown, _, folded = read(operator, "overview").partition("1 more is stopped")

    assert WHY not in shown
    assert WHY in folded
    assert (
        shown.index("because of the tenant") < shown.index("because of the agent") < shown.index("because of the tool")
    )


@pytest.mark.req("TOOLS-7")
def test_the_widest_stop_is_seen_however_many_tools_and_versions_are_stopped(
    tenant: Tenant, caller: Caller, operator: Person
) -> None:
    halts.throw_halt(reach=Reach.AGENT, target=caller.agent.wire_id, reason="The agent.", by=operator.by)
    halts.throw_halt(reach=Reach.TENANT, reason=WHY, by=operator.by)
    narrow = [Halt(tenant=tenant, reach=Reach.TOOL, target=f"shop.cart.t{n}", reason="x") for n in range(MOST + 1)]
    Halt.objects.bulk_create(narrow)

    notices = HaltNotices(operator.by)

    assert [notice.halt.reason for notice in notices.rows[:2]] == [WHY, "The agent."]
    assert notices.stop_agent(caller.agent)
    assert len(notices) == MOST + 2


@pytest.mark.req("TOOLS-22")
def test_versions_of_a_publisher_that_are_not_installed_push_nothing_out(
    enable: Callable[..., Tool], tenant: Tenant, operator: Person, stranger: Person
) -> None:
    tool = enable()
    assert tool.current is not None
    lifecycle.share_tool(name=ECHO, reason="x", by=operator.by)
    installations.install_tool(name=ECHO, publisher="acme", reason="x", by=stranger.by)
    halts.throw_halt(reach=Reach.TOOL, target="shop.cart.add", reason="One's own.", by=stranger.by)
    halts.throw_halt(reach=Reach.VERSION, target=tool.current.wire_id, reason=WHY, by=operator.by)
    others = [encode("tvn", new_id()) for _ in range(MOST)]
    Halt.objects.bulk_create(Halt(tenant=tenant, reach=Reach.VERSION, target=each, reason="x") for each in others)

    notices = HaltNotices(stranger.by)

    assert [notice.halt.reason for notice in notices.rows] == ["One's own.", WHY]
    assert notices.stop_installation(Installation.objects.get(tenant_id=stranger.by.tenant_id))


def test_a_stop_of_a_tool_that_is_not_here_leads_nowhere(enable: Callable[..., Tool], operator: Person) -> None:
    enable()
    halts.throw_halt(reach=Reach.TOOL, target=ECHO, reason="x", by=operator.by)
    halts.throw_halt(reach=Reach.TOOL, target="shop.cart.add", reason="x", by=operator.by)

    assert {notice.name: notice.url for notice in HaltNotices(operator.by).rows} == {
        ECHO: reverse("tool", args=[ECHO]),
        "shop.cart.add": "",
    }


def test_what_is_folded_is_lifted_on_the_page_of_kill_switches(tenant: Tenant, operator: Person) -> None:
    Halt.objects.bulk_create(
        Halt(tenant=tenant, reach=Reach.TOOL, target=f"shop.cart.t{n}", reason="x", thrown_by=operator.by.id)
        for n in range(9)
    )

    page = read(operator, "overview")

    assert page.count(f"?next={reverse('overview')}") == SHOWN
    assert page.count("Lift…") == 9


@pytest.mark.parametrize(
    ("asked", "leads_to"), [("/tools?state=enabled", "/tools?state=enabled"), ("//evil.test/", "/halts")]
)
def test_lifting_from_a_page_leads_back_to_it_and_never_out_of_the_hub(
    asked: str, leads_to: str, operator: Person
) -> None:
    thrown = halts.throw_halt(reach=Reach.TENANT, reason=WHY, by=operator.by)

    done = operator.client().post(
        f"{reverse('halts_lift', args=[thrown.pk])}", {"reason": "It is mended."}, query_params={"next": asked}
    )

    assert done.headers["Location"] == leads_to
    assert WHY not in read(operator, "overview")
