"""Resolver: where a name leads, and whether anybody may be sent there.

A name is resolved here, once a connection. Every address of it must be public or in a network that the operator named, and
the connection goes to an address that was looked at: what the name says a moment later changes nothing.
"""

from __future__ import annotations

import asyncio
import socket
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from ipaddress import ip_address
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from invocations.sandbox.egress.denial_reasons import DenialReason, EgressDenied
from kernel.http.addresses import is_within, may_reach

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from ipaddress import IPv4Address, IPv6Address

    from invocations.sandbox.egress.request_head import RequestTarget

_LOOKUPS = 256  # at once, of all boxes; a thread each, which is there from the first time that so many are needed
LOOKUPS_OF_TENANT = 16  # at once: a slow name server of somebody's own delays nobody else
LOOKUPS_OF_BOX = 4
_MOST_ADDRESSES = 32


def resolve_name(name: str) -> list[str]:
    """All addresses of a name, as the machine's own resolver gives them."""
    found = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


class Resolver:
    """Shared by all doors of a gate."""

    def __init__(self, networks: Sequence[str], resolve: Callable[[str], Sequence[str]]) -> None:
        self._networks = networks
        self._resolve = resolve
        self._lookups = ThreadPoolExecutor(_LOOKUPS, "egress-lookup")
        self._shares: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()

    def share(self, tenant: str) -> asyncio.Semaphore:
        """The look-ups of one tenant. It is there as long as a call or a look-up has it."""
        return self._shares.setdefault(tenant, asyncio.Semaphore(LOOKUPS_OF_TENANT))

    async def addresses(
        self, target: RequestTarget, *, seconds: float, turns: Sequence[asyncio.Semaphore]
    ) -> list[IPv4Address | IPv6Address]:
        """Those of a target, all of which were found allowed: a name with one private address is refused whole."""
        if target.address is not None:
            found = [target.address]
        else:
            found = await self._look_up(target.host, seconds, turns)
        if not all(may_reach(address, self._networks) for address in found):
            raise EgressDenied(DenialReason.PRIVATE_ADDRESS)
        return found

    async def _look_up(
        self, name: str, seconds: float, turns: Sequence[asyncio.Semaphore]
    ) -> list[IPv4Address | IPv6Address]:
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(seconds):
                with ExitStack() as held:
                    for turn in turns:
                        await turn.acquire()
                        held.callback(turn.release)
                    lookup = self._lookups.submit(self._resolve, name)
                    places = held.pop_all()

                def give_back(_: object) -> None:
                    with suppress(RuntimeError):  # the gate has closed meanwhile
                        loop.call_soon_threadsafe(places.close)

                lookup.add_done_callback(give_back)  # when it has ended, which may be long after we have given up
                texts = await asyncio.wrap_future(lookup)
            found = [ip_address(text.partition("%")[0]) for text in texts]
        except (OSError, ValueError, TimeoutError) as error:  # a UnicodeError of the codec for names is a ValueError
            raise EgressDenied(DenialReason.UNRESOLVED) from error
        if not found or len(found) > _MOST_ADDRESSES:
            raise EgressDenied(DenialReason.UNRESOLVED)
        return found

    async def connect(
        self, addresses: Sequence[IPv4Address | IPv6Address], port: int, *, seconds: float
    ) -> socket.socket:
        """To the first of these addresses that answers; to nothing else."""
        loop = asyncio.get_running_loop()
        for address in addresses:
            with suppress(OSError, TimeoutError), ExitStack() as undo:
                end = socket.socket(socket.AF_INET if address.version == 4 else socket.AF_INET6)
                undo.callback(end.close)
                end.setblocking(False)
                end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                async with asyncio.timeout(seconds / len(addresses)):
                    await loop.sock_connect(end, (str(address), port))
                if end.getsockname()[0] == end.getpeername()[0] and not is_within(address, self._networks):
                    raise EgressDenied(
                        DenialReason.PRIVATE_ADDRESS
                    )  # this host under its public address, behind its firewall
                undo.pop_all()
                return end
        raise EgressDenied(DenialReason.UNREACHABLE)

    def close(self) -> None:
        self._lookups.shutdown(wait=False, cancel_futures=True)
