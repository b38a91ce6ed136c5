"""Call door: which requests does it take, what could its answers lack, and does it believe anybody who is no longer to be believed?"""

from __future__ import annotations

from io import BytesIO
from typing import TYPE_CHECKING, Any

import pytest
from django.conf import settings
from django.core.handlers.asgi import ASGIRequest
from django.http.request import HttpHeaders
from django.test import Client
from django.utils import timezone

from access.agents.api_keys import compute_digest
from access.authentication import known_keys
from access.authentication.known_keys import KeyHolder
from access.models import Agent, ApiKey, Grant
from invocations.models import Invocation
from kernel.http.deferred_responses import Handler
from kernel.http.direct_routes import prefer_direct_routes
from kernel.http.plain_heads import PLAIN, read_plain_headers
from tests.support.calls import row_of
from tests.support.made_calls import ECHO
from toolhub.call_door import CallDoor

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.db.models import QuerySet

    from tests.conftest import Caller
    from tests.support.calls import Bell

pytestmark = pytest.mark.django_db
INVOKE = "/api/v1/tools/sample.tools.echo/invoke"
USUAL = {
    "host": "testserver",
    "authorization": "Bearer hub_live_1",
    "content-type": "application/json",
    "content-length": "2",
    "user-agent": "a program",
}
# How the door does what each of these does to a request for it.
DONE = {
    "kernel.http.middleware.assign_request_id": "by the door, with the same functions",
    "kernel.database.tenancy.scoped_request": "by the door: it works for nobody until it is known who calls",
    "django.middleware.security.SecurityMiddleware": "headers that are recorded; who has to be sent on to HTTPS has no plain head",
    "kernel.http.direct_routes.write_content_policy": "headers that are recorded",
    "kernel.http.middleware.refuse_nul": "addresses of the door hold none; who sends parameters or a cookie has no plain head",
    "kernel.http.direct_routes.choose_language": "headers that are recorded; who asks for a language has no plain head",
    "django.middleware.common.CommonMiddleware": "a header that is recorded; another host is no plain head",
    "django.middleware.clickjacking.XFrameOptionsMiddleware": "a header that is recorded",
    "access.display.middleware.apply_display": "by the door: programs are answered in UTC",
}
OF_VIEWS = {"authorization", "x-request-id", "idempotency-key", "prefer"}  # read by the door too, whatever they say


def build_scope(
    path: str = INVOKE, *, method: str = "POST", query: bytes = b"", **headers: str | None
) -> dict[str, Any]:
    said = USUAL | {name.replace("_", "-"): text for name, text in headers.items()}
    return {
        "type": "http",
        "method": method,
        "scheme": "http",
        "path": path,
        "query_string": query,
        "client": ("127.0.0.1", 1),
        "headers": [(name.encode(), text.encode()) for name, text in said.items() if text is not None],
    }


@pytest.mark.parametrize(
    ("scope", "is_taken"),
    [
        (build_scope(), True),
        (build_scope(accept="*/*", accept_encoding="gzip", connection="keep-alive", x_forwarded_for="192.0.2.1"), True),
        (build_scope(authorization=None), True),
        (build_scope(content_type="application/json; charset=UTF-8"), True),
        (build_scope(accept_language="*", sec_fetch_mode="cors"), True),
        (build_scope(prefer="wait=1", idempotency_key="a", traceparent="?", x_request_id="a b"), True),
        (build_scope(method="GET"), False),
        (build_scope(f"{INVOKE}/"), False),
        (build_scope("/api/v1/tools/a\0b/invoke"), False),
        (build_scope("/api/v1/proposals"), True),
        (build_scope("/api/v1/dispatch"), True),
        (build_scope("/api/v1/models/a.b/chat"), True),
        (build_scope("/api/v1/models/a.b/preflight"), False),
        (build_scope("/api/v1/chains"), False),
        (build_scope("/api/v1/tools"), False),
        (build_scope("/v1/chat/completions"), False),
        (build_scope(query=b"a=b"), False),
        (build_scope() | {"root_path": "/hub"}, False),
        (build_scope(host="else.example"), False),
        (build_scope(host=None), False),
        (build_scope(content_type="text/plain"), False),
        (build_scope(content_type=None), False),
        (build_scope(content_length=None, transfer_encoding="chunked"), False),
        (build_scope(content_length="0"), False),
        (build_scope(content_length=str(1024 * 1024 + 1)), False),
        (build_scope(content_length="\N{SUPERSCRIPT TWO}"), False),
        (build_scope(accept="text/html"), False),
        (build_scope(accept_language="zh-hans"), False),
        (build_scope(cookie="a=b"), False),
        (build_scope(if_match='"a"'), False),
        (build_scope(toolhub_version="2026-11-28"), False),
        (build_scope(x_of_tomorrow="a"), False),
        (build_scope() | {"headers": [*build_scope()["headers"], (b"prefer", b"a"), (b"prefer", b"b")]}, False),
    ],
)
def test_only_calls_with_a_plain_head_are_taken(scope: dict[str, Any], is_taken: bool) -> None:
    assert (CallDoor(Handler(1)).find_call(scope) is not None) is is_taken


def test_whoever_has_to_come_by_https_is_not_taken(settings: Any) -> None:
    settings.SECURE_SSL_REDIRECT = True

    assert read_plain_headers(build_scope()) is None
    assert read_plain_headers(build_scope() | {"scheme": "https"}) is not None


def test_what_each_request_middleware_does_is_done_at_the_door() -> None:
    assert list(DONE) == settings.DIRECT_MIDDLEWARE


