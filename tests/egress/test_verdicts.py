"""Verdicts of the gate: when did a tool end because the gate refused it, and when did it only say so?"""

from __future__ import annotations

import pytest

from invocations.sandbox.base import ConnectionRecord, RunOutcome, RunStatus
from invocations.sandbox.egress.denial_reasons import NOT_HELD, DenialReason
from invocations.sandbox.egress.run_outcome import add_connections
from sandbox.relay import GATE

ALLOWED = ConnectionRecord("api.example.org", 443, allowed=True, rule="api.example.org", bytes_in=5)
SAID_SO = RunOutcome(RunStatus.CAPABILITY_BLOCKED, blocked=GATE, error_type="URLError", error_message="refused")


def refused(host: str = "other.example.org", why: DenialReason = DenialReason.NOT_GRANTED) -> ConnectionRecord:
    return ConnectionRecord(host, 443, allowed=False, why=why)


@pytest.mark.req("TOOLS-3", "TOOLS-16")
@pytest.mark.parametrize("why", sorted(NOT_HELD))
def test_a_tool_that_was_refused_and_says_so_was_blocked(why: DenialReason) -> None:
    outcome = add_connections(SAID_SO, [ALLOWED, refused(why=why)])

    assert (outcome.status, outcome.blocked) == (RunStatus.CAPABILITY_BLOCKED, "net")
    assert outcome.attempts == ("net:other.example.org:443",)
    assert outcome.connections == (ALLOWED, refused(why=why))


@pytest.mark.req("TOOLS-3", "TOOLS-16")
@pytest.mark.parametrize("address", ["10.0.0.1", "2001:db8::1"])
def test_of_an_address_a_range_was_lacking(address: str) -> None:
    outcome = add_connections(SAID_SO, [refused(address)])

    assert (outcome.blocked, outcome.attempts) == ("cidr", (f"cidr:{address}:443",))


@pytest.mark.req("TOOLS-16")
@pytest.mark.parametrize(
    "connection", [ALLOWED, refused(why=DenialReason.TOO_MANY), refused(why=DenialReason.MALFORMED)]
)
def test_a_tool_that_says_so_and_was_not_refused_has_raised(connection: ConnectionRecord) -> None:
    outcome = add_connections(SAID_SO, [connection])

    assert (outcome.status, outcome.blocked, outcome.error_type) == (RunStatus.RAISED, "", "URLError")
    assert outcome.attempts == ()


@pytest.mark.req("TOOLS-16")
@pytest.mark.parametrize("status", [RunStatus.OK, RunStatus.RAISED, RunStatus.TIMED_OUT])
def test_a_refusal_that_a_tool_hides_is_an_attempt_all_the_same(status: RunStatus) -> None:
    outcome = add_connections(RunOutcome(status, attempts=("fs:/etc/passwd",)), [refused(), refused()])

    assert outcome.status is status
    assert outcome.attempts == ("fs:/etc/passwd", "net:other.example.org:443")


@pytest.mark.req("TOOLS-16")
def test_what_the_kernel_refused_stays_blocked_without_the_gate() -> None:
    outcome = add_connections(RunOutcome(RunStatus.CAPABILITY_BLOCKED, blocked="proc"), [ALLOWED])

    assert (outcome.status, outcome.blocked) == (RunStatus.CAPABILITY_BLOCKED, "proc")


@pytest.mark.req("TOOLS-16")
def test_a_target_that_cannot_be_read_is_an_attempt_as_it_was_written() -> None:
    outcome = add_connections(SAID_SO, [ConnectionRecord("127.1:80", 0, allowed=False, why=DenialReason.BAD_TARGET)])

    assert (outcome.blocked, outcome.attempts) == ("net", ("net:127.1:80",))


@pytest.mark.req("TOOLS-16")
def test_what_the_gate_has_not_told_is_not_known() -> None:
    untold = add_connections(RunOutcome(RunStatus.OK), None)

    assert (untold.connections, untold.connections_known) == ((), False)
    assert add_connections(RunOutcome(RunStatus.OK), []).connections_known


@pytest.mark.req("TOOLS-16")
def test_attempts_are_bounded() -> None:
    many = [refused(f"host-{number}.example.org") for number in range(1000)]

    assert len(add_connections(RunOutcome(RunStatus.OK), many).attempts) == 32
