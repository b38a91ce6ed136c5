"""Bad input: does every kind of bad input end in its catalogued problem, with a pair and nothing lost?"""

from __future__ import annotations

import json
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from django.test import Client
from django.utils import timezone

from access.models import ApiKey
from evidence.models import Fact, Snapshot, SnapshotKind
from invocations.models import Attempt, Invocation
from registry.models import Tool
from registry.versions import services as registry
from tests.support.calls import PAIR, assert_problem, kinds_of, row_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.conftest import Caller, Person
    from tests.support.calls import Bell

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("each_way")]


def post_raw(caller: Caller, raw: bytes, content_type: str = "application/json") -> Any:
    return Client().generic(
        "POST", "/api/v1/tools/sample.tools.echo/invoke", raw, content_type=content_type, headers=caller.headers()
    )


def valid_body() -> dict[str, Any]:
    return {"request_id": "test-request-1", "actor": {"type": "agent", "id": "assistant"}, "arguments": {}}


def assert_nothing_was_written() -> None:
    assert not Invocation.objects.exists()
    assert not Snapshot.objects.exclude(kind=SnapshotKind.WORDS).exists()
    assert not Fact.objects.filter(kind__startswith="invocation.").exists()


# What is refused before there is a call of a known tool: no row, no fact.

UNREADABLE = {
    "broken JSON": (b'{"request_id": ', "application/json", 400, "REQUEST.MALFORMED"),
    "nothing": (b"", "application/json", 422, "SCHEMA.VALIDATION_FAILED"),
    "no text": (b"\xff\xfe", "application/json", 400, "REQUEST.MALFORMED"),
    "a byte order mark": (b"\xef\xbb\xbf{}", "application/json", 400, "REQUEST.MALFORMED"),
    "a key twice": (b'{"arguments": {}, "arguments": {}}', "application/json", 400, "REQUEST.MALFORMED"),
    "NaN": (b'{"arguments": {"x": NaN}}', "application/json", 400, "REQUEST.MALFORMED"),
    "an infinite number": (b'{"arguments": {"x": 1e999}}', "application/json", 400, "REQUEST.MALFORMED"),
    "a lone surrogate": (b'{"arguments": {"x": "\\ud800"}}', "application/json", 400, "REQUEST.MALFORMED"),
    "a NUL": (b'{"arguments": {"x": "\\u0000"}}', "application/json", 400, "REQUEST.MALFORMED"),
    "too deep": (b'{"arguments": ' + b"[" * 100_000, "application/json", 400, "REQUEST.MALFORMED"),
    "too long a number": (b'{"arguments": {"x": ' + b"1" * 5000 + b"}}", "application/json", 400, "REQUEST.MALFORMED"),
    "too large": (b'{"arguments": "' + b"x" * 1_048_576 + b'"}', "application/json", 413, "REQUEST.TOO_LARGE"),
    "much too large": (b" " * 3_000_000, "application/json", 413, "REQUEST.TOO_LARGE"),
    "a form": (b"arguments=1", "application/x-www-form-urlencoded", 415, "REQUEST.UNSUPPORTED_MEDIA_TYPE"),
    "not an object": (b"[1, 2]", "application/json", 422, "SCHEMA.VALIDATION_FAILED"),
    "null": (b"null", "application/json", 422, "SCHEMA.VALIDATION_FAILED"),
}


@pytest.mark.parametrize("what", UNREADABLE)
def test_a_body_that_cannot_be_read_is_refused_and_leaves_nothing(
    what: str, caller: Caller, enable: Callable[..., Tool], grant: Callable[..., Any], bell: Bell
) -> None:
    enable()
    grant()
    raw, content_type, status, reason = UNREADABLE[what]

    answer = post_raw(caller, raw, content_type)

    assert_problem(answer, status, reason)
    assert_nothing_was_written()


