"""Plain heads: those of requests about which nothing around a view of the API would decide.

Request middleware, content negotiation and the choice of a parser look at the head of a request. What programs usually send gives them
nothing to decide: JSON that comes as a whole, an answer in JSON or in any form, a host that the hub answers to, no cookie, no
parameters, no language, no condition. Whose head says anything else, also a header that is not listed here, is asked about by them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.http.request import split_domain_port, validate_host

from kernel.http.parsers import MAX_BODY_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

JSON_TYPES = frozenset({"application/json", "application/json; charset=utf-8", "application/json;charset=utf-8"})
_TAKES_JSON = frozenset(
    {"*/*", "application/json", "application/json, */*", "application/json, text/plain, */*"}  # the last: axios
)


def _is_length(value: str) -> bool:
    return value.isascii() and value.isdigit() and 0 < int(value) <= MAX_BODY_BYTES


def _is_own_host(value: str) -> bool:
    domain, _ = split_domain_port(value)
    return bool(domain) and validate_host(domain, settings.ALLOWED_HOSTS)


def _anything(value: str) -> bool:
    del value
    return True


# By name, which values are plain.
PLAIN: Mapping[str, Callable[[str], bool]] = {
    "host": _is_own_host,
    "content-type": lambda value: value.lower() in JSON_TYPES,
    "content-length": _is_length,
    "accept": _TAKES_JSON.__contains__,
    "accept-language": "*".__eq__,  # of Node's fetch, with the next
    "sec-fetch-mode": _anything,
    # Of the connection and of proxies: read before, or by nobody.
    **dict.fromkeys(("accept-encoding", "connection", "user-agent", "via", "forwarded", "x-real-ip"), _anything),
    **dict.fromkeys(("x-forwarded-for", "x-forwarded-proto", "x-forwarded-host", "x-forwarded-port"), _anything),
    **dict.fromkeys(("traceparent", "tracestate", "baggage"), _anything),
    # What views read.
    **dict.fromkeys(("authorization", "x-request-id", "idempotency-key", "prefer"), _anything),
}
NEEDED = ("host", "content-type", "content-length")


def read_plain_headers(scope: Mapping[str, Any]) -> dict[str, str] | None:
    """The headers of a plain head; None for any other."""
    if scope.get("query_string") or scope.get("root_path"):
        return None
    if settings.SECURE_SSL_REDIRECT and scope.get("scheme") != "https":
        return None
    found: dict[str, str] = {}
    for raw_name, raw_value in scope["headers"]:
        name, value = raw_name.decode("latin-1"), raw_value.decode("latin-1")
        is_plain = PLAIN.get(name)
        if is_plain is None or name in found or not is_plain(value):
            return None
        found[name] = value
    return found if all(name in found for name in NEEDED) else None
