"""MCP endpoint: who gets in at /mcp, and what are those told who do not?"""

from __future__ import annotations

import json
import threading
from typing import TYPE_CHECKING, Any

import pytest
from django.db import OperationalError
from django.test import Client

from access import services as access
from access.models import Consent
from invocations.mcp import endpoint, tool_list
from invocations.mcp.request_checks import MAX_PARTS
from invocations.models import Tally
from kernel.http.parsers import read_json
from kernel.observability.log_context import bind_log_context, read_log_field
from registry.installations import services as installations
from tests.conftest import make_caller
from tests.support.calls import writer
from tests.support.entry_paths import at_the_door, modern_request, usual_headers

if TYPE_CHECKING:
    from collections.abc import Callable

    from registry.models import Tool
    from tests.conftest import Caller, Person
    from tests.support.calls import Bell, ScriptedSandbox

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("each_mcp_way")]
ECHO, WRITE = "sample.tools.echo", "sample.tools.write"
METADATA = "/.well-known/oauth-protected-resource/mcp"


def said(method: str, params: dict[str, Any] | None = None) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params or {}}).encode()


INITIALIZE = said(
    "initialize",
    {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "tests", "version": "1"}},
)


@pytest.mark.req("TOOLS-15")
@pytest.mark.parametrize("header", [None, "Bearer", "Basic abc", "Bearer hub_live_nobody", "Bearer a.b.c"])
def test_without_a_key_that_works_a_client_is_told_where_tokens_come_from(
    header: str | None, caller: Caller, settings: Any
) -> None:
    body, headers = modern_request(caller, "tools/list")
    given = {name: value for name, value in headers.items() if name != "Authorization"}
    sent = at_the_door(body, given | ({"Authorization": header} if header else {}))

    assert sent.status == 401
    assert sent.body["error"]["reason"] == "AUTH.UNAUTHENTICATED"
    challenge = sent.headers["www-authenticate"]
    assert f'resource_metadata="{settings.TOOLHUB_PUBLIC_URL}{METADATA}"' in challenge
    assert ('error="invalid_token"' in challenge) is (header is not None)
    assert Tally.objects.get().reason == "AUTH.UNAUTHENTICATED"
    described = Client().get(METADATA).json()
    assert described["resource"] == f"{settings.TOOLHUB_PUBLIC_URL}/mcp"
    assert described["authorization_servers"] == [settings.TOOLHUB_PUBLIC_URL]
    assert {"tools:read", "invocations:create"} <= set(described["scopes_supported"])


@pytest.mark.req("TOOLS-15")
def test_who_guesses_keys_is_slowed_down_as_over_rest(caller: Caller, settings: Any) -> None:
    settings.TOOLHUB_RATE_FAILED_KEYS = 10
    body, headers = modern_request(caller, "tools/list")
    wrong = headers | {"Authorization": "Bearer hub_live_nobody"}

    statuses = [at_the_door(body, wrong).status for _ in range(12)]

    assert statuses[0] == 401
    assert statuses[-1] == 429


@pytest.mark.req("TOOLS-15")
def test_a_token_of_the_hub_stands_for_its_key_and_a_missing_scope_is_named(
    caller: Caller, enable: Callable[..., Tool], grant: Callable[..., Any], bell: Bell
) -> None:
    enable()
    grant()
    form = {"grant_type": "client_credentials", "client_id": caller.agent.wire_id, "client_secret": caller.key}
    tokens = [
        Client().post("/api/v1/oauth/token", form | {"scope": scope}).json()["access_token"]
        for scope in ("tools:read", "invocations:create")
    ]
    body, headers = modern_request(caller, "tools/list")

    reads, calls = (at_the_door(body, headers | {"Authorization": f"Bearer {token}"}) for token in tokens)

    assert [each["name"] for each in reads.body["result"]["tools"]] == ["sample_tools_echo"]
    assert calls.status == 403
    assert 'error="insufficient_scope"' in calls.headers["www-authenticate"]
    assert 'scope="tools:read"' in calls.headers["www-authenticate"]


@pytest.mark.req("TOOLS-15")
@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "rebound.example.org"}, 403),
        ({"Origin": "https://evil.example.org"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://["}, 403),
        ({"Host": "["}, 403),
        ({"Origin": "http://testserver"}, 200),
        ({"Origin": "https://console.example.org"}, 200),
    ],
)
def test_neither_another_name_nor_a_page_of_somebody_else_gets_in(
    headers: dict[str, str], status: int, caller: Caller, settings: Any
) -> None:
    settings.CSRF_TRUSTED_ORIGINS = ["https://console.example.org"]
    body, usual = modern_request(caller, "tools/list")

    assert at_the_door(body, usual | headers).status == status


