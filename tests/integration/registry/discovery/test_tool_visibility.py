"""Tool visibility: do all lists show the same tools: those that can be called, and no others unless they are asked for?"""

from __future__ import annotations

from datetime import date, timedelta
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest
from django.utils import timezone

from access.halts import services as halts
from access.models import Halt, Reach
from invocations.mcp.meta_keys import TOOL_ID
from invocations.mcp.tool_list import list_tools_after
from kernel.ids import encode
from kernel.principal import Principal
from registry.discovery.selectors import load_shown_page
from registry.installations import services as installations
from registry.models import Tool
from registry.tools import lifecycle
from tests.conftest import make_caller
from tests.support.stop_strips import remove_stop_strip

if TYPE_CHECKING:
    from collections.abc import Callable

    from registry.models import ToolVersion
    from tests.conftest import Caller, Person

pytestmark = pytest.mark.django_db
ECHO, PLANS = "sample.tools.echo", "sample.tools.plans"


# What the manifest says of Echo where that is the state.
SAID: dict[str, dict[str, Any]] = {
    "not_set_up": {"secrets": [{"name": "TOKEN", "description": "x"}]},
    "not_configured": {
        "config_schema": {
            "type": "object",
            "properties": {"a": {"type": "string"}},
            "required": ["a"],
            "additionalProperties": False,
        }
    },
    "gone": {"deprecations": [{"pointer": "", "since": "1.0.0", "advice": "x", "sunset": "2020-01-01"}]},
}


class Scene:
    """Echo in a state, beside another tool that works."""

    def __init__(self, *, tool: Tool, operator: Person, caller: Caller) -> None:
        self.tool, self.by, self.caller = tool, operator.by, caller
        assert tool.current is not None
        self.version = tool.current

    def enabled(self) -> None: ...

    def not_set_up(self) -> None: ...

    def not_configured(self) -> None: ...

    def gone(self) -> None: ...

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


def mcp_list(caller: Caller, *, modern: bool) -> list[str]:
    return [each.meta[TOOL_ID] for each in list_tools_after("", by=caller.by, modern=modern).tools if each.meta]


LISTS: dict[str, Callable[[Caller], list[str]]] = {
    "rest": rest(),
    "for models": rest("view=llm"),
    "searched": rest("q=sample"),
    "of a group": rest("group=sample.tools"),
    "enabled": rest("state=enabled"),
    "enabled in a dialect": rendered("dialect=openai&state=enabled"),
    "by safety class": rest("safety_class=Low"),
    "dialect": rendered("dialect=openai"),
    "dialect searched": rendered("dialect=anthropic&q=sample+text+plans"),
    "model": rendered("model=gpt-4o"),
    "markdown": rendered("dialect=markdown"),
    "mcp": lambda caller: mcp_list(caller, modern=True),
    "mcp before 2026-07-28": lambda caller: mcp_list(caller, modern=False),
}


@pytest.mark.req("TOOLS-7", "TOOLS-11", "TOOLS-12")
@pytest.mark.parametrize("state", STATES)
def test_every_list_shows_a_tool_in_the_same_states(
    state: str,
    enable: Callable[..., Tool],
    caller: Caller,
    grant: Callable[..., Any],
    operator: Person,
    registered_before_its_sunset: None,
) -> None:
    tool = enable("echo", **SAID.get(state, {}))
    enable("plans")
    grant()
    getattr(Scene(tool=tool, operator=operator, caller=caller), state)()

    shown = {name: set(ask(caller)) & {ECHO, PLANS} for name, ask in LISTS.items()}

    assert shown == dict.fromkeys(LISTS, {ECHO, PLANS} if STATES[state] else {PLANS})


@pytest.mark.req("TOOLS-7", "TOOLS-11")
def test_a_tool_that_was_never_enabled_is_in_no_list(
    submit: Callable[..., ToolVersion], enable: Callable[..., Tool], caller: Caller, grant: Callable[..., Any]
) -> None:
    submit("echo")
    enable("plans")
    grant()

    assert {name: ask(caller) for name, ask in LISTS.items()} == {name: [PLANS] for name in LISTS}


