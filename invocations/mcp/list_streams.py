"""List streams: how a client hears that its list of tools is another one.

Before 2026-07-28 with GET: server-sent events, each with the digest of the list as its id, so that who comes back with it
(`Last-Event-ID`) is told at once if the list has changed meanwhile, by any process. Since then with `subscriptions/listen`.
Both say only that there is something new; the client lists again.
"""

from __future__ import annotations

import asyncio
import json
import random
from typing import TYPE_CHECKING, Any

from mcp.shared.subscriptions import SUBSCRIPTION_ID_META_KEY
from mcp_types import (
    SubscriptionFilter,
    SubscriptionsAcknowledgedNotification,
    SubscriptionsAcknowledgedNotificationParams,
    SubscriptionsListenRequestParams,
    SubscriptionsListenResult,
)

from invocations.mcp.errors import error_of
from invocations.mcp.request_context import get_mcp_request
from kernel.problems import Problem

if TYPE_CHECKING:
    from mcp.server.context import ServerRequestContext

    from invocations.mcp.list_watch import Ear, ListWatch
    from kernel.http.body_limits import Receive, Send
    from kernel.principal import Principal

HEARTBEAT_S = 25.0  # proxies close what says nothing for half a minute
RETRY_MS = 2000
# After the end of a process: time for the next one to start, and not for all at once. Some clients try only twice.
RETRY_LATER_MS = (8_000, 15_000)
HEADERS = [
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),
]
CHANGED = "notifications/tools/list_changed"
CHANGE = json.dumps({"jsonrpc": "2.0", "method": CHANGED})


def build_change(subscription_id: str | int | None) -> str:
    """As JSON, since 2026-07-28."""
    meta = {SUBSCRIPTION_ID_META_KEY: subscription_id}
    return json.dumps({"jsonrpc": "2.0", "method": CHANGED, "params": {"_meta": meta}})


def write_change_event(problem: Problem) -> bytes:
    """Before 2026-07-28, at the end of a stream: without an id, so that who comes back is told what is true by then."""
    del problem
    retry_ms = random.randint(*RETRY_LATER_MS)  # noqa: S311  so that they do not all come back at once
    return f"retry: {retry_ms}\nevent: message\ndata: {CHANGE}\n\n".encode()


async def send_list_changes(
    send: Send, receive: Receive, *, by: Principal, lists: ListWatch, told: str, primes: bool
) -> None:
    """A stream of its own, until the client goes or the process ends.

    ``told``: the id of the last event that the client had. ``primes``: the client takes an event that has an id and no data.
    """
    async with lists.listen(by) as ear:
        await send({"type": "http.response.start", "status": 200, "headers": HEADERS})
        await _write(send, f"retry: {RETRY_MS}\n" + (f"id: {ear.digest}\ndata:\n\n" if primes else "\n"))
        if told and told != ear.digest:
            await _write_change(send, ear)
        telling = asyncio.ensure_future(_tell_until_closed(send, ear))
        gone = asyncio.ensure_future(_wait_until_gone(receive))
        try:
            await asyncio.wait({telling, gone}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            telling.cancel()
            gone.cancel()
        await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _tell_until_closed(send: Send, ear: Ear) -> None:
    while True:
        try:
            async with asyncio.timeout(HEARTBEAT_S):
                heard = await ear.hear()
        except TimeoutError:
            await _write(send, ": here\n\n")
            continue
        if not heard:
            await _write(send, f"retry: {random.randint(*RETRY_LATER_MS)}\n\n")  # noqa: S311
            return
        await _write_change(send, ear)


async def _write(send: Send, text: str) -> None:
    await send({"type": "http.response.body", "body": text.encode(), "more_body": True})


async def _write_change(send: Send, ear: Ear) -> None:
    await _write(send, f"id: {ear.digest}\nevent: message\ndata: {CHANGE}\n\n")


async def _wait_until_gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def listen_for_changes(
    context: ServerRequestContext[Any, Any], params: SubscriptionsListenRequestParams
) -> SubscriptionsListenResult:
    """Since 2026-07-28. Of what a client asks for the hub has changes of the list of tools; the acknowledgement says so."""
    arrival, meta = get_mcp_request(context), {SUBSCRIPTION_ID_META_KEY: context.request_id}
    offered = SubscriptionFilter(tools_list_changed=params.notifications.tools_list_changed)
    # Thousands are told at once; by way of the SDK each would take a millisecond of the event loop.
    change = build_change(context.request_id)
    try:
        async with arrival.lists.listen(arrival.by) as ear:
            await context.session.send_notification(
                SubscriptionsAcknowledgedNotification(
                    params=SubscriptionsAcknowledgedNotificationParams(notifications=offered, _meta=meta)
                ),
                related_request_id=context.request_id,
            )
            while await ear.hear():
                if offered.tools_list_changed:
                    await arrival.answer.push(change, second=True)
    except Problem as problem:
        raise error_of(problem) from problem
    return SubscriptionsListenResult(_meta=meta)
