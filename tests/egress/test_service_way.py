"""The service way at the gate: is one operation asked for and nothing else, and is what left a fact?"""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, Any

import pytest

from invocations.sandbox.base import ServiceRecord
from invocations.sandbox.egress import CredentialUnfit, EgressGate, ServiceWay
from invocations.sandbox.egress.connection_handler import EgressCaps
from tests.egress.conftest import HOST
from tests.egress.services import GOOD, Service, answer_with, serving
from tests.egress.world import INTERNAL, PUBLIC, Authority, Client, Names, opened, rules, tls

if TYPE_CHECKING:
    from collections.abc import Iterator

    from invocations.sandbox.egress import EgressDoor

TOKEN = "t0ken-of-the-tenant"
OPERATION: dict[str, Any] = {
    "method": "GET",
    "path": "/repos/{owner}/{repo}",
    "arguments": [
        {"argument": "owner", "in": "path", "name": "owner"},
        {"argument": "repo", "in": "path", "name": "repo"},
        {"argument": "trace", "in": "header", "name": "X-Trace"},
    ],
    "credentials": [{"secret": "TOKEN", "in": "header", "name": "Authorization", "scheme": "bearer"}],
}


@pytest.fixture
def trusting(names: Names, authority: Authority) -> Iterator[EgressDoor]:
    gate = EgressGate([f"{PUBLIC}/32"], resolve=names, ca_file=authority.roots)
    with opened(gate) as door:
        yield door
    gate.close()


@pytest.fixture
def service(authority: Authority) -> Iterator[Service]:
    with serving(authority.server_context(HOST)) as found:
        yield found


def way_to(port: int, secret: str = TOKEN, **changed: Any) -> ServiceWay:
    operation = OPERATION | {"server": f"https://{HOST}:{port}/v1"} | changed
    return ServiceWay.build(operation, {"TOKEN": secret}, {"TOKEN": [secret]})


def begin(door: EgressDoor, way: ServiceWay, **net: Any) -> None:
    door.begin(rules(net=[tls(way.host, way.port) | net]), way=way)


def request(port: int, path: str = "/v1/repos/octo/cat", *more: str, method: str = "GET", body: bytes = b"") -> bytes:
    lines = [f"{method} http://{HOST}:{port}{path} HTTP/1.1", *more]
    lines += [f"Content-Length: {len(body)}"] if body else []
    return "\r\n".join([*lines, "", ""]).encode() + body


def ask(door: EgressDoor, data: bytes) -> tuple[bytes, bytes]:
    """Head and body of what the gate gives back, until it hangs up."""
    with Client(door) as client:
        head, _, body = client.say(data).rest().partition(b"\r\n\r\n")
    return head, body


# -- what is asked for


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


# -- what is not


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
@pytest.mark.parametrize("query", ["api_key=mine", "x=1&api%5Fkey=mine", "x=1;api_key=mine"])
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


# -- what comes back


@pytest.mark.attack
@pytest.mark.req("SVC-6")
def test_cookies_places_and_credentials_do_not_come_back(trusting: EgressDoor, service: Service) -> None:
    service.answers = [
        answer_with(
            b"{}",
            set_cookie="session=1",
            location=f"https://{HOST}/?key={TOKEN}",
            x_echo=TOKEN,
            content_type="application/json",
            link=f'<https://{HOST}/next?key={TOKEN}>; rel="next"',
            retry_after="3",
        )
    ]
    begin(trusting, way_to(service.port))

    head, _ = ask(trusting, request(service.port))

    assert head.decode().split("\r\n") == [
        "HTTP/1.1 200 Answer",
        "content-type: application/json",
        f'link: <https://{HOST}/next?key=[secret TOKEN]>; rel="next"',
        "retry-after: 3",
        "Transfer-Encoding: chunked",
        "Connection: close",
    ]


@pytest.mark.req("SVC-6", "TOOLS-16")
def test_a_redirect_is_not_followed(trusting: EgressDoor, service: Service) -> None:
    service.answers = [answer_with(b"", status="302 Found", location="http://169.254.169.254/")]
    begin(trusting, way_to(service.port))

    head, _ = ask(trusting, request(service.port))

    assert head.startswith(b"HTTP/1.1 302 Answer")
    assert b"169.254" not in head
    (record,) = trusting.end()
    assert record.service is not None
    assert (record.service.status, record.service.complete, service.connections) == (302, True, 1)


