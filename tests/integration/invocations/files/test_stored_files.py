"""Stored files: which files does a run get, and what becomes of those that it leaves?"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from access.consents import services as consents
from evidence import services as evidence
from evidence.models import Fact, Snapshot
from evidence.problems import KeyUnavailable
from invocations.files import services as files_services
from invocations.files.problems import FilesFull, FilesTooLarge
from invocations.models import StoredFile
from invocations.sandbox.base import RunOutcome, RunStatus, TenantFile
from kernel.problems import Conflict
from tests.support.calls import ScriptedSandbox, row_of
from tests.support.sealed_values import some_key
from unitools.capabilities import Capabilities

if TYPE_CHECKING:
    from collections.abc import Callable

    from registry.models import Tool
    from tests.conftest import Caller, Person
    from tests.support.calls import Bell

pytestmark = pytest.mark.django_db
WRITE = "sample.tools.write"


def reach(*rules: tuple[str, str]) -> Capabilities:
    """``("/data/in", "read list")`` and so on."""
    fs = [{"path": path, "actions": actions.split()} for path, actions in rules]
    return Capabilities.from_json({"fs": fs})


def store(caller: Caller, **files: str) -> None:
    for name, content in files.items():
        files_services.store_file(path=f"/data/{name.replace('__', '/')}.txt", content=content.encode(), by=caller.by)


@pytest.fixture
def writer(
    caller: Caller,
    operator: Person,
    enable: Callable[..., Tool],
    grant: Callable[..., Any],
    bell: Bell,
    sandbox: ScriptedSandbox,
) -> Caller:
    """Of a tool that reads and leaves files, allowed to and agreed to."""
    rules = [{"path": "/data", "actions": ["read", "write", "create"]}]
    enable("write", side_effect="Write", capabilities={"fs": rules}, limits={"files": 5})
    grant()
    sandbox.missing = lambda profile, *, by_gate=False: ()  # type: ignore[method-assign]
    consent = consents.request_consent(tool=WRITE, versions="^1", purpose="a test", validity_s=600, by=caller.by)
    consents.approve_consent(consent_id=consent.pk, reason="for a test", by=operator.by)
    return caller


@pytest.mark.req("TOOLS-3", "TOOLS-16")
def test_a_run_gets_what_it_may_read_and_nothing_else(caller: Caller) -> None:
    store(caller, in__a="A", in__private__b="B", other="C")
    within = reach(("/data/in", "read"), ("/data/in/private", "list"))

    files = files_services.load_run_files(within, tenant_id=caller.by.tenant_id)

    assert files == (TenantFile("/data/in/a.txt", b"A"),)
    assert files_services.load_run_files(reach(("/data", "list write")), tenant_id=caller.by.tenant_id) == ()


def test_more_than_a_run_can_be_given_is_refused_and_not_cut(caller: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files_services, "MAX_FILES_OF_A_RUN", 1)
    store(caller, a="A", b="B")

    with pytest.raises(FilesTooLarge):
        files_services.load_run_files(reach(("/data", "read")), tenant_id=caller.by.tenant_id)


@pytest.mark.parametrize(
    ("actions", "kept"),
    [("create", {"/data/out/new.txt"}), ("write", {"/data/out/old.txt"}), ("read", set()),
     ("create write", {"/data/out/new.txt", "/data/out/old.txt"})],
)  # fmt: skip
@pytest.mark.req("TOOLS-16")
def test_what_a_run_leaves_is_kept_as_far_as_it_may_write(caller: Caller, actions: str, kept: set[str]) -> None:
    store(caller, out__old="before")
    left = (TenantFile("/data/out/new.txt", b"after"), TenantFile("/data/out/old.txt", b"after"))
    outcome = RunOutcome(RunStatus.OK, files=left)

    found = files_services.keep_files(
        outcome, reach(("/data/out", actions)), (), key=some_key(caller.by.tenant_id), by="agt_x"
    )

    rows = StoredFile.objects.filter(tenant_id=caller.by.tenant_id)
    assert {row.path for row in rows if files_services.open_file(row) == b"after"} == kept
    assert {row.path for row in found.written} == kept
    assert {path for path, why in found.not_taken} == {each.path for each in left} - kept


def test_only_a_file_that_the_run_had_and_may_delete_goes(caller: Caller) -> None:
    store(caller, out__mine="x", out__unseen="y", in__given="z")
    before = (TenantFile("/data/out/mine.txt", b"x"), TenantFile("/data/in/given.txt", b"z"))
    outcome = RunOutcome(RunStatus.OK, gone=("/data/out/mine.txt", "/data/out/unseen.txt", "/data/in/given.txt"))
    within = reach(("/data/out", "read delete"), ("/data/in", "read"))

    said = files_services.keep_files(outcome, within, before, key=some_key(caller.by.tenant_id), by="agt_x")

    assert set(StoredFile.objects.values_list("path", flat=True)) == {"/data/out/unseen.txt", "/data/in/given.txt"}
    assert said.removed == ["/data/out/mine.txt"]
    assert [path for path, _ in said.not_taken] == ["/data/out/unseen.txt", "/data/in/given.txt"]


def test_a_file_that_changed_while_the_run_had_its_copy_is_not_removed(caller: Caller) -> None:
    store(caller, mine="x")
    within = reach(("/data", "read delete"))
    before = files_services.load_run_files(within, tenant_id=caller.by.tenant_id)
    store(caller, mine="newer")

    kept = files_services.keep_files(
        RunOutcome(RunStatus.OK, gone=("/data/mine.txt",)),
        within,
        before,
        key=some_key(caller.by.tenant_id),
        by="agt_x",
    )

    assert kept.not_taken == [("/data/mine.txt", "the file was changed or removed meanwhile")]
    assert files_services.read_file(path="/data/mine.txt", by=caller.by) == b"newer"


@pytest.mark.req("TOOLS-3")
def test_the_room_of_a_tenant_is_a_hard_limit(caller: Caller, settings: Any) -> None:
    settings.TOOLHUB_FILES_MAX_MB = 1
    files_services.store_file(path="/data/a", content=b"x" * 900_000, by=caller.by)

    with pytest.raises(FilesFull):
        files_services.store_file(path="/data/b", content=b"x" * 200_000, by=caller.by)

    files_services.store_file(path="/data/a", content=b"y" * 1_000_000, by=caller.by)  # in place of what was there


def test_an_empty_file_takes_room_too(caller: Caller, settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.TOOLHUB_FILES_MAX_MB = 1
    monkeypatch.setattr(files_services, "LEAST_BYTES", files_services.MIB // 2)
    store(caller, a="", b="")

    with pytest.raises(FilesFull):
        store(caller, c="")
    store(caller, b="in the place of the other")


@pytest.mark.parametrize(("first", "second"), [("/data/a", "/data/a/b"), ("/data/a/b/c", "/data/a")])
def test_a_name_is_that_of_a_file_or_of_a_folder(caller: Caller, first: str, second: str) -> None:
    files_services.store_file(path=first, content=b"1", by=caller.by)
    files_services.store_file(path="/data/ab", content=b"1", by=caller.by)

    with pytest.raises(Conflict, match=f"{second} cannot be there beside {first}"):
        files_services.store_file(path=second, content=b"2", by=caller.by)


def test_a_run_that_moves_a_file_needs_its_room_once(caller: Caller, settings: Any) -> None:
    settings.TOOLHUB_FILES_MAX_MB = 1
    content = b"x" * (files_services.MIB * 3 // 4)
    files_services.store_file(path="/data/old", content=content, by=caller.by)
    within, tenant = reach(("/data", "read create delete")), caller.by.tenant_id
    before = files_services.load_run_files(within, tenant_id=tenant)
    moved = RunOutcome(RunStatus.OK, files=(TenantFile("/data/old/new", content),), gone=("/data/old",))

    files_services.keep_files(moved, within, before, key=some_key(tenant), by="agt")

    assert [file.path for file in StoredFile.objects.all()] == ["/data/old/new"]


def test_files_that_a_run_may_not_read_do_not_crowd_out_those_that_it_may(
    caller: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files_services, "MAX_FILES_OF_A_RUN", 2)
    store(caller, **{f"private__{number:03}": "" for number in range(250)}, z="Z")
    within = reach(("/data", "read"), ("/data/private", "list"))

    assert files_services.load_run_files(within, tenant_id=caller.by.tenant_id) == (TenantFile("/data/z.txt", b"Z"),)


def test_content_is_encrypted_where_it_lies_and_bound_to_its_path(caller: Caller) -> None:
    store(caller, a="canary-value", b="other")
    rows = {row.path: row for row in StoredFile.objects.all()}

    assert b"canary" not in bytes(rows["/data/a.txt"].ciphertext)
    swapped = rows["/data/a.txt"]
    swapped.ciphertext, swapped.nonce, swapped.wrapped_key = (
        getattr(rows["/data/b.txt"], name) for name in ("ciphertext", "nonce", "wrapped_key")
    )
    with pytest.raises(KeyUnavailable):
        files_services.open_file(swapped)


@pytest.mark.parametrize("path", ["a//b", "a%01b", "%2e%2e/b", "x" * 401])
def test_a_path_that_is_none_is_refused_by_name(caller: Caller, path: str) -> None:
    answer = caller.put(f"/files/{path}", b"x")

    assert answer.status_code == 422, answer.content
    assert answer.json()["error"]["details"]["findings"][0]["pointer"] == "/path"
    assert not StoredFile.objects.exists()


def test_files_are_stored_read_and_removed_over_rest_and_each_is_a_fact(caller: Caller) -> None:
    assert caller.put("/files/reports/june.csv", b"a,b").status_code == 201
    assert caller.put("/files/reports/june.csv", b"a,c").status_code == 200
    listed = caller.get("/files?below=/data/reports").json()["data"]["files"]
    assert [(each["path"], each["size"]) for each in listed] == [("/data/reports/june.csv", 3)]
    assert caller.get("/files/reports/june.csv").content == b"a,c"
    assert caller.delete("/files/reports/june.csv").status_code == 204
    assert caller.get("/files/reports/june.csv").status_code == 404
    kinds = Fact.objects.filter(kind__startswith="file.").order_by("id").values_list("kind", flat=True)
    assert list(kinds) == ["file.stored", "file.stored", "file.read", "file.removed"]


@pytest.mark.req("TOOLS-16", "TOOLS-3")
def test_a_call_reads_and_leaves_files_and_its_end_says_so_without_names(
    writer: Caller,
    sandbox: ScriptedSandbox,
) -> None:
    store(writer, given="secret plans")
    sandbox.outcome = replace(sandbox.outcome, files=(TenantFile("/data/of jane doe.txt", b"made"),))

    answer = writer.invoke(WRITE, {"text": "x"})

    assert answer.status_code == 200, answer.content
    profile, call = sandbox.calls[0]
    assert profile.limits.files == 5
    assert call.files == (TenantFile("/data/given.txt", b"secret plans"),)
    assert StoredFile.objects.filter(path="/data/of jane doe.txt").exists()
    end = Fact.objects.get(invocation_id=row_of(answer).pk, kind="invocation.ended")
    leaf = bytes(end.leaf).decode()
    assert '"count":1' in leaf
    assert "jane" not in leaf


def test_files_that_have_no_room_fail_the_call_and_are_not_kept(
    writer: Caller,
    sandbox: ScriptedSandbox,
    settings: Any,
) -> None:
    settings.TOOLHUB_FILES_MAX_MB = 0
    sandbox.outcome = replace(sandbox.outcome, files=(TenantFile("/data/a.txt", b"made"),))

    answer = writer.invoke(WRITE, {"text": "x"})

    assert (answer.status_code, answer.json()["error"]["reason"]) == (409, "FILE.NO_ROOM")
    assert not StoredFile.objects.exists()


def test_what_is_not_taken_is_sealed_with_the_reason_and_counted_in_the_end(
    writer: Caller,
    sandbox: ScriptedSandbox,
) -> None:
    store(writer, old="there")
    sandbox.outcome = replace(sandbox.outcome, gone=("/data/old.txt",), skipped=(("/data/link", "it is a link"),))

    answer = writer.invoke(WRITE, {"text": "x"})
    row = row_of(answer)

    logs = evidence.open_values(Snapshot.objects.get(invocation_id=row.pk, kind="logs"))
    assert logs["files"] == {
        "written": [],
        "removed": [],
        "not_taken": [["/data/link", "it is a link"], ["/data/old.txt", "it may not remove this file"]],
    }
    end = json.loads(bytes(Fact.objects.get(invocation_id=row.pk, kind="invocation.ended").leaf))
    assert end["data"]["files"]["not_taken"] == 2
    assert answer.json()["warnings"] == ["Of what the tool left, 1 file was not kept."]
