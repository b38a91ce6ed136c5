"""Timer: what a call costs, as the quickest of some batches, because a busy machine only adds."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

BATCHES, CALLS = 8, 50


async def measure_microseconds(call: Callable[[], Awaitable[Any]]) -> float:
    await call()
    found = []
    for _ in range(BATCHES):
        begun = time.perf_counter()
        for _ in range(CALLS):
            await call()
        found.append((time.perf_counter() - begun) / CALLS * 1e6)
    return min(found)
