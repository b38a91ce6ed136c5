"""Dependencies in a box: does a tool in a real box import what was installed for it?"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from invocations.sandbox.base import BoxKey, Profile
from registry.dependencies import build_steps
from tests.support.dependencies import SILENT, build
from tests.support.sandbox_hosts import TLS, open_remote_sandbox
from tests.support.sandboxes import call_of, docker_sandbox, package_of
from tests.support.wheels import line, make_wheel

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from invocations.sandbox.base import Sandbox


@pytest.fixture(scope="module", params=["", TLS], ids=["here", "on a host"])
def sandbox(request: pytest.FixtureRequest) -> Iterator[Sandbox]:
    """On a host, the folder that was built here is sent there."""
    if request.param:
        with open_remote_sandbox(request.param) as remote:
            yield remote
        return
    found = docker_sandbox()
    yield found
    found.close()


@pytest.fixture
def wheels(tmp_path: Path, settings: Any) -> Path:
    settings.TOOLHUB_DEPENDENCY_DIR = str(tmp_path / "deps")
    settings.TOOLHUB_WHEELHOUSE = str(tmp_path / "wheels")
    return tmp_path / "wheels"


def value_of(sandbox: Sandbox, source: str, folder: Path, level: str, tmp_path: Path) -> Any:
    key = BoxKey("tenant", source, dependencies=folder.name)
    call = replace(call_of(package_of(tmp_path, main=source)), dependencies=folder, key=key)
    outcome = sandbox.run(Profile(isolation=level), call)
    assert outcome.status == "ok", (outcome.status, outcome.error_message)
    return outcome.value


@pytest.mark.req("SVC-9", "SVC-10")
@pytest.mark.parametrize("level", ["shared", "fresh", "single", "cold"])
def test_a_tool_imports_what_its_lock_names_compiled_and_cannot_change_it(
    sandbox: Sandbox, wheels: Path, tmp_path: Path, level: str
) -> None:
    lock = [
        line(
            "first", make_wheel(wheels, "first", requires=["second"], code="import second\nVERSION = second.VERSION\n")
        ),
        line("second", make_wheel(wheels, "second", "1.2"), "1.2"),
    ]
    source = (
        "import os, first\n"
        "def run():\n"
        "    try: open('/deps/first.py', 'a')\n"
        "    except OSError as error: refused = type(error).__name__\n"
        "    return [first.VERSION, first.__file__, first.__cached__, refused]\n"
    )

    value = value_of(sandbox, source, build(lock, "first==1.0"), level, tmp_path)

    assert value[:3] == ["1.2", "/deps/first.py", "/deps/__pycache__/first.cpython-311.pyc"]
    assert value[3] in ("PermissionError", "OSError")  # the filter's, or the read-only mount's


@pytest.mark.req("SVC-9")
def test_a_compiled_wheel_of_the_index_runs_in_the_box(
    sandbox: Sandbox, wheels: Path, tmp_path: Path, settings: Any
) -> None:
    settings.TOOLHUB_WHEELHOUSE = ""
    lock = build_steps.resolve_requirements(["markupsafe==3.0.2"], talk=SILENT)
    source = "import markupsafe, markupsafe._speedups\ndef run(): return str(markupsafe.escape('<b>'))\n"

    assert value_of(sandbox, source, build(lock, "markupsafe==3.0.2"), "fresh", tmp_path) == "&lt;b&gt;"