@pytest.mark.req("SVC-6", "TOOLS-16")
@pytest.mark.parametrize(
    ("answer", "body"),
    [
        (GOOD, b'{"ok":true}'),
        (
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\n2\r\nde\r\n0\r\nX: y\r\n\r\n",
            b"abcde",
        ),
        (b"HTTP/1.1 200 OK\r\n\r\nuntil the end", b"until the end"),
        (b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n" + GOOD, b'{"ok":true}'),
        (b"HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n", b""),
        (b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok", b"ok"),
    ],
)
def test_answers_are_framed_anew(answer: bytes, body: bytes, trusting: EgressDoor, service: Service) -> None:
    service.answers = [answer]
    begin(trusting, way_to(service.port))

    _, found = ask(trusting, request(service.port))

    assert _unchunked(found) == body
    assert found.endswith(b"0\r\n\r\n")
    assert [each.service.complete for each in trusting.end() if each.service] == [True]


def _unchunked(data: bytes) -> bytes:
    found = b""
    while data:
        size, _, data = data.partition(b"\r\n")
        found, data = found + data[: int(size, 16)], data[int(size, 16) + 2 :]
    return found


@pytest.mark.attack
@pytest.mark.req("SVC-6", "TOOLS-16")
@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd",
        b"HTTP/1.1 101 Switching Protocols\r\n\r\n",
        b"HTTP/1.1 103 Early Hints\r\n\r\n" * 20,
        b"HTTP/2 200\r\n\r\n",
        b"SSH-2.0-OpenSSH\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nX: " + b"x" * 100_000 + b"\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nX: y\r\n z\r\n\r\n",
    ],
)
def test_an_answer_that_can_be_read_in_two_ways_is_none(answer: bytes, trusting: EgressDoor, service: Service) -> None:
    service.answers = [answer]
    begin(trusting, way_to(service.port))

    head, _ = ask(trusting, request(service.port))

    assert b"X-Toolhub-Egress: answer_not_understood\r\nX-Toolhub-Left: 1" in head
    assert [(each.why, each.service and each.service.complete) for each in trusting.end()] == [
        ("answer_not_understood", False)
    ]


@pytest.mark.attack
@pytest.mark.req("SVC-6", "TOOLS-16")
@pytest.mark.parametrize(
    ("head", "endless"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n", b"x" * 65536),
        (b"HTTP/1.1 200 OK\r\n\r\n", b"x" * 65536),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"10000\r\n" + b"x" * 65536 + b"\r\n"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"1\r\nx\r\n" * 10_000),
    ],
)
def test_an_answer_without_end_is_cut(head: bytes, endless: bytes, names: Names, authority: Authority) -> None:
    caps = EgressCaps(answer_bytes=1 << 20)
    gate = EgressGate([f"{PUBLIC}/32"], resolve=names, ca_file=authority.roots, caps=caps)
    with opened(gate) as door, serving(authority.server_context(HOST), answers=[head], endless=endless) as service:
        begin(door, way_to(service.port))
        _, body = ask(door, request(service.port))
        (record,) = door.end()
    gate.close()

    assert not body.endswith(b"0\r\n\r\n")
    assert len(body) < 3 << 20
    assert record.why == "too_many_bytes"
    assert record.service is not None
    assert (record.service.status, record.service.left, record.service.complete) == (200, True, False)


# -- whether it left