@pytest.mark.req("TOOLS-11")
@pytest.mark.parametrize("reach", [Reach.TENANT, Reach.AGENT])
def test_where_everything_is_stopped_every_list_is_empty(
    reach: Reach, enable: Callable[..., Tool], caller: Caller, grant: Callable[..., Any], operator: Person
) -> None:
    enable("echo")
    grant()
    target = caller.agent.wire_id if reach == Reach.AGENT else ""
    halts.throw_halt(reach=reach, target=target, reason="x", by=operator.by)

    assert {name: ask(caller) for name, ask in LISTS.items()} == {name: [] for name in LISTS}


@pytest.mark.req("TOOLS-7", "TOOLS-11")
def test_who_asks_for_deprecated_tools_gets_them_until_their_sunset(
    enable: Callable[..., Tool], caller: Caller, grant: Callable[..., Any], operator: Person
) -> None:
    scene = Scene(tool=enable("echo"), operator=operator, caller=caller)
    grant()
    scene.deprecated()
    assert rest("state=deprecated")(caller) == rendered("dialect=openai&state=deprecated")(caller) == [ECHO]

    Tool.objects.filter(pk=scene.tool.pk).update(sunset_on=timezone.now().date() - timedelta(days=1))
    assert rendered("dialect=openai&state=deprecated")(caller) == []


@pytest.mark.req("TOOLS-11")
@pytest.mark.parametrize("state", [each for each in STATES if each not in ("deprecated", "paused")])
def test_who_asks_for_deprecated_tools_gets_those_that_would_otherwise_be_shown(
    state: str,
    enable: Callable[..., Tool],
    caller: Caller,
    grant: Callable[..., Any],
    operator: Person,
    registered_before_its_sunset: None,
) -> None:
    scene = Scene(tool=enable("echo", **SAID.get(state, {})), operator=operator, caller=caller)
    grant()
    getattr(scene, state)()
    if state != "past_its_sunset":
        scene.deprecated()

    shown = {
        query: ask(f"{query}state=deprecated")(caller) for query, ask in (("", rest), ("dialect=openai&", rendered))
    }

    assert shown == dict.fromkeys(shown, [ECHO] if STATES[state] else [])


@pytest.mark.req("TOOLS-11")
def test_kill_switches_are_as_many_as_they_are(
    enable: Callable[..., Tool], caller: Caller, operator: Person, stranger: Person
) -> None:
    scene = Scene(tool=enable("echo"), operator=operator, caller=caller)
    enable("plans")
    said = {"reason": "x", "thrown_by": "usr_1"}
    for by in (operator.by, stranger.by):
        targets = [(Reach.TOOL, f"sample.tools.t{number}") for number in range(1001)]
        targets += [(Reach.VERSION, encode("tvn", uuid4())) for _ in range(1001)]
        Halt.objects.bulk_create(Halt(tenant_id=by.tenant_id, reach=reach, target=to, **said) for reach, to in targets)
    Halt.objects.create(tenant_id=stranger.by.tenant_id, reach=Reach.TOOL, target=PLANS, **said)  # for itself
    Halt.objects.create(tenant_id=stranger.by.tenant_id, reach=Reach.VERSION, target=scene.version.wire_id, **said)

    assert rest()(caller) == [PLANS, ECHO]


