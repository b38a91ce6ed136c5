"""Dependencies: how do tests get dependencies locked and built, and see what became of them?"""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from evidence.models import Fact
from registry.dependencies import build_steps, store
from registry.dependencies.builder import Builder
from registry.dependencies.failures import CannotBuild
from registry.dependencies.pip import ProgressHooks
from registry.models import Decision, Dependencies
from registry.tools import lifecycle
from registry.versions import services

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from registry.models import Tool, ToolVersion
    from tests.conftest import Person

FIRST = ["first==1.0"]
ZEROS = "0" * 64


def nothing(*_: Any) -> None:
    pass


SILENT = ProgressHooks(nothing, nothing)


def build(lock: Sequence[str], *named: str, talk: ProgressHooks = SILENT) -> Path:
    return build_steps.build_folder(lock, named or [each.split()[0] for each in lock], talk=talk)[0]


def failure_of(do: Callable[[], Any]) -> tuple[str, str, str]:
    """Code, sentence and remedy; nothing was left behind."""
    with pytest.raises(CannotBuild) as refused:
        do()
    assert {path.name for path in store.store_root().iterdir()} <= {".building"}
    failure = refused.value.failure
    assert failure.message.endswith((".", "…"))
    assert failure.remedy.endswith(".")
    assert "://" not in failure.message
    return failure.code, failure.message, failure.remedy


def imported(folder: Path, program: str) -> str:
    """What a plain Python says with the folder as the runner has it: on the path, without `site`."""
    command = [sys.executable, "-I", "-S", "-c", f"import sys; sys.path.append({str(folder)!r}); {program}"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def row_of(version: ToolVersion) -> Dependencies:
    return Dependencies.objects.get(version=version)


def state_of(version: ToolVersion) -> str:
    return row_of(version).state


def facts_of(version: ToolVersion) -> list[str]:
    rows = Fact.objects.filter(kind__startswith="dependencies.").order_by("pk")
    return [row.kind.partition(".")[2] for row in rows if version.wire_id.encode() in bytes(row.leaf)]


def approve(version: ToolVersion, by: Person) -> None:
    services.review_version(version_id=version.pk, decision=Decision.APPROVE, note="", by=by.by)


def enabled(version: ToolVersion, by: Person) -> Tool:
    approve(version, by)
    return lifecycle.enable_tool(name=version.tool.name, version_id=version.pk, reason="for a test", by=by.by)


def build_all() -> None:
    made = Builder()
    while made.pass_once():
        pass
