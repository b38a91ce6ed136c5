"""Replay isolation: does a replay touch the world, whatever its tool tries?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from django.apps import apps

from access.consents import services as consents
from evidence.models import Snapshot
from evidence.services import open_values
from invocations.files import services as files
from invocations.models import build_box_name
from invocations.replays import rerun as replays_rerun
from invocations.replays import worker
from invocations.sandbox.base import RunOutcome, RunStatus
from registry.secrets import services as secrets
from tests.support.calls import ScriptedSandbox, row_of
from tests.support.policies_in_force import permit, put_in_force
from tests.support.replays import replay, replayed_tool
from tests.support.sandboxes import docker_sandbox

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from invocations.sandbox.base import Sandbox
    from registry.models import Tool
    from tests.conftest import Caller, Person
    from tests.support.calls import Bell

pytestmark = pytest.mark.django_db
OF_A_REPLAY = {
    *("invocations_replay", "invocations_rerun", "evidence_fact", "evidence_pending", "evidence_snapshot"),
    *("evidence_subjectkey", "evidence_tenantkey"),  # of the one who gave the reason
}
TOKEN = "a-secret-value-of-the-tenant"
REACH = {
    "fs": [{"path": "/data/in", "actions": ["read", "write", "create", "list"]}],
    "net": [{"host": "example.org"}],
}
NEEDS = [{"name": "API_TOKEN", "description": "for the tests", "required": False}]


@pytest.fixture(scope="module")
def docker() -> Iterator[Sandbox]:
    sandbox = docker_sandbox()
    yield sandbox
    sandbox.close()


def rows() -> dict[str, list[Any]]:
    """Every row of the database, by table."""
    return {
        model._meta.db_table: sorted(map(repr, model._default_manager.values_list()))
        for model in apps.get_models()
        if model._meta.managed
    }


@pytest.fixture
def reaching(
    caller: Caller,
    operator: Person,
    enable: Callable[..., Tool],
    grant: Callable[..., Any],
    bell: Bell,
    sandbox: ScriptedSandbox,
    settings: Any,
) -> Callable[..., Any]:
    """A call that had everything: a secret, a file, a network, a consent for once. Its run is scripted, for it would need a host."""
    settings.TOOLHUB_SANDBOX_NETWORKS = []

    def make(name: str, value: dict[str, Any]) -> Any:
        put_in_force(permit())
        enable(
            **replayed_tool(
                name, side_effect="Write", capabilities=REACH, secrets=NEEDS, limits={"files": 5, "artifacts": 1}
            )
        )
        grant()
        secrets.set_secret(name="api.token", value=TOKEN, by=operator.by)
        files.store_file(path="/data/in/a.txt", content=b"of the tenant", by=operator.by)
        tool = f"sample.tools.{name}"
        asked = consents.request_consent(tool=tool, versions="^1", purpose="a test", validity_s=600, by=caller.by)
        consents.approve_consent(consent_id=asked.pk, reason="for a test", by=operator.by)
        sandbox.missing = lambda profile, *, by_gate=False: ()  # type: ignore[method-assign]
        sandbox.outcome = RunOutcome(RunStatus.OK, value=value, report={})
        call = row_of(caller.invoke(tool, {"text": "x"}, idempotency_key="only-once"))
        assert call.state == "succeeded", call.reason
        return call

    return make


@pytest.mark.req("TOOLS-28", "SPEC-7")
def test_a_replay_gives_a_tool_nothing_and_leaves_nothing_of_it(
    reaching: Callable[..., Any], auditor: Person, docker: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    call = reaching("reaches", {"secret": TOKEN, "file": "of the tenant", "network": "open", "config": {}})
    for module in (replays_rerun, worker):
        monkeypatch.setattr(module, "current_sandbox", lambda: docker)
    before = rows()

    row = replay(call, by=auditor.by)

    after = rows()
    rerun = row.reruns.get()
    sealed = open_values(Snapshot.objects.get(invocation_id=call.pk, kind="replay"))
    assert sealed["replayed"]["data"] == {"secret": None, "file": None, "network": None, "config": {}}, rerun.notes
    assert {table for table in after if after[table] != before[table]} <= OF_A_REPLAY
    assert all(set(before[table]) <= set(after[table]) for table in OF_A_REPLAY)  # nothing there was changed
    assert {"without_network", "without_secrets", "without_files"} <= set(rerun.notes)


@pytest.mark.req("TOOLS-28")
def test_a_tool_that_cannot_do_without_is_told_from_one_that_has_changed(
    reaching: Callable[..., Any], auditor: Person, docker: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    call = reaching("needs_a_secret", {"length": 28})
    for module in (replays_rerun, worker):
        monkeypatch.setattr(module, "current_sandbox", lambda: docker)

    rerun = replay(call, by=auditor.by).reruns.get()

    assert (rerun.verdict, rerun.runs, rerun.state) == ("cannot", 1, "failed")
    assert rerun.why in ("network", "secrets", "files")


@pytest.mark.req("TOOLS-28")
def test_a_replay_never_opens_a_secret(
    reaching: Callable[..., Any], auditor: Person, monkeypatch: pytest.MonkeyPatch, sandbox: ScriptedSandbox
) -> None:
    call = reaching("reaches", {"secret": None, "file": None, "network": None, "config": {}})
    for module in (replays_rerun, worker):
        monkeypatch.setattr(module, "current_sandbox", lambda: sandbox)

    def never(*args: Any) -> Any:
        raise AssertionError("a replay asked for secrets")

    monkeypatch.setattr("registry.installations.services.open_secrets", never)
    replay(call, by=auditor.by)

    profile, given = sandbox.calls[-1]
    assert (given.secrets, given.files, given.key, profile.outside) == ({}, (), None, ())
    assert given.context["call_id"] != call.wire_id
    assert given.context["idempotency_key"] is None
    assert given.replay
    assert build_box_name(call) not in given.name
