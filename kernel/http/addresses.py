"""Addresses: which of them the hub may be sent to by somebody else's name."""

from __future__ import annotations

from ipaddress import IPv6Address, ip_network
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable
    from ipaddress import IPv4Address

# Public by their numbers, and yet services that a host of a cloud finds beside itself, or not assigned to anybody.
_NEVER_PUBLIC = (
    *("168.63.129.16/32", "192.0.0.0/24", "192.88.99.0/24"),
    *("3fff::/20", "5f00::/16"),
)


def may_reach(address: IPv4Address | IPv6Address, networks: Iterable[str]) -> bool:
    """Public, or in one of the networks that the operator named. The one rule for whoever is sent to an address."""
    if isinstance(address, IPv6Address) and address.ipv4_mapped:
        address = address.ipv4_mapped
    if is_within(address, networks):
        return True
    if isinstance(address, IPv6Address) and (
        address.sixtofour  # this one and the next carry an IPv4 address that nobody has checked
        or address.teredo
        or address.is_reserved  # all that is not assigned, with NAT64 (64:ff9b::/96) and ::/96 in it
        or address.is_site_local
    ):
        return False
    return address.is_global and not address.is_multicast and not is_within(address, _NEVER_PUBLIC)


def is_within(address: IPv4Address | IPv6Address, networks: Iterable[str]) -> bool:
    return any(address in network for network in map(ip_network, networks) if network.version == address.version)
