"""Lost operations: of a call whose service, answer or run was lost, is it known whether it took effect, and is none made twice?"""

from __future__ import annotations

import json
import random
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from django.utils import timezone

from invocations.models import Attempt, Invocation, State
from invocations.run import execution
from invocations.sandbox.base import ConnectionRecord, RunOutcome, RunStatus, ServiceRecord
from tests.egress.services import Cut, Service, answer_with, serving, wired
from tests.egress.shop import ITEM, TOOL, document_of, end_of
from tests.egress.world import HOST, Authority
from tests.support.calls import kinds_of, row_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from registry.models import ToolVersion
    from tests.conftest import Caller
    from tests.egress.recorded_boxes import RecordedBoxes

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("shop_boxes")]


@pytest.mark.req("BRING-1")
@pytest.mark.parametrize(
    ("options", "method", "state", "reason", "left"),
    [
        pytest.param({"refuses": 9}, "DELETE", State.FAILED, "SERVICE.UNREACHABLE", False, id="never left"),
        pytest.param({"hangs_up": "head"}, "DELETE", State.OUTCOME_UNKNOWN, "SERVICE.ANSWER_LOST", True, id="left"),
        pytest.param({"hangs_up": "head"}, "GET", State.FAILED, "DOMAIN.UPSTREAM_ERROR", True, id="only reads"),
        pytest.param(
            {"answers": [b"HTTP/1.1 201 Created\r\nContent-Length: 9\r\n\r\nhalf"], "hangs_up": "answer"},
            *("DELETE", State.OUTCOME_UNKNOWN, "SERVICE.ANSWER_LOST", True),
            id="half an answer",
        ),
        pytest.param(
            {"answers": [b"HTTP/1.1 200 OK\r\nContent-Length: 99999999\r\n\r\n"]},
            *("DELETE", State.FAILED, "SERVICE.ANSWER_UNUSABLE", True),
            id="too large",
        ),
        pytest.param(
            {"answers": [answer_with(b"<html>", content_type="text/html")]},
            *("DELETE", State.FAILED, "SERVICE.ANSWER_UNUSABLE", True),
            id="a page",
        ),
    ],
)
def test_a_lost_answer_is_unknown_only_where_something_left_and_it_matters(
    options: dict[str, Any],
    method: str,
    state: State,
    reason: str,
    left: bool,
    bring_operation: Callable[..., ToolVersion],
    caller: Caller,
    authority: Authority,
) -> None:
    with serving(authority.server_context(HOST), **options) as service:
        bring_operation(document_of(service.port, method))
        row = row_of(caller.invoke(TOOL, ITEM))

    assert (row.state, row.reason) == (state, reason)
    assert end_of(row)["service"]["left"] is left
    assert len(service.heard) <= 1


LOST_RUN = RunOutcome(RunStatus.LOST, box="b", clean=False)


def attempts_of(row: Any) -> list[str]:
    return list(Attempt.objects.filter(invocation=row).order_by("number").values_list("status", flat=True))


@pytest.mark.req("BRING-1")
def test_a_run_that_was_lost_is_made_again_where_nothing_had_left(
    bring_operation: Callable[..., ToolVersion], caller: Caller, service: Service, shop_boxes: RecordedBoxes
) -> None:
    bring_operation(document_of(service.port, "DELETE"))
    shop_boxes.instead = [LOST_RUN]

    row = row_of(caller.invoke(TOOL, ITEM))
    execution.run_queued_calls()

    row.refresh_from_db()
    assert (row.state, attempts_of(row)) == (State.SUCCEEDED, ["unsent", "ok"])
    assert "invocation.retried" in kinds_of(row)
    assert len(service.heard) == 1


@pytest.mark.req("BRING-1")
def test_a_call_of_which_nothing_ever_left_is_not_unknown(
    bring_operation: Callable[..., ToolVersion], caller: Caller, service: Service, shop_boxes: RecordedBoxes
) -> None:
    bring_operation(document_of(service.port, "DELETE"))
    shop_boxes.instead = [LOST_RUN] * 3

    row = row_of(caller.invoke(TOOL, ITEM))
    execution.run_queued_calls()

    row.refresh_from_db()
    assert (row.state, row.reason) == (State.FAILED, "SERVICE.UNREACHABLE")
    assert attempts_of(row) == ["unsent", "unsent", "lost"]
    assert service.connections == 0


@pytest.mark.req("BRING-1")
@pytest.mark.parametrize("left", [False, True])
def test_whoever_cancels_is_told_whether_anything_was_sent(
    left: bool, bring_operation: Callable[..., ToolVersion], caller: Caller, service: Service, shop_boxes: RecordedBoxes
) -> None:
    bring_operation(document_of(service.port, "DELETE"))
    sent = ConnectionRecord(HOST, service.port, True, rule=HOST, service=ServiceRecord("DELETE", "/x", left=left))

    def cancel(outcome: RunOutcome) -> RunOutcome:
        Invocation.objects.update(cancel_asked_at=timezone.now())
        return RunOutcome(RunStatus.CANCELLED, box="b", clean=False, connections=(sent,))

    shop_boxes.change = cancel
    answer = caller.invoke(TOOL, ITEM)

    error = answer.json()["error"]
    assert row_of(answer).state == State.CANCELLED
    assert (error["message"] == "This call was cancelled before anything was sent to the service.") is not left
    assert ("Nothing took place." in error["remedy"]) is not left


