"""Client guides: is a hub said to be in reach of servers of others that is not?"""

from __future__ import annotations

import pytest

from access.connections.client_guides import is_public


@pytest.mark.req("CONN-1")
@pytest.mark.parametrize("host", ["hub.example.com", "8.8.8.8", "[2606:2800:220:1::1]", "corp.example.com"])
def test_a_public_name_is_in_reach(host: str) -> None:
    assert is_public(f"https://{host}/mcp")
    assert not is_public(f"http://{host}/mcp")


@pytest.mark.req("CONN-1")
@pytest.mark.parametrize(
    "host",
    [
        "hub",
        "localhost",
        "hub.localhost",
        "hub.local",
        "hub.corp",
        "hub.lan",
        "hub.home.arpa",
        "hub.internal",
        "10.0.0.1",
        "[::1]",
    ],
)
def test_a_name_of_a_private_network_is_not(host: str) -> None:
    assert not is_public(f"https://{host}/mcp")
