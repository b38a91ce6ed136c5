"""How does a thread do something again and again, whatever goes wrong with it?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import DatabaseError, InterfaceError, close_old_connections

from toolhub.kernel.db import release_connection

if TYPE_CHECKING:
    import logging
    import threading
    from collections.abc import Callable


class Rest(float):
    """Seconds to rest, said by a piece of work that knows better than the loop."""


def repeat(
    work: Callable[[], object],
    stop: threading.Event,
    *,
    every_s: float,
    what: str,
    log: logging.Logger,
    expected: tuple[type[Exception], ...] = (),
) -> None:
    """Do a piece of work until told to stop, and rest between: ``every_s`` seconds, or as many as the piece returns (:class:`Rest`).

    What goes wrong is logged as ``what`` (how a sentence begins: "Callbacks were not sent") and tried again; that the database is
    away, and what is ``expected``, without the traceback.
    """
    known: tuple[type[Exception], ...] = (DatabaseError, InterfaceError, *expected)
    while not stop.is_set():
        close_old_connections()
        said: object = None
        try:
            said = work()
        except known as error:
            log.warning("%s: this is tried again. %s", what, error)
        except Exception:
            log.exception("%s: this is tried again.", what)
        finally:
            release_connection()
        stop.wait(said if isinstance(said, Rest) else every_s)
