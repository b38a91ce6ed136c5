"""Do all lists show the same tools: those that can be called, and no others unless they are asked for?"""

from __future__ import annotations

from datetime import date, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from django.utils import timezone

from access import halts
from access.models import Reach
from invocations.mcp.listing import page_after
from registry import installations, lifecycle
from registry.models import Tool
from tests.conftest import make_caller
from toolhub.kernel.principal import Principal

if TYPE_CHECKING:
    from collections.abc import Callable

    from registry.models import ToolVersion
    from tests.conftest import Caller, Person

pytestmark = [pytest.mark.django_db, pytest.mark.req("TOOLS-7", "TOOLS-11", "TOOLS-12")]
ECHO, PLANS = "sample.tools.echo", "sample.tools.plans"


class Scene:
    """Echo in a state, beside another tool that works."""

    def __init__(self, *, tool: Tool, operator: Person, caller: Caller) -> None:
        self.tool, self.by, self.caller = tool, operator.by, caller
        assert tool.current is not None
        self.version = tool.current

    def enabled(self) -> None: ...

    def paused(self) -> None:
        lifecycle.pause_tool(name=ECHO, reason="x", by=self.by)

    def paused_here(self) -> None:
        installations.pause_installation(name=ECHO, reason="x", by=self.by)

    def removed(self) -> None:
        installations.remove_installation(name=ECHO, reason="x", by=self.by)

    def yanked(self) -> None:
        lifecycle.yank_version(version_id=self.version.pk, reason="x", by=self.by)

    def deprecated(self) -> None:
        lifecycle.deprecate_tool(name=ECHO, reason="x", sunset_on=date(2900, 1, 1), by=self.by)

    def past_its_sunset(self) -> None:
        self.deprecated()
        Tool.objects.filter(pk=self.tool.pk).update(sunset_on=timezone.now().date() - timedelta(days=1))

    def halted(self) -> None:
        halts.throw_halt(reach=Reach.TOOL, target=ECHO, reason="x", by=self.by)

    def version_halted(self) -> None:
        halts.throw_halt(reach=Reach.VERSION, target=self.version.wire_id, reason="x", by=self.by)

    def another_agent_halted(self) -> None:
        other = make_caller(Principal.system("test", tenant_id=self.by.tenant_id), "other")
        halts.throw_halt(reach=Reach.AGENT, target=other.agent.wire_id, reason="x", by=self.by)


STATES = {name: name in ("enabled", "another_agent_halted") for name in vars(Scene) if not name.startswith("_")}


def rest(query: str = "") -> Callable[[Caller], list[str]]:
    def ask(caller: Caller) -> list[str]:
        answer = caller.get(f"/tools?{query}")
        assert answer.status_code == 200, answer.content
        return [each.get("id") or each["name"] for each in answer.json()["data"]["tools"]]

    return ask


def rendered(query: str) -> Callable[[Caller], list[str]]:
    return lambda caller: list(caller.get(f"/tools?{query}").json()["data"]["names"].values())


LISTS: dict[str, Callable[[Caller], list[str]]] = {
    "rest": rest(),
    "for models": rest("view=llm"),
    "searched": rest("q=sample"),
    "of a group": rest("group=sample.tools"),
    "by safety class": rest("safety_class=Low"),
    "dialect": rendered("dialect=openai"),
    "dialect searched": rendered("dialect=anthropic&q=sample+text+plans"),
    "model": rendered("model=gpt-4o"),
    "markdown": rendered("dialect=markdown"),
    "mcp": lambda caller: [each.name for each in page_after("", by=caller.by, modern=True).tools],
}


@pytest.mark.parametrize("state", STATES)
def test_every_list_shows_a_tool_in_the_same_states(
    state: str, enable: Callable[..., Tool], caller: Caller, grant: Callable[..., Any], operator: Person
) -> None:
    tool = enable("echo")
    enable("plans")
    grant()
    getattr(Scene(tool=tool, operator=operator, caller=caller), state)()

    shown = {name: set(ask(caller)) & {ECHO, PLANS} for name, ask in LISTS.items()}

    assert shown == dict.fromkeys(LISTS, {ECHO, PLANS} if STATES[state] else {PLANS})


def test_a_tool_that_was_never_enabled_is_in_no_list(
    submit: Callable[..., ToolVersion], enable: Callable[..., Tool], caller: Caller, grant: Callable[..., Any]
) -> None:
    submit("echo")
    enable("plans")
    grant()

    assert {name: ask(caller) for name, ask in LISTS.items()} == {name: [PLANS] for name in LISTS}


@pytest.mark.parametrize("reach", [Reach.TENANT, Reach.AGENT])
def test_where_everything_is_stopped_every_list_is_empty(
    reach: Reach, enable: Callable[..., Tool], caller: Caller, grant: Callable[..., Any], operator: Person
) -> None:
    enable("echo")
    grant()
    target = caller.agent.wire_id if reach == Reach.AGENT else ""
    halts.throw_halt(reach=reach, target=target, reason="x", by=operator.by)

    assert {name: ask(caller) for name, ask in LISTS.items()} == {name: [] for name in LISTS}


def test_who_asks_for_deprecated_tools_gets_them_until_their_sunset(
    enable: Callable[..., Tool], caller: Caller, grant: Callable[..., Any], operator: Person
) -> None:
    scene = Scene(tool=enable("echo"), operator=operator, caller=caller)
    grant()
    scene.deprecated()
    assert rest("state=deprecated")(caller) == rendered("dialect=openai&state=deprecated")(caller) == [ECHO]

    Tool.objects.filter(pk=scene.tool.pk).update(sunset_on=timezone.now().date() - timedelta(days=1))
    assert rendered("dialect=openai&state=deprecated")(caller) == []


def test_what_a_publisher_stops_is_shown_to_no_tenant_that_installed_it(
    enable: Callable[..., Tool], operator: Person, foreign_caller: Caller, stranger: Person
) -> None:
    tool = enable("echo")
    lifecycle.share_tool(name=ECHO, reason="x", by=operator.by)
    assert [each["tool"] for each in foreign_caller.get("/catalogue").json()["data"]["tools"]] == [ECHO]
    installations.install_tool(name=ECHO, reason="x", by=stranger.by)
    assert rest()(foreign_caller) == [ECHO]

    halts.throw_halt(reach=Reach.TOOL, target=ECHO, reason="x", by=operator.by)
    assert rest()(foreign_caller) == []

    assert tool.current_id is not None
    lifecycle.yank_version(version_id=tool.current_id, reason="x", by=operator.by)
    assert foreign_caller.get("/catalogue").json()["data"]["tools"] == []