ENVELOPES: dict[str, tuple[dict[str, Any], str]] = {
    "an unknown field": ({"argumets": {}}, "/argumets"),
    "an unknown field inside": ({"actor": {"type": "agent", "id": "a", "role": "root"}}, "/actor/role"),
    "no actor": ({"actor": None}, "/actor"),
    "no request id": ({"request_id": None}, "/request_id"),
    "a short request id": ({"request_id": "x"}, "/request_id"),
    "an actor of no kind": ({"actor": {"type": "robot", "id": "a"}}, "/actor/type"),
    "arguments that are a list": ({"arguments": [1]}, "/arguments"),
    "a currency in lower case": ({"currency": "eur"}, "/currency"),
    "a locale with spaces": ({"locale": "en US"}, "/locale"),
    "a time zone that leaves its folder": ({"timezone": "../../etc/passwd"}, "/timezone"),
    "a dry run that is neither": ({"dry_run": "perhaps"}, "/dry_run"),
    "an idempotency key with a space": ({"idempotency_key": "a b"}, "/idempotency_key"),
    "an idempotency key that is too long": ({"idempotency_key": "k" * 256}, "/idempotency_key"),
    "a span id in capitals": ({"trace": {"span_id": "ABCDEF0123456789"}}, "/trace/span_id"),
    "a client without a name": ({"client": {"version": "1"}}, "/client/app"),
}


IN_WORDS = {
    "a short request id": "This must be 8 to 64 letters, digits or . _ : -.",
    "a currency in lower case": "This must be three capital letters, such as EUR.",
    "a locale with spaces": "This must be a language and, if you like, a country, such as en or en-US.",
    "a span id in capitals": "This must be 16 of the characters 0 to 9 and a to f.",
}


@pytest.mark.req("SPEC-1")
@pytest.mark.parametrize("what", ENVELOPES)
def test_an_envelope_that_is_not_right_is_refused_by_the_name_of_the_field(
    what: str, caller: Caller, enable: Callable[..., Tool], grant: Callable[..., Any], bell: Bell
) -> None:
    enable()
    grant()
    changes, pointer = ENVELOPES[what]

    answer = post_raw(caller, json.dumps(valid_body() | changes).encode())

    body = assert_problem(answer, 422, "SCHEMA.VALIDATION_FAILED")
    found = {finding["pointer"]: finding["message"] for finding in body["error"]["details"]["findings"]}
    assert IN_WORDS.get(what, found[pointer]) == found[pointer]
    assert_nothing_was_written()


def test_a_key_in_the_header_that_contradicts_the_field_is_refused(
    caller: Caller, enable: Callable[..., Tool], grant: Callable[..., Any], bell: Bell
) -> None:
    enable()
    grant()

    answer = caller.invoke("sample.tools.echo", {}, headers={"Idempotency-Key": "one"}, idempotency_key="two")

    assert_problem(answer, 409, "IDEMPOTENCY.KEYS_DIFFER")
    assert_nothing_was_written()


@pytest.mark.parametrize("tool", ["sample.tools.nothing", "nothing", "sample.tools.echo.more", "x" * 300])
def test_an_unknown_tool_is_named_and_leaves_nothing(
    tool: str, caller: Caller, enable: Callable[..., Tool], grant: Callable[..., Any], bell: Bell
) -> None:
    enable()
    grant("*")

    answer = caller.invoke(tool, {})

    assert_problem(answer, 404, "TOOL.UNKNOWN")
    assert_nothing_was_written()


@pytest.mark.parametrize("path", ["/tools/%00", "/tools?q=%00", "/tools?after=%00"])
def test_a_nul_in_an_address_is_refused_before_it_reaches_the_database(path: str, caller: Caller) -> None:
    assert_problem(caller.get(path), 400, "REQUEST.MALFORMED")


@pytest.mark.parametrize("name", ["sessionid", "csrftoken", "theme"])
def test_a_nul_in_a_cookie_is_refused_before_it_reaches_the_database(name: str, db: None) -> None:
    answer = Client().get("/", headers={"Cookie": f'{name}="abcdefgh\\000ijkl"'})

    assert answer.status_code == 400
    assert "NUL" in answer.content.decode()
    assert "Content-Security-Policy" in answer.headers


