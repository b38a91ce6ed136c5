"""The service way at the gate: is one operation asked for, and nothing else?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from invocations.sandbox.base import ServiceRecord
from invocations.sandbox.egress import CredentialUnfit, EgressGate
from invocations.sandbox.egress.request_head import read_head
from tests.egress.operations import OPERATION, TOKEN, ask, begin, request, way_to
from tests.egress.services import Service, answer_with, serving
from tests.egress.world import HOST, INTERNAL, Authority, Client, Names, opened, rules, tls
from unitools.openapi.argument_values import ArgumentRefused
from unitools.openapi.requests import build_request

if TYPE_CHECKING:
    from invocations.sandbox.egress import EgressDoor


@pytest.mark.req("SVC-6", "TOOLS-16")
def test_the_operation_is_asked_for_over_tls_with_its_credential(trusting: EgressDoor, service: Service) -> None:
    begin(trusting, way_to(service.port))

    head, body = ask(
        trusting, request(service.port, "/v1/repos/octo/c%20t?page=2", "X-Trace: seen", "X-Other: dropped")
    )

    assert head.startswith(b"HTTP/1.1 200 ")
    assert body == b'b\r\n{"ok":true}\r\n0\r\n\r\n'
    (heard,) = service.requests()
    lines = heard.decode().split("\r\n")
    assert lines[0] == "GET /v1/repos/octo/c%20t?page=2 HTTP/1.1"
    assert set(lines[1:-2]) == {
        f"Host: {HOST}:{service.port}",
        f"Authorization: Bearer {TOKEN}",
        "X-Trace: seen",
        "User-Agent: toolhub",
        "Connection: close",
    }
    (record,) = trusting.end()
    assert (record.host, record.port, record.rule, record.allowed, record.why) == (HOST, service.port, HOST, True, "")
    assert record.service == ServiceRecord("GET", "/v1/repos/{owner}/{repo}", 200, True, True, ("TOKEN",))
    assert (record.bytes_out, record.bytes_in) == (len(heard), 11)


@pytest.mark.req("SVC-6", "TOOLS-16")
@pytest.mark.parametrize(
    ("credential", "secret", "seen"),
    [
        ({"in": "header", "name": "X-Key", "scheme": "plain"}, "a b", "\r\nX-Key: a b\r\n"),
        (
            {"in": "header", "name": "Authorization", "scheme": "basic"},
            "me:word",
            "\r\nAuthorization: Basic bWU6d29yZA==\r\n",
        ),
        ({"in": "query", "name": "api_key"}, "a&b=c", "GET /v1/repos/octo/cat?api_key=a%26b%3Dc HTTP/1.1"),
        ({"in": "cookie", "name": "session"}, "abc", "\r\nCookie: session=abc\r\n"),
    ],
)
def test_a_credential_is_added_where_the_operation_wants_it(
    credential: dict[str, str], secret: str, seen: str, trusting: EgressDoor, service: Service
) -> None:
    begin(trusting, way_to(service.port, secret, credentials=[{"secret": "TOKEN"} | credential]))

    ask(trusting, request(service.port))

    assert seen in service.requests()[0].decode()


@pytest.mark.req("SVC-6")
@pytest.mark.parametrize(
    ("place", "secret"), [("header", "a\r\nHost: other"), ("header", "secret "), ("cookie", "a; b=c")]
)
def test_a_secret_that_would_be_read_as_more_is_refused_without_being_named(place: str, secret: str) -> None:
    with pytest.raises(CredentialUnfit) as refused:
        way_to(443, secret, credentials=[{"secret": "TOKEN", "in": place, "name": "X-Key"}])

    assert str(refused.value).startswith("The secret TOKEN holds what no ")
    assert secret not in str(refused.value).removeprefix("The secret ")


@pytest.mark.req("SVC-6", "TOOLS-16")
def test_a_body_travels_whole_and_framed_by_the_gate(trusting: EgressDoor, service: Service) -> None:
    begin(trusting, way_to(service.port, method="POST"))
    body = b"x" * 200_000

    head, _ = ask(trusting, request(service.port, "/v1/repos/octo/cat", method="POST", body=body))

    assert head.startswith(b"HTTP/1.1 200 ")
    (heard,) = service.requests()
    assert heard.endswith(b"\r\n\r\n" + body)
    assert heard.count(b"Content-Length: 200000\r\n") == 1


@pytest.mark.req("TOOLS-16")
def test_one_method_of_https_is_enough_and_another_is_not(trusting: EgressDoor, service: Service) -> None:
    begin(trusting, way_to(service.port), methods=["GET"])
    assert ask(trusting, request(service.port))[0].startswith(b"HTTP/1.1 200 ")

    begin(trusting, way_to(service.port, method="DELETE"), methods=["GET"])
    head, _ = ask(trusting, request(service.port, method="DELETE"))

    assert head.startswith(b"HTTP/1.1 403 Refused by the sandbox (method_not_granted)")
    assert len(service.requests()) == 1


@pytest.mark.attack
@pytest.mark.req("SVC-6", "TOOLS-16")
@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("DELETE http://{host}/v1/repos/octo/cat", "not_the_operation"),
        ("CONNECT {host}", "not_the_operation"),
        ("GET http://other.example.org:{port}/v1/repos/octo/cat", "not_the_operation"),
        ("GET http://127.0.0.1:{port}/v1/repos/octo/cat", "not_the_operation"),
        ("GET http://api.example.org/v1/repos/octo/cat", "not_the_operation"),
        ("GET http://me@{host}/v1/repos/octo/cat", "bad_target"),
        ("GET https://{host}/v1/repos/octo/cat", "bad_target"),
        ("GET /v1/repos/octo/cat", "bad_target"),
        *(
            (f"GET http://{{host}}{path}", "not_the_operation")
            for path in (
                "/v1/repos/octo",
                "/v1/repos/octo/cat/issues",
                "/v1/repos/octo/cat/",
                "/repos/octo/cat",
                "/v1/repos//cat",
                "/v1/users/octo/cat",
                "//v1/repos/octo/cat",
                "/v1/repos/octo/..",
                "/v1/repos/octo/.",
                "/v1/repos/octo/%2e%2e",
                "/v1/repos/octo/%2E.",
                "/v1/repos/octo/%252e%252e",
                "/v1/repos/octo/..;",
                "/v1/repos/octo/..;x=1",
                "/v1/repos/octo/..%20",
                "/v1/repos/octo/%20.%20;x",
                "/v1/repos/octo/a%2fb",
                "/v1/repos/octo/a%252Fb",
                "/v1/repos/octo/a%25252525252525252Fb",
                "/v1/repos/octo/a%5cb",
                "/v1/repos/octo/a%3fb",
                "/v1/repos/octo/a%23b",
                "/v1/repos/octo/a%00b",
                "/v1/repos/octo/a%0d%0ab",
                "/v1/repos/octo/a%zz",
                "/v1/repos/octo/a|b",
                "/v1/repos/octo/cat#part",
                "/v1/repos/octo/cat?page=1#part",
                "?x=/v1/repos/octo/cat",
            )
        ),
    ],
)
def test_another_request_than_the_operations_never_leaves(
    line: str, why: str, trusting: EgressDoor, service: Service
) -> None:
    begin(trusting, way_to(service.port))

    asked = line.format(host=f"{HOST}:{service.port}", port=service.port)
    head, _ = ask(trusting, f"{asked} HTTP/1.1\r\n\r\n".encode())

    assert f"X-Toolhub-Egress: {why}".encode() in head, head
    (record,) = trusting.end()
    assert (record.allowed, record.why) == (False, why)
    assert record.service is None
    assert service.connections == 0


@pytest.mark.attack
@pytest.mark.req("SVC-6", "TOOLS-16")
@pytest.mark.parametrize(
    ("lines", "tail"),
    [
        (["Content-Length: 3", "Transfer-Encoding: chunked"], b"0\r\n\r\n"),
        (["Content-Length: 3", "Content-Length: 4"], b"abc"),
        (["Transfer-Encoding: chunked"], b"0\r\n\r\n"),
        (["X: y", " Transfer-Encoding: chunked"], b""),
        (["Content-Length: 3"], b"abcDELETE /v1/repos/octo/cat HTTP/1.1\r\n\r\n"),
        (["Content-Length: 0"], b"GET /v1/repos/octo/dog HTTP/1.1\r\nHost: x\r\n\r\n"),
        (["X-Trace: a\nHost: other"], b""),
    ],
)
def test_a_second_request_does_not_hide_in_the_first(
    lines: list[str], tail: bytes, trusting: EgressDoor, service: Service
) -> None:
    begin(trusting, way_to(service.port, method="POST"))

    head, _ = ask(trusting, request(service.port, "/v1/repos/octo/cat", *lines, method="POST") + tail)

    assert b"X-Toolhub-Egress: malformed_request" in head
    assert service.connections == 0
    assert [each.service is None or not each.service.left for each in trusting.end()] == [True]


@pytest.mark.attack
@pytest.mark.req("SVC-6", "TOOLS-16")
def test_a_second_request_that_comes_later_is_read_by_nobody(trusting: EgressDoor, service: Service) -> None:
    begin(trusting, way_to(service.port))

    with Client(trusting) as client:
        client.say(request(service.port)).head()
        client.say(request(service.port, "/v1/repos/octo/dog")).rest()

    head, _ = ask(trusting, request(service.port))
    assert b"X-Toolhub-Egress: too_many_attempts" in head
    assert [heard.split(b" ")[1] for heard in service.requests()] == [b"/v1/repos/octo/cat"]


@pytest.mark.attack
@pytest.mark.req("SVC-6", "TOOLS-16")
def test_host_credentials_and_hops_of_the_box_do_not_travel(trusting: EgressDoor, service: Service) -> None:
    named = [{"argument": "a", "in": "header", "name": name} for name in ("Authorization", "X-Key", "Via", "Cookie")]
    credentials = [{"secret": "TOKEN", "in": "header", "name": "X-Key"}]
    begin(trusting, way_to(service.port, arguments=named, credentials=credentials))
    said = [
        f"{name}: evil"
        for name in ("Host", "Authorization", "X-Key", "Via", "Cookie", "Connection", "X-Forwarded-Host")
    ]
    said += ["Proxy-Authorization: evil", "TE: evil", "Upgrade: evil", "Expect: 100-continue"]

    ask(trusting, request(service.port, "/v1/repos/octo/cat", *said))

    (heard,) = service.requests()
    assert b"evil" not in heard
    assert b"Expect" not in heard
    assert f"X-Key: {TOKEN}".encode() in heard
    assert heard.count(b"Host:") == 1


@pytest.mark.attack
@pytest.mark.req("SVC-6")
@pytest.mark.parametrize(
    "query", ["api_key=mine", "x=1&api%5Fkey=mine", "x=1;api_key=mine", "API_KEY=mine", "api_key%5b%5D=mine"]
)
def test_the_box_does_not_say_a_credential_of_the_query_itself(
    query: str, trusting: EgressDoor, service: Service
) -> None:
    begin(trusting, way_to(service.port, credentials=[{"secret": "TOKEN", "in": "query", "name": "api_key"}]))

    head, _ = ask(trusting, request(service.port, f"/v1/repos/octo/cat?{query}"))

    assert b"not_the_operation" in head
    assert service.connections == 0


@pytest.mark.attack
@pytest.mark.req("SVC-6")
def test_a_service_at_a_private_address_is_asked_nothing(
    trusting: EgressDoor, authority: Authority, names: Names
) -> None:
    names.say(HOST, [INTERNAL])
    with serving(authority.server_context(HOST), address=INTERNAL) as inside:
        begin(trusting, way_to(inside.port))
        head, _ = ask(trusting, request(inside.port))

    assert b"private_address" in head
    assert inside.connections == 0


@pytest.mark.attack
@pytest.mark.req("SVC-6", "TOOLS-16")
def test_a_call_without_the_way_has_nothing_of_it(gate: EgressGate, service: Service) -> None:
    with opened(gate) as door:
        door.begin(rules(net=[tls(HOST, service.port)]))
        head, _ = ask(door, request(service.port))

    assert b"not_granted" in head
    assert service.connections == 0


FITS: list[tuple[str, str, bool]] = [
    ("/a/{x}.json", "/a/b.json", True),
    ("/a/{x}.json", "/a/.json", False),
    ("/a/{x}:{y}", "/a/1:2", True),
    ("/a/{x}", "/a/%E2%82%AC", True),
    ("/a/{x}", "/a/100%25", True),
    ("/a/{x}", "/a/;x=1", True),
    ("/a/{x}", "/a/.label", True),
    ("/a/{x}/", "/a/b/", True),
    ("/a b/{x}", "/a%20b/c", True),
    ("/", "/", True),
]


@pytest.mark.req("TOOLS-16")
@pytest.mark.parametrize(("template", "path", "fits"), FITS)
def test_a_path_fits_its_template_once_its_escapes_are_undone(
    template: str, path: str, fits: bool, trusting: EgressDoor, service: Service
) -> None:
    begin(trusting, way_to(service.port, path=template))

    head, _ = ask(trusting, request(service.port, f"/v1{path}"))

    assert head.startswith(b"HTTP/1.1 200 " if fits else b"HTTP/1.1 403 "), head


@pytest.mark.req("TOOLS-16")
@given(owner=st.text(), repo=st.text(alphabet="%25.; aé", max_size=12))
def test_the_gate_takes_every_path_that_the_interpreter_makes(owner: str, repo: str) -> None:
    """Else an agent's odd value would be told as an attempt to reach something else."""
    way = way_to(443)
    operation = OPERATION | {"server": f"https://{HOST}/v1"}
    try:
        made = build_request(operation, {"owner": owner, "repo": repo})
    except ArgumentRefused:
        return

    way.check(read_head(request(443, f"/v1{made.target}")))


