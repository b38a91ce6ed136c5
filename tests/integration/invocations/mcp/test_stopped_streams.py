"""Stopped streams: does a kill switch end the streams in its reach, say why, and leave alone what is opened afterwards?"""

from __future__ import annotations

import json
import threading
from datetime import timedelta
from math import inf
from typing import TYPE_CHECKING, Any

import pytest
from asgiref.sync import sync_to_async

from access import services as access
from access.halts import services as halts
from access.models import Reach
from evidence.models import Fact
from invocations.event_streams.stream import CallFollower, StreamCredentials, StreamCursor
from invocations.mcp import list_watch, open_streams
from invocations.models import Invocation
from invocations.stopped_streams import HaltWatch, StreamTopic
from registry.models import ToolVersion
from tests.conftest import make_caller
from tests.support.background_runs import wait_for
from tests.support.calls import row_of
from tests.support.entry_paths import at_the_door, modern_request, usual_headers
from tests.support.mcp_clients import Wire, ring_in_threads, web_server
from tests.support.mcp_streams import CHANGED, OLDER, Stream, converse

if TYPE_CHECKING:
    from collections.abc import Callable

    from registry.models import Tool
    from tests.conftest import Caller, Person
    from tests.support.calls import Bell

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("each_mcp_way")]
ECHO = "sample.tools.echo"
LISTENS = {"notifications": {"toolsListChanged": True}}
END = {"type": "http.response.body", "more_body": False}


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (list_watch, open_streams):
        monkeypatch.setattr(module, "LOOK_EVERY_S", 0.01)


@pytest.fixture
def listed(enable: Callable[..., Tool], grant: Callable[..., Any], operator: Person) -> Caller:
    """Another agent that may call the same tool."""
    enable("echo")
    grant()
    other = make_caller(operator.by, "other")
    access.give_grant(agent_id=other.agent.pk, tools=ECHO, reason="x", by=operator.by)
    return other


def throw(reach: Reach, target: str, operator: Person) -> Any:
    return halts.throw_halt(reach=reach, target=target, reason="it does harm", by=operator.by)


def list_tools(caller: Caller) -> dict[str, Any]:
    found: dict[str, Any] = at_the_door(*modern_request(caller, "tools/list")).body["result"]
    return found


