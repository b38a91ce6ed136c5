"""Boxes and the gate: how much may a box ask of the gate at once, and what goes on after its call?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from invocations.sandbox.base import RunOutcome, RunStatus
from invocations.sandbox.egress import EgressDoor
from tests.egress.world import HOST, PUBLIC, Origin, origin, tls

if TYPE_CHECKING:
    from collections.abc import Callable


pytestmark = pytest.mark.attack
LEVELS = ("shared", "fresh", "single")

MANY = """
import socket
def run(host, port):
    ends = []
    for _ in range(60):
        end = socket.create_connection(("127.0.0.1", 3128))
        end.sendall(f"CONNECT {host}:{port} HTTP/1.1\\r\\n\\r\\n".encode())
        ends.append(end)
    return sorted(end.recv(1000).decode()[:12] for end in ends)
"""


@pytest.mark.req("SVC-6")
def test_of_sixty_connections_sixteen_are_open_at_once(run: Callable[..., RunOutcome], secure: Origin) -> None:
    outcome = run(MANY, {"net": [tls(HOST, secure.port)]}, host=HOST, port=secure.port)

    assert outcome.value == ["HTTP/1.1 200"] * 16 + ["HTTP/1.1 429"] * 44, outcome


LEAVES_ONE_OPEN = """
import os, socket
def run(host, port, stay):
    if not stay:
        return "nothing"
    end = socket.create_connection(("127.0.0.1", 3128))
    end.sendall(f"CONNECT {host}:{port} HTTP/1.1\\r\\n\\r\\n".encode())
    end.recv(1000)
    if os.fork() == 0:
        os.setsid()
        while True: end.recv(1000)
    return "left"
"""


@pytest.mark.req("SVC-6")
@pytest.mark.parametrize("level", LEVELS)
def test_nothing_of_a_call_goes_on_after_it(level: str, run: Callable[..., RunOutcome]) -> None:
    with origin(until=b"never") as patient:
        capabilities = {"cidr": [{"cidr": f"{PUBLIC}/32", "ports": [patient.port]}]}
        left = run(LEAVES_ONE_OPEN, capabilities, level, host=PUBLIC, port=patient.port, stay=True)
        heard = list(patient.all())  # the connection is over: nobody has it any more
        after = run(LEAVES_ONE_OPEN, capabilities, level, host=PUBLIC, port=patient.port, stay=False)

    assert (left.value, heard) == ("left", [b""]), left
    assert [each.host for each in left.connections] == [PUBLIC]
    assert (after.value, after.connections) == ("nothing", ())


@pytest.mark.req("SVC-6")
def test_connections_that_the_gate_has_not_told_are_not_known_and_its_box_serves_no_more(
    run: Callable[..., RunOutcome], monkeypatch: pytest.MonkeyPatch
) -> None:
    def late(_: EgressDoor) -> None:
        raise TimeoutError

    nothing, capabilities = "def run(): return 1", {"net": [tls(HOST, 443)]}
    first = run(nothing, capabilities, "shared")
    with monkeypatch.context() as patched:
        patched.setattr(EgressDoor, "end", late)
        untold = run(nothing, capabilities, "shared")
    after = run(nothing, capabilities, "shared")

    assert (first.connections_known, untold.connections_known, after.connections_known) == (True, False, True)
    assert (untold.status, untold.value, untold.box) == (RunStatus.OK, 1, first.box)
    assert after.box != untold.box


@pytest.mark.req("SVC-6")
def test_a_box_whose_way_out_did_not_open_in_time_serves_no_more(
    run: Callable[..., RunOutcome], monkeypatch: pytest.MonkeyPatch
) -> None:
    def late(_: EgressDoor, *__: object, **___: object) -> None:
        raise TimeoutError

    nothing, capabilities = "def run(): return 1", {"net": [tls(HOST, 443)]}
    first = run(nothing, capabilities, "shared")
    with monkeypatch.context() as patched:
        patched.setattr(EgressDoor, "begin", late)
        assert run(nothing, capabilities, "shared").status is RunStatus.START_FAILED

    assert run(nothing, capabilities, "shared").box not in (first.box, "")
