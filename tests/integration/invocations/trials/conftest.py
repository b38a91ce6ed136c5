"""Trials: a reviewer, and a version that waits for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from access.roles import Role
from invocations.replays import rerun as replays_rerun
from invocations.replays import worker
from tests.conftest import make_person
from tests.support.replays import replayed_tool
from tests.support.sandboxes import docker_sandbox
from tests.support.trials import SCHEMA

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from access.models import Tenant
    from invocations.sandbox.base import Sandbox
    from registry.models import ToolVersion
    from tests.conftest import Person


@pytest.fixture(scope="module")
def engine() -> Iterator[Sandbox]:
    sandbox = docker_sandbox()
    yield sandbox
    sandbox.close()


@pytest.fixture
def docker(engine: Sandbox, monkeypatch: pytest.MonkeyPatch) -> Sandbox:
    for module in (replays_rerun, worker):
        monkeypatch.setattr(module, "current_sandbox", lambda: engine)
    return engine


@pytest.fixture
def waiting(submit: Callable[..., ToolVersion]) -> ToolVersion:
    """A tool that nobody has called yet: there is no recorded call to try it with."""
    return submit(**replayed_tool("draws", input_schema=SCHEMA))


@pytest.fixture
def reviewer(tenant: Tenant) -> Person:
    return make_person(tenant, "rita", Role.REVIEWER)
