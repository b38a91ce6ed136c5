"""Listeners: do MCP clients hear of changes again when the hub that they listened to was stopped and started?"""

from __future__ import annotations

import asyncio
import json
import signal
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.client.subscriptions import SubscriptionLost

from tests.e2e.processes import PATIENCE_S, python, run
from tests.support.mcp_clients import BOTH, LEGACY, MODERN
from tests.support.mcp_streams import CHANGED, OLDER

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from tests.e2e.conftest import Embedded

TOOL = "sample.tools.raises"  # it is paused and resumed


@asynccontextmanager
async def listening_by_the_sdk(web: httpx2.AsyncClient, url: str) -> AsyncIterator[asyncio.Task[bool]]:
    async def hear() -> bool:
        with suppress(SubscriptionLost):
            async for _ in subscription:
                return True
        return False

    async with (
        Client(streamable_http_client(f"{url}/mcp", http_client=web), mode=MODERN) as client,
        client.listen(tools_list_changed=True) as subscription,
    ):
        yield asyncio.create_task(hear())


@asynccontextmanager
async def listening_with_get(web: httpx2.AsyncClient, url: str) -> AsyncIterator[asyncio.Task[bool]]:
    async def hear() -> bool:
        with suppress(httpx2.TransportError):
            async for line in answer.aiter_lines():
                if CHANGED in line:
                    return True
        return False

    async with web.stream("GET", f"{url}/mcp", headers=OLDER | {"Accept": "text/event-stream"}) as answer:
        assert answer.status_code == 200
        yield asyncio.create_task(hear())


@pytest.mark.req("CONN-4")
@pytest.mark.parametrize("mode", BOTH)
def test_who_listened_listens_again_when_the_hub_was_started_again(mode: str, own_hub: Embedded) -> None:
    key, by_hand = json.loads(run(python("-m", "bench.list_stream_setup", "1"), own_hub.env).splitlines()[-1])
    listening = listening_with_get if mode == LEGACY else listening_by_the_sdk

    async def change(web: httpx2.AsyncClient, what: str) -> None:
        answer = await web.post(
            f"{own_hub.url}/api/v1/installations/{TOOL}/{what}",
            json={"reason": "So that the list changes."},
            headers={"Authorization": f"Bearer {by_hand}"},
        )
        assert answer.status_code == 200, answer.text

    async def main() -> tuple[bool, bool, bool]:
        own_hub.process = process = own_hub.start()
        headers = {"Authorization": f"Bearer {key}"}
        async with httpx2.AsyncClient(headers=headers, timeout=PATIENCE_S, trust_env=False) as web:
            async with listening(web, own_hub.url) as hearing:
                await change(web, "pause")
                first = await hearing
            async with listening(web, own_hub.url) as hearing:
                process.send(signal.SIGINT)
                ended = await hearing
            assert process.ended(within_s=PATIENCE_S) == 0, process.said()
            own_hub.process = own_hub.start()
            async with listening(web, own_hub.url) as hearing:
                await change(web, "resume")
                again = await hearing
        own_hub.process.stop(signal.SIGINT)
        return first, ended, again

    assert asyncio.run(main()) == (True, False, True)
