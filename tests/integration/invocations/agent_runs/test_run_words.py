"""Run words: are a model's words told while they come, each once, in their place, and only those that a stream of the answer would
tell?
"""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest
import redis
from asgiref.sync import sync_to_async
from django.db import connections

from invocations.agent_runs import run_words
from invocations.agent_runs.event_stream import RunFollower, RunStreamCursor
from invocations.agent_runs.run_words import read_run_words
from invocations.event_streams.stream import StreamCredentials
from invocations.model_calls import background_runs, live_words, model_runs
from invocations.model_calls.background_runs import start_background_run
from invocations.model_calls.live_words import KEY, InProcessWords, LiveWords, RedisWords
from kernel.ids import new_id
from llm.answers import ChatDelta, FinishReason
from llm.interfaces import ChatModel
from llm.usage import Usage
from tests.conftest import make_caller
from tests.support.agent_runs import ECHO, list_calls, run_of, submit
from tests.support.model_calls import parse_events, say, until
from tests.support.policies_in_force import permit, put_in_force
from tests.support.scripted_models import EVERYTHING

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable
    from uuid import UUID

    from invocations.agent_runs.models import AgentRun
    from invocations.model_calls.live_words import WordStore
    from llm.requests import ChatRequest
    from tests.conftest import Caller, Person
    from tests.support.agent_runs import RunDriver
    from tests.support.model_calls import ProviderBench

pytestmark = pytest.mark.django_db(transaction=True)


@dataclass
class DictatedChat(ChatModel):
    """Says what it is told to say, when it is told; an empty text ends the answer."""

    features: Any = EVERYTHING
    texts: asyncio.Queue[str] = field(default_factory=asyncio.Queue)

    async def open_stream(self, request: ChatRequest) -> AsyncGenerator[ChatDelta, None]:
        while text := await self.texts.get():
            yield ChatDelta(text=text, model="script-001")
        yield ChatDelta(finish_reason=FinishReason.STOP, usage=Usage(10, 5))


@pytest.fixture
def chat(grant: Callable[..., Any], bench: ProviderBench, driver: RunDriver) -> DictatedChat:
    grant()
    bench.chat = dictated = DictatedChat()
    return dictated


