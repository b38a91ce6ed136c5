"""A model and a tool that an agent may have the hub take a question to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from invocations.agent_runs import orchestration
from tests.integration.invocations.model_calls.conftest import bench, connect, model  # noqa: F401  fixtures
from tests.support.agent_runs import RunDriver

if TYPE_CHECKING:
    from collections.abc import Callable

    from registry.models import Tool
    from tests.support.calls import Bell


@pytest.fixture
def driver(
    model: Tool,  # noqa: F811
    enable: Callable[..., Any],
    bell: Bell,
    scripted: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
) -> RunDriver:
    """The echo tool may be called as well; it answers its text with a ``+``."""
    enable()
    made = RunDriver(bell)
    monkeypatch.setattr(orchestration, "start_background_run", made.start)
    return made
