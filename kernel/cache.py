"""Cache: where the counters that slow down guessing, and turns at what takes long, are kept, so that all web processes share them.

In Redis; and in this process while Redis does not answer, because people must be able to sign in exactly then. Nothing that
decides about a call is ever in here.
"""

from __future__ import annotations

import logging
from typing import Any

import redis
from django.core.cache.backends.locmem import LocMemCache
from django.core.cache.backends.redis import RedisCache

log = logging.getLogger("toolhub.cache")


class ForgivingRedisCache(RedisCache):
    def __init__(self, server: str, params: dict[str, Any]) -> None:
        super().__init__(server, params)
        self._near = LocMemCache("toolhub", {})

    def _either(self, name: str, *args: Any, **kwargs: Any) -> Any:
        try:
            return getattr(super(), name)(*args, **kwargs)
        except redis.RedisError as error:
            log.warning("Redis does not answer; counting in this process: %s", error)
            return getattr(self._near, name)(*args, **kwargs)

    def add(self, *args: Any, **kwargs: Any) -> Any:
        return self._either("add", *args, **kwargs)

    def get(self, *args: Any, **kwargs: Any) -> Any:
        return self._either("get", *args, **kwargs)

    def set(self, *args: Any, **kwargs: Any) -> Any:
        return self._either("set", *args, **kwargs)

    def delete(self, *args: Any, **kwargs: Any) -> Any:
        return self._either("delete", *args, **kwargs)
