"""Exports: does an export hold what was asked for, once, and can anybody verify it?"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import subprocess
import sys
import threading
import zipfile
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from unittest.mock import Mock
from zoneinfo import ZoneInfo

import pytest
from django.test import Client
from django.utils import timezone
from django.utils.html import escape

from access.display.services import set_display
from evidence import services as evidence
from evidence.exports import jobs, links, selection
from evidence.exports.downloads import NoSuchRange, parse_range
from evidence.exports.jobs import advance_next, expire_due, forget_opened_exports
from evidence.exports.services import cancel_export, make_export
from evidence.exports.storage import iter_pieces
from evidence.kinds import Kind
from evidence.models import ExportChunk, ExportJob, ExportState, Fact, Seal
from evidence.problems import (
    ArchivedFactLost,
    ExportLinkInvalid,
    ExportNotReady,
    ExportsFull,
    RevealReasonTooShort,
    SearchInvalid,
)
from invocations.sandbox.base import RunOutcome, RunStatus
from kernel.leases import renew_lease
from kernel.principal import Principal
from kernel.problems import Conflict, Forbidden, SchemaInvalid
from tests.support.calls import row_of
from tests.support.evidence_logs import seal_everything, signing_with, write_facts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from access.models import Tenant
    from evidence.log.signers.base import CheckpointSigner
    from registry.models import Tool
    from tests.conftest import Caller, Person
    from tests.support.calls import Bell, ScriptedSandbox

pytestmark = pytest.mark.django_db
ECHO = "sample.tools.echo"
VALUE = "canary-5512aa"
WINDOW = 40
REASON = "An incident is being looked into."


@pytest.fixture(autouse=True)
def keys() -> Iterator[CheckpointSigner]:
    with signing_with() as found:
        yield found


@pytest.fixture
def sealed(tenant: Tenant, monkeypatch: pytest.MonkeyPatch) -> int:
    """So many facts that an export of them has several pieces."""
    monkeypatch.setattr(selection, "WINDOW", WINDOW)
    write_facts(tenant.pk, 2 * WINDOW + 77)
    seal_everything()
    return Seal.objects.filter(tenant_id=tenant.pk).count()


def made(**asked: Any) -> ExportJob:
    job = make_export(**asked)
    while advance_next():
        pass
    job.refresh_from_db()
    return job


def content(job: ExportJob) -> bytes:
    return b"".join(iter_pieces(job))


def verified(job: ExportJob, folder: Path, *more: str) -> subprocess.CompletedProcess[str]:
    """By the command, as a process of its own that has nothing but the file."""
    path = folder / f"{job.wire_id}.zip"
    path.write_bytes(content(job))
    command = [sys.executable, "-m", "evidence.verify", str(path), *more]
    return subprocess.run(command, capture_output=True, text=True, check=False, env={"PATH": "/usr/bin"})


def kinds_about(job: ExportJob) -> list[str]:
    return list(Fact.objects.filter(subject=job.wire_id).order_by("id").values_list("kind", flat=True))


# What is in them.


@pytest.mark.req("CARD-6", "TOOLS-18")
def test_json_lines_hold_each_fact_once_with_the_text_that_was_hashed(sealed: int, operator: Person) -> None:
    job = made(format="jsonl", stop=sealed, by=operator.by)

    lines = [json.loads(line) for line in content(job).splitlines()]
    assert [line["index"] for line in lines] == list(range(sealed))
    assert all(hashlib.sha256(b"\0" + line["leaf"].encode()).hexdigest() == line["leaf_hash"] for line in lines)
    assert (job.state, job.rows, job.chunks) == ("done", sealed, -(-sealed // WINDOW))
    assert job.digest == f"sha256:{hashlib.sha256(content(job)).hexdigest()}"
    assert kinds_about(job) == [Kind.EXPORT_MADE, Kind.EXPORT_FINISHED]


@pytest.mark.req("CARD-6")
def test_a_query_selects_and_a_range_bounds(sealed: int, operator: Person) -> None:
    found = made(format="jsonl", query="tool:a.b.c17 kind:tool.paused", by=operator.by)
    bounded = made(format="jsonl", start=5, stop=9, by=operator.by)

    assert sealed > 9
    assert found.rows == len(content(found).splitlines())
    assert [json.loads(line)["index"] for line in content(bounded).splitlines()] == [5, 6, 7, 8]


@pytest.mark.req("CARD-6")
def test_what_is_asked_for_wrongly_is_refused_and_names_what_is_wrong(sealed: int, operator: Person) -> None:
    with pytest.raises(SearchInvalid):
        make_export(format="csv", query="colour:red", by=operator.by)
    with pytest.raises(SchemaInvalid, match="ends at"):
        make_export(format="csv", stop=sealed + 50, by=operator.by)
    with pytest.raises(SchemaInvalid, match="bundle"):
        make_export(format="csv", older=1, by=operator.by)
    assert not ExportJob.objects.exists()


@pytest.mark.req("CARD-6")
def test_no_text_of_a_csv_is_a_formula_to_a_spreadsheet(tenant: Tenant, operator: Person) -> None:
    by = Principal.system("test", tenant_id=tenant.pk)
    for start in "=+-@\t\r":
        evidence.record(kind=Kind.TOOL_PAUSED, subject=f"{start}cmd|'/c calc'!A1", actor=by)
    seal_everything()
    job = made(format="csv", by=operator.by)

    rows = list(csv.reader(io.StringIO(content(job).decode(), newline="")))
    assert rows[0][:3] == ["index", "time", "kind"]
    subjects = [row[3] for row in rows[1:] if "calc" in row[3]]
    assert len(subjects) == 6
    assert [cell for row in rows for cell in row if cell.startswith(("=", "+", "-", "@", "\t", "\r"))] == []


# Bundles.


@pytest.mark.req("SPEC-7", "TOOLS-18")
def test_the_verifier_accepts_a_bundle_offline_and_refuses_a_changed_one(
    sealed: int, operator: Person, tmp_path: Path
) -> None:
    seal_everything()
    job = made(format="bundle", by=operator.by)
    accepted = verified(job, tmp_path)
    assert accepted.returncode == 0, accepted.stdout + accepted.stderr
    assert str(job.rows) in accepted.stdout.replace(",", "")

    path = tmp_path / f"{job.wire_id}.zip"
    changed = bytearray(path.read_bytes())
    changed[len(changed) // 3] ^= 4
    path.write_bytes(changed)
    again = subprocess.run(
        [sys.executable, "-m", "evidence.verify", str(path)], capture_output=True, text=True, check=False
    )
    assert again.returncode != 0
    assert sealed


@pytest.mark.req("TOOLS-18")
def test_a_bundle_proves_that_the_log_continues_a_kept_checkpoint(
    tenant: Tenant, operator: Person, tmp_path: Path
) -> None:
    write_facts(tenant.pk, 30)
    seal_everything()
    size = Seal.objects.filter(tenant_id=tenant.pk).count()
    write_facts(tenant.pk, 30)
    seal_everything()
    job = made(format="bundle", older=size, by=operator.by)

    done = verified(job, tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    part = made(format="bundle", start=7, stop=19, by=operator.by)
    assert verified(part, tmp_path).returncode == 0
    some = made(format="bundle", query="kind:tool.paused", by=operator.by)
    assert verified(some, tmp_path).returncode == 0


@pytest.mark.req("SPEC-10", "TOOLS-21")
def test_opened_values_are_for_who_may_reveal_and_each_is_a_fact_first(
    enable: Callable[..., Tool],
    grant: Callable[..., Any],
    caller: Caller,
    auditor: Person,
    operator: Person,
    bell: Bell,
    sandbox: ScriptedSandbox,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(selection, "OPENED_WINDOW", 2)
    enable()
    grant()
    sandbox.outcome = RunOutcome(RunStatus.OK, value={"text": VALUE}, report={})
    call = row_of(caller.invoke(ECHO, {"text": VALUE}))
    seal_everything()
    with pytest.raises(Forbidden):
        make_export(format="bundle", opens=True, reason=REASON, by=operator.by)
    with pytest.raises(RevealReasonTooShort):
        make_export(format="bundle", opens=True, reason="why", by=auditor.by)

    closed = verified(made(format="bundle", by=auditor.by), tmp_path)
    assert "values     none of 3 opened\n" in closed.stdout
    job = made(format="bundle", opens=True, reason=REASON, by=auditor.by)
    done = verified(job, tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert " opened, and they are what was committed to\n" in done.stdout
    assert job.chunks == -(-job.stop // 2) + 1  # few facts in a piece, for their values may be large
    reads = Fact.objects.filter(kind=Kind.SNAPSHOT_READ, invocation_id=call.pk, actor_id=auditor.by.id)
    assert reads.count() == 2
    with zipfile.ZipFile(tmp_path / f"{job.wire_id}.zip") as archive:
        texts = b"".join(archive.read(name) for name in archive.namelist())
    assert VALUE.encode() in texts
    assert VALUE.encode() not in b"".join(bytes(row.ciphertext) for row in ExportChunk.objects.all())

    assert operator.client().get(f"/evidence/exports/{job.wire_id}/content").status_code == 403
    assert forget_opened_exports(job.tenant_id) == 1
    job.refresh_from_db()
    assert (job.state, bytes(job.wrapped_key), ExportChunk.objects.filter(job=job).exists()) == ("expired", b"", False)


# Going on, stopping, expiring.


@pytest.mark.req("CARD-6")
def test_a_keeper_that_lost_its_lease_adds_nothing(sealed: int, operator: Person) -> None:
    job = make_export(format="jsonl", stop=sealed, by=operator.by)
    slow = jobs._claim(job)
    assert slow is not None
    ExportJob.objects.filter(pk=job.pk).update(lease_until=timezone.now() - timedelta(seconds=1))
    while advance_next():
        pass
    jobs._advance(slow)

    job.refresh_from_db()
    indexes = [json.loads(line)["index"] for line in content(job).splitlines()]
    assert indexes == list(range(sealed))
    assert kinds_about(job).count(Kind.EXPORT_FINISHED) == 1


@pytest.mark.req("CARD-6")
@pytest.mark.django_db(transaction=True)
def test_an_export_that_reads_for_long_stays_its_keepers(
    sealed: int, operator: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An archive may be slower than a lease is long."""
    job, renewed, renew = make_export(by=operator.by, format="jsonl"), threading.Event(), jobs._renew
    leases = list[Any]()

    def note_renewal(row: ExportJob) -> bool:
        kept = renew(row)
        if kept and threading.current_thread().name == "lease":
            renewed.set()
        return kept

    def note_lease() -> None:
        leases.append(ExportJob.objects.get(pk=job.pk).lease_until)

    def renew_soon(renew: Callable[[], bool], *, every_s: float) -> Any:
        note_lease()
        return renew_lease(renew, every_s=every_s / 10_000)

    def select_slowly(row: ExportJob) -> Any:
        assert renewed.wait(30)
        note_lease()
        return selection.select_facts(row)

    monkeypatch.setattr(jobs, "renew_lease", renew_soon)
    monkeypatch.setattr(jobs, "_renew", note_renewal)
    monkeypatch.setattr(jobs, "select_facts", select_slowly)
    advance_next()

    job.refresh_from_db()
    assert leases[0] < leases[1]
    assert (job.position, job.lease_until) == (WINDOW, None)
    while advance_next():
        pass
    job.refresh_from_db()
    assert (job.state, job.rows) == (ExportState.DONE, sealed)


