"""How do integration tests run calls without a worker?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from access.budgets.lines import Line, lines_for
from invocations import execution, minding, preflight, queue, services, sweeper
from tests.budgets import NOON, TOOL
from tests.calls import Bell, ScriptedSandbox

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from tests.conftest import Caller


@pytest.fixture
def bell(monkeypatch: pytest.MonkeyPatch, settings: Any) -> Bell:
    """Calls run in the thread of who waits for them, in the sandbox of the tests."""
    settings.TOOLHUB_LEASE_S = 60  # no heartbeat comes in between: it could not see rows that are not committed
    found = Bell()
    monkeypatch.setattr(queue, "send", found.ring)
    monkeypatch.setattr(services, "waker", lambda: found)
    return found


@pytest.fixture
def sandbox(monkeypatch: pytest.MonkeyPatch) -> ScriptedSandbox:
    found = ScriptedSandbox()
    for module in (execution, minding, preflight, sweeper):
        monkeypatch.setattr(module, "current_sandbox", lambda: found)
    return found


@pytest.fixture
def lines(caller: Caller) -> Callable[..., list[Line]]:
    """``lines(now, tool)``: the budgets that a call of the caller counts against."""

    def make(now: datetime = NOON, tool: str = TOOL) -> list[Line]:
        return lines_for(tenant_id=caller.by.tenant_id, agent_id=caller.agent.pk, tool=tool, grant_id=None, now=now)

    return make
