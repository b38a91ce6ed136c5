"""Sent operations: is it known whether a request has left, wherever its connection ends?"""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, Any

import pytest

from invocations.sandbox.egress import EgressGate
from tests.egress.operations import ask, begin, request, way_to
from tests.egress.services import Service, serving
from tests.egress.world import HOST, PUBLIC, Authority, Client, Names, opened

if TYPE_CHECKING:
    from invocations.sandbox.egress import EgressDoor


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


@pytest.mark.req("SVC-6", "TOOLS-16")
def test_a_gate_that_closes_first_still_says_that_a_request_had_left(names: Names, authority: Authority) -> None:
    """A hub that stops closes its gate while a run may not have asked yet: to hear of nothing would be to ask the service again."""
    gate = EgressGate([f"{PUBLIC}/32"], resolve=names, ca_file=authority.roots)
    with (
        opened(gate) as door,
        serving(authority.server_context(HOST), answers=[b"HTTP/1.1 200 OK\r\n"], hangs_up="never") as service,
    ):
        begin(door, way_to(service.port, method="DELETE"))
        with Client(door) as client:
            client.say(request(service.port, method="DELETE"))
            service.requests()
            gate.close()
            (record,) = door.end()
        gate.close()

    assert record.service is not None
    assert (record.service.left, record.service.complete) == (True, False)
