"""Request ids: is a request_id that was used before said in the answer, whichever way the call is made and answered?"""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest
from asgiref.sync import async_to_sync, sync_to_async
from django.test import AsyncClient

from invocations.models import Invocation
from kernel.http.deferred_responses import WAITS, WaitingResponse

if TYPE_CHECKING:
    from collections.abc import Callable

    from registry.models import Tool
    from tests.conftest import Caller
    from tests.support.calls import Bell, ScriptedSandbox

pytestmark = pytest.mark.django_db
ECHO = "sample.tools.echo"
KEY = {"Idempotency-Key": "order-1"}


class WaitingClient(AsyncClient):
    """Understands an answer that is not there yet, as the hub's own handler does."""

    async def request(self, **scope: Any) -> Any:
        return await super().request(**scope | {WAITS: asyncio.get_running_loop()})


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
    """Over ASGI, where a view may answer later."""

    async def ask() -> Any:
        client = WaitingClient()
        body, address = json.dumps(said(caller, request_id)), f"/api/v1/tools/{ECHO}/invoke"
        headers_of_all = caller.headers() | headers
        later = await client.post(address, body, content_type="application/json", headers=headers_of_all)
        assert isinstance(later, WaitingResponse)
        later.request = later.asgi_request
        try:
            return await later.filled(lambda work: sync_to_async(work)())
        finally:
            later.give_up()

    return async_to_sync(ask)()


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
