"""The gate's own host: may a tool reach the very host that its gate runs on?"""

from __future__ import annotations

import asyncio
import socket
from ipaddress import ip_address

import pytest

from invocations.sandbox.egress.denial_reasons import DenialReason, EgressDenied
from invocations.sandbox.egress.resolver import Resolver, resolve_name

HERE = ip_address("127.0.0.1")  # stands for a public address of this host: what is reached by it is the same


@pytest.mark.req("TOOLS-3")
def test_this_host_is_reached_only_where_the_operator_named_it() -> None:
    with socket.create_server((str(HERE), 0)) as server:
        port = server.getsockname()[1]
        stranger, named = Resolver([], resolve_name), Resolver([f"{HERE}/32"], resolve_name)

        with pytest.raises(EgressDenied) as stopped:
            asyncio.run(stranger.connect([HERE], port, seconds=5))
        asyncio.run(named.connect([HERE], port, seconds=5)).close()

    assert stopped.value.why is DenialReason.PRIVATE_ADDRESS
    for ways in (stranger, named):
        ways.close()
