"""Streamed answers: does an answer come while the model writes it, and what becomes of it when somebody leaves?"""

from __future__ import annotations

import asyncio
import json
import threading
from typing import TYPE_CHECKING, Any

import pytest
from asgiref.sync import sync_to_async
from django.db import connections

from access.budgets.services import set_budget
from access.services import give_grant
from invocations.decide import rules
from invocations.model_calls import model_runs, run_keeper
from invocations.model_calls.request_data import inspect_request
from invocations.models import Invocation
from kernel.http.deferred_responses import Handler
from llm.answers import ChatDelta, FinishReason
from llm.problems import StreamTruncated
from tests.support.budgets import DAY, assert_conserved, balance
from tests.support.calls import PAIR, kinds_of
from tests.support.connected_models import connect_scripted_model
from tests.support.model_calls import HeldChat, OpenStream, build_body, say, until

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from uuid import UUID

    from access.models import Budget
    from registry.models import Tool
    from tests.conftest import Caller, Person
    from tests.support.model_calls import ProviderBench

pytestmark = pytest.mark.django_db(transaction=True)
STREAMS = 60  # more than threads of the handler, and than connections of a pool


@pytest.fixture
def tokens(operator: Person) -> Budget:
    return set_budget(scope="tenant", dimension="tokens", amount=1_000_000, window_s=365 * DAY, by=operator.by)


def tell(story: Callable[[Handler], Coroutine[Any, Any, Any]], *, threads: int = 4) -> Any:
    """What a story on an event loop comes to, once all its runs have written their End."""

    async def whole() -> Any:
        found = await story(Handler(threads))
        await until(lambda: not model_runs._whole_runs)
        await sync_to_async(connections.close_all)()  # of the thread that async queries run in
        return found

    return asyncio.run(whole())


def open_stream(handler: Handler, caller: Caller, text: str = "Hello", **more: Any) -> OpenStream:
    return OpenStream(handler, caller, build_body(caller, say(text), **more))


def cancel(caller: Caller, call: Invocation) -> Any:
    try:
        return caller.delete(f"/invocations/{call.wire_id}")
    finally:
        connections.close_all()


@pytest.mark.req("LLM-5")
def test_pieces_come_as_events_and_the_last_one_is_the_whole_answer(
    caller: Caller, model: Tool, bench: ProviderBench
) -> None:
    async def story(handler: Handler) -> Any:
        stream = open_stream(handler, caller)
        await stream.send()
        return await stream.read(), stream.status

    events, status = tell(story)

    deltas, (last, envelope) = [data for event, data in events if event == "delta"], events[-1]
    assert status == 200
    assert "".join(each.get("text", "") for each in deltas) == "Hi there" == envelope["data"]["text"]
    assert deltas[-1]["finish_reason"] == envelope["data"]["finish_reason"] == "stop"
    assert (last, envelope["ok"], envelope["call"]["state"]) == ("end", True, "succeeded")
    assert kinds_of(Invocation.objects.get()) == PAIR


@pytest.mark.req("LLM-5", "LLM-13")
def test_the_first_piece_is_there_while_the_model_goes_on_and_nothing_of_the_database_is_held(
    caller: Caller, model: Tool, bench: ProviderBench
) -> None:
    async def story(handler: Handler) -> Any:
        chat = bench.chat = HeldChat()
        stream = open_stream(handler, caller)
        await stream.send()
        first = await stream.read(until="Begin")
        await until(lambda: chat.waiting == 1)
        chat.go_on.set()
        return first, await stream.read()

    first, whole = tell(story)

    assert [event for event, _ in first] == ["delta"]
    assert whole[-1][1]["data"]["text"] == "Beginning"


@pytest.mark.req("LLM-5")
def test_many_more_streams_than_threads_are_open_at_once_and_all_are_served(
    caller: Caller, model: Tool, bench: ProviderBench
) -> None:
    async def story(handler: Handler) -> Any:
        chat = bench.chat = HeldChat()
        before = set(threading.enumerate())  # other tests may have left some
        streams = [open_stream(handler, caller) for _ in range(STREAMS)]
        for stream in streams:
            await stream.send()
        for stream in streams:
            await stream.read(until="Begin")
        await until(lambda: chat.waiting == STREAMS)
        working = [each for each in threading.enumerate() if each.name.startswith("request") and each not in before]
        chat.go_on.set()
        return len(working), [await stream.read() for stream in streams]

    threads, answers = tell(story, threads=2)

    assert threads <= 2
    assert [events[-1][0] for events in answers] == ["end"] * STREAMS
    assert Invocation.objects.filter(state="succeeded").count() == STREAMS


