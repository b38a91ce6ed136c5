"""List watch: is each stream told of its own list, once, and of nobody else's?"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest
from django.db import OperationalError

from invocations.mcp import list_watch
from invocations.mcp.list_digests import ListOwner
from invocations.mcp.list_watch import ListWatch, ReadDigests, close_streams
from invocations.problems import TooManyStreams
from kernel.principal import ActorKind, Principal
from kernel.problems import Internal, Problem

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from uuid import UUID


def agent() -> Principal:
    return Principal(ActorKind.AGENT, id="agt_1", name="one", tenant_id=uuid4(), agent_id=uuid4())


class Lists:
    """In the place of the database: what each list is by now. Whoever changes it waits for the look that finds it."""

    def __init__(self) -> None:
        self.digests: dict[ListOwner, str] = {}
        self.asked: list[tuple[set[ListOwner], set[ListOwner]]] = []
        self.fails: Exception | None = None
        self.fail_of: dict[UUID, Problem] = {}
        self.looked = asyncio.Event()

    def read(self, owners: Any, new: Any) -> ReadDigests:
        self.asked.append((set(owners), set(new)))
        self.looked.set()
        if self.fails is not None:
            raise self.fails
        read = {owner: self.digests.get(owner, "first") for owner in owners if owner.tenant_id not in self.fail_of}
        return ReadDigests(read, self.fail_of)

    async def change(self, by: Principal, digest: str) -> None:
        self.digests[ListOwner.of(by)] = digest
        for _ in range(2):  # the one that is under way may have been before it
            self.looked.clear()
            await self.looked.wait()


def run(
    monkeypatch: pytest.MonkeyPatch, say: Callable[[ListWatch, Lists], Coroutine[Any, Any, None]]
) -> list[tuple[set[ListOwner], set[ListOwner]]]:
    """What the database was asked for while ``say`` went on."""
    monkeypatch.setattr(list_watch, "LOOK_EVERY_S", 0.001)
    monkeypatch.setattr(list_watch, "LONGEST_DELAY_S", 0.0)

    async def in_thread(work: Callable[[], Any]) -> Any:
        return work()

    async def main() -> list[Any]:
        lists = Lists()
        await asyncio.wait_for(say(ListWatch(in_thread, lists), lists), timeout=30)  # type: ignore[arg-type]
        return lists.asked

    return asyncio.run(main())


@pytest.mark.req("CONN-4")
def test_who_listens_is_told_when_the_list_is_another_one_and_nobody_else_is(monkeypatch: pytest.MonkeyPatch) -> None:
    one, two = agent(), agent()

    async def say(watch: ListWatch, lists: Lists) -> None:
        async with watch.listen(one) as first, watch.listen(one) as second, watch.listen(two) as other:
            await lists.change(one, "next")
            assert await first.hear()
            assert await second.hear()
            assert (first.digest, second.digest, other.digest) == ("next", "next", "first")
            await lists.change(one, "next")
            assert not any(ear._news.is_set() for ear in (first, second, other))

    run(monkeypatch, say)


@pytest.mark.req("CONN-4")
def test_changes_that_come_together_are_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    one = agent()

    async def say(watch: ListWatch, lists: Lists) -> None:
        async with watch.listen(one) as ear:
            for digest in ("next", "first", "last"):  # before anybody was told
                watch._spread({ListOwner.of(one): digest})
            lists.digests[ListOwner.of(one)] = "last"
            assert await ear.hear()
            assert (ear.digest, ear._news.is_set()) == ("last", False)

    run(monkeypatch, say)


@pytest.mark.req("CONN-4")
def test_a_stream_begins_with_what_the_list_is_and_is_asked_about_with_all_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    people = [agent() for _ in range(3)]

    async def say(watch: ListWatch, lists: Lists) -> None:
        async def listen(by: Principal) -> None:
            async with watch.listen(by) as ear:
                assert ear.digest == "first"
                await all_there.wait()

        all_there = asyncio.Event()
        streams = [asyncio.ensure_future(listen(by)) for by in people]
        while len(lists.asked) < 2 or len(lists.asked[-1][0]) < 3:
            lists.looked.clear()
            await lists.looked.wait()
        all_there.set()
        await asyncio.gather(*streams)

    asked = run(monkeypatch, say)

    assert asked[0] == (asked[0][1], {ListOwner.of(by) for by in people})
    assert asked[1][1] == set()


@pytest.mark.req("CONN-4")
def test_nothing_is_asked_while_nobody_listens(monkeypatch: pytest.MonkeyPatch) -> None:
    async def say(watch: ListWatch, lists: Lists) -> None:
        async with watch.listen(agent()):
            pass
        assert watch._task is not None
        await watch._task
        before = len(lists.asked)
        async with watch.listen(agent()):  # and the next one begins it again
            assert len(lists.asked) > before

    run(monkeypatch, say)


@pytest.mark.req("CONN-4")
def test_no_agent_listens_with_more_streams_than_it_may(monkeypatch: pytest.MonkeyPatch, settings: Any) -> None:
    settings.TOOLHUB_STREAMS_PER_AGENT = 2
    monkeypatch.setattr(list_watch, "MAX_STREAMS", 3)
    one, two = agent(), agent()

    async def say(watch: ListWatch, _: Lists) -> None:
        async with watch.listen(one), watch.listen(one):
            with pytest.raises(TooManyStreams, match="This agent listens with 2 streams"):
                watch.check_room(one)
            async with watch.listen(two):
                with pytest.raises(TooManyStreams, match="As many streams as this process keeps"):
                    watch.check_room(two)
        watch.check_room(one)
        assert not watch._of_agent

    run(monkeypatch, say)


@pytest.mark.req("CONN-4")
def test_a_database_that_is_away_refuses_who_comes_and_keeps_who_listens(monkeypatch: pytest.MonkeyPatch) -> None:
    one = agent()

    async def say(watch: ListWatch, lists: Lists) -> None:
        async with watch.listen(one) as ear:
            lists.fails = OperationalError("away")
            with pytest.raises(Problem):
                async with watch.listen(agent()):
                    pass
            lists.fails = None
            await lists.change(one, "next")
            assert await ear.hear()

    run(monkeypatch, say)


@pytest.mark.req("CONN-4")
def test_a_process_that_ends_ends_its_streams(monkeypatch: pytest.MonkeyPatch) -> None:
    async def say(watch: ListWatch, _: Lists) -> None:
        async with watch.listen(agent()) as ear:
            close_streams()
            assert not await ear.hear()
        async with watch.listen(agent()) as late:
            assert not await late.hear()

    run(monkeypatch, say)


@pytest.mark.req("CONN-4")
def test_what_is_wrong_with_the_lists_of_one_tenant_refuses_nobody_of_another(monkeypatch: pytest.MonkeyPatch) -> None:
    async def say(watch: ListWatch, lists: Lists) -> None:
        bad, good = agent(), agent()
        lists.fail_of = {bad.tenant_id: Internal()}

        async def begin(by: Principal) -> str:
            async with watch.listen(by) as ear:
                return ear.digest

        found = await asyncio.gather(begin(bad), begin(good), return_exceptions=True)

        assert isinstance(found[0], Problem)
        assert found[1] == "first"

    run(monkeypatch, say)