@pytest.mark.req("CARD-6")
def test_a_cancelled_export_keeps_its_row_and_nothing_else(sealed: int, operator: Person) -> None:
    job = make_export(format="jsonl", stop=sealed, by=operator.by)
    advance_next()
    assert ExportChunk.objects.filter(job=job).count() == 1
    cancel_export(job_id=job.pk, by=operator.by)

    job.refresh_from_db()
    assert (job.state, job.key_id, ExportChunk.objects.filter(job=job).exists()) == ("cancelled", "", False)
    assert advance_next() is None
    with pytest.raises(Conflict):
        cancel_export(job_id=job.pk, by=operator.by)
    assert kinds_about(job) == [Kind.EXPORT_MADE, Kind.EXPORT_CANCELLED]


@pytest.mark.req("CARD-6")
def test_an_export_that_is_too_large_fails_and_says_so(sealed: int, operator: Person, settings: Any) -> None:
    settings.TOOLHUB_EXPORT_MAX_ROWS = WINDOW + 1
    job = made(format="jsonl", stop=sealed, by=operator.by)

    assert (job.state, job.rows, ExportChunk.objects.filter(job=job).exists()) == ("failed", 0, False)
    assert str(WINDOW + 1) in job.problem
    assert kinds_about(job)[-1] == Kind.EXPORT_FAILED


