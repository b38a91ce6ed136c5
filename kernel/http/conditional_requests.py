"""Conditional requests (RFC 9110 §13): who has an answer already is not sent it again, and nobody overwrites what they have not seen.

The tag of an answer is made from its bytes, so whatever changes what a caller would read changes the tag, and no resource needs a
version of its own. A change with ``If-Match`` is carried out only while the tag still holds: changes at one address of a tenant take
turns, with a condition or without, and the comparison is made in the transaction of the change. What is done elsewhere in the same
moment, by an action or in the console, takes no turn.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from django.db import connection
from django.http import FileResponse, HttpResponse
from django.utils.cache import get_conditional_response, patch_vary_headers
from django.utils.http import parse_etags

from kernel.http.exception_handlers import build_problem_response
from kernel.problems import PreconditionFailed

if TYPE_CHECKING:
    from django.http import HttpRequest


def compute_etag(body: bytes) -> str:
    return f'"{hashlib.sha256(body).hexdigest()[:32]}"'


def answer_condition(request: HttpRequest, response: HttpResponse) -> HttpResponse:
    """The answer with its tag, or 304 to who has it. A tag that the view has set itself stays; what nobody may keep has none."""
    if response.status_code != 200 or response.streaming or isinstance(response, FileResponse):
        return response
    if "ETag" not in response.headers:
        is_json = "json" in response.headers.get("Content-Type", "")
        if not is_json or "no-store" in response.headers.get("Cache-Control", ""):
            return response
        response.headers["ETag"] = compute_etag(response.content)
    response.headers.setdefault("Cache-Control", "private, no-cache")
    patch_vary_headers(response, ["Authorization", "Cookie"])
    found = get_conditional_response(request, etag=response.headers["ETag"], response=response)
    assert isinstance(found, HttpResponse)
    if found.status_code == 412:
        return build_problem_response(request, PreconditionFailed(details={"etag": response.headers["ETag"]}))
    return found


def check_if_match(wanted: str, current: HttpResponse) -> None:
    """Raise unless ``current``, the answer of a GET, is the one that the caller has seen."""
    etag = compute_etag(current.content) if current.status_code == 200 else ""
    tags = parse_etags(wanted)
    if etag and (tags == ["*"] or etag in tags):
        return
    raise PreconditionFailed(details={"etag": etag} if etag else {})


def take_turn(tenant: str, address: str) -> None:
    """Wait for other changes at this address of the tenant, until the transaction ends. SQLite's writers take turns anyway."""
    if connection.vendor == "postgresql":
        number = int.from_bytes(hashlib.sha256(f"{tenant} {address}".encode()).digest()[:8], "big", signed=True)
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", [number])