@pytest.fixture(params=["embedded", "production"])
def store(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> WordStore:
    """As in each shape: there one for the process, here one for the process that asks the model, and one for that of the follower."""
    url = os.environ["TOOLHUB_TEST_REDIS_URL"]
    asking: WordStore = InProcessWords() if request.param == "embedded" else RedisWords(url)
    following: WordStore = asking if request.param == "embedded" else RedisWords(url)
    monkeypatch.setattr(live_words, "get_word_store", lambda: asking)
    monkeypatch.setattr(run_words, "get_word_store", lambda: following)
    monkeypatch.setattr(live_words, "EVERY_S", 0.01)
    return following


@pytest.fixture
def tell(monkeypatch: pytest.MonkeyPatch, driver: RunDriver) -> Callable[[Any], Any]:
    """What a story comes to that begins when the model is asked, on the event loop for such calls."""

    def run_story(story: Any) -> Any:
        async def whole() -> Any:
            loop = asyncio.get_running_loop()
            monkeypatch.setattr(background_runs._background, "get", lambda: loop)
            await in_thread(start_background_run, driver.begun.pop())
            found = await story()
            await until(lambda: not model_runs._whole_runs)
            await in_thread(connections.close_all)
            return found

        return asyncio.run(whole())

    return run_story


async def in_thread(work: Callable[..., Any], *arguments: Any) -> Any:
    return await sync_to_async(work)(*arguments)


class Reader:
    """One who follows a run."""

    def __init__(self, run: AgentRun, caller: Caller, last: str = "") -> None:
        credentials = StreamCredentials(caller.key, "127.0.0.1")
        self.follower = RunFollower(run.pk, credentials, RunStreamCursor.read(last))
        self.text = ""

    async def look(self) -> list[tuple[str, Any]]:
        text = await in_thread(self.follower.look)
        self.text += text
        return parse_events(text)


def delta(text: str, *, offset: int = 0) -> tuple[str, dict[str, Any]]:
    return "model.delta", {"turn": 1, "step": 0, "offset": offset, "text": text}


async def until_said(store: WordStore, call_id: UUID, text: str) -> None:
    await until(lambda: store.read(call_id) == text.encode())


@pytest.mark.req("LLM-5")
def test_words_are_told_each_once_in_their_place_before_the_whole_answer(
    store: WordStore, chat: DictatedChat, caller: Caller, tell: Callable[[Any], Any]
) -> None:
    run = run_of(submit(caller))
    call_id = list_calls(run)[0].pk

    async def story() -> Any:
        first, told = Reader(run, caller), []
        chat.texts.put_nowait("Grüße 😀")
        await until_said(store, call_id, "Grüße 😀")
        told += [await first.look(), await first.look()]
        chat.texts.put_nowait(", world")
        await until_said(store, call_id, "Grüße 😀, world")
        told += [await first.look(), await Reader(run, caller).look(), await Reader(run, caller, "1").look()]
        words = await in_thread(read_run_words, run)
        chat.texts.put_nowait("")
        await until(lambda: not model_runs._whole_runs)
        return told, words, await first.look(), first.text

    (begin, nothing, more, late, resumed), words, rest, text = tell(story)

    assert (begin[0][0], begin[1:]) == ("model.asked", [delta("Grüße 😀")])
    assert (nothing, more) == ([], [delta(", world", offset=7)])
    assert ([kind for kind, _ in late], late[1:]) == (["model.asked", "model.delta"], [delta("Grüße 😀, world")])
    assert resumed == [delta("Grüße 😀, world")]
    assert words == "Grüße 😀, world"
    assert [kind for kind, _ in rest] == ["model.answered", "end"]
    assert rest[0][1]["text"] == "Grüße 😀, world"
    assert [line for line in text.splitlines() if line.startswith("id: ")] == ["id: 1", "id: 2", "id: over"]
    assert store.read(call_id) == b""
    assert read_run_words(run) == ""


OBLIGED = {"id": "hide", "effect": "oblige", "when": {}, "obligations": [{"action": "mask", "detector": "email"}]}


@pytest.mark.req("LLM-5")
@pytest.mark.parametrize("why", ["obligations", "json"])
def test_what_is_not_known_before_it_is_whole_is_not_told_before(
    why: str, store: WordStore, chat: DictatedChat, caller: Caller, tell: Callable[[Any], Any]
) -> None:
    asked = say("Which?", tools=[ECHO])
    if why == "json":
        asked["response_format"] = {"type": "json"}
    else:
        put_in_force(permit(), OBLIGED, tenant=caller.agent.tenant)
    run = run_of(submit(caller, arguments=asked))
    call_id = list_calls(run)[0].pk

    async def story() -> Any:
        reader = Reader(run, caller)
        chat.texts.put_nowait('{"mail": "ann@example.org"}')
        await until(lambda: chat.texts.empty())
        before = await reader.look(), await in_thread(read_run_words, run), store.read(call_id)
        chat.texts.put_nowait("")
        await until(lambda: not model_runs._whole_runs)
        return before, await reader.look()

    (told, words, kept), rest = tell(story)

    assert ([kind for kind, _ in told], words, kept) == (["model.asked"], "", b"")
    assert rest[0][0] == "model.answered"
    assert ("ann@" in rest[0][1]["text"]) is (why == "json")


@pytest.mark.req("LLM-5")
def test_who_may_not_see_a_run_is_told_no_word_of_it(
    store: WordStore, chat: DictatedChat, caller: Caller, operator: Person, tell: Callable[[Any], Any]
) -> None:
    run = run_of(submit(caller))
    call_id, other = list_calls(run)[0].pk, make_caller(operator.by, "other")

    async def story() -> Any:
        chat.texts.put_nowait("Quokka")
        await until_said(store, call_id, "Quokka")
        found = Reader(run, other)
        await found.look()
        chat.texts.put_nowait("")
        return found.text

    text = tell(story)

    assert "Quokka" not in text
    assert [kind for kind, _ in parse_events(text)] == ["error"]


@pytest.mark.req("LLM-5")
def test_however_fast_a_model_speaks_it_is_written_down_a_few_times_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[bytes] = []
    store = InProcessWords()
    monkeypatch.setattr(store, "add", lambda _, words, keep_s: written.append(words))
    monkeypatch.setattr(live_words, "get_word_store", lambda: store)
    monkeypatch.setattr(live_words, "EVERY_S", 3600)

    async def story() -> None:
        words = LiveWords(new_id(), followed_id=new_id())
        words.add("first", keep_s=1)
        await until(lambda: written)
        for n in range(1000):
            words.add(str(n), keep_s=1)
            await asyncio.sleep(0)
        await words.stop()

    asyncio.run(story())

    assert written == [b"first"]


@pytest.mark.req("LLM-5")
def test_of_a_very_long_answer_no_more_than_its_beginning_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    store, id = InProcessWords(), new_id()
    monkeypatch.setattr(live_words, "get_word_store", lambda: store)
    monkeypatch.setattr(live_words, "MAX_BYTES", 10)

    async def story() -> None:
        words = LiveWords(id, followed_id=id)
        for _ in range(5):
            words.add("ü" * 3, keep_s=1)
        await until(lambda: store.read(id))
        await words.stop()

    asyncio.run(story())

    assert store.read(id).decode() == "ü" * 6


@pytest.mark.req("LLM-5")
def test_words_in_redis_are_gone_when_their_time_is_over_whatever_became_of_the_process() -> None:
    url, id = os.environ["TOOLHUB_TEST_REDIS_URL"], new_id()
    store, client = RedisWords(url), redis.Redis.from_url(url)

    store.add(id, b"Half", keep_s=30)
    assert 0 < client.ttl(KEY.format(id)) <= 31
    store.add(id, b" a word", keep_s=30)
    assert store.read(id, after=4) == b" a word"
    store.drop(id)
    assert store.read(id) == b""


@pytest.mark.req("LLM-5")
def test_a_run_goes_on_where_nobody_can_be_told(
    chat: DictatedChat, caller: Caller, tell: Callable[[Any], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    away = RedisWords("redis://127.0.0.1:1/0")
    monkeypatch.setattr(live_words, "get_word_store", lambda: away)
    monkeypatch.setattr(run_words, "get_word_store", lambda: away)
    run = run_of(submit(caller))

    async def story() -> Any:
        for text in ("Hello", ""):
            chat.texts.put_nowait(text)
        await until(lambda: not model_runs._whole_runs)
        return await Reader(run, caller).look()

    told = tell(story)

    assert [kind for kind, _ in told] == ["model.asked", "model.answered", "end"]
    assert told[1][1]["text"] == "Hello"
