"""Loops: how a thread does something again and again, whatever goes wrong with it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import DatabaseError, InterfaceError

from kernel.database.change_watch import news
from kernel.database.connections import release_connection
from kernel.observability.log_context import bind_log_context

if TYPE_CHECKING:
    import logging
    import threading
    from collections.abc import Callable


class Rest(float):
    """Seconds to rest, said by a piece of work that knows better than the loop."""


def repeat_work(
    work: Callable[[], object],
    stop: threading.Event,
    *,
    every_s: float,
    what: str,
    log: logging.Logger,
    expected: tuple[type[Exception], ...] = (),
    until_news: bool = True,
) -> None:
    """Do a piece of work until told to stop, and rest between: ``every_s`` seconds, or as many as the piece returns (:class:`Rest`).
    In a hub that is one process it rests on while nobody has written anything (:mod:`kernel.database.change_watch`), unless
    the work looks
    at more than the database (``until_news``).

    What goes wrong is logged as ``what`` (how a sentence begins: "Callbacks were not sent") and tried again; that the database is
    away, and what is ``expected``, without the traceback.
    """
    known: tuple[type[Exception], ...] = (DatabaseError, InterfaceError, *expected)
    kept = None  # the file that the connection was opened on
    while not stop.is_set():
        if not news.keeps_connections or kept != news.file:
            release_connection()
            kept = news.file
        seen = news.seen()
        said: object = None
        with bind_log_context():  # what a piece finds out about its lines is not said of the next one's
            try:
                said = work()
            except known as error:
                log.warning("%s: this is tried again. %s", what, error)
                release_connection()
            except Exception:
                log.exception("%s: this is tried again.", what)
                release_connection()
        if not news.keeps_connections:
            release_connection()
        if isinstance(said, Rest):
            stop.wait(said)
            continue
        stop.wait(every_s)
        if until_news:
            news.wait(seen, stop)
    release_connection()