@pytest.mark.req("LLM-5")
@pytest.mark.parametrize("script", [(ChatDelta(text="Half"), StreamTruncated()), (ChatDelta(text="Half"),)])
def test_what_breaks_off_after_the_first_piece_is_an_error_event_and_no_clean_end(
    script: Any, caller: Caller, model: Tool, bench: ProviderBench, tokens: Budget
) -> None:
    bench.scripts = [script]

    async def story(handler: Handler) -> Any:
        stream = open_stream(handler, caller)
        await stream.send()
        return await stream.read()

    events = tell(story)

    assert [event for event, _ in events] == ["delta", "error"]
    assert events[-1][1]["error"]["reason"] == "PROVIDER.STREAM_TRUNCATED"
    assert kinds_of(Invocation.objects.get()) == PAIR
    assert balance(tokens)[0] > 0


@pytest.mark.req("LLM-7")
def test_a_caller_that_leaves_closes_the_providers_stream_and_pays_by_estimate(
    caller: Caller, model: Tool, bench: ProviderBench, tokens: Budget
) -> None:
    async def story(handler: Handler) -> HeldChat:
        chat = bench.chat = HeldChat()
        stream = open_stream(handler, caller)
        await stream.send()
        await stream.read(until="Begin")
        await stream.leave()
        return chat

    chat = tell(story)

    call = Invocation.objects.get()
    assert (chat.asked, chat.closed, chat.waiting) == (1, 1, 0)
    assert (call.state, call.reason, kinds_of(call)) == ("cancelled", "REQUEST.CANCELLED", PAIR)
    used, held = balance(tokens)
    assert (used > 0, held) == (True, 0)
    assert_conserved()


@pytest.mark.req("LLM-5")
def test_a_caller_that_leaves_before_its_stream_begins_ends_the_call(
    caller: Caller, model: Tool, bench: ProviderBench
) -> None:
    async def story(handler: Handler) -> HeldChat:
        chat = bench.chat = HeldChat()
        stream, is_begun = open_stream(handler, caller), asyncio.Event()

        async def take_nothing(message: Any) -> None:
            is_begun.set()
            await asyncio.Event().wait()

        received = [{"type": "http.request", "body": stream._body, "more_body": False}]

        async def receive() -> Any:
            if received:
                return received.pop()
            await is_begun.wait()
            return {"type": "http.disconnect"}

        await handler(stream.communicator.scope, receive, take_nothing)
        return chat

    chat = tell(story)

    call = Invocation.objects.get()
    assert (chat.waiting, call.state, kinds_of(call)) == (0, "cancelled", PAIR)


@pytest.mark.req("LLM-5")
def test_a_caller_that_leaves_before_the_whole_answer_is_there_ends_the_call_too(
    caller: Caller, model: Tool, bench: ProviderBench
) -> None:
    async def story(handler: Handler) -> HeldChat:
        chat = bench.chat = HeldChat()
        request = OpenStream(handler, caller, build_body(caller, say("Hello")), accept="application/json")
        await request.send()
        await until(lambda: chat.waiting == 1)
        await request.leave()
        return chat

    chat = tell(story)

    call = Invocation.objects.get()
    assert (chat.closed, call.state, kinds_of(call)) == (1, "cancelled", PAIR)


@pytest.mark.req("LLM-5")
def test_the_whole_answer_is_waited_for_without_a_thread(caller: Caller, model: Tool, bench: ProviderBench) -> None:
    async def story(handler: Handler) -> Any:
        chat = bench.chat = HeldChat()
        requests = [
            OpenStream(handler, caller, build_body(caller, say("Hello")), accept="application/json") for _ in range(9)
        ]
        for request in requests:
            await request.send()
        await until(lambda: chat.waiting == 9)
        chat.go_on.set()
        for request in requests:
            await request.read()
        return [request.status for request in requests]

    assert tell(story, threads=1) == [200] * 9


