"""How do integration tests run calls without a worker?"""

from __future__ import annotations

from typing import Any

import pytest

from invocations import execution, preflight, queue, services, sweeper
from tests.calls import Bell, ScriptedSandbox


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
    for module in (execution, preflight, sweeper):
        monkeypatch.setattr(module, "current_sandbox", lambda: found)
    return found
