"""The profile of a call is Grant ∩ Manifest ∩ Policy, and the sandbox gets exactly that."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.support.calls import ask, writer
from tests.support.policies_in_force import BUILTIN_LIMITS, ceiling, permit, put_in_force

if TYPE_CHECKING:
    from collections.abc import Callable

    from registry.models import Tool
    from tests.conftest import Caller
    from tests.support.calls import Bell, ScriptedSandbox

pytestmark = pytest.mark.django_db

ECHO, WRITE = "sample.tools.echo", "sample.tools.write"
FS = {"fs": [{"path": "/data/in", "actions": ["read"]}, {"path": "/data/out", "actions": ["write"]}]}


@pytest.fixture
def wide(sandbox: ScriptedSandbox, monkeypatch: pytest.MonkeyPatch) -> ScriptedSandbox:
    """A policy that allows a lot, and a sandbox that provides everything."""
    capabilities = {
        "tmp": 1_000_000,
        "fs": [{"path": "/data", "actions": ["read", "write"]}],
        "net": [{"host": "*.example.org"}],
        "proc": [],
        "browser": False,
    }
    put_in_force(permit(), ceiling("box", capabilities, **BUILTIN_LIMITS))
    monkeypatch.setattr(sandbox, "missing", lambda profile, *, by_gate=False: ())
    return sandbox


@pytest.mark.req("TOOLS-16")
def test_the_sandbox_gets_exactly_the_intersection_that_preflight_showed(
    caller: Caller, enable: Callable[..., Tool], grant: Callable[..., Any], wide: ScriptedSandbox, bell: Bell
) -> None:
    enable(side_effect="Read", capabilities={"fs": [{"path": "/data/in", "actions": ["read"]}], "tmp": 5_000_000})
    grant(capabilities={"fs": [{"path": "/data", "actions": ["read"]}], "tmp": 2_000_000})

    shown = ask(caller, ECHO)
    answer = caller.invoke(ECHO, {})

    assert answer.status_code == 200, answer.json()
    profile, _ = wide.calls[0]
    assert shown["profile"] == profile.to_json()
    assert shown["profile_hash"] == profile.digest() == answer.json()["call"]["profile_hash"]
    assert profile.capabilities.names() == ["fs:read:/data/in"]
    assert profile.limits.tmp_bytes == 1_000_000


@pytest.mark.req("TOOLS-16")
@pytest.mark.parametrize(
    ("granted", "side"), [({"fs": [{"path": "/other", "actions": ["read"]}]}, "grant"), (None, "policy")]
)
def test_a_capability_that_is_missing_is_named_with_who_does_not_allow_it(
    granted: dict[str, Any] | None,
    side: str,
    caller: Caller,
    enable: Callable[..., Tool],
    grant: Callable[..., Any],
    wide: ScriptedSandbox,
) -> None:
    path = "/data/in" if granted else "/secret"
    enable(side_effect="Read", capabilities={"fs": [{"path": path, "actions": ["read"]}]})
    grant(capabilities=granted)

    problem = ask(caller, ECHO)["problem"]

    assert problem["reason"] == "SANDBOX.CAPABILITY_BLOCKED"
    assert {"capability": f"fs:read:{path}", "dropped_by": side} in problem["details"]["dropped"]
    assert side in problem["remedy"]


@pytest.mark.req("SPEC-2")
def test_a_dry_run_of_a_writer_needs_no_consent_and_can_write_nothing(
    caller: Caller, enable: Callable[..., Tool], grant: Callable[..., Any], wide: ScriptedSandbox, bell: Bell
) -> None:
    writer(enable, capabilities=FS | {"net": [{"host": "api.example.org"}]})
    grant()

    real = caller.invoke(WRITE, {})
    dry = caller.invoke(WRITE, {}, dry_run=True)

    assert real.json()["error"]["reason"] == "POLICY.CONSENT_REQUIRED"
    assert dry.status_code == 200, dry.json()
    assert dry.json()["call"]["dry_run"] is True
    profile, call = wide.calls[0]
    assert profile.capabilities.names() == ["fs:read:/data/in"]
    assert call.context["dry_run"] is True
    dropped = [each["capability"] for each in ask(caller, WRITE, dry_run=True)["profile_explanation"]]
    assert dropped == ["fs:write:/data/out", "net:https://api.example.org:443"]


def test_limits_are_the_smaller_of_manifest_and_policy(
    caller: Caller, enable: Callable[..., Tool], grant: Callable[..., Any]
) -> None:
    enable(timeout_ms=60_000, limits={"memory_bytes": 64 * 1024 * 1024})
    grant()

    limits = ask(caller, ECHO)["profile"]["limits"]

    assert limits["wall_ms"] == BUILTIN_LIMITS["timeout_ms"] == 30_000
    assert limits["memory_bytes"] == 64 * 1024 * 1024