@pytest.mark.req("SVC-6")
def test_a_refusal_of_the_token_is_recorded_and_its_words_stay_outside(trusting: EgressDoor, service: Service) -> None:
    service.answers = [
        answer_with(b"{}", status="401 Unauthorized", www_authenticate='Bearer error="invalid_token", realm="inside"')
    ]
    begin(trusting, way_to(service.port))

    head, _ = ask(trusting, request(service.port, "/v1/repos/octo/cat"))

    assert head.startswith(b"HTTP/1.1 401 ")
    assert b"inside" not in head
    (record,) = trusting.end()
    assert record.service is not None
    assert record.service.refused_token


IN_BODY = {"secret": "TOKEN", "in": "body", "name": "access_token", "scheme": "plain"}


@pytest.mark.req("SVC-6", "TOOLS-16")
@pytest.mark.parametrize(
    ("media_type", "body", "sent"),
    [
        ("application/json", b'{"a": 1.10}', b'{"a": 1.10,"access_token": "t0ken-of-the-tenant"}'),
        ("application/json", b"{ }\n", b'{"access_token": "t0ken-of-the-tenant"}'),
        ("application/json", b"", b'{"access_token": "t0ken-of-the-tenant"}'),
        ("application/x-www-form-urlencoded", b"a=1", b"a=1&access_token=t0ken-of-the-tenant"),
        ("application/x-www-form-urlencoded", b"", b"access_token=t0ken-of-the-tenant"),
    ],
)
def test_a_credential_is_added_to_a_body_that_stays_as_it_is(
    media_type: str, body: bytes, sent: bytes, trusting: EgressDoor, service: Service
) -> None:
    begin(trusting, way_to(service.port, method="POST", body={"media_type": media_type}, credentials=[IN_BODY]))

    head, _ = ask(trusting, request(service.port, method="POST", body=body))

    assert head.startswith(b"HTTP/1.1 200 "), head
    heard = service.requests()[0]
    assert heard.partition(b"\r\n\r\n")[2] == sent
    assert f"Content-Length: {len(sent)}\r\n".encode() in heard


@pytest.mark.attack
@pytest.mark.req("SVC-6", "TOOLS-16")
@pytest.mark.parametrize(
    ("media_type", "body"),
    [
        ("application/json", b'{"access_token":"mine"}'),
        ("application/json", b'{"Access_Token":"mine"}'),
        ("application/json", b'{"access\\u005ftoken":"mine"}'),
        ("application/json", b'{"a":1,"a":2}'),
        ("application/json", b"[1]"),
        ("application/json", b"{"),
        ("application/json", b"\xff"),
        ("application/x-www-form-urlencoded", b"access_token=mine"),
        ("application/x-www-form-urlencoded", b"a=1&access%5Ftoken%5B%5D=mine"),
    ],
)
def test_a_body_that_says_the_credential_itself_never_leaves(
    media_type: str, body: bytes, trusting: EgressDoor, service: Service
) -> None:
    begin(trusting, way_to(service.port, method="POST", body={"media_type": media_type}, credentials=[IN_BODY]))

    head, _ = ask(trusting, request(service.port, method="POST", body=body))

    assert head.startswith(b"HTTP/1.1 403 Refused by the sandbox (not_the_operation)"), head
    assert service.connections == 0