@pytest.mark.req("CONN-4", "CONN-1")
@pytest.mark.parametrize("modern", [True, False])
def test_who_listens_is_told_that_its_list_has_changed_and_why_and_the_stream_ends(
    modern: bool, listed: Caller, caller: Caller, operator: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    def open_stream(of: Caller) -> Stream:
        asked = modern_request(of, "subscriptions/listen", LISTENS)
        return Stream(*(asked if modern else (b"", usual_headers(of) | OLDER)), "POST" if modern else "GET")

    async def say() -> None:
        mine, others = open_stream(caller), open_stream(listed)
        await mine.until(lambda: len(mine.sent) > 1)
        await others.until(lambda: len(others.sent) > 1)
        halt = await sync_to_async(throw)(Reach.AGENT, caller.agent.wire_id, operator)
        await mine.task
        assert END.items() <= mine.sent[-1].items()
        assert [each["method"] for each in mine.messages if "method" in each][-1] == CHANGED
        if modern:
            assert mine.messages[-1]["error"]["data"]["reason"] == "POLICY.HALTED"
            assert "it does harm" in mine.messages[-1]["error"]["message"]
        assert not others.task.done()
        monkeypatch.setattr(open_streams, "THROWN_BEFORE", timedelta(0))  # as if it came back later
        again = open_stream(caller)  # hears when the switch is lifted
        await again.until(lambda: len(again.sent) > 1)
        await sync_to_async(halts.lift_halt)(halt_id=halt.pk, reason="mended", by=operator.by)
        await again.until(lambda: any(each.get("method") == CHANGED for each in again.messages))
        await again.leave()
        await others.leave()

    converse(say)


@pytest.mark.req("CONN-4")
def test_an_empty_list_says_which_kill_switch_has_emptied_it(listed: Caller, caller: Caller, operator: Person) -> None:
    before = list_tools(caller)
    halt = throw(Reach.TENANT, "", operator)
    stopped = list_tools(caller)
    halts.lift_halt(halt_id=halt.pk, reason="mended", by=operator.by)

    assert [each["name"] for each in before["tools"]] == ["sample_tools_echo"]
    assert "toolhub/halted" not in before.get("_meta", {})
    assert stopped["tools"] == []
    assert stopped["_meta"]["toolhub/halted"] == "Every call of this tenant is stopped: it does harm"
    assert list_tools(caller)["tools"] == before["tools"]


@pytest.mark.req("CONN-1", "TOOLS-18")
@pytest.mark.parametrize("modern", [True, False])
@pytest.mark.parametrize("reach", [Reach.TOOL, Reach.VERSION, Reach.AGENT])
def test_the_answer_to_a_call_ends_with_the_switch_and_the_call_goes_on(
    reach: Reach,
    modern: bool,
    listed: Caller,
    caller: Caller,
    operator: Person,
    bell: Bell,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bell.answers = False
    ring_in_threads(bell, monkeypatch)
    targets = {
        Reach.TOOL: ECHO,
        Reach.VERSION: ToolVersion.objects.get().wire_id,
        Reach.AGENT: caller.agent.wire_id,
    }
    told: list[Any] = []
    with web_server(threads=2) as url:
        wire = Wire.of(url, caller, modern=modern)
        if not modern:
            wire.initialize()
        asking = threading.Thread(target=lambda: told.append(wire.call(ECHO, {"text": "x"})))
        asking.start()
        wait_for(lambda: Invocation.objects.filter(state="queued").exists())
        throw(reach, targets[reach], operator)
        asking.join(30)

    (answer,) = told
    error = answer.message["error"]
    # One that has not begun is refused before the protocol has a word.
    reason = error["data"]["reason"] if "data" in error else error["reason"]
    assert reason == "POLICY.HALTED"
    assert Invocation.objects.get().state == "queued"  # nobody has taken it back
    assert not Fact.objects.filter(kind__in=("invocation.cancel_asked", "invocation.ended")).exists()


@pytest.mark.req("TOOLS-32")
@pytest.mark.parametrize("reach", [Reach.TOOL, Reach.TENANT])
def test_who_follows_a_call_over_rest_is_told_and_its_stream_ends(
    reach: Reach, listed: Caller, caller: Caller, operator: Person, bell: Bell
) -> None:
    bell.answers = False
    call = row_of(caller.invoke(ECHO, {"text": "x"}, headers={"Prefer": "respond-async"}))
    follower = CallFollower(call.pk, StreamCredentials(caller.key, "127.0.0.1"), StreamCursor())
    before = follower.look()
    throw(reach, ECHO if reach is Reach.TOOL else "", operator)
    after = follower.look()
    later = CallFollower(call.pk, StreamCredentials(caller.key, "127.0.0.1"), StreamCursor())

    assert "event: state" in before
    assert json.loads(after.partition("data: ")[2])["reason"] == "POLICY.HALTED"
    assert follower.is_over
    assert "event: state" in later.look()  # it reads what became of its own call
    assert not later.is_over


@pytest.mark.req("CONN-4")
def test_a_publisher_stops_the_streams_of_its_tool_in_every_tenant_and_no_other(
    listed: Caller, caller: Caller, operator: Person, stranger: Person
) -> None:
    version = ToolVersion.objects.get()
    others = make_caller(stranger.by, "of-another-tenant").by
    of_it, of_none, later = StreamTopic.of(others), StreamTopic.of(others), StreamTopic.of(others)
    of_it.tool, of_it.version_id = ECHO, version.pk
    later.opened_at = inf
    later.tool, later.version_id = ECHO, version.pk
    namesake = StreamTopic(others.tenant_id, others.agent_id, tool=ECHO)
    watch = HaltWatch()
    assert watch.find_stopped([of_it]) == {}

    throw(Reach.TOOL, ECHO, operator)

    assert set(watch.find_stopped([of_none, namesake, later])) == set()
    assert set(watch.find_stopped([of_it])) == {of_it}  # also if its tool is named only now
