"""The contract of sandboxes, kept by a sandbox host that a worker reaches over a socket or under TLS."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, cast

import pytest

from invocations.sandbox.pool.slots import PoolCaps
from tests.contracts.sandbox_contract import SandboxContract
from tests.support.sandbox_hosts import TLS, UNIX, open_remote_sandbox
from tests.support.sandboxes import AtLevel

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module")
def hosts() -> Iterator[dict[str, Any]]:
    """A worker's sandbox by transport. Its boxes are warm."""
    with ExitStack() as stack:
        yield _Hosts(stack)


class _Hosts(dict[str, Any]):
    """Opened when it is asked for."""

    def __init__(self, stack: ExitStack) -> None:
        super().__init__()
        self._stack = stack

    def __missing__(self, transport: str) -> Any:
        self[transport] = self._stack.enter_context(open_remote_sandbox(transport, caps=PoolCaps(ready=2)))
        return self[transport]


class BoxdContract(SandboxContract):
    transport = ""
    level = "shared"
    gives = frozenset({"fs", "proc", "browser", "net", "cidr"})

    @pytest.fixture
    def sandbox(self, hosts: dict[str, Any]) -> AtLevel:
        return AtLevel(hosts[self.transport], self.level)

    @pytest.fixture
    def own_sandbox(self) -> Iterator[AtLevel]:
        with open_remote_sandbox(self.transport) as sandbox:
            yield AtLevel(cast("Any", sandbox), self.level)


class TestOverTls(BoxdContract):
    transport = TLS


@pytest.mark.long  # the same messages as under TLS
class TestOverUnixSocket(BoxdContract):
    transport = UNIX