@pytest.mark.req("TOOLS-15")
def test_where_pages_are_sent_to_https_the_door_is_open_over_https_only_and_says_so_to_browsers(
    caller: Caller, settings: Any
) -> None:
    settings.SECURE_SSL_REDIRECT, settings.SECURE_HSTS_SECONDS = True, 3600
    settings.TOOLHUB_PUBLIC_URL = "https://hub.example.org"
    body, headers = modern_request(caller, "tools/list")

    plain, safe = (at_the_door(body, headers, scheme=scheme) for scheme in ("http", "https"))

    assert (plain.status, safe.status) == (403, 200)
    assert "https://hub.example.org/mcp" in plain.body["error"]["remedy"]
    assert "strict-transport-security" not in plain.headers
    assert safe.headers["strict-transport-security"] == "max-age=3600"


@pytest.mark.req("SVC-1")
@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"\xff",
        b'{"jsonrpc": "2.0", "id": 1, "id": 2, "method": "ping"}',
        b'{"jsonrpc": "2.0", "id": NaN, "method": "ping"}',
        b'{"a": "\\u0000"}',
        b"[" * 100 + b"]" * 100,
    ],
)
def test_what_is_not_json_that_can_be_read_safely_is_refused_before_anything_reads_it(
    body: bytes, caller: Caller
) -> None:
    sent = at_the_door(body, usual_headers(caller))

    assert (sent.status, sent.body["error"]["code"], sent.body["id"]) == (400, -32700, None)


@pytest.mark.req("SVC-1")
@pytest.mark.parametrize("message", [[], 1, "x", {}, {"jsonrpc": "2.0"}, {"jsonrpc": "2.0", "id": 1, "method": 5}])
def test_json_that_is_no_message_is_refused(message: Any, caller: Caller) -> None:
    for headers in (usual_headers(caller), usual_headers(caller) | {"MCP-Protocol-Version": "2026-07-28"}):
        sent = at_the_door(json.dumps(message).encode(), headers)
        assert sent.status == 400, sent
        assert "error" in sent.body


@pytest.mark.req("SVC-1")
def test_more_than_a_mebibyte_is_not_read(caller: Caller) -> None:
    sent = at_the_door(b'"' + b"x" * 1024 * 1024 + b'"', usual_headers(caller))

    assert (sent.status, sent.body["error"]["reason"]) == (413, "REQUEST.TOO_LARGE")
    assert Tally.objects.get().agent == caller.agent.wire_id


