"""How does a thread do something again and again, whatever goes wrong with it?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import DatabaseError, InterfaceError, close_old_connections

from toolhub.kernel.db import release_connection

if TYPE_CHECKING:
    import logging
    import threading
    from collections.abc import Callable


def repeat(
    work: Callable[[], float | None],
    stop: threading.Event,
    *,
    every_s: float,
    what: str,
    log: logging.Logger,
    expected: tuple[type[Exception], ...] = (),
) -> None:
    """Do a piece of work until told to stop, with a rest between: ``every_s`` seconds, or as many as the piece returns.

    What goes wrong is logged as ``what`` (a sentence's beginning: "Callbacks were not sent") and tried again; a database that is away
    and what is ``expected`` without their traceback.
    """
    known: tuple[type[Exception], ...] = (DatabaseError, InterfaceError, *expected)
    while not stop.is_set():
        close_old_connections()
        rest: float | None = None
        try:
            rest = work()
        except known as error:
            log.warning("%s: this is tried again. %s", what, error)
        except Exception:
            log.exception("%s: this is tried again.", what)
        finally:
            release_connection()
        stop.wait(every_s if rest is None else rest)
