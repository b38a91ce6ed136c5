"""Request ids: is a request_id that was used before said in the answer, whichever way the call is made and answered?"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from invocations.models import Invocation
from tests.support.deferred_answers import post_without_a_thread

if TYPE_CHECKING:
    from collections.abc import Callable

    from registry.models import Tool
    from tests.conftest import Caller
    from tests.support.calls import Bell, ScriptedSandbox

pytestmark = pytest.mark.django_db
ECHO = "sample.tools.echo"
KEY = {"Idempotency-Key": "order-1"}


@pytest.fixture(autouse=True)
def ready(enable: Callable[..., Tool], grant: Callable[..., Any], bell: Bell, sandbox: ScriptedSandbox) -> None:
    enable(idempotency="keyed")
    grant()


def said(caller: Caller, request_id: str) -> dict[str, Any]:
    actor = {"type": "agent", "id": caller.agent.name}
    return {"request_id": request_id, "actor": actor, "arguments": {"text": "a"}}


def waited_for(caller: Caller, request_id: str, **headers: str) -> Any:
    return caller.post(f"/tools/{ECHO}/invoke", said(caller, request_id), **headers)


def answered_at_once(caller: Caller, request_id: str, **headers: str) -> Any:
    answer = waited_for(caller, request_id, Prefer="respond-async", **headers)
    assert answer.status_code == 202
    return answer


def answered_without_a_thread(caller: Caller, request_id: str, **headers: str) -> Any:
    return post_without_a_thread(f"/tools/{ECHO}/invoke", said(caller, request_id), caller.headers() | headers)


def proposed(caller: Caller, request_id: str, **headers: str) -> Any:
    return caller.post("/proposals", said(caller, request_id) | {"name": ECHO, "call_id": "call_7Qx1"}, **headers)


WAYS: dict[str, Callable[..., Any]] = {
    "waited for": waited_for,
    "answered at once": answered_at_once,
    "answered without a thread": answered_without_a_thread,
    "proposed": proposed,
}


@pytest.mark.req("SPEC-9")
@pytest.mark.parametrize("way", WAYS)
def test_a_request_id_that_was_used_before_is_said_in_the_answer_and_runs_again(
    way: str, caller: Caller, bell: Bell, sandbox: ScriptedSandbox
) -> None:
    def told(request_id: str, **headers: str) -> dict[str, Any]:
        answer: dict[str, Any] = json.loads(WAYS[way](caller, request_id, **headers).content)
        return answer

    first, second = told("order-2026-11"), told("order-2026-11")
    keyed, other = told("order-2026-11", **KEY), told("order-2026-12")
    bell.deliver()

    assert first["call"]["call_id"] != second["call"]["call_id"]
    assert first["warnings"] == keyed["warnings"] == other["warnings"] == []
    (warning,) = second["warnings"]
    assert f"This request_id was used before, by the call {first['call']['call_id']}" in warning
    assert "Idempotency-Key" in warning
    assert len(sandbox.calls) == Invocation.objects.filter(state="succeeded").count() == 4


@pytest.mark.req("SPEC-9")
@pytest.mark.parametrize("before", WAYS)
@pytest.mark.parametrize("way", WAYS)
def test_the_earlier_call_may_have_been_made_in_any_way(way: str, before: str, caller: Caller) -> None:
    first = json.loads(WAYS[before](caller, "order-2026-11").content)

    (warning,) = json.loads(WAYS[way](caller, "order-2026-11").content)["warnings"]

    assert first["call"]["call_id"] in warning
