"""Begin gates: what holds a run of a model back until the Begin of its call is committed.

What a run needs before it asks is prepared while the database writes the Begin to its disk. Nothing leaves this process before it is
there, and nothing of a call whose Begin was not committed.
"""

from __future__ import annotations

import asyncio


class BeginGate:
    """Of one run. Opened or closed for good on the event loop that the run waits on."""

    def __init__(self) -> None:
        self._is_decided = asyncio.Event()
        self._is_open = False

    def open(self) -> None:
        """The Begin is committed."""
        self._is_open = True
        self._is_decided.set()

    def close(self) -> None:
        """There is no such call."""
        self._is_decided.set()

    async def wait(self) -> None:
        """Raises :class:`asyncio.CancelledError` where there is no such call: whoever waits here ends."""
        await self._is_decided.wait()
        if not self._is_open:
            raise asyncio.CancelledError