@pytest.mark.req("TOOLS-11")
def test_a_page_of_tools_costs_two_queries_and_more_only_where_something_is_stopped_or_wants_a_secret(
    enable: Callable[..., Tool], caller: Caller, operator: Person, django_assert_num_queries: Any
) -> None:
    prepared = 1  # the look for any kill switch, which nobody can count

    def asked_with(number: int) -> list[str]:
        load_shown_page(by=caller.by, after="", limit=50)  # what is kept between requests is there after the first
        with django_assert_num_queries(number - prepared):
            page, _ = load_shown_page(by=caller.by, after="", limit=50)
        return [row.name for row in page.rows]

    scene = Scene(tool=enable("echo"), operator=operator, caller=caller)
    assert asked_with(2) == [ECHO]

    scene.version_halted()
    assert asked_with(4) == []

    enable("plans", secrets=[{"name": "TOKEN", "description": "x", "required": False}])
    assert asked_with(5) == [PLANS]

    halts.throw_halt(reach=Reach.TENANT, reason="x", by=operator.by)
    assert asked_with(2) == []


@pytest.mark.req("TOOLS-11")
def test_no_tool_matches_is_said_of_a_whole_list_only(
    enable: Callable[..., Tool], caller: Caller, operator: Person, registered_before_its_sunset: None
) -> None:
    enable("echo")
    enable("plans", **SAID["gone"])

    first = caller.get("/tools?limit=1").json()
    assert (first["data"]["tools"], first["warnings"]) == ([], [])
    last = caller.get(f"/tools?limit=1&after={first['data']['next']}").json()
    assert ([each["id"] for each in last["data"]["tools"]], last["warnings"]) == ([ECHO], [])
    assert "No tool matches" in caller.get("/tools?q=dinosaurs").json()["warnings"][0]


# What its publisher does with its own installation, and what it has not set up for itself, is nothing to others.
OFFERED_TO_OTHERS = {
    name: shown or name in ("not_set_up", "not_configured", "paused_here", "removed") for name, shown in STATES.items()
}


@pytest.mark.req("TOOLS-7", "TOOLS-11")
@pytest.mark.parametrize("state", STATES)
def test_the_catalogue_shows_a_tool_of_others_in_the_same_states_on_every_page(
    state: str,
    enable: Callable[..., Tool],
    caller: Caller,
    operator: Person,
    foreign_caller: Caller,
    stranger: Person,
    registered_before_its_sunset: None,
) -> None:
    scene = Scene(tool=enable("echo", **SAID.get(state, {})), operator=operator, caller=caller)
    enable("plans")
    for name in (ECHO, PLANS):
        lifecycle.share_tool(name=name, reason="x", by=operator.by)
    getattr(scene, state)()

    expected = {ECHO, PLANS} if OFFERED_TO_OTHERS[state] else {PLANS}
    for query in ("", "?q=sample", "?publisher=acme"):
        listed = foreign_caller.get(f"/catalogue{query}").json()["data"]["tools"]
        assert {each["tool"] for each in listed} == expected, query
    page = stranger.client().get("/installations/shared").content.decode()
    assert {name for name in (ECHO, PLANS) if name in page} == expected
    assert foreign_caller.get("/tools").json()["data"]["tools"] == []  # nothing is installed yet


@pytest.mark.req("TOOLS-7")
@pytest.mark.parametrize("how", ["halted", "version_halted", "gone"])
def test_what_its_publisher_stops_is_offered_for_installation_to_nobody(
    how: str,
    enable: Callable[..., Tool],
    caller: Caller,
    operator: Person,
    foreign_caller: Caller,
    stranger: Person,
    registered_before_its_sunset: None,
) -> None:
    scene = Scene(tool=enable("echo", **SAID.get(how, {})), operator=operator, caller=caller)
    lifecycle.share_tool(name=ECHO, reason="x", by=operator.by)
    halts.throw_halt(reach=Reach.TOOL, target=ECHO, reason="for itself", by=stranger.by)

    def offered() -> list[list[str]]:
        listed = foreign_caller.get("/catalogue").json()["data"]["tools"]
        page = remove_stop_strip(stranger.client().get("/installations/shared").content.decode())
        return [[each["tool"] for each in listed], [ECHO] if ECHO in page else []]

    assert offered() == ([[], []] if how == "gone" else [[ECHO], [ECHO]])
    getattr(scene, how)()
    assert offered() == [[], []]


@pytest.mark.req("TOOLS-7", "TOOLS-22")
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
