"""Fixtures of contracts: what do the contract tests of real sandboxes share?"""

from __future__ import annotations

import shutil
import tempfile
from importlib.metadata import distribution
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from invocations.sandbox.engine import Engine
from tests.support.engine_proxy import EngineProxy
from tests.support.sandboxes import docker_sandbox

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from invocations.sandbox.docker import DockerSandbox


DISTRIBUTIONS = (
    "pydantic",
    "pydantic_core",
    "annotated-types",
    "typing-extensions",
    "typing-inspection",
    "anyio",
    "idna",
)


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
def boxes() -> Iterator[DockerSandbox]:
    found = docker_sandbox()
    yield found
    found.close()


@pytest.fixture(scope="module")
def sandbox(boxes: DockerSandbox) -> DockerSandbox:
    return boxes


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


@pytest.fixture(scope="session")
def sdk_dependencies(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a tool of a Universe needs, as the hub's builder lays it out: the very files that are installed here."""
    folder = tmp_path_factory.mktemp("deps")
    folder.chmod(0o755)  # tools are nobody
    for name in DISTRIBUTIONS:
        installed = distribution(name)
        for file in installed.files or []:
            if ".." not in file.parts and file.suffix != ".pyc":
                (folder / file).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(str(installed.locate_file(file)), folder / file)
    return folder
