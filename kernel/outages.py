"""Outages: how a process spares a service that did not answer, and everybody who would wait for it in vain."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import logging

ASK_AGAIN_S = 5.0


class Outage:
    """Of one service, as this process has seen it. Its beginning and its end are logged, once each."""

    def __init__(self, log: logging.Logger, *, gone: str, back: str, ask_again_s: float = ASK_AGAIN_S) -> None:
        self._log, self._gone, self._back, self._ask_again_s = log, gone, back, ask_again_s
        self._lock = threading.Lock()
        self._until = 0.0

    def is_on(self) -> bool:
        """Whether the service is left alone for now; from time to time somebody asks it again."""
        with self._lock:
            if not self._until or time.monotonic() < self._until:
                return bool(self._until)
            self._until = time.monotonic() + self._ask_again_s  # the others leave it alone meanwhile
            return False

    def begin(self, error: Exception) -> None:
        with self._lock:
            began, self._until = not self._until, time.monotonic() + self._ask_again_s
        if began:
            self._log.error("%s: %s", self._gone, error)

    def end(self) -> None:
        with self._lock:
            ended, self._until = bool(self._until), 0.0
        if ended:
            self._log.warning("%s", self._back)
