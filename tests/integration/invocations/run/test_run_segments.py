"""Run segments: does a run that goes on for long leave evidence before its End?"""

from __future__ import annotations

import json
import threading
from typing import TYPE_CHECKING, Any

import pytest

from evidence.models import Fact, Snapshot
from evidence.services import open_values
from invocations.run.live_output import write_segment
from invocations.sandbox.base import RunEvent
from tests.support.calls import PAIR, kinds_of, row_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from invocations.models import Invocation
    from registry.models import Tool
    from tests.conftest import Caller, Person
    from tests.support.calls import Bell, ScriptedSandbox

pytestmark = pytest.mark.django_db(transaction=True)
ECHO = "sample.tools.echo"
LOOKS = 400


@pytest.fixture
def queued(
    caller: Caller, enable: Callable[..., Tool], grant: Callable[..., Any], bell: Bell, sandbox: ScriptedSandbox
) -> Invocation:
    enable()
    grant()
    bell.answers = False
    return row_of(caller.invoke(ECHO, {"text": "x"}, headers={"Prefer": "respond-async"}))


def segments_of(call: Invocation) -> list[dict[str, Any]]:
    facts = Fact.objects.filter(invocation_id=call.pk, kind="invocation.segment").order_by("id")
    return [json.loads(bytes(fact.leaf))["data"] for fact in facts]


def until_there_are(call: Invocation, number: int) -> None:
    pause = threading.Event()
    for _ in range(LOOKS):
        if len(segments_of(call)) >= number:
            return
        pause.wait(0.05)
    raise AssertionError(segments_of(call))


@pytest.mark.req("TOOLS-32", "TOOLS-18")
def test_what_a_long_run_says_becomes_a_chain_of_segments(
    queued: Invocation, bell: Bell, sandbox: ScriptedSandbox, auditor: Person, settings: Any
) -> None:
    settings.TOOLHUB_SEGMENT_S = 0

    def speak() -> None:
        for number in (1, 2):
            sandbox.tell(RunEvent("stdout", f"said {number}\n"))
            sandbox.tell(RunEvent("progress", progress={"fraction": number / 4}))
            until_there_are(queued, number)
        sandbox.tell(RunEvent("stdout", "said at last\n"))

    sandbox.during = speak
    bell.deliver()

    kinds = kinds_of(queued)
    assert (kinds[0], kinds[-1]) == tuple(PAIR)
    assert set(kinds[1:-1]) == {"invocation.segment"}
    said = segments_of(queued)
    facts = list(Fact.objects.filter(invocation_id=queued.pk).order_by("id"))
    assert [each["number"] for each in said] == list(range(1, len(said) + 1))
    assert [each["after"] for each in said] == [bytes(fact.leaf_hash).hex() for fact in facts[: len(said)]]
    sealed = list(Snapshot.objects.filter(invocation_id=queued.pk, kind="segment").order_by("number"))
    assert [each["said"]["commit"] for each in said] == [row.commitment for row in sealed]
    lines = [line["text"] for row in sealed for line in open_values(row)["lines"]]
    assert lines == ["said 1", "said 2", "said at last"]
    assert b"said 1" not in b"".join(bytes(fact.leaf) for fact in facts)
    page = auditor.client().get(f"/invocations/{queued.wire_id}")
    assert page.content.count(b"Progress recorded") == 1  # the others are folded
    assert f"{len(said) - 1} more times by the same" in page.content.decode()
    shown = auditor.client().post(f"/invocations/{queued.wire_id}/values", {"reason": "looking into what it said"})
    assert b"said at last" in shown.content


def test_a_short_run_leaves_none_unless_it_told_its_caller_something(
    queued: Invocation, caller: Caller, bell: Bell, sandbox: ScriptedSandbox
) -> None:
    sandbox.during = lambda: sandbox.tell(RunEvent("stdout", "for the author\n"))
    bell.deliver()
    again = row_of(caller.invoke(ECHO, {"text": "y"}, headers={"Prefer": "respond-async"}))
    sandbox.during = lambda: sandbox.tell(RunEvent("progress", progress={"log": "for the caller"}))
    bell.deliver()

    assert kinds_of(queued) == PAIR
    assert kinds_of(again) == [PAIR[0], "invocation.segment", PAIR[1]]
    assert segments_of(again)[0]["lines"] == {"first": 1, "last": 1, "count": 1}


def test_a_run_that_lost_its_call_adds_nothing_to_its_evidence(queued: Invocation) -> None:
    assert not write_segment(queued, {"attempt": 0, "progress": None, "lines": []})
    assert kinds_of(queued) == PAIR[:1]


@pytest.mark.req("TOOLS-25")
def test_what_is_to_be_redacted_is_not_sealed_with_what_was_said(
    queued: Invocation, bell: Bell, sandbox: ScriptedSandbox, settings: Any
) -> None:
    settings.TOOLHUB_SEGMENT_S = 0
    queued.obligations = [{"action": "redact", "detector": "all"}]
    queued.save(update_fields=["obligations"])

    def speak() -> None:
        sandbox.tell(RunEvent("progress", progress={"fraction": 0.5, "message": "mail to john@example.com"}))
        sandbox.tell(RunEvent("progress", progress={"log": "mail to jack@example.com"}))
        until_there_are(queued, 1)
        sandbox.tell(RunEvent("stdout", "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADAN\n"))

    sandbox.during = speak
    bell.deliver()

    rows = Snapshot.objects.filter(invocation_id=queued.pk, kind="segment").order_by("number")
    sealed = [open_values(row) for row in rows]
    assert [line["text"] for line in sealed[0]["lines"]] == ["mail to [redacted:email]"]
    assert not [word for word in ("@example.com", "MIIE") if word in json.dumps(sealed)]
