"""Run outcome: what the connections of a run say about how it ended."""

from __future__ import annotations

from dataclasses import replace
from ipaddress import ip_address
from typing import TYPE_CHECKING

from invocations.sandbox.base import RunOutcome, RunStatus
from invocations.sandbox.egress.denial_reasons import NOT_HELD
from sandbox.relay import GATE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from invocations.sandbox.base import ConnectionRecord

_MOST_ATTEMPTS = 32  # as many as are taken from a tool


def _capability(connection: ConnectionRecord) -> str:
    """``net`` for names, ``cidr`` for addresses."""
    try:
        ip_address(connection.host)
    except ValueError:
        return "net"
    return "cidr"


def add_connections(outcome: RunOutcome, told: Sequence[ConnectionRecord] | None) -> RunOutcome:
    """The outcome with what the gate has seen; None when it has not answered. Its refusals are attempts, whether or not the
    tool hid them.

    That a tool ended *because* it was refused is what its exception says; without a refusal of the gate it is an exception like
    any other.
    """
    connections = told or ()
    refused = [each for each in connections if not each.allowed and each.why in NOT_HELD]
    seen = [f"{_capability(each)}:{each.host}:{each.port}" if each.port else f"net:{each.host}" for each in refused]
    attempts = tuple(dict.fromkeys((*outcome.attempts, *seen)))[:_MOST_ATTEMPTS]
    found = replace(outcome, connections=tuple(connections), connections_known=told is not None, attempts=attempts)
    if outcome.status is RunStatus.CAPABILITY_BLOCKED and outcome.blocked == GATE:
        if not refused:
            return replace(found, status=RunStatus.RAISED, blocked="")
        return replace(found, blocked=_capability(refused[-1]))
    return found
