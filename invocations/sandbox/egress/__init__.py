"""How does a tool that may reach a host get there, and nowhere else?

A box has no network. One unix socket in its folder leads to the gate in the process that owns the box, and the socket is the
identity of whoever speaks through it: :class:`Gate` opens a :class:`Door` a box, and a door knows whose call it serves.
"""

from invocations.sandbox.egress.gate import Door, Gate
from invocations.sandbox.egress.rules import Rules, not_enforceable
from invocations.sandbox.egress.verdicts import with_connections

__all__ = ["Door", "Gate", "Rules", "not_enforceable", "with_connections"]