# Keys.


def without_key(caller: Caller) -> dict[str, str]:
    return {}


def another_scheme(caller: Caller) -> dict[str, str]:
    return {"Authorization": f"Basic {caller.key}"}


def nonsense(caller: Caller) -> dict[str, str]:
    return {"Authorization": "Bearer nonsense"}


def mistyped(caller: Caller) -> dict[str, str]:
    last = "a" if caller.key[-1] != "a" else "b"
    return {"Authorization": f"Bearer {caller.key[:-1]}{last}"}


def of_nobody(caller: Caller) -> dict[str, str]:
    ApiKey.objects.all().delete()
    return caller.headers()


def expired(caller: Caller) -> dict[str, str]:
    now = timezone.now()
    ApiKey.objects.update(created_at=now - timedelta(days=2), expires_at=now - timedelta(seconds=1))
    return caller.headers()


def revoked(caller: Caller) -> dict[str, str]:
    ApiKey.objects.update(revoked_at=timezone.now())
    return caller.headers()


def of_a_disabled_agent(caller: Caller) -> dict[str, str]:
    caller.agent.disabled_at = timezone.now()
    caller.agent.save(update_fields=["disabled_at"])
    return caller.headers()


@pytest.mark.parametrize(
    "credentials",
    [without_key, another_scheme, nonsense, mistyped, of_nobody, expired, revoked, of_a_disabled_agent],
)
def test_a_key_that_is_not_valid_opens_nothing(
    credentials: Callable[[Caller], dict[str, str]],
    caller: Caller,
    enable: Callable[..., Tool],
    grant: Callable[..., Any],
    bell: Bell,
) -> None:
    enable()
    grant()
    headers = credentials(caller)

    answer = Client().post(
        "/api/v1/tools/sample.tools.echo/invoke", valid_body(), content_type="application/json", headers=headers
    )

    assert_problem(answer, 401, "AUTH.UNAUTHENTICATED")
    assert answer.headers["WWW-Authenticate"].startswith("Bearer")
    assert_nothing_was_written()


def test_every_way_of_holding_a_wrong_key_reads_the_same(caller: Caller) -> None:
    sentences = set()
    for credentials in (nonsense, mistyped, expired, revoked, of_a_disabled_agent, of_nobody):
        answer = Client().get("/api/v1/tools", headers=credentials(caller))
        sentences.add(answer.json()["detail"])

    assert len(sentences) == 1


@pytest.mark.req("TOOLS-22")
def test_a_foreign_key_does_not_see_that_the_tool_exists(
    foreign_caller: Caller, enable: Callable[..., Tool], bell: Bell
) -> None:
    enable()

    known = foreign_caller.invoke("sample.tools.echo", {})
    unknown = foreign_caller.invoke("sample.tools.nothing", {})

    assert_problem(known, 404, "TOOL.UNKNOWN")
    assert known.json()["error"] == json.loads(json.dumps(unknown.json()["error"]).replace("nothing", "echo"))
    assert_nothing_was_written()


# What is refused once the tool is known: Begin and End, no attempt, no message.


def paused(tool: Tool, operator: Person) -> None:
    registry.pause_tool(name=tool.name, reason="broken", by=operator.by)


def retired(tool: Tool, operator: Person) -> None:
    registry.deprecate_tool(
        name=tool.name, reason="old", sunset_on=timezone.now().date() + timedelta(days=1), by=operator.by
    )
    Tool.objects.update(sunset_on=timezone.now().date() - timedelta(days=1))


def never_enabled(tool: Tool, operator: Person) -> None:
    Tool.objects.update(state="registered", current=None)


