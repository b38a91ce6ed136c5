"""Egress: how a tool that may reach a host gets there, and nowhere else.

A box has no network. One unix socket in its folder leads to the gate in the process that owns the box, and the socket is the
identity of whoever speaks through it: :class:`EgressGate` opens an :class:`EgressDoor` a box, and a door knows whose call it serves.
"""

from invocations.sandbox.egress.gate import EgressDoor, EgressGate
from invocations.sandbox.egress.remote_way import RemoteWay
from invocations.sandbox.egress.rules import EgressRules, list_unenforceable
from invocations.sandbox.egress.run_outcome import add_connections
from invocations.sandbox.egress.service_way import CredentialUnfit, ServiceWay

__all__ = [
    "CredentialUnfit",
    "EgressDoor",
    "EgressGate",
    "EgressRules",
    "RemoteWay",
    "ServiceWay",
    "add_connections",
    "list_unenforceable",
]
