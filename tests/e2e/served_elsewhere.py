"""A hub for which one host of the world is a service of the tests: ``HOST ADDRESS PORT COMMAND…``, where the command is the hub's own.

Only where the host's name leads is another: what the gate makes of the name, the address and the certificate is its own.
"""

from __future__ import annotations

import runpy
import socket
import sys
from typing import TYPE_CHECKING, Any

from invocations.sandbox.egress.resolver import Resolver

if TYPE_CHECKING:
    from collections.abc import Sequence
    from ipaddress import IPv4Address, IPv6Address

HTTPS_PORT = 443


def lead(host: str, address: str, stands_at: int) -> None:
    """Names and connections of this process: the host lies at this address, and what speaks https there is at this port."""
    look_up, connect = socket.getaddrinfo, Resolver.connect

    def look_up_here(name: Any, *more: Any, **named: Any) -> Any:
        return look_up(address if name == host else name, *more, **named)

    async def connect_here(
        self: Resolver, addresses: Sequence[IPv4Address | IPv6Address], port: int, *, seconds: float
    ) -> socket.socket:
        is_here = [str(each) for each in addresses] == [address] and port == HTTPS_PORT
        return await connect(self, addresses, stands_at if is_here else port, seconds=seconds)

    socket.getaddrinfo = look_up_here  # type: ignore[assignment]
    Resolver.connect = connect_here  # type: ignore[method-assign]


if __name__ == "__main__":
    _, host, address, port, _, *command = sys.argv
    lead(host, address, int(port))
    sys.argv = command
    runpy.run_path(command[0], run_name="__main__")
