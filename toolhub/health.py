"""Is this process alive, and can it do its work?"""

from __future__ import annotations

import redis
from django.conf import settings
from django.db import DatabaseError, connection
from django.http import HttpRequest, JsonResponse

from invocations.queue import BROKER_ERRORS
from toolhub.kernel.console import public


@public
def alive(request: HttpRequest) -> JsonResponse:
    """Answers as long as the process does; asks nobody."""
    del request
    return JsonResponse({"ok": True})


def checks() -> dict[str, str]:
    """``ok`` or what is wrong, by part. The sandbox is a worker's concern; `manage.py doctor` looks at it."""
    found = {"database": "ok", "broker": "ok"}
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except DatabaseError:
        found["database"] = "does not answer"
    if settings.TOOLHUB_REDIS_URL:
        try:
            with redis.Redis.from_url(settings.TOOLHUB_REDIS_URL, socket_connect_timeout=2, socket_timeout=2) as client:
                client.ping()
        except (redis.RedisError, *BROKER_ERRORS):
            found["broker"] = "does not answer"
    return found


@public
def ready(request: HttpRequest) -> JsonResponse:
    """200 when calls can be accepted; 503 with the part that cannot."""
    del request
    found = checks()
    good = all(state == "ok" for state in found.values())
    response = JsonResponse({"ok": good, "checks": found}, status=200 if good else 503)
    if not good:
        response.headers["Retry-After"] = "5"
    return response
