"""Feeds: one look a second for all pages of a tenant that are open at this process, however many there are.

The database is looked at, and nothing has to be sent: whatever another process has changed is heard of alike in the embedded default
and in the production shape, and a lost message cannot be. A feed begins with the first page of its tenant and ends with the last one.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from asgiref.sync import sync_to_async
from django.contrib.sessions.models import Session
from django.db import DatabaseError
from django.utils import timezone

from evidence.models import Fact
from kernel.database.connections import release_connection
from kernel.database.tenancy import acting_for, hub_wide
from kernel.ids import lowest_id
from toolhub.page_events.progress import read_progress
from toolhub.page_events.sessions import find_principal
from toolhub.page_events.topics import OF_PEOPLE, PERMISSIONS, find_topics, list_topics_for

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from uuid import UUID

    from kernel.principal import Principal
    from toolhub.page_events.sessions import SessionPrincipal

log = logging.getLogger("toolhub.page_events")
LOOK_EVERY_S = 1.0
# An id is given before its transaction is committed, by the clock of some host: a fact may come to be seen this much later.
OVERLAP = timedelta(seconds=10)
MOST_FACTS = 1000  # of one look; where there are more, everything is news
ASK_AGAIN_S = 60.0  # whether a person may still see the pages, when nothing says that this has changed


@dataclass(eq=False)
class Listener:
    """One open stream: whose it is, and what it has not been told yet. Used on the event loop only."""

    session_key: str
    principal: Principal
    session_data: str  # as it was when the person was last asked for by it
    topics: frozenset[str] = frozenset()
    asked_at: float = field(default_factory=time.monotonic)
    pending: set[str] = field(default_factory=set)
    is_over: bool = False
    _heard: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self.topics = list_topics_for(self.principal)

    def tell(self, topics: Collection[str]) -> None:
        if news := self.topics.intersection(topics):
            self.pending |= news
            self._heard.set()

    def end(self) -> None:
        self.is_over = True
        self._heard.set()

    async def wait(self, seconds: float) -> list[str]:
        """What there is to tell, in its order; nothing when the time is over first."""
        try:
            await asyncio.wait_for(self._heard.wait(), seconds)
        except TimeoutError:
            return []
        self._heard.clear()
        news, self.pending = sorted(self.pending), set()
        return news


@dataclass(frozen=True, slots=True)
class News:
    """What one look has found."""

    topics: Collection[str]
    people_changed: bool
    sessions: dict[str, str]  # data by key, of those that have not ended


class TenantFeed:
    """The looks at one tenant."""

    def __init__(self, tenant_id: UUID) -> None:
        self.tenant_id = tenant_id
        self.listeners: set[Listener] = set()
        self._seen: set[UUID] | None = None  # the facts of the overlap; None before the first look
        self._progress: dict[str, list[Any]] = {}
        self._task: asyncio.Task[None] | None = None

    def join(self, listener: Listener) -> None:
        self.listeners.add(listener)
        _streams[listener.principal.id] += 1
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._run())

    def leave(self, listener: Listener) -> None:
        self.listeners.discard(listener)
        _streams[listener.principal.id] -= 1
        if not _streams[listener.principal.id]:
            del _streams[listener.principal.id]

    async def _run(self) -> None:
        look = sync_to_async(self.look, thread_sensitive=False)
        ask = sync_to_async(find_principals, thread_sensitive=False)
        try:
            while self.listeners:
                try:
                    news = await look({each.session_key for each in self.listeners})
                    doubtful = self.list_doubtful(news)
                    self.tell(news, await ask(doubtful) if doubtful else {})
                except DatabaseError as error:
                    # The streams stay: pages show what they have, and hear all that is new when the database answers again.
                    log.warning("Open pages are not told what is new, the database does not answer: %s", error)
                await asyncio.sleep(LOOK_EVERY_S)
        finally:
            _feeds.pop(self.tenant_id, None)
            for each in list(self.listeners):  # who came while it ended, or something is wrong: browsers come again
                each.end()

    def list_doubtful(self, news: News) -> set[str]:
        """The keys of sessions of whose person it has to be asked again what may be seen."""
        now = time.monotonic()
        return {
            each.session_key
            for each in self.listeners
            if news.people_changed
            or news.sessions.get(each.session_key) != each.session_data
            or now - each.asked_at > ASK_AGAIN_S
        }

    def tell(self, news: News, principals: Mapping[str, SessionPrincipal | None]) -> None:
        """``principals``: those of the doubtful sessions, as they are now. A stream ends where a person is another one than it began
        with, or may do something else: the browser comes again, and gets what may be seen now, if anything.
        """
        for each in list(self.listeners):
            if each.session_key in principals:
                found = principals[each.session_key]
                if found is None or found.principal != each.principal:
                    each.end()
                    continue
                each.asked_at, each.session_data = time.monotonic(), found.session_data
            each.tell(news.topics)

    def look(self, session_keys: Collection[str]) -> News:
        """What is new since the last look. Runs in a thread, never twice at a time."""
        try:
            with acting_for(self.tenant_id):
                facts, progress = self._read_facts(), read_progress(self.tenant_id)
            with hub_wide():
                rows = Session.objects.filter(session_key__in=session_keys, expire_date__gt=timezone.now())
                sessions = dict(rows.values_list("session_key", "session_data"))
        finally:
            release_connection()
        if self._seen is None:
            topics, kinds = set[str](), set[str]()
        else:
            kinds = {kind for id, kind in facts.items() if id not in self._seen}
            moved = {topic for topic, marks in progress.items() if marks != self._progress.get(topic)}
            topics = find_topics(kinds) | moved if len(facts) < MOST_FACTS else set(PERMISSIONS)
        self._seen, self._progress = set(facts), progress
        return News(topics, not OF_PEOPLE.isdisjoint(kinds), sessions)

    def _read_facts(self) -> dict[UUID, str]:
        since = lowest_id(timezone.now() - OVERLAP)
        rows = Fact.objects.filter(tenant_id=self.tenant_id, id__gte=since).order_by("-id")
        return dict(rows.values_list("id", "kind")[:MOST_FACTS])


def find_principals(session_keys: Collection[str]) -> dict[str, SessionPrincipal | None]:
    try:
        return {key: find_principal(key) for key in session_keys}
    finally:
        release_connection()


# Changed by the one thread of the event loop.
_feeds: dict[UUID, TenantFeed] = {}
_streams: Counter[str] = Counter()  # by person


def join_feed(listener: Listener) -> TenantFeed:
    feed = _feeds.setdefault(listener.principal.tenant_id, TenantFeed(listener.principal.tenant_id))
    feed.join(listener)
    return feed


def count_streams(principal_id: str) -> int:
    """How many a person has open at this process. Any thread may ask."""
    return _streams[principal_id]
