"""Kept files: whose are they, what does an End say of them, and what is refused after a run?"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from django.urls import reverse

from access.consents import services as consents
from evidence.models import Fact
from evidence.problems import KeyUnavailable
from invocations.decide.profiles import KEPT_FILES, give_kept_files
from invocations.files.problems import FilesFull
from invocations.files.services import LEAST_BYTES, sum_tool_file_bytes
from invocations.models import Invocation
from invocations.run import cancellation
from invocations.sandbox.base import Profile, RunOutcome, RunStatus, TenantFile
from invocations.tool_files import services as tool_files
from invocations.tool_files.models import ToolFiles
from invocations.tool_files.problems import ToolFilesChanged, ToolFilesRefused
from kernel.ids import encode
from kernel.problems import Retryable
from registry.versions.compiler import compiled_version
from registry.versions.presentation import shown_file_sharers
from tests.support.calls import assert_problem, row_of
from unitools.capabilities import TOP, Capabilities
from unitools.manifest import Manifest

if TYPE_CHECKING:
    from collections.abc import Callable

    from access.models import Tenant
    from registry.models import Tool
    from tests.conftest import Caller, Person
    from tests.support.calls import Bell, ScriptedSandbox

pytestmark = pytest.mark.django_db
ECHO = "sample.tools.echo"
STATE = {"kind": "files"}
LEFT = RunOutcome(RunStatus.OK, value={"text": "x"}, files=(TenantFile("/data/a", b"one"),))


@pytest.fixture
def keeps(
    enable: Callable[..., Tool],
    grant: Callable[..., Any],
    bell: Bell,
    sandbox: ScriptedSandbox,
    caller: Caller,
    operator: Person,
    monkeypatch: pytest.MonkeyPatch,
) -> Callable[..., None]:
    """``keeps(**state)``: a tool that keeps files, and whose calls leave one."""

    def make(**state: Any) -> None:
        monkeypatch.setattr(sandbox, "missing", lambda *_, **__: ())  # as a sandbox with files
        enable(state=STATE | state, side_effect="Write")
        grant()
        asked = consents.request_consent(tool=ECHO, versions="^1", purpose="a test", validity_s=3600, by=caller.by)
        consents.approve_consent(consent_id=asked.pk, reason="For a test.", by=operator.by)
        sandbox.outcome = LEFT

    return make


def call(caller: Caller, **envelope: Any) -> Any:
    return caller.invoke(ECHO, {"text": "x"}, **envelope)


def view_of(invocation: Invocation) -> Manifest:
    assert invocation.version_id is not None
    return compiled_version(invocation.version_id).manifest


def kept_in(invocation: Invocation) -> dict[str, Any]:
    fact = Fact.objects.get(invocation_id=invocation.pk, kind="invocation.ended")
    found: dict[str, Any] = json.loads(bytes(fact.leaf))["data"]["tool_files"]
    return found


@pytest.mark.req("BRING-2")
def test_an_end_says_what_was_kept_however_the_call_ended(
    keeps: Callable[..., None], caller: Caller, sandbox: ScriptedSandbox
) -> None:
    keeps()
    assert call(caller).status_code == 200
    before = ToolFiles.objects.get().fingerprint

    def cancel() -> None:
        running = Invocation.objects.get(finished_at=None)
        cancellation.request_cancellation(invocation=running, by=caller.by)

    sandbox.outcome, sandbox.during = replace(LEFT, status=RunStatus.CANCELLED, value=None), cancel
    said = kept_in(row_of(call(caller)))

    assert (said["before"], said["after"], said["count"], said["kept"]) == (before, before, 1, False)


@pytest.mark.req("BRING-2")
def test_one_agent_finds_nothing_of_the_person_of_another(
    keeps: Callable[..., None], caller: Caller, operator: Person
) -> None:
    keeps(scope="person")
    own = row_of(call(caller, user_id="ann"))
    other = Invocation.objects.get(pk=own.pk)
    other.agent_id = operator.by.tenant_id  # as any other agent that names the same person
    manifest = view_of(own)

    assert tool_files.load_tool_files(own, manifest)
    assert tool_files.load_tool_files(other, manifest) == ()


@pytest.mark.req("BRING-2")
def test_another_package_in_the_same_group_finds_nothing(keeps: Callable[..., None], caller: Caller) -> None:
    keeps()
    own = row_of(call(caller))
    mine = view_of(own)
    theirs = Manifest(mine.document | {"implementation": {"module": "other.tool"}})

    assert theirs.group == mine.group
    assert tool_files.load_tool_files(own, mine)
    assert tool_files.load_tool_files(own, theirs) == ()


@pytest.mark.req("BRING-2", "TOOLS-22")
def test_a_tool_of_another_publisher_finds_nothing_whatever_its_package_is_called(
    keeps: Callable[..., None], caller: Caller, foreign_tenant: Tenant
) -> None:
    """A publisher chooses the names of group and package, and a tenant may have tools of several."""
    keeps()
    own = row_of(call(caller))
    manifest = view_of(own)
    other = Invocation.objects.select_related("version__tool").get(pk=own.pk)
    assert other.version is not None
    other.version.tool.tenant_id = foreign_tenant.pk

    assert tool_files.load_tool_files(own, manifest)
    assert tool_files.load_tool_files(other, manifest) == ()
    theirs = tool_files.FilesOwner.of_call(other, manifest)
    assert theirs.package == f"{encode('ten', foreign_tenant.pk)} {manifest.files_package}"
    longest = ToolFiles._meta.get_field("package").max_length
    assert longest is not None
    assert len(f"{encode('ten', foreign_tenant.pk)} npm:") + 214 <= longest


@pytest.mark.req("BRING-2")
def test_files_of_another_row_are_not_opened(keeps: Callable[..., None], caller: Caller) -> None:
    keeps()
    call(caller)
    row = ToolFiles.objects.get()
    for package in ("other", f"{encode('ten', row.tenant_id)} other"):
        row.package = package
        with pytest.raises(KeyUnavailable):
            tool_files.open_files(row)


@pytest.mark.req("BRING-2")
def test_a_policy_bounds_what_a_tool_keeps() -> None:
    bound = Capabilities.from_json({"fs": [{"path": "/data", "actions": ["read", "list"]}], "limits": {"files": 2}})

    free, bounded = (give_kept_files(Profile(), (20, 4096), policy) for policy in (None, bound))
    denied = give_kept_files(Profile(), (20, 4096), TOP.replaced(fs=Capabilities().fs))

    assert (free.capabilities.fs, free.limits.files) == (KEPT_FILES, 20)
    assert (bounded.capabilities.fs, bounded.limits.files) == (bound.fs, 2)
    assert not denied.capabilities.fs


@pytest.mark.req("BRING-2")
def test_what_is_emptied_while_a_call_changes_nothing_is_noticed(
    keeps: Callable[..., None], caller: Caller, operator: Person, sandbox: ScriptedSandbox
) -> None:
    keeps()
    call(caller)

    def empty() -> None:
        tool_files.empty_tool_files(files_id=ToolFiles.objects.get().pk, by=operator.by)

    sandbox.outcome, sandbox.during = replace(LEFT, files=()), empty
    body = assert_problem(call(caller), 409, "TOOL.FILES_CHANGED")

    assert body["error"]["retryable"] == "after_action"
    assert "has run" in body["detail"]
    assert not ToolFiles.objects.exists()


@pytest.mark.req("BRING-2")
def test_problems_after_a_run_say_that_the_tool_has_run(
    keeps: Callable[..., None], caller: Caller, sandbox: ScriptedSandbox, settings: Any
) -> None:
    keeps(max_files=1)
    assert {each.retryable for each in (ToolFilesChanged, ToolFilesRefused, FilesFull)} == {Retryable.AFTER_ACTION}

    sandbox.outcome = replace(LEFT, files=(*LEFT.files, TenantFile("/data/b", b"")))
    assert "has run" in assert_problem(call(caller), 502, "TOOL.FILES_NOT_KEPT")["detail"]
    sandbox.outcome, settings.TOOLHUB_FILES_MAX_MB = LEFT, 0
    assert "has run" in assert_problem(call(caller), 409, "FILE.NO_ROOM")["detail"]


@pytest.mark.req("BRING-2")
def test_names_take_room_too(keeps: Callable[..., None], caller: Caller, sandbox: ScriptedSandbox) -> None:
    keeps(max_files=100)
    sandbox.outcome = replace(LEFT, files=tuple(TenantFile(f"/data/{'x' * 200}{number}", b"") for number in range(50)))

    assert call(caller).status_code == 200

    row = ToolFiles.objects.get()
    assert row.size == 0
    assert sum_tool_file_bytes(ToolFiles.objects.all()) == len(bytes(row.ciphertext)) > 2 * LEAST_BYTES


@pytest.mark.req("BRING-2")
def test_the_review_names_the_tools_that_share_the_files(enable: Callable[..., Tool], operator: Person) -> None:
    echo = {"implementation": {"module": "sample.tools", "entry": "echo"}, "side_effect": "Write"}
    first = enable("echo", state=STATE, **echo)
    enable("other_scope", state=STATE | {"scope": "agent"}, **echo)
    enable("keeps_nothing", **echo)
    asked = enable("second", state=STATE, **echo)
    version = asked.current
    assert version is not None

    assert shown_file_sharers(version) == [first.name]
    page = operator.client().get(reverse("review", args=[version.pk])).content.decode()
    assert f'<span class="mono">{first.name}</span>' in page
