"""Addresses for open pages: the stream of topics that are news, and the counts of the navigation.

The stream says names of topics and nothing else: what became of them a page asks for at its own address, where all is checked as ever.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from django.http import HttpResponse, JsonResponse, StreamingHttpResponse
from django.views.decorators.http import require_GET

from kernel.http.console import ConsoleRequest, needs
from kernel.http.deferred_responses import find_event_loop
from kernel.problems import TooManyRequests
from registry.halt_notices import read_halt_notices
from toolhub.page_events.feeds import Listener, count_streams, join_feed
from toolhub.page_events.sessions import find_principal
from toolhub.sidebar import list_counts

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

HEARTBEAT_S = 15.0
MOST_STREAMS = 20  # of one person at one process; a browser has one, whatever the number of its tabs


@require_GET
@needs("invocations.view")
def follow_topics(request: ConsoleRequest) -> HttpResponse:
    """Server-sent events: the names of topics of which there is news, as they come. 204: not here, ask now and then."""
    session_key = request.session.session_key
    found = find_principal(session_key) if session_key and find_event_loop(request) else None
    if found is None or session_key is None:
        return HttpResponse(status=204)
    if count_streams(found.principal.id) >= MOST_STREAMS:
        raise TooManyRequests(f"This person has {MOST_STREAMS} streams open here already.")
    listener = Listener(session_key, found.principal, found.session_data)
    return StreamingHttpResponse(  # type: ignore[return-value]
        stream_topics(listener),
        content_type="text/event-stream",
        headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
    )


async def stream_topics(listener: Listener) -> AsyncIterator[str]:
    """The text of the stream, until its reader has gone or may not read it any more."""
    feed = join_feed(listener)
    try:
        yield "retry: 2000\n\n"
        spoke = time.monotonic()
        while not listener.is_over:
            if topics := await listener.wait(HEARTBEAT_S):
                yield f"data: {' '.join(topics)}\n\n"
                spoke = time.monotonic()
            elif time.monotonic() - spoke >= HEARTBEAT_S:
                yield ": here\n\n"
                spoke = time.monotonic()
    finally:
        feed.leave(listener)


@require_GET
@needs("invocations.view")
def count_for_navigation(request: ConsoleRequest) -> HttpResponse:
    """By the names that the sidebar has for them, how many things wait for a person, or are stopped."""
    counts = list_counts(request, read_halt_notices(request))
    return JsonResponse(counts, headers={"Cache-Control": "no-store"})
