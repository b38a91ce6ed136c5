"""Gates, servers and names for the checks of the way out."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from invocations.sandbox.egress import Gate
from invocations.sandbox.egress.passage import Caps
from tests.egress.world import PUBLIC, Authority, Names, Origin, box_folder, opened, origin

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Iterator

    from invocations.sandbox.egress import Door

HOST = "api.example.org"


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture
def trust(authority: Authority) -> ssl.SSLContext:
    return authority.client_context()


@pytest.fixture
def names() -> Names:
    found = Names()
    found.say(HOST, [PUBLIC])
    return found


@pytest.fixture
def gate(names: Names) -> Iterator[Gate]:
    gate = Gate([f"{PUBLIC}/32"], resolve=names)
    yield gate
    gate.close()


@pytest.fixture
def door(gate: Gate) -> Iterator[Door]:
    with opened(gate) as door:
        yield door


@pytest.fixture
def narrow(names: Names) -> Iterator[Callable[..., Door]]:
    """``narrow(head_s=0.1)``: a door of a gate with other caps."""
    gates = []
    with box_folder() as folder:

        def make(**caps: float) -> Door:
            gates.append(Gate([f"{PUBLIC}/32"], resolve=names, caps=Caps(**caps)))  # type: ignore[arg-type]
            return gates[-1].open(folder)

        yield make
        for gate in gates:
            gate.close()


@pytest.fixture
def secure(authority: Authority) -> Iterator[Origin]:
    """A server for ``HOST`` and names below it, over TLS."""
    with origin(context=authority.server_context(HOST, "*.example.org")) as found:
        yield found


@pytest.fixture
def open_server() -> Iterator[Origin]:
    """A server that speaks plain http."""
    with origin() as found:
        yield found