@pytest.mark.req("BRING-1")
def test_of_a_keyed_call_that_left_once_nobody_says_that_nothing_left(
    bring_operation: Callable[..., ToolVersion], caller: Caller, service: Service, shop_boxes: RecordedBoxes
) -> None:
    keyed = document_of(service.port, "DELETE", idempotency_header="Idempotency-Key") | {"idempotency": "keyed"}
    bring_operation(keyed)
    left = ConnectionRecord(HOST, service.port, True, rule=HOST, service=ServiceRecord("DELETE", "/x", left=True))
    shop_boxes.instead = [replace(LOST_RUN, connections=(left,)), LOST_RUN, LOST_RUN]

    row = row_of(caller.invoke(TOOL, ITEM, headers={"Idempotency-Key": "once"}))
    execution.run_queued_calls()

    row.refresh_from_db()
    assert attempts_of(row)[:2] == ["lost", "unsent"]
    assert row.state == State.OUTCOME_UNKNOWN


@pytest.mark.req("BRING-1")
def test_a_run_that_was_lost_after_its_request_left_is_not_made_again(
    bring_operation: Callable[..., ToolVersion], caller: Caller, service: Service, shop_boxes: RecordedBoxes
) -> None:
    bring_operation(document_of(service.port, "DELETE"))

    def lose(outcome: RunOutcome) -> RunOutcome:
        (connection,) = outcome.connections
        assert connection.service is not None
        cut = replace(connection, service=replace(connection.service, complete=False))
        return RunOutcome(RunStatus.LOST, box="b", clean=False, connections=(cut,))

    shop_boxes.change = lose
    row = row_of(caller.invoke(TOOL, ITEM))

    assert (row.state, row.reason, len(shop_boxes.calls)) == (State.OUTCOME_UNKNOWN, "SERVICE.ANSWER_LOST", 1)
    assert len(service.heard) == 1


CUTS = 200


@pytest.mark.long  # two hundred calls, each of which may be asked for twice
@pytest.mark.req("BRING-1", "SVC-6", "TOOLS-16")
def test_of_two_hundred_killed_connections_none_is_repeated_that_left_or_unknown_that_did_not(
    bring_operation: Callable[..., ToolVersion], caller: Caller, authority: Authority
) -> None:
    """The connection of a DELETE ends anywhere: in the handshake of TLS, in the request, in the answer. Where nothing of the request
    can have left, the service is asked once all the same; where something has, it is asked once at most, and the outcome is unknown
    unless the answer is whole."""
    body = json.dumps({"ok": True, "more": "x" * 2000}).encode()
    chance = random.Random(4711)
    counted: Counter[str] = Counter()
    with (
        serving(
            authority.server_context(HOST), answers=[answer_with(body, content_type="application/json")]
        ) as service,
        wired(service.port) as wire,
    ):
        bring_operation(document_of(wire.port, "DELETE"))
        assert caller.invoke(TOOL, ITEM).status_code == 200
        whole = wire.passed[0]
        hello = whole[0][1]
        second = next(place for place, (side, _) in enumerate(whole) if side == "question" and place)
        shaken = wire.count(whole[:second], "answer")  # by now the gate has done its part of the handshake
        for number in range(CUTS):
            side = chance.choice(("question", "answer"))
            cut = Cut(side, chance.randrange(wire.count(whole, side)), chance.random() < 0.5)
            wire.passed.clear()
            wire.cuts = [cut] * chance.choice((1, 1, 2))

            row = row_of(caller.invoke(TOOL, {"item": f"n{number}"}))

            said = end_of(row)["service"]
            what = f"{number}: {cut}, {row.state} {row.reason}, {said}, {len(wire.passed)} connections"
            is_unsent = cut.after < (hello if side == "question" else shaken)
            assert said["left"], what  # in the end: the last connection is not cut
            if is_unsent:
                assert (row.state, len(wire.passed)) == (State.SUCCEEDED, len(wire.cuts) + 1), what
            else:
                assert len(wire.passed) == 1, what
                assert row.state == (State.SUCCEEDED if said["complete"] else State.OUTCOME_UNKNOWN), what
                assert said["complete"] or row.reason == "SERVICE.ANSWER_LOST", what
            counted["repeated" if is_unsent else str(row.state)] += 1

    asked = Counter(each.split(b" ")[1] for each in service.heard if each.count(b" ") > 1)
    assert max(asked.values()) == 1, asked
    assert counted["repeated"] > CUTS // 4
    assert counted[State.OUTCOME_UNKNOWN] > CUTS // 4
