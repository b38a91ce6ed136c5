"""Deferred answers: what a caller gets over ASGI, where a view may answer later and no thread waits."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from asgiref.sync import async_to_sync, sync_to_async
from django.test import AsyncClient

from kernel.http.deferred_responses import WAITS, WaitingResponse


class WaitingClient(AsyncClient):
    """Understands an answer that is not there yet, as the hub's own handler does."""

    async def request(self, **scope: Any) -> Any:
        return await super().request(**scope | {WAITS: asyncio.get_running_loop()})


def post_without_a_thread(path: str, body: Any, headers: dict[str, str]) -> Any:
    """The answer that came later, below ``/api/v1``."""

    async def ask() -> Any:
        client = WaitingClient()
        later = await client.post(f"/api/v1{path}", json.dumps(body), content_type="application/json", headers=headers)
        assert isinstance(later, WaitingResponse)
        later.request = later.asgi_request
        try:
            return await later.filled(lambda work: sync_to_async(work)())
        finally:
            later.give_up()

    return async_to_sync(ask)()
