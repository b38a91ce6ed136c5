"""Unmapped errors: who hears of something that went wrong and that nobody had thought of.

Whatever code of ours logs with its stack is such a thing: known failures are problems and have none. A handler in LOGGING, and
not one that is added later: Celery's worker sets Django up once more, which takes those away.
"""

from __future__ import annotations

import logging

from django.dispatch import Signal

unmapped = Signal()  # record: what was logged


class UnmappedErrorHandler(logging.Handler):
    """Receivers raise nothing: who writes to a log must never fail for it."""

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info and record.exc_info[0] is not None:
            unmapped.send(sender=UnmappedErrorHandler, record=record)
