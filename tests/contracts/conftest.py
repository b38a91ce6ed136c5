"""What do the contract tests of real sandboxes share?"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from invocations.sandbox.engine import Engine
from tests.boxes import docker_sandbox
from tests.engine_proxy import EngineProxy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from invocations.sandbox.docker import DockerSandbox


@pytest.fixture
def sandbox_of() -> Iterator[Callable[..., DockerSandbox]]:
    """Makes sandboxes that are closed after the test."""
    made: list[DockerSandbox] = []

    def make(**options: Any) -> DockerSandbox:
        made.append(docker_sandbox(**options))
        return made[-1]

    yield make
    for sandbox in made:
        sandbox.close()


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    engine = Engine()
    yield engine
    engine.close()


@pytest.fixture
def proxied() -> Iterator[Callable[..., EngineProxy]]:
    """Puts sockets before the engine that are closed after the test."""
    made: list[EngineProxy] = []

    def make(*where: Any) -> EngineProxy:
        made.append(EngineProxy(*where))
        return made[-1]

    yield make
    for proxy in made:
        proxy.cut()


@pytest.fixture
def short_path() -> Iterator[Path]:
    """The names of sockets are short."""
    with tempfile.TemporaryDirectory(prefix="toolhub-") as place:
        yield Path(place)