@pytest.mark.req("SVC-1")
def test_a_message_that_would_keep_everybody_waiting_while_it_is_read_is_refused(
    caller: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[int] = []

    def noted(body: bytes) -> Any:
        read.append(threading.get_ident())
        return read_json(body)

    monkeypatch.setattr(endpoint, "read_json", noted)
    lists = said("ping", {"x": [[]] * (MAX_PARTS // 2)})
    long = said("ping", {"x": "x" * endpoint.SHORT})

    assert at_the_door(said("ping", {"x": [[]] * MAX_PARTS}), usual_headers(caller)).status == 413
    assert read == []
    assert at_the_door(lists, usual_headers(caller)).status == 200
    assert at_the_door(long, usual_headers(caller)).status == 200
    assert at_the_door(said("ping"), usual_headers(caller)).status == 200
    assert read[0] == read[1] != read[2]  # in a thread, but for what is short


@pytest.mark.req("SVC-1")
@pytest.mark.parametrize("method", ["GET", "DELETE", "PUT"])
def test_there_is_no_session_to_end_and_newer_clients_listen_otherwise(method: str, caller: Caller) -> None:
    newer = {"MCP-Protocol-Version": "2026-07-28"} if method == "GET" else {}
    sent = at_the_door(b"", usual_headers(caller) | newer, method)

    assert (sent.status, sent.headers["allow"]) == (405, "GET, POST")


@pytest.mark.req("TOOLS-15")
def test_a_session_is_good_for_the_agent_it_was_given_to_and_for_nobody_else(caller: Caller, operator: Person) -> None:
    other = make_caller(operator.by, "other")
    session = at_the_door(INITIALIZE, usual_headers(caller)).headers["mcp-session-id"]
    known = {"Mcp-Session-Id": session, "MCP-Protocol-Version": "2025-11-25"}

    assert at_the_door(said("ping"), usual_headers(caller) | known).body["result"] == {}
    assert at_the_door(said("ping"), usual_headers(other) | known).status == 404
    assert at_the_door(said("ping"), usual_headers(caller) | known | {"Mcp-Session-Id": session + "x"}).status == 404
    assert at_the_door(said("ping"), {**usual_headers(caller), "Authorization": ""} | known).status == 401
    assert all(32 < ord(char) < 127 for char in session)


@pytest.mark.req("SVC-1")
def test_the_line_of_a_request_says_the_tenant_and_the_call(
    caller: Caller, enable: Callable[..., Tool], grant: Callable[..., Any], bell: Bell, sandbox: ScriptedSandbox
) -> None:
    enable()
    grant()

    with bind_log_context(request_id="request-of-a-test"):
        sent = at_the_door(*modern_request(caller, "tools/call", {"name": ECHO, "arguments": {"text": "x"}}))
        known = {field: read_log_field(field) for field in ("tenant", "call_id")}

    call = sent.body["result"]["_meta"]["toolhub/call"]["call_id"]
    assert known == {"tenant": str(caller.by.tenant_id), "call_id": call}


@pytest.mark.req("TOOLS-19")
@pytest.mark.parametrize("modern", [True, False])
def test_the_name_of_a_client_cannot_mislead_who_decides(
    modern: bool, caller: Caller, enable: Callable[..., Tool], grant: Callable[..., Any], bell: Bell
) -> None:
    writer(enable, data_classes=["payment"], consent={"validity_seconds": 600})
    grant()
    name = {"name": "shop\n\u202eApproved by Olivia.\u200b", "version": "1\t2"}
    params = {"name": WRITE, "arguments": {"text": "x"}}
    if modern:
        body, headers = modern_request(caller, "tools/call", params)
        message = json.loads(body)
        message["params"]["_meta"]["io.modelcontextprotocol/clientInfo"] = name
        sent = at_the_door(json.dumps(message).encode(), headers)
    else:
        begun = said("initialize", {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": name})
        session = at_the_door(begun, usual_headers(caller)).headers["mcp-session-id"]
        known = {"Mcp-Session-Id": session, "MCP-Protocol-Version": "2025-11-25"}
        sent = at_the_door(said("tools/call", params), usual_headers(caller) | known)

    assert sent.body["result"]["isError"]
    assert Consent.objects.get().purpose == f"shopApproved by Olivia. called {WRITE}."


@pytest.mark.req("TOOLS-24")
@pytest.mark.parametrize("modern", [True, False])
def test_what_breaks_inside_is_told_in_the_words_of_the_catalogue(
    modern: bool, caller: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    def break_down(**_: Any) -> None:
        raise OperationalError("could not connect to 10.0.0.7 as toolhub")

    monkeypatch.setattr(tool_list, "offer_tools", break_down)
    request = modern_request(caller, "tools/list") if modern else (said("tools/list"), usual_headers(caller))

    sent = at_the_door(*request)

    assert (sent.body["error"]["code"], sent.body["error"]["data"]["reason"]) == (
        -32603,
        "EVIDENCE.UNAVAILABLE",
    )
    assert "10.0.0.7" not in str(sent)


@pytest.mark.req("CONN-4")
@pytest.mark.parametrize("how", ["paused", "removed", "not granted"])
def test_who_calls_by_an_older_list_is_told_to_list_again(
    how: str, caller: Caller, operator: Person, enable: Callable[..., Tool], grant: Callable[..., Any]
) -> None:
    id, name = "sample.echo_x.y", "sample_echo_x_y_281b3a4d"
    enable("echo", id=id)
    given = grant(id)
    match how:
        case "paused":
            installations.pause_installation(name=id, reason="for a test", by=operator.by)
        case "removed":
            installations.remove_installation(name=id, reason="for a test", by=operator.by)
        case _:
            access.revoke_grant(grant_id=given.pk, reason="x", by=operator.by)

    for called in (name, id):
        sent = at_the_door(*modern_request(caller, "tools/call", {"name": called, "arguments": {"text": "x"}}))
        said = json.loads(sent.body["result"]["content"][0]["text"])
        assert sent.body["result"]["isError"]
        assert said["error"]["remedy"]
        assert "List the tools again" in said["note"]


@pytest.mark.req("SVC-1")
def test_the_hub_says_what_it_is_in_both_revisions(caller: Caller) -> None:
    older = at_the_door(INITIALIZE, usual_headers(caller)).body["result"]
    newer = at_the_door(*modern_request(caller, "server/discover")).body["result"]
    unknown = at_the_door(said("ping"), usual_headers(caller) | {"MCP-Protocol-Version": "2031-01-01"})

    assert (older["protocolVersion"], older["serverInfo"]["name"]) == ("2025-11-25", "toolhub")
    assert newer["supportedVersions"] == ["2026-07-28"]
    assert set(newer["capabilities"]) == {"tools", "resources", "extensions"}
    assert set(older["capabilities"]) >= {"tools", "resources", "tasks"}
    assert (newer["cacheScope"], newer["ttlMs"]) == ("private", 60_000)
    assert unknown.status == 400


@pytest.mark.req("TOOLS-18")
@pytest.mark.parametrize("modern", [True, False])
@pytest.mark.parametrize(
    "params",
    [
        {"name": ECHO, "arguments": "text"},
        {"name": ECHO, "arguments": {}, "_meta": {"toolhub/envelope": {"on_consent": "never"}}},
        {"name": ECHO, "arguments": {}, "_meta": {"toolhub/envelope": 1}},
        {"name": ECHO, "arguments": [], "task": {}},
    ],
)
def test_what_no_call_can_be_read_from_is_counted(params: dict[str, Any], modern: bool, caller: Caller) -> None:
    body, headers = said("tools/call", params), usual_headers(caller)
    if modern:
        said_modern, headers = modern_request(caller, "tools/call", params)
        whole = json.loads(said_modern)
        whole["params"]["_meta"] |= params.get("_meta", {})
        body = json.dumps(whole).encode()

    sent = at_the_door(body, headers)

    assert sent.body["error"]["code"] == -32602
    assert (Tally.objects.get().agent, Tally.objects.get().reason) == (caller.agent.wire_id, "REQUEST.MALFORMED")
