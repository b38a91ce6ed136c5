"""Remote calls: is a tool of a server somewhere else registered, reviewed, granted and called like any other, and does its End say
what the gate saw?
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from django.urls import reverse

from invocations.models import State
from invocations.run import execution
from invocations.sandbox.base import ConnectionRecord, Profile, RunOutcome, RunStatus, ServiceRecord
from invocations.sandbox.boxes.payloads import pack_call, pack_load
from kernel.problems import find_problem_class
from registry.secrets.encodings import list_secret_forms
from tests.egress.box_search import search_boxes
from tests.egress.remote_servers import TOKEN, RemoteServer
from tests.egress.remotes.hub_tools import LEGACY, PICTURE, TOOL, end_of
from tests.egress.world import HOST
from tests.support.calls import PAIR, assert_problem, kinds_of, row_of
from tests.support.entry_paths import at_the_door, modern_request
from tests.support.evidence_logs import check_log, seal_everything, signing_with
from unitools.mcp_http import MODERN

if TYPE_CHECKING:
    from collections.abc import Callable

    from invocations.sandbox.docker import DockerSandbox
    from registry.models import ToolVersion
    from tests.conftest import Caller, Person
    from tests.egress.recorded_boxes import RecordedBoxes

pytestmark = pytest.mark.django_db


@pytest.mark.req("BRING-3", "TOOLS-16")
@pytest.mark.parametrize(
    ("revision", "first", "later"),
    [
        (MODERN, ["tools/list", "tools/call"], ["tools/call"]),
        (
            LEGACY,
            ["initialize", "notifications/initialized", "tools/list", "tools/call", "DELETE"],
            ["initialize", "notifications/initialized", "tools/call", "DELETE"],
        ),
    ],
)
def test_a_tool_of_a_server_elsewhere_is_called_and_witnessed(
    revision: str,
    first: list[str],
    later: list[str],
    bring: Callable[..., ToolVersion],
    remote: RemoteServer,
    caller: Caller,
) -> None:
    bring(revision=revision)

    answer = caller.invoke(TOOL, {"item": "a b"})
    asked_first = remote.asked()
    remote.heard.clear()
    again = caller.invoke(TOOL, {"item": "c"})

    assert answer.status_code == 200, answer.json()
    assert answer.json()["data"] == {"item": "a b", "price": 3}
    assert (asked_first, remote.asked(), again.status_code) == (first, later, 200)
    assert all(each.headers["authorization"] == f"Bearer {TOKEN}" for each in remote.heard)
    row = row_of(answer)
    assert kinds_of(row) == PAIR
    said = end_of(row)["service"]
    assert (said["method"], said["host"], said["path"], said["asks"]) == ("POST", HOST, "/mcp", "tools/call")
    assert (said["left"], said["complete"], said["status"]) == (True, True, 200)
    assert said["credentials"] == ["SHOP_TOKEN"]
    with signing_with():
        seal_everything()
        assert check_log(row.tenant_id) > 0


def test_the_grant_that_a_refusal_names_lets_the_call_through(
    bring: Callable[..., ToolVersion], caller: Caller, grant: Callable[..., Any]
) -> None:
    bring(granted=False)
    refused = assert_problem(caller.invoke(TOOL, {"item": "a"}), 403, "AUTH.NO_GRANT")
    smallest = refused["error"]["details"]["smallest_grant"]

    grant(tools=smallest["tools"], capabilities=smallest["capabilities"])

    assert caller.invoke(TOOL, {"item": "a"}).status_code == 200


@pytest.mark.req("SVC-6", "BRING-3")
def test_no_byte_of_a_tenants_token_is_in_a_box_while_it_is_used(
    bring: Callable[..., ToolVersion], remote: RemoteServer, caller: Caller, engine_boxes: DockerSandbox
) -> None:
    """In no memory, file, environment or log: looked at while the server keeps the call waiting."""
    bring()
    forms = [form.encode() for form in list_secret_forms(TOKEN)]
    searched: list[tuple[int, list[str]]] = []
    remote.while_called = lambda: searched.append(search_boxes(engine_boxes, forms))

    assert caller.invoke(TOOL, {"item": "a"}).status_code == 200

    ((looked, found),) = searched
    assert looked > 0
    assert found == []
    # What the box surely holds is found, so the search finds what is there.
    remote.while_called = lambda: searched.append(search_boxes(engine_boxes, [b"Get-Item"]))
    caller.invoke(TOOL, {"item": "a"})
    assert searched[-1][1]


@pytest.mark.req("SVC-6")
def test_the_token_is_given_to_the_gate_only(
    bring: Callable[..., ToolVersion], caller: Caller, boxes: RecordedBoxes
) -> None:
    bring()

    caller.invoke(TOOL, {"item": "a"})

    (call,) = boxes.calls
    assert call.secrets == {"SHOP_TOKEN": TOKEN}
    sent = pack_call(call, stream=True) + pack_load(Profile(), call, level="fresh", load_s=1)
    assert TOKEN.encode() not in sent


def test_bytes_become_artifacts_and_an_error_of_the_tool_is_its_own_word(
    bring: Callable[..., ToolVersion], caller: Caller
) -> None:
    bring("draw")
    bring("Get-Item")

    picture = caller.invoke(PICTURE, {})
    none = caller.invoke(TOOL, {"item": "none"})

    assert picture.json()["data"]["content"][0]["mimeType"] == "image/png"
    assert row_of(picture).artifacts.get().media_type == "image/png"
    body = assert_problem(none, 502, "DOMAIN.UPSTREAM_ERROR")
    assert "There is no such item." in json.dumps(body["error"])


@pytest.mark.req("BRING-3", "TOOLS-24")
@pytest.mark.parametrize(
    ("effect", "reason", "retryable"),
    [("Read", "DOMAIN.UPSTREAM_ERROR", "yes"), ("Network", "DOMAIN.SERVER_ERROR", "after_action")],
)
def test_what_the_server_calls_an_error_is_sent_again_only_where_that_does_nothing_twice(
    effect: str, reason: str, retryable: str, bring: Callable[..., ToolVersion], caller: Caller
) -> None:
    bring(side_effect=effect)
    asked = {"name": TOOL, "arguments": {"item": "none"}}

    over_rest = assert_problem(caller.invoke(TOOL, {"item": "none"}), 502, reason)["error"]
    sent = at_the_door(*modern_request(caller, "tools/call", asked, {}))

    assert sent.body["result"]["isError"], sent
    over_mcp = json.loads(sent.body["result"]["content"][0]["text"])["error"]
    for error in (over_rest, over_mcp):
        assert (error["reason"], error["retryable"]) == (reason, retryable)
        assert "There is no such item." in error["message"]


@pytest.mark.req("BRING-3", "TOOLS-24")
@pytest.mark.parametrize("status", [404, 413])
def test_a_call_that_is_refused_in_http_is_told_with_a_cause_that_holds_for_it(
    status: int, bring: Callable[..., ToolVersion], remote: RemoteServer, caller: Caller
) -> None:
    bring(side_effect="Network")
    remote.refuses = {"tools/call": status}

    error = assert_problem(caller.invoke(TOOL, {"item": "a"}), 502, "DOMAIN.SERVER_ERROR")["error"]

    assert str(status) in error["message"]
    assert "in HTTP" in find_problem_class(error["reason"]).cause


@pytest.mark.parametrize(
    ("hangs_up_on", "effect", "state", "reason", "left"),
    [
        ("tools/call", "Network", State.OUTCOME_UNKNOWN, "SERVICE.ANSWER_LOST", True),
        ("tools/call", "Read", State.FAILED, "DOMAIN.UPSTREAM_ERROR", True),
        ("tools/list", "Network", State.FAILED, "DOMAIN.UPSTREAM_ERROR", True),
    ],
)
def test_a_lost_answer_is_unknown_only_where_the_call_itself_left(
    hangs_up_on: str,
    effect: str,
    state: State,
    reason: str,
    left: bool,
    bring: Callable[..., ToolVersion],
    remote: RemoteServer,
    caller: Caller,
) -> None:
    bring(side_effect=effect)
    remote.hangs_up_on = hangs_up_on

    row = row_of(caller.invoke(TOOL, {"item": "a"}))

    assert (row.state, row.reason) == (state, reason)
    assert (end_of(row)["service"]["asks"], end_of(row)["service"]["left"]) == (hangs_up_on, left)


def test_a_server_that_does_not_take_the_token_says_so(
    bring: Callable[..., ToolVersion], remote: RemoteServer, caller: Caller
) -> None:
    bring()
    remote.token = "another"

    answer = caller.invoke(TOOL, {"item": "a"})

    assert_problem(answer, 502, "SERVICE.ACCESS_DENIED")
    assert TOKEN not in answer.content.decode()
    assert remote.asked() == ["tools/list"]


def test_the_reviewer_sees_the_address_and_the_credential(
    bring: Callable[..., ToolVersion], remote: RemoteServer, operator: Person
) -> None:
    version = bring()

    page = operator.client().get(reverse("review", args=[version.pk])).content.decode()

    assert f"https://{HOST}:{remote.port}/mcp" in page
    assert "in the header Authorization (bearer), added by the egress gate; no sandbox sees it" in page
    assert "Get-Item" in page


@pytest.mark.parametrize(
    ("status", "http", "reason"),
    [
        (500, 502, "DOMAIN.UPSTREAM_ERROR"),
        (503, 503, "SERVICE.BUSY"),
        (302, 502, "SERVICE.REDIRECTED"),
        (403, 502, "SERVICE.ACCESS_DENIED"),
    ],
)
def test_what_is_said_before_the_call_has_had_no_effect(
    status: int, http: int, reason: str, bring: Callable[..., ToolVersion], remote: RemoteServer, caller: Caller
) -> None:
    bring(side_effect="Network")
    remote.refuses = {"tools/list": status}

    answer = caller.invoke(TOOL, {"item": "a"})

    assert_problem(answer, http, reason)
    assert row_of(answer).state == State.FAILED
    assert "effect" not in answer.json()["error"]["remedy"]
    assert remote.asked() == ["tools/list"]


@pytest.mark.parametrize(("silent_on", "asked"), [("tools/list", False), ("tools/call", True)])
def test_who_is_timed_out_is_told_whether_the_tool_had_been_called(
    silent_on: str, asked: bool, bring: Callable[..., ToolVersion], remote: RemoteServer, caller: Caller
) -> None:
    bring(timeout_ms=1500)
    remote.silent_on = silent_on

    answer = caller.invoke(TOOL, {"item": "a"})

    assert row_of(answer).state == State.TIMED_OUT
    assert ("Check whether its effect took place" in answer.json()["error"]["remedy"]) is asked


def test_a_run_that_was_lost_before_the_call_had_no_effect(
    bring: Callable[..., ToolVersion], caller: Caller, boxes: RecordedBoxes
) -> None:
    bring(side_effect="Network")
    listed = ServiceRecord("POST", "/mcp", 200, True, True, asks="tools/list", counts=False)
    lost = RunOutcome(
        RunStatus.LOST, box="b", clean=False, connections=(ConnectionRecord(HOST, 1, True, rule=HOST, service=listed),)
    )
    boxes.instead = [lost] * 3

    row = row_of(caller.invoke(TOOL, {"item": "a"}))
    execution.run_queued_calls()

    row.refresh_from_db()
    assert (row.state, row.reason) == (State.FAILED, "SERVICE.UNREACHABLE")


def test_a_session_whose_end_is_not_answered_costs_no_result(
    bring: Callable[..., ToolVersion], remote: RemoteServer, caller: Caller
) -> None:
    bring(revision=LEGACY)
    remote.silent_on = "DELETE"

    answer = caller.invoke(TOOL, {"item": "a"})

    assert answer.json()["data"] == {"item": "a", "price": 3}
    assert remote.asked()[-1] == "DELETE"