@pytest.mark.parametrize(
    "why", ["rows", "size", "lost", "forgotten", pytest.param("error", marks=pytest.mark.unmapped)]
)
def test_why_an_export_failed_is_said_in_the_language_of_the_reader(
    why: str, sealed: int, operator: Person, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = {
        "rows": "导出将包含超过 3 条证据记录。请缩小查询或范围。",
        "size": "导出将超过 0 MiB。请缩小查询或范围。",
        "lost": "请恢复归档中的对象，然后重新请求导出。",
        "forgotten": "其间有人的数据已被抹除。请重新请求导出。",
        "error": "无法完成导出（RuntimeError）。请重新请求。",
    }
    if why == "rows":
        settings.TOOLHUB_EXPORT_MAX_ROWS = 3
    elif why == "size":
        settings.TOOLHUB_EXPORT_MAX_MB = 0
    elif why in ("lost", "error"):
        error = ArchivedFactLost() if why == "lost" else RuntimeError()
        monkeypatch.setattr(jobs, "select_facts", Mock(side_effect=error))
    job = make_export(format="jsonl", stop=sealed, by=operator.by)
    if why == "forgotten":
        jobs.forget_exports([job.pk])
    while advance_next():
        pass
    client = operator.client()
    client.cookies[settings.LANGUAGE_COOKIE_NAME] = "zh-hans"

    page = client.get(f"/evidence/exports/{job.wire_id}").content.decode()

    assert said[why] in page


@pytest.mark.req("CARD-6")
def test_a_tenant_has_only_some_exports_at_a_time(sealed: int, operator: Person) -> None:
    for _ in range(5):
        make_export(format="csv", stop=sealed, by=operator.by)

    with pytest.raises(ExportsFull):
        make_export(format="csv", by=operator.by)


@pytest.mark.req("CARD-6")
def test_content_goes_when_its_time_is_over_and_the_row_stays(sealed: int, operator: Person) -> None:
    job = made(format="csv", stop=sealed, by=operator.by)
    assert expire_due() == 0
    ExportJob.objects.filter(pk=job.pk).update(expires_at=timezone.now() - timedelta(seconds=1))
    assert expire_due() == 1

    job.refresh_from_db()
    assert (job.state, job.key_id, ExportChunk.objects.filter(job=job).exists()) == ("expired", "", False)
    assert kinds_about(job)[-1] == Kind.EXPORT_EXPIRED
    assert operator.client().get(f"/evidence/exports/{job.wire_id}/content").status_code == ExportNotReady.status


# Downloading.


def body(response: Any) -> bytes:
    return b"".join(response.streaming_content)


@pytest.mark.req("CARD-6")
def test_a_download_may_go_on_where_it_broke_off(sealed: int, caller: Caller, operator: Person) -> None:
    job = made(format="jsonl", stop=sealed, by=operator.by)
    whole, path = content(job), f"/evidence/exports/{job.wire_id}/content"
    first = caller.get(path)
    assert (first.status_code, body(first)) == (200, whole)
    middle = len(whole) // 2
    for said, wanted in {
        f"bytes={middle}-": whole[middle:],
        "bytes=10-19": whole[10:20],
        "bytes=-7": whole[-7:],
        f"bytes=5-{len(whole) * 2}": whole[5:],
    }.items():
        part = caller.get(path, Range=said)
        assert (part.status_code, body(part)) == (206, wanted), said
        assert part.headers["Content-Length"] == str(len(wanted))
    assert caller.get(path, Range=f"bytes={len(whole)}-").status_code == 416
    changed = caller.get(path, **{"Range": "bytes=5-", "If-Range": '"another"'})
    assert (changed.status_code, body(changed)) == (200, whole)
    reads = Fact.objects.filter(subject=job.wire_id, kind=Kind.EXPORT_READ)
    assert reads.count() == 6
    assert {json.loads(bytes(row.leaf))["data"]["via"] for row in reads} == {"key"}


@pytest.mark.req("CARD-6")
@pytest.mark.parametrize(
    ("header", "found"),
    [("", None), ("bytes=0-0", (0, 1)), ("bytes=3-", (3, 10)), ("bytes=-4", (6, 10)), ("bytes=5-3", None), ("lines=1-2", None)],
)  # fmt: skip
def test_a_range_is_read_as_rfc_9110_says(header: str, found: tuple[int, int] | None) -> None:
    assert parse_range(header, 10) == found
    for beyond in ("bytes=10-", "bytes=-0"):
        with pytest.raises(NoSuchRange):
            parse_range(beyond, 10)


@pytest.mark.req("CARD-6")
def test_a_link_stands_for_a_key_for_an_hour_and_only_as_it_is(
    sealed: int, caller: Caller, operator: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = made(format="csv", stop=sealed, by=operator.by)
    url = caller.get(f"/evidence/exports/{job.wire_id}").json()["data"]["url"].partition("/api")[2]
    link = f"/api{url}"
    given = Client().get(link)
    assert (given.status_code, body(given)) == (200, content(job))
    assert Client().get(link.replace("expires=1", "expires=2")).status_code == ExportLinkInvalid.status
    assert Client().get(link[:-1]).status_code == ExportLinkInvalid.status
    monkeypatch.setattr(links, "GOOD_FOR", -timedelta(seconds=1))
    late = links.link_to(job, agent=caller.by.id).partition("/api")[2]
    assert Client().get(f"/api{late}").status_code == ExportLinkInvalid.status
    read = Fact.objects.get(subject=job.wire_id, kind=Kind.EXPORT_READ)
    assert (read.actor_id, json.loads(bytes(read.leaf))["data"]["via"]) == (caller.by.id, "link")


@pytest.mark.req("CARD-6")
def test_exports_are_made_and_cancelled_over_rest(sealed: int, caller: Caller) -> None:
    answer = caller.post("/evidence/exports", {"format": "jsonl", "query": "kind:tool.paused", "stop": sealed})
    assert answer.status_code == 202
    found = answer.json()["data"]
    assert (found["state"], found["url"], found["percent"]) == ("queued", None, 0)
    assert caller.delete(f"/evidence/exports/{found['id']}").json()["data"]["state"] == "cancelled"
    assert caller.get("/evidence/exports").json()["data"]["exports"][0]["state"] == ExportState.CANCELLED


@pytest.mark.req("CARD-6")
def test_people_make_an_export_see_its_state_and_download_it(sealed: int, auditor: Person) -> None:
    client = auditor.client()
    asked = client.post("/evidence/exports/new", {"format": "csv", "stop": str(sealed)})
    assert asked.status_code == 302
    page = client.get(asked.headers["Location"]).content.decode()
    assert "Cancel the export" in page
    while advance_next():
        pass
    assert "Download" in client.get(asked.headers["Location"]).content.decode()
    assert "Download" in client.get("/evidence/exports").content.decode()
    wrong = client.post("/evidence/exports/new", {"format": "csv", "query": "colour:red"})
    assert wrong.status_code == 422


@pytest.mark.req("CARD-6")
def test_an_export_of_a_search_holds_what_the_page_showed_also_where_days_are_others(
    sealed: int, auditor: Person
) -> None:
    """A time without a zone is one of who reads the page; an export is read where no zone but UTC holds."""
    set_display(time_zone="Asia/Shanghai", user=auditor.user)
    client = auditor.client()
    newest, here = Fact.objects.order_by("-id")[0], ZoneInfo("Asia/Shanghai")
    begin = newest.occurred_at.astimezone(here) - timedelta(hours=1)
    query = f"kind:tool.paused after:{begin:%Y-%m-%dT%H:%M} before:{begin + timedelta(hours=2):%Y-%m-%dT%H:%M}"

    page = client.get("/evidence", {"q": query})
    shown = [fact.wire_id for fact in page.context["found"].rows]
    filled_in = client.get(page.context["export"]).context["form"].initial["query"]

    assert shown
    assert filled_in.count("+08:00") == 2
    assert f'href="{escape(page.context["export"])}"' in page.content.decode()
    for asked in (filled_in, query):  # as the page leads to it, and as somebody writes it into the form
        answer = client.post("/evidence/exports/new", {"format": "jsonl", "stop": str(sealed), "query": asked})
        assert answer.status_code == 302
        while advance_next():
            pass
        job = ExportJob.objects.order_by("-id")[0]
        lines = [json.loads(json.loads(line)["leaf"]) for line in content(job).splitlines()]
        assert {line["id"] for line in lines} >= set(shown)
        assert len(lines) == Fact.objects.filter(kind=Kind.TOOL_PAUSED).count()
    relative = client.post("/evidence/exports/new", {"format": "jsonl", "stop": str(sealed), "query": "after:7d"})
    assert relative.status_code == 302
    assert ExportJob.objects.order_by("-id")[0].query == "after:7d"
