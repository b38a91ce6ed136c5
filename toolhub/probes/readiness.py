"""Readiness of a process: whether it can do its work now, by part.

Asked every few seconds by whoever sends it requests, so it costs three small questions. What only a host of workers must have, the
sandbox, is looked at by `manage.py doctor`.
"""

from __future__ import annotations

import threading

import redis
from django.conf import settings
from django.db import DatabaseError

from invocations.queue.outbox import BROKER_ERRORS
from toolhub.database.migration_state import find_missing_migrations
from toolhub.startup import missing_keys

OK = "ok"
STOOD_IN = "does not answer; PostgreSQL wakes the workers"  # slower, and ready
# Set when the process was told to end: it goes on with what it has, and whoever sends it more is to send it elsewhere.
DRAINING = threading.Event()


def _database() -> dict[str, str]:
    try:
        missing = find_missing_migrations()
    except DatabaseError:
        return {"database": "does not answer", "migrations": "not known"}
    return {"database": OK, "migrations": "not all are applied" if missing else OK}


def _broker() -> str:
    if not settings.TOOLHUB_REDIS_URL:
        return OK
    try:
        with redis.Redis.from_url(settings.TOOLHUB_REDIS_URL, socket_connect_timeout=2, socket_timeout=2) as client:
            client.ping()
    except (redis.RedisError, *BROKER_ERRORS):
        return STOOD_IN
    return OK


def check_readiness() -> dict[str, str]:
    """``ok`` or what is wrong, by part. Read by anybody: no names and no paths."""
    return {
        **_database(),
        "broker": _broker(),
        "keys": "missing or not readable" if missing_keys() else OK,
        "process": "ending" if DRAINING.is_set() else OK,
    }


def is_good(found: dict[str, str]) -> bool:
    return all(state in (OK, STOOD_IN) for state in found.values())