@pytest.mark.req("LLM-5")
def test_streams_of_several_tenants_in_one_process_are_looked_after_alike(
    caller: Caller,
    foreign_caller: Caller,
    stranger: Person,
    model: Tool,
    bench: ProviderBench,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(run_keeper, "LOOK_EVERY_S", 0.05)
    connect_scripted_model(stranger.by, unpriced="count")
    give_grant(agent_id=foreign_caller.agent.pk, tools="model.*", reason="for a test", by=stranger.by)
    looks = []
    find_unwanted = run_keeper.find_unwanted

    def look(ids: Any, **more: Any) -> set[UUID]:
        found = find_unwanted(ids, **more)
        looks.append((len(ids), found))
        return found

    monkeypatch.setattr(run_keeper, "find_unwanted", look)

    async def story(handler: Handler) -> Any:
        chat = bench.chat = HeldChat()
        streams = [open_stream(handler, each) for each in (caller, foreign_caller)]
        for stream in streams:
            await stream.send()
            await stream.read(until="Begin")
        await until(lambda: any(count == 2 for count, _ in looks))
        chat.go_on.set()
        return [await stream.read() for stream in streams]

    answers = tell(story)

    assert [found for _, found in looks if found] == []
    assert [events[-1][0] for events in answers] == ["end", "end"]


@pytest.mark.req("LLM-5")
def test_a_call_that_is_cancelled_while_the_model_answers_closes_its_stream(
    caller: Caller, model: Tool, bench: ProviderBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_keeper, "LOOK_EVERY_S", 0.05)

    async def story(handler: Handler) -> Any:
        chat = bench.chat = HeldChat()
        stream = open_stream(handler, caller)
        await stream.send()
        await stream.read(until="Begin")
        call = await Invocation.objects.aget()
        cancelled = await sync_to_async(cancel, thread_sensitive=False)(caller, call)
        return chat, cancelled, await stream.read()

    chat, cancelled, events = tell(story)

    call = Invocation.objects.get()
    assert cancelled.status_code in (200, 202)
    assert (chat.closed, call.state) == (1, "cancelled")
    assert kinds_of(call) == [PAIR[0], "invocation.cancel_asked", PAIR[1]]
    assert (events[-1][0], events[-1][1]["error"]["reason"]) == ("error", "REQUEST.CANCELLED")


@pytest.mark.req("LLM-5")
def test_a_long_answer_keeps_its_lease(
    caller: Caller, model: Tool, bench: ProviderBench, monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    monkeypatch.setattr(run_keeper, "LOOK_EVERY_S", 0.05)
    settings.TOOLHUB_LEASE_S = 0.15

    async def story(handler: Handler) -> Any:
        chat = bench.chat = HeldChat()
        stream = open_stream(handler, caller)
        await stream.send()
        await stream.read(until="Begin")
        first = (await Invocation.objects.aget()).lease_until
        async with asyncio.timeout(20):
            while (await Invocation.objects.aget()).lease_until == first:
                await asyncio.sleep(0.02)
        chat.go_on.set()
        return (await stream.read())[-1][0]

    assert tell(story) == "end"


@pytest.mark.req("LLM-9", "LLM-14")
def test_an_answer_that_takes_too_long_is_a_timeout(
    caller: Caller, model: Tool, bench: ProviderBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model_runs.ModelRun, "timeout_s", 0.2)

    async def story(handler: Handler) -> Any:
        bench.chat = HeldChat()
        stream = open_stream(handler, caller)
        await stream.send()
        return await stream.read()

    events = tell(story)

    assert events[-1][1]["error"]["reason"] == "LLM.TIMEOUT"
    assert Invocation.objects.get().state == "timed_out"


@pytest.mark.req("LLM-5", "LLM-8")
def test_json_is_sent_as_a_whole_since_it_is_checked_first(caller: Caller, model: Tool, bench: ProviderBench) -> None:
    bench.scripts = [(ChatDelta(text='{"a":'), ChatDelta(text="1}"), ChatDelta(finish_reason=FinishReason.STOP))]

    async def story(handler: Handler) -> Any:
        body = build_body(caller, say("Hello", response_format={"type": "json"}))
        stream = OpenStream(handler, caller, body)
        await stream.send()
        return await stream.read()

    events = tell(story)

    assert [data.get("text") for event, data in events if event == "delta"] == ['{"a":1}', None]
    assert events[-1][1]["data"]["output"] == {"a": 1}


@pytest.mark.req("LLM-4")
def test_a_request_is_looked_through_in_a_thread_before_its_model_is_asked(
    caller: Caller, model: Tool, bench: ProviderBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads, inspect = [], inspect_request

    def looked_at(*given: Any, **more: Any) -> Any:
        threads.append(threading.get_ident())
        return inspect(*given, **more)

    monkeypatch.setattr(rules, "inspect_request", looked_at)

    async def story(handler: Handler) -> Any:
        stream = open_stream(handler, caller, "Write to ann@example.org.")
        await stream.send()
        return await stream.read(), threading.get_ident()

    events, of_loop = tell(story)

    assert (len(threads), of_loop in threads) == (1, False)
    assert "ann@example.org" not in repr(bench.requests)
    assert events[-1][1]["warnings"] == [
        "Before the model was asked, sensitive data in the request were masked: 1 email."
    ]


@pytest.mark.req("LLM-5")
def test_an_agent_has_so_many_streams_at_once_and_one_that_has_ended_makes_room(
    caller: Caller, model: Tool, bench: ProviderBench, settings: Any
) -> None:
    settings.TOOLHUB_MODEL_STREAMS_PER_AGENT = 2

    async def story(handler: Handler) -> Any:
        chat = bench.chat = HeldChat()
        streams = [open_stream(handler, caller) for _ in range(4)]
        for stream in streams[:2]:
            await stream.send()
            await stream.read(until="Begin")
        await streams[2].send()
        await streams[2].read()
        chat.go_on.set()
        for stream in streams[:2]:
            await stream.read()
        await streams[3].send()
        return streams[2], await streams[3].read()

    refused, after = tell(story)

    assert (refused.status, json.loads(refused.text)["error"]["reason"]) == (429, "STREAM.TOO_MANY")
    assert after[-1][0] == "end"
    assert sorted(Invocation.objects.values_list("state", flat=True)) == [
        "failed",
        "succeeded",
        "succeeded",
        "succeeded",
    ]
