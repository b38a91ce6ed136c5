"""Revocation across processes: what is taken back counts with the next call in every process, however much the process has
cached.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from django.conf import settings
from django.db import connection

from access.agents import services as agents
from access.consents import services as consents
from access.grants import services as grants
from access.halts import services as halts
from access.models import ConsentMode, Reach
from registry.models import Installation, InstallationState
from registry.tools import lifecycle
from tests.support.calls import writer
from tests.support.policies_in_force import forbid, permit, put_in_force

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from registry.models import Tool
    from tests.conftest import Caller, Person

ROOT = Path(__file__).resolve().parents[4]
WRITE = "sample.tools.write"


class Second:
    """Another process on the same database."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.preflight_process", str(connection.settings_dict["NAME"])],
            cwd=ROOT,
            env=os.environ | {"PYTHONWARNINGS": "ignore", "TOOLHUB_KEY_FILE": str(settings.TOOLHUB_KEY_FILE)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def asks(self, caller: Caller, tool: str) -> str:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"{caller.key} {tool}\n")
        self.process.stdin.flush()
        said: str = self.process.stdout.readline()
        return said.strip()

    def end(self) -> None:
        self.process.communicate(timeout=30)


@pytest.fixture
def processes(transactional_db: None) -> Iterator[list[Second]]:
    found = [Second(), Second()]
    yield found
    for each in found:
        each.end()


@pytest.mark.req("TOOLS-10", "TOOLS-15", "TOOLS-19", "TOOLS-31")
def test_what_is_taken_back_counts_with_the_next_call_of_every_process(
    processes: list[Second],
    caller: Caller,
    operator: Person,
    second_operator: Person,
    enable: Callable[..., Tool],
    grant: Callable[..., Any],
) -> None:
    def told() -> set[str]:
        return {each.asks(caller, WRITE) for each in processes}

    writer(enable)
    assert told() == {"AUTH.NO_GRANT"}
    given = grant()
    assert told() == {"POLICY.CONSENT_REQUIRED"}
    asked = consents.request_consent(
        tool=WRITE, versions="^1", purpose="a test", validity_s=600, mode=ConsentMode.PERIOD, by=caller.by
    )
    consents.approve_consent(consent_id=asked.pk, reason="for a test", by=second_operator.by)
    assert told() == {"allowed"}

    halt = halts.throw_halt(reach=Reach.TENANT, target="", reason="for a test", by=operator.by)
    assert told() == {"POLICY.HALTED"}
    halts.lift_halt(halt_id=halt.pk, reason="for a test", by=operator.by)
    assert told() == {"allowed"}

    put_in_force(permit(), forbid("no-writer", tool={"equals": WRITE}))
    assert told() == {"POLICY.DENY_TOOL"}
    put_in_force(permit())
    assert told() == {"allowed"}

    Installation.objects.filter(name=WRITE).update(state=InstallationState.PAUSED)
    assert told() == {"TOOL.PAUSED"}
    Installation.objects.filter(name=WRITE).update(state=InstallationState.ENABLED)
    lifecycle.pause_tool(name=WRITE, reason="for a test", by=operator.by)
    assert told() == {"TOOL.PAUSED"}
    lifecycle.enable_tool(name=WRITE, reason="for a test", by=operator.by)
    assert told() == {"allowed"}

    consents.revoke_consent(consent_id=asked.pk, reason="for a test", by=second_operator.by)
    assert told() == {"POLICY.CONSENT_REQUIRED"}
    grants.revoke_grant(grant_id=given.pk, reason="for a test", by=operator.by)
    assert told() == {"AUTH.NO_GRANT"}
    agents.disable_agent(agent_id=caller.agent.pk, reason="for a test", by=operator.by)
    assert told() == {"AUTH.UNAUTHENTICATED"}