@pytest.mark.req("TOOLS-7", "TOOLS-18")
@pytest.mark.parametrize(
    ("make", "status", "reason"),
    [(paused, 409, "TOOL.PAUSED"), (retired, 410, "TOOL.RETIRED"), (never_enabled, 409, "TOOL.NOT_ENABLED")],
)
def test_a_tool_that_is_not_in_use_is_refused_with_a_pair(
    make: Callable[[Tool, Person], None],
    status: int,
    reason: str,
    caller: Caller,
    operator: Person,
    enable: Callable[..., Tool],
    grant: Callable[..., Any],
    bell: Bell,
) -> None:
    make(enable(), operator)
    grant()

    answer = caller.invoke("sample.tools.echo", {"text": "x"})

    body = assert_problem(answer, status, reason)
    assert body["call"]["status"] == "denied"
    assert kinds_of(row_of(answer)) == PAIR
    assert not Attempt.objects.exists()
    assert bell.rung == []


@pytest.mark.parametrize("method", ["GET", "PUT", "PATCH", "DELETE"])
def test_a_method_that_an_address_does_not_take_is_said(method: str, caller: Caller) -> None:
    answer = Client().generic(method, "/api/v1/tools/sample.tools.echo/invoke", headers=caller.headers())

    assert_problem(answer, 405, "REQUEST.METHOD_NOT_ALLOWED")


def test_a_media_type_that_cannot_be_answered_is_said(caller: Caller) -> None:
    answer = caller.get("/tools", Accept="image/png")

    assert_problem(answer, 406, "REQUEST.NOT_ACCEPTABLE")


def test_an_api_address_that_does_not_exist_answers_an_envelope(caller: Caller) -> None:
    assert_problem(caller.get("/nothing"), 404, "RESOURCE.NOT_FOUND")


# What the tool's own schema refuses.

SECRET = "sk-7391-kept-apart"
ADDRESS = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["street"]}
REFUSED: dict[str, tuple[dict[str, Any], Any, str]] = {
    "a type": ({"type": "integer"}, SECRET, 'not of type "integer"'),
    "a choice": ({"enum": ["a", "b"]}, SECRET, '"a" or "b"'),
    "a length": ({"maxLength": 3}, SECRET, "longer than 3"),
    "a pattern": ({"pattern": "^a"}, SECRET, '"^a"'),
    "a format": ({"format": "date"}, SECRET, '"date"'),
    "one of": ({"oneOf": [{"type": "integer"}, ADDRESS]}, {"city": SECRET}, "'oneOf' keyword"),
    "any of": ({"anyOf": [{"type": "integer"}, ADDRESS]}, {"city": SECRET}, "'anyOf' keyword"),
    "not": ({"not": {"type": "string"}}, SECRET, "not allowed"),
    "nothing twice": ({"uniqueItems": True}, [SECRET, SECRET], "non-unique"),
    "something in it": ({"contains": {"type": "integer"}}, [SECRET], "valid under the given schema"),
    "nothing at all": (False, SECRET, "False schema"),  # type: ignore[dict-item]
    "how names look": ({"propertyNames": {"maxLength": 3}}, {SECRET: 1}, "longer than 3"),
}


@pytest.mark.req("SVC-3")
@pytest.mark.parametrize("what", REFUSED)
def test_what_a_schema_refuses_is_said_without_quoting_it(
    what: str, caller: Caller, enable: Callable[..., Tool], grant: Callable[..., Any], bell: Bell
) -> None:
    schema, value, said = REFUSED[what]
    enable(input_schema={"type": "object", "properties": {"x": schema}})
    grant()

    answer = caller.invoke("sample.tools.echo", {"x": value})

    body = assert_problem(answer, 422, "SCHEMA.VALIDATION_FAILED")
    [finding] = body["error"]["details"]["findings"]
    assert (finding["pointer"], said in finding["message"]) == ("/x", True), finding
    assert SECRET not in answer.content.decode()
    assert all(SECRET.encode() not in bytes(fact.leaf) for fact in Fact.objects.all())
