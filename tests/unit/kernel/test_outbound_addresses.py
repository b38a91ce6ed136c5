"""Outbound addresses: which addresses may the hub, or a tool through it, be sent to?"""

from __future__ import annotations

from ipaddress import ip_address

import pytest

from kernel.http.addresses import may_reach


@pytest.mark.parametrize(
    "address",
    [
        *("127.0.0.1", "10.1.2.3", "169.254.169.254", "100.64.0.1", "0.0.0.0", "224.0.0.1", "255.255.255.255"),
        *("168.63.129.16", "192.0.0.192", "192.88.99.1"),
        *("::1", "fe80::1", "fd00::1", "::ffff:10.0.0.1", "64:ff9b::7f00:1", "2002:7f00:1::", "3fff::1", "5f00::1"),
    ],
)
def test_what_is_not_public_is_not_reached_but_by_the_operators_word(address: str) -> None:
    assert not may_reach(ip_address(address), [])
    mapped = ip_address(address.removeprefix("::ffff:"))
    assert may_reach(ip_address(address), [f"{mapped}/{mapped.max_prefixlen}"])


@pytest.mark.parametrize("address", ["93.184.216.34", "2606:2800:220:1::1", "192.0.1.1"])
def test_what_is_public_is(address: str) -> None:
    assert may_reach(ip_address(address), [])