class NotedMeta(dict[str, Any]):
    """What is asked of it is written down."""

    def __init__(self, meta: dict[str, Any], names: set[str]) -> None:
        super().__init__(meta)
        self._names = names

    def __getitem__(self, name: str) -> Any:
        self._names.add(name.removeprefix("HTTP_").replace("_", "-").lower())
        return super().__getitem__(name)

    def get(self, name: str, default: Any = None) -> Any:
        self._names.add(name.removeprefix("HTTP_").replace("_", "-").lower())
        return super().get(name, default)

    def __contains__(self, name: object) -> bool:
        self._names.add(str(name).removeprefix("HTTP_").replace("_", "-").lower())
        return super().__contains__(name)


class NotedHeaders(HttpHeaders):
    def __init__(self, meta: dict[str, Any], names: set[str]) -> None:
        super().__init__(meta)
        self._names = names

    def __getitem__(self, name: str) -> str:
        self._names.add(name.lower())
        return super().__getitem__(name)


def test_nothing_around_the_view_reads_what_may_be_anything_in_a_plain_head() -> None:
    """But for what the door reads as well. A header that is in no plain head may be read by whoever likes."""
    read: set[str] = set()
    scope = build_scope()
    scope["headers"] += [(name.encode(), b"Bearer x") for name in PLAIN if name not in USUAL]
    request: Any = ASGIRequest(scope, BytesIO(b"{}"))
    request.headers, request.META = NotedHeaders(request.META, read), NotedMeta(request.META, read)

    answer = prefer_direct_routes(lambda _: pytest.fail("This is no direct route."))(request)

    assert answer.status_code == 401
    may_be_anything = {name for name, is_plain in PLAIN.items() if is_plain("\0")}
    assert {"host", "accept", "cookie"} <= read
    assert read & may_be_anything - OF_VIEWS == {"user-agent"}
    assert settings.DISALLOWED_USER_AGENTS == []


# Callers that are known.


@pytest.fixture
def known(enable: Callable[..., Any], grant: Callable[..., Any], bell: Bell, scripted: Any, caller: Caller) -> Caller:
    """Has called before, so that this process knows whose the key is."""
    enable()
    grant()
    assert caller.invoke(ECHO, {"text": "x"}).status_code == 200
    assert known_keys.find_known_holder(caller.key) == holder_of(caller)
    return caller


def holder_of(caller: Caller) -> KeyHolder:
    assert caller.by.key_id is not None
    return KeyHolder(caller.by.tenant_id, caller.agent.pk, caller.by.key_id)


def key_of(caller: Caller) -> QuerySet[ApiKey]:
    return ApiKey.objects.filter(pk=holder_of(caller).key_id)


def refused(caller: Caller) -> tuple[int, str]:
    answer = caller.invoke(ECHO, {"text": "x"}, request_id="test-request-2")
    return answer.status_code, answer.json()["error"]["reason"]


@pytest.mark.parametrize("what", ["revoked", "expired", "disabled", "elsewhere", "deleted", "another secret"])
def test_a_known_key_that_counts_no_more_is_refused_by_the_next_call(known: Caller, what: str) -> None:
    key = key_of(known)
    match what:
        case "revoked":
            key.update(revoked_at=timezone.now(), revoked_by="somebody")
        case "expired":
            key.update(expires_at=timezone.now())
        case "disabled":
            Agent.objects.filter(pk=known.agent.pk).update(disabled_at=timezone.now())
        case "elsewhere":
            key.update(networks=["192.0.2.0/24"])
        case "deleted":
            key.update(lookup="gone")
        case "another secret":
            key.update(digest=b"x" * 32)
    calls = Invocation.objects.count()

    assert refused(known) == (401, "AUTH.UNAUTHENTICATED")
    assert Invocation.objects.count() == calls


def test_a_known_key_that_has_lost_a_scope_makes_no_call(known: Caller) -> None:
    key_of(known).update(scopes=["tools:read"])

    assert refused(known)[0] == 403


def test_a_grant_that_was_taken_back_is_missed_by_the_next_call_of_a_known_key(known: Caller) -> None:
    Grant.objects.filter(agent=known.agent).update(revoked_at=timezone.now(), revoked_by="somebody")

    assert refused(known)[0] == 403


def test_a_known_key_whose_body_cannot_be_read_is_told_after_it_was_found_good(known: Caller) -> None:
    def send() -> tuple[int, str]:
        answer = Client().post(INVOKE, "{", content_type="application/json", headers=known.headers())
        return answer.status_code, answer.json()["error"]["reason"]

    good = send()
    key_of(known).update(revoked_at=timezone.now(), revoked_by="somebody")

    assert (good, send()) == ((400, "REQUEST.MALFORMED"), (401, "AUTH.UNAUTHENTICATED"))


def test_who_is_taken_for_another_gets_what_is_decided_about_themselves(
    known: Caller, foreign_caller: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was asked for the wrong one is thrown away: of another tenant, of another agent, of another key."""
    mine, theirs = holder_of(known), holder_of(foreign_caller)
    wrong = [theirs, mine._replace(agent_id=theirs.agent_id), mine._replace(key_id=theirs.key_id)]
    for number, holder in enumerate(wrong):
        monkeypatch.setitem(known_keys._known, compute_digest(known.key), holder)

        answer = known.invoke(ECHO, {"text": "x"}, request_id=f"test-request-1{number}")

        assert answer.status_code == 200
        call = row_of(answer)
        assert (call.tenant_id, call.agent_id, call.key_id) == mine
    monkeypatch.setitem(known_keys._known, compute_digest(foreign_caller.key), mine)

    assert refused(foreign_caller) == (404, "TOOL.UNKNOWN")
