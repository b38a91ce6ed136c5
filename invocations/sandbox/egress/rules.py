"""Egress rules: whether a run's capabilities hold a request.

The answer is that of :class:`Capabilities`, and nothing else decides. What the gate cannot see, it cannot enforce, and what it
cannot enforce it does not let through: the methods inside https, and datagrams.
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

from invocations.sandbox.egress.denial_reasons import DenialReason
from invocations.sandbox.egress.request_head import CONNECT
from unitools.capabilities.nodes import parse_host, parse_range, show_host, show_range
from unitools.capabilities.values import METHODS, NetworkAccess
from unitools.capabilities.wire import host_names, range_names

if TYPE_CHECKING:
    from invocations.sandbox.egress.request_head import RequestHead, RequestTarget
    from invocations.sandbox.egress.service_way import ServiceWay
    from unitools.capabilities import Capabilities

_WHOLE = ("https", "")


class EgressRules:
    """What one call may reach."""

    def __init__(self, capabilities: Capabilities) -> None:
        self._capabilities = capabilities

    def refusal(self, request: RequestHead) -> DenialReason | None:
        """Why not, or None. Where a name leads is asked elsewhere."""
        target, held = request.target, self._capabilities
        if target.address is not None:
            return None if held.allows_address(target.host, port=target.port) else DenialReason.NOT_GRANTED

        def allowed(scheme: str) -> list[str]:
            return [
                method
                for method in METHODS
                if held.allows_host(target.host, port=target.port, scheme=scheme, method=method)
            ]

        if request.method == CONNECT:
            methods = allowed("https")
            if len(methods) == len(METHODS):
                return None
            return DenialReason.METHODS_UNSEEN if methods else DenialReason.NOT_GRANTED
        methods = allowed("http")
        if request.method in methods:
            return None
        return DenialReason.METHOD if methods else DenialReason.NOT_GRANTED

    def way_refusal(self, way: ServiceWay, asked: str) -> DenialReason | None:
        """Why the service may not be asked with this method, or None. It is known here, so that one alone must be held."""
        methods = [
            method
            for method in METHODS
            if self._capabilities.allows_host(way.host, port=way.port, scheme="https", method=method)
        ]
        if asked in methods:
            return None
        return DenialReason.METHOD if methods else DenialReason.NOT_GRANTED

    def place(self, target: RequestTarget) -> str:
        """The host, pattern or range of the rule that names this target, as the rule has it; empty when none does.

        A name below ``*.example.org`` is the tool's own word and could spell out a value; the pattern is not.
        """
        if target.address is not None:
            ranges = self._capabilities.cidr
            found = ranges.cover(parse_range(target.host))
            reach = ranges.rules.get(found, NetworkAccess()) if found else NetworkAccess()
            return show_range(found) if found and _names_port(reach, target.port) else ""
        hosts = self._capabilities.net
        node = hosts.cover(parse_host(target.host))
        return show_host(node) if node and _names_port(hosts.rules[node], target.port) else ""


def _names_port(reach: NetworkAccess, port: int) -> bool:
    return any(low <= port <= high for spans in reach.lanes.values() for low, high in spans)


def _unseen(reach: NetworkAccess) -> NetworkAccess:
    """The part of https that holds some methods of a port and not all."""
    each = [NetworkAccess({_WHOLE: reach.lanes.get(("https", method), ())}) for method in METHODS]
    whole = reduce(NetworkAccess.meet, each).lanes.get(_WHOLE, ())
    lanes = {lane: ports for lane, ports in reach.lanes.items() if lane[0] == "https"}
    return NetworkAccess(lanes).minus(NetworkAccess.over(["https"], METHODS, whole))


def list_unenforceable(capabilities: Capabilities, *, by_gate: bool = False) -> tuple[str, ...]:
    """What no gate can hold a tool to, as short texts: single methods inside https, and UDP.

    ``by_gate``: the run has the service way, where the gate opens TLS itself and knows the method.
    """
    reaches = {} if by_gate else capabilities.net.rules
    found = [name for node, reach in reaches.items() for name in host_names(node, _unseen(reach))]
    for node, reach in capabilities.cidr.rules.items():
        datagrams = NetworkAccess({lane: ports for lane, ports in reach.lanes.items() if lane[0] == "udp"})
        found += range_names(node, datagrams)
    return tuple(sorted(found))
