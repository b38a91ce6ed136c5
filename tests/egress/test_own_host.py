"""May a tool reach the very host that its gate runs on?"""

from __future__ import annotations

import asyncio
import socket
from ipaddress import ip_address

import pytest

from invocations.sandbox.egress.ways import Ways, resolve_name
from invocations.sandbox.egress.whys import Stopped, Why

HERE = ip_address("127.0.0.1")  # stands for a public address of this host: what is reached by it is the same


@pytest.mark.req("TOOLS-3")
def test_this_host_is_reached_only_where_the_operator_named_it() -> None:
    with socket.create_server((str(HERE), 0)) as server:
        port = server.getsockname()[1]
        stranger, named = Ways([], resolve_name), Ways([f"{HERE}/32"], resolve_name)

        with pytest.raises(Stopped) as stopped:
            asyncio.run(stranger.connect([HERE], port, seconds=5))
        asyncio.run(named.connect([HERE], port, seconds=5)).close()

    assert stopped.value.why is Why.PRIVATE_ADDRESS
    for ways in (stranger, named):
        ways.close()
