"""Writes between reads: how do tests let something happen between two reads of one look?"""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from django.db import connection

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


def elsewhere(do: Callable[[], object]) -> None:
    """On a connection of its own, and done when this returns."""
    failed: list[BaseException] = []

    def run() -> None:
        try:
            do()
        except BaseException as error:  # noqa: BLE001  raised below
            failed.append(error)
        finally:
            connection.close()

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if failed:
        raise failed[0]


@contextmanager
def after_each_read(do: Callable[[], object], *, most: int = 40, of: str = "") -> Iterator[list[str]]:
    """``do`` happens elsewhere after each statement that asks for something of this thread; those are given.

    ``of``: only after those that ask the table of this name first.
    """
    asked: list[str] = []

    def watch(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        result = execute(sql, params, many, context)
        if sql.startswith("SELECT") and (not of or f'FROM "{of}"' in sql) and len(asked) < most:
            asked.append(sql)
            elsewhere(do)
        return result

    with connection.execute_wrapper(watch):
        yield asked
