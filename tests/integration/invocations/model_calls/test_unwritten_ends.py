"""Unwritten ends: what becomes of a call, and of who waits for it, where its End is in danger: nobody to write it, nothing to
write, nobody there?
"""

from __future__ import annotations

import asyncio
import json
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, NoReturn

import pytest
from django.db import OperationalError

from access.budgets.services import set_budget
from invocations import services
from invocations.model_calls import api, model_runs
from invocations.models import Invocation
from tests.integration.invocations.model_calls.test_streamed_answers import open_stream, tell
from tests.support.budgets import DAY, balance
from tests.support.calls import PAIR, assert_problem, kinds_of, row_of
from tests.support.connected_models import connect_scripted_model
from tests.support.model_calls import HeldChat, OpenStream, ask, build_body, leaf_of, say, until

if TYPE_CHECKING:
    from kernel.http.deferred_responses import Handler
    from registry.models import Tool
    from tests.conftest import Caller, Person
    from tests.support.model_calls import ProviderBench

pytestmark = pytest.mark.django_db(transaction=True)


def fail(*_: Any, **__: Any) -> NoReturn:
    raise OperationalError("the database is away")


def break_down(*_: Any, **__: Any) -> NoReturn:
    raise ZeroDivisionError


@pytest.fixture
def unwritable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_runs, "write_ending", fail)
    monkeypatch.setattr(api, "LATE_S", 1.0)
    monkeypatch.setattr(model_runs.ModelRun, "timeout_s", 1.0)


@pytest.mark.req("LLM-11")
@pytest.mark.usefixtures("unwritable")
def test_who_waits_for_an_end_that_cannot_be_written_is_told_at_once_that_the_call_is_open(
    caller: Caller, model: Tool, bench: ProviderBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks, find = [], services.find_answer

    def count(*given: Any, **more: Any) -> Any:
        looks.append(more)
        return find(*given, **more)

    monkeypatch.setattr(services, "find_answer", count)

    async def story(handler: Handler) -> Any:
        request = OpenStream(handler, caller, build_body(caller, say("Hello")), accept="application/json")
        await request.send()
        await request.read()
        return request.status, json.loads(request.text)

    status, said = tell(story)

    assert len(looks) == 1
    assert (status, said["call"]["state"]) == (202, "running")


@pytest.mark.req("LLM-11")
@pytest.mark.usefixtures("unwritable")
def test_a_stream_whose_end_cannot_be_written_says_so_and_does_not_just_break_off(
    caller: Caller, model: Tool, bench: ProviderBench
) -> None:
    async def story(handler: Handler) -> Any:
        stream = open_stream(handler, caller)
        await stream.send()
        return await stream.read()

    events = tell(story)

    assert (events[-1][0], events[-1][1]["reason"]) == ("error", "EVIDENCE.UNAVAILABLE")


@pytest.mark.req("LLM-11")
def test_a_caller_that_leaves_between_the_last_word_and_the_end_does_not_take_the_end_away(
    caller: Caller, model: Tool, bench: ProviderBench
) -> None:
    async def story(handler: Handler) -> Any:
        chat, free = HeldChat(), threading.Event()
        bench.chat = chat
        stream = open_stream(handler, caller)
        await stream.send()
        await stream.read(until="Begin")
        busy = ThreadPoolExecutor(1)  # in which Ends are written
        asyncio.get_running_loop().set_default_executor(busy)
        busy.submit(free.wait, 30)
        chat.go_on.set()
        await stream.read(until="finish_reason")
        await until(lambda: chat.closed)
        await stream.leave()
        free.set()

    tell(story)

    call = Invocation.objects.get()
    assert (call.state, kinds_of(call)) == ("succeeded", PAIR)


@pytest.mark.req("LLM-11")
@pytest.mark.unmapped
def test_an_answer_that_the_hub_cannot_count_is_an_end_all_the_same(
    caller: Caller, model: Tool, bench: ProviderBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model_runs, "build_model_report", break_down)

    answer = ask(caller, say("Hello"))

    assert_problem(answer, 500, "UNKNOWN.INTERNAL")
    assert kinds_of(row_of(answer)) == PAIR


@pytest.mark.req("LLM-11")
@pytest.mark.unmapped
def test_an_answer_that_cannot_be_stored_is_settled_by_what_it_took(
    caller: Caller, operator: Person, model: Tool, bench: ProviderBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    budget = set_budget(scope="tenant", dimension="tokens", amount=10_000, window_s=365 * DAY, by=operator.by)
    monkeypatch.setattr(model_runs, "bound_vectors", break_down)

    answer = ask(caller, say("Hello"))

    assert_problem(answer, 500, "UNKNOWN.INTERNAL")
    assert kinds_of(row_of(answer)) == PAIR
    assert leaf_of(row_of(answer), "invocation.ended")["model"]["settled_by"] == "provider"
    assert balance(budget) == (12, 0)


@pytest.mark.req("LLM-11")
@pytest.mark.parametrize("count", [1, 70_000], ids=["few", "so many that their digest is kept"])
def test_a_number_that_no_vector_can_hold_is_a_problem_of_the_provider(
    count: int, caller: Caller, operator: Person, model: Tool, bench: ProviderBench
) -> None:
    connect_scripted_model(operator.by, "vectors", operation="embed", unpriced="count")
    bench.vectors = ((1e300,) * count,)

    answer = ask(caller, {"items": ["x"], "normalize": False}, model="model.script.vectors", operation="embed")

    assert_problem(answer, 502, "PROVIDER.BAD_RESPONSE")
    assert kinds_of(row_of(answer)) == PAIR
