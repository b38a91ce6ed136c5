from __future__ import annotations

from collections import Counter

import pytest

from invocations.sandbox.base import BoxKey, SandboxCall
from invocations.sandbox.remote.connection import HostAddress
from invocations.sandbox.remote.host import RemoteHost
from invocations.sandbox.remote.sandbox import rank_hosts

HOSTS = [RemoteHost(HostAddress(f"tls://host-{number}:1")) for number in range(4)]


def call(number: int) -> SandboxCall:
    return SandboxCall("n", b"", "m", "e", b"", {}, key=BoxKey("acme", f"sha256:{number}"))


@pytest.mark.req("OPS-1")
def test_a_tool_finds_its_warm_box_again_and_another_host_less_moves_only_its_share() -> None:
    before = {number: rank_hosts(HOSTS, call(number)) for number in range(400)}
    after = {number: rank_hosts(HOSTS[1:], call(number)) for number in range(400)}

    assert before == {number: rank_hosts(HOSTS[::-1], call(number)) for number in range(400)}
    assert all(after[number] == [host for host in ranked if host is not HOSTS[0]] for number, ranked in before.items())
    assert min(Counter(str(ranked[0]) for ranked in before.values()).values()) > 50
