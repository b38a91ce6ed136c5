"""Fixtures of attacks: where do the attacks take place?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.attacks.arena import Arena
from tests.attacks.levels import EVERY
from tests.support.sandboxes import docker_sandbox

if TYPE_CHECKING:
    from collections.abc import Iterator

    from invocations.sandbox.docker import DockerSandbox


@pytest.fixture(scope="module", params=EVERY)
def arena(request: pytest.FixtureRequest) -> Iterator[Arena]:
    level, _, transport = request.param.partition(" over ")
    found = Arena(level, transport=transport)
    yield found
    found.close()


@pytest.fixture(scope="module")
def sandbox() -> Iterator[DockerSandbox]:
    found = docker_sandbox()
    yield found
    found.close()