@pytest.mark.req("SVC-6", "TOOLS-16")
@pytest.mark.parametrize(
    ("options", "why", "left", "status"),
    [
        pytest.param({"refuses": 1}, "not_reachable", False, 0, id="before TLS"),
        pytest.param({"hangs_up": "tls"}, "answer_cut_off", True, 0, id="after TLS"),
        pytest.param({"hangs_up": "head"}, "answer_cut_off", True, 0, id="after the request"),
        pytest.param({"answers": [b"HTTP/1.1 20"], "hangs_up": "answer"}, "answer_cut_off", True, 0, id="in the head"),
        pytest.param(
            {"answers": [b"HTTP/1.1 201 Created\r\nContent-Length: 9\r\n\r\n"], "hangs_up": "answer"},
            *("answer_cut_off", True, 201),
            id="after the head",
        ),
        pytest.param(
            {"answers": [b"HTTP/1.1 201 Created\r\nContent-Length: 9\r\n\r\nhalf"], "hangs_up": "answer"},
            *("answer_cut_off", True, 201),
            id="in the body",
        ),
        pytest.param(
            {"answers": [b"HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nhalf"], "hangs_up": "answer"},
            *("answer_cut_off", True, 201),
            id="in a chunk",
        ),
        pytest.param(
            {"answers": [b"HTTP/1.1 201 Created\r\n\r\nhalf"], "hangs_up": "answer"},
            *("answer_cut_off", True, 201),
            id="before the end of TLS",
        ),
    ],
)
def test_whether_a_request_left_is_known_wherever_its_connection_ends(
    options: dict[str, Any], why: str, left: bool, status: int, trusting: EgressDoor, authority: Authority
) -> None:
    with serving(authority.server_context(HOST), **options) as service:
        begin(trusting, way_to(service.port, method="POST"))
        asked = request(service.port, "/v1/repos/octo/cat", method="POST", body=b"{}")
        head, body = ask(trusting, asked)
        again, _ = ask(trusting, asked)
        records = trusting.end()

    record = records[0]
    assert record.service is not None
    assert (record.why, record.service.left, record.service.status, record.service.complete) == (
        why,
        left,
        status,
        False,
    )
    assert not body.endswith(b"0\r\n\r\n")
    if status == 0:
        assert f"X-Toolhub-Left: {int(left)}".encode() in head
    # Only what has not left may be asked for again in this call.
    assert again.startswith(b"HTTP/1.1 429 Too many attempts" if left else b"HTTP/1.1 200 ")


@pytest.mark.req("SVC-6", "TOOLS-16")
def test_nothing_leaves_where_nobody_is(trusting: EgressDoor) -> None:
    with socket.create_server((PUBLIC, 0)) as taken:
        port = taken.getsockname()[1]
    begin(trusting, way_to(port))

    head, _ = ask(trusting, request(port))

    assert b"X-Toolhub-Egress: not_reachable\r\nX-Toolhub-Left: 0" in head
    assert [each.service and each.service.left for each in trusting.end()] == [False]


@pytest.mark.attack
@pytest.mark.req("SVC-6")
def test_who_has_no_certificate_that_somebody_vouches_for_gets_nothing(
    trusting: EgressDoor, authority: Authority, tmp_path_factory: pytest.TempPathFactory
) -> None:
    stranger = Authority(tmp_path_factory.mktemp("stranger"))
    for context in (stranger.server_context(HOST), authority.server_context("front.other.org")):
        with serving(context) as forged:
            begin(trusting, way_to(forged.port))
            head, _ = ask(trusting, request(forged.port))
            (record,) = trusting.end()

        assert b"X-Toolhub-Egress: certificate_not_trusted\r\nX-Toolhub-Left: 0" in head
        assert record.service is not None
        assert (record.allowed, record.service.left, forged.heard) == (True, False, [])


@pytest.mark.req("SVC-6", "TOOLS-16")
def test_a_request_that_a_box_does_not_finish_never_leaves(trusting: EgressDoor, service: Service) -> None:
    begin(trusting, way_to(service.port, method="POST"))

    with Client(trusting) as client:
        client.say(request(service.port, method="POST", body=b"whole")[:-1])
        client.socket.shutdown(socket.SHUT_WR)
        head = client.rest()

    assert b"malformed_request" in head
    assert service.connections == 0


@pytest.mark.req("SVC-6", "TOOLS-16")
def test_the_end_of_a_call_says_that_its_request_had_left(trusting: EgressDoor, authority: Authority) -> None:
    half = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhal"
    with serving(authority.server_context(HOST), answers=[half], hangs_up="never") as service:
        begin(trusting, way_to(service.port))
        with Client(trusting) as client:
            client.say(request(service.port)).head()
            (record,) = trusting.end()

    assert record.service is not None
    assert (record.service.left, record.service.status, record.service.complete) == (True, 200, False)


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
