"""Clocks: how is a test a host whose clock is wrong?"""

from __future__ import annotations

import datetime as datetimes
import importlib
import sys
from contextlib import contextmanager
from datetime import UTC, timedelta
from typing import TYPE_CHECKING, Any

from django.db import connection
from django.utils import timezone

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pytest

AHEAD, BEHIND = timedelta(hours=2), timedelta(hours=-2)
SLACK = timedelta(minutes=2)


def true_time() -> datetimes.datetime:
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        found: datetimes.datetime = cursor.fetchone()[0]
    return found.astimezone(UTC)


@contextmanager
def clock_moved(monkeypatch: pytest.MonkeyPatch, by: timedelta) -> Iterator[None]:
    """What our modules take for now, while the block lasts."""

    class Moved(datetimes.datetime):
        @classmethod
        def now(cls, tz: Any = None) -> Any:
            return datetimes.datetime.now(tz) + by

    real = timezone.now
    with monkeypatch.context() as patch:
        patch.setattr(timezone, "now", lambda: real() + by)
        for name, module in list(sys.modules.items()):
            if name.split(".")[0] in ("access", "evidence", "invocations", "kernel", "registry", "toolhub") and (
                getattr(module, "datetime", None) is datetimes.datetime
            ):
                patch.setattr(importlib.import_module(name), "datetime", Moved)
        yield
