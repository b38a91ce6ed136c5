"""Change watch: whether anybody wrote to the database since one looked, and whether time alone makes something due.

Where one process is the whole hub over a SQLite file, its loops need not ask the database again and again: SQLite itself says in
one number whether anybody, this process or another, has committed. One thread looks at that number; each loop rests until it
changed, until something is under way that only time moves on, or for :data:`LOOK_AGAIN_S`. Where nobody watches, loops rest as
they always did.
"""

from __future__ import annotations

import logging
import sqlite3
import threading
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING

from django.db import DatabaseError

from kernel.database.connections import release_connection

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

log = logging.getLogger("toolhub.embedded")
LOOK_EVERY_S = 0.5  # no longer than a loop would have rested
LOOK_AGAIN_S = (
    20.0  # for what time makes due in a hub where nothing is under way: a checkpoint to sign again, an old export
)


class ChangeNews:
    """What one process knows of it. ``resting`` counts the loops that wait; ``file`` changes when another file is in its place."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._version = 0
        self.file = 0
        self._under_way = True
        self._watched = False
        self.resting = 0

    def seen(self) -> int:
        """To be asked before the work: what is written during it is news."""
        return self._version

    def wait(self, seen: int, stop: threading.Event) -> None:
        """Rest until somebody has written since ``seen``. Returns at once while something is under way, or where nobody watches."""
        with self._changed:
            self.resting += 1
            try:
                self._changed.wait_for(lambda: self._is_news(seen) or stop.is_set(), timeout=LOOK_AGAIN_S)
            finally:
                self.resting -= 1

    def _is_news(self, seen: int) -> bool:
        return not self._watched or self._under_way or self._version != seen

    @property
    def keeps_connections(self) -> bool:
        """Whether a loop keeps its own: to open one means to read the whole schema, which takes longer than to see that nothing is
        to be done.
        """
        return self._watched

    def wake(self) -> None:
        """Somebody has told a loop to stop."""
        with self._changed:
            self._changed.notify_all()

    def tell(self, *, under_way: bool, written: bool) -> None:
        with self._changed:
            self._under_way = under_way
            self._version += written
            if under_way or written:
                self._changed.notify_all()

    @contextmanager
    def watched(self, file: Path, under_way: Callable[[], bool]) -> Iterator[None]:
        """While the block runs a thread looks at ``file``; ``under_way`` is asked when it has changed, and while it says so."""
        stop, watch = threading.Event(), ChangeWatcher(self, file, under_way)
        thread = threading.Thread(target=watch.run, args=(stop,), name="news", daemon=True)
        thread.start()
        self._watched = True
        try:
            yield
        finally:
            self._watched = False
            stop.set()
            self.wake()
            thread.join()


class DatabaseReplaced(Exception):
    """The database is another file now, put back from a backup perhaps."""


class ChangeWatcher:
    """The one who looks. Its connection is its own, is kept, and only reads."""

    def __init__(self, news: ChangeNews, file: Path, under_way: Callable[[], bool]) -> None:
        self._news, self._file, self._ask = news, file, under_way
        self._known: int | None = None
        self._under_way = True

    def run(self, stop: threading.Event) -> None:
        while not stop.is_set():
            try:
                with closing(sqlite3.connect(f"file:{self._file}?mode=ro", uri=True)) as connection:
                    self._news.file = self._file.stat().st_ino
                    while not stop.wait(LOOK_EVERY_S):
                        self.look(connection)
            except (sqlite3.Error, OSError, DatabaseReplaced) as error:
                log.warning("Whether anything was written is not known, so every loop looks by itself: %s", error)
                self._known, self._under_way = None, True
                self._news.tell(under_way=True, written=True)
                stop.wait(LOOK_EVERY_S)
        release_connection()

    def look(self, connection: sqlite3.Connection) -> None:
        if self._file.stat().st_ino != self._news.file:
            release_connection()
            raise DatabaseReplaced(f"{self._file} is another file now.")
        (version,) = connection.execute("PRAGMA data_version").fetchone()
        written = version != self._known
        if written or self._under_way:
            self._known, self._under_way = version, self._is_under_way()
            self._news.tell(under_way=self._under_way, written=written)

    def _is_under_way(self) -> bool:
        try:
            return self._ask()
        except DatabaseError as error:
            log.info("Whether anything is under way is asked again: %s", error)
            release_connection()
            return True


news = ChangeNews()
