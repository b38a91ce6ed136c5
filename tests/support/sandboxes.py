"""Sandboxes: how does a test get a sandbox, and a tool to put into it?"""

from __future__ import annotations

import hashlib
import json
import os
import uuid
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from invocations.sandbox.base import (
    BoxKey,
    Limits,
    Profile,
    RunEvent,
    RunOutcome,
    Sandbox,
    SandboxCall,
    SandboxUnavailable,
)
from invocations.sandbox.docker import DockerSandbox
from sandbox.image import image_name
from unitools.packages import build_zip

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from invocations.sandbox.stats import SandboxSnapshot

CONTEXT = {
    "call_id": "inv_test",
    "tool_id": "test.tool.one",
    "started_at": "2026-11-22T10:00:00+00:00",
    "traceparent": "00-1-2-01",
    "locale": "de-DE",
    "currency": "EUR",
    "timezone": "Europe/Berlin",
    "request_id": "request-1",
    "session_id": "session-1",
    "client": {"app": "shop", "version": "3"},
}
HOW = "Type `make test`: it starts the engine and builds the image."


def docker_sandbox(**options: Any) -> DockerSandbox:
    """A sandbox on the engine, which must be there; a name of its own keeps runs of the tests apart."""
    image = os.environ.get("TOOLHUB_SANDBOX_IMAGE") or image_name()
    instance = options.pop("instance", f"test-{uuid.uuid4().hex[:12]}")
    sandbox = DockerSandbox(image, instance, **options)
    try:
        sandbox.check()
    except SandboxUnavailable as error:
        raise AssertionError(f"{error} {HOW}") from error
    return sandbox


class AtLevel:
    """A sandbox whose calls all have one level of isolation; those of one package may share a box."""

    def __init__(self, sandbox: DockerSandbox, level: str, *, tenant: str = "tenant") -> None:
        self.sandbox, self._level, self._tenant = sandbox, level, tenant

    def missing(self, profile: Profile, *, by_gate: bool = False) -> tuple[str, ...]:
        return self.sandbox.missing(profile, by_gate=by_gate)

    def run(
        self, profile: Profile, call: SandboxCall, on_event: Callable[[RunEvent], None] | None = None
    ) -> RunOutcome:
        key = BoxKey(self._tenant, hashlib.sha256(call.package).hexdigest())
        outcome = self.sandbox.run(replace(profile, isolation=self._level), replace(call, key=key), on_event)
        assert outcome.level in (self._level, ""), outcome
        return outcome

    closing = False

    def kill(self, name: str) -> None:
        self.sandbox.kill(name)

    def snapshot(self) -> SandboxSnapshot | None:
        return self.sandbox.snapshot()

    def check(self) -> str:
        return self.sandbox.check()

    def close(self) -> None:
        self.sandbox.close()


def package_of(folder: Path, **sources: str) -> bytes:
    """A tool's package ``tool`` with these modules, as it is shipped."""
    package = folder / f"package-{uuid.uuid4().hex[:8]}" / "tool"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    for name, source in sources.items():
        (package / f"{name}.py").write_text(source)
    return build_zip(package)


def call_of(
    package: bytes, *, module: str = "tool.main", entry: str = "run", name: str = "", **arguments: object
) -> SandboxCall:
    return SandboxCall(
        name=name or f"inv-{uuid.uuid4().hex}",
        package=package,
        module=module,
        entry=entry,
        arguments=json.dumps(arguments).encode(),
        context=CONTEXT,
    )


def run_source(
    sandbox: Sandbox, folder: Path, source: str, *, limits: Limits | None = None, **arguments: object
) -> RunOutcome:
    """Run the function ``run`` of this source."""
    call = call_of(package_of(folder, main=source))
    return sandbox.run(Profile(limits or Limits()), replace(call, arguments=json.dumps(arguments).encode()))
