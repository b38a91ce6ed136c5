"""Tool files in a hub: does a call find what those before it have left, its own tenant's alone, and only of what ended well?"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from django.test import Client

from access.consents import services as consents
from evidence.models import Fact
from invocations.run import server_probe
from invocations.sandbox.base import RunOutcome, RunStatus, TenantFile
from invocations.tool_files import services as tool_files
from invocations.tool_files.models import ToolFiles
from invocations.tool_files.problems import ToolFilesChanged, ToolFilesRefused
from registry.dependencies.builder import Builder
from registry.models import Decision, ToolVersion
from registry.reviews import services as reviews
from registry.tools import lifecycle
from tests.support.calls import Bell, assert_problem, row_of, run_calls_here, run_calls_in
from tests.support.mcp_servers import OPEN, draft_of, listing_of, make_server, source_of
from unitools.capsules import pack_capsule

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from invocations.sandbox.docker import DockerSandbox
    from tests.conftest import Caller, Person

pytestmark = pytest.mark.django_db
NAMES = ("add", "read")
TOOLS: list[dict[str, Any]] = [
    {"name": name, "inputSchema": OPEN, "annotations": {"readOnlyHint": name == "read"}} for name in NAMES
]
SOURCE = source_of(
    """
    import os, sqlite3, time
    path = sys.argv[1]
    def begin(params):
        open(path, "a").close()  # as many do when they start
        return {"protocolVersion": params["protocolVersion"], "capabilities": {}, "serverInfo": {"name": "a", "version": "1"}}
    def call(name, arguments, params):
        match name:
            case "add":
                with open(path, "a") as file:
                    file.write(arguments["word"] + " ")
                match arguments.get("then"):
                    case "fail":
                        return text("No.", isError=True)
                    case "hang":
                        time.sleep(3600)
                    case "die":
                        os._exit(3)
                    case "link":
                        os.symlink("/etc/passwd", "/data/link")
                    case "two names":
                        os.link(path, "/data/other")
                    case "pipe":
                        os.mkfifo("/data/pipe")
                    case "many":
                        for number in range(30):
                            open(f"/data/{number}", "w").close()
                    case "large":
                        open("/data/large", "wb").write(b"x" * 20_000)
                    case "folder":
                        os.remove(path)
                        os.mkdir(path)
                        if arguments.get("inside"):
                            open(path + "/x", "w").write("inside")
                        return text("a folder")
                    case "remove":
                        os.remove(path)
                        return text("removed")
                return text(open(path).read())
            case "read":
                said = open(path).read()
                open(path, "a").write("what only reads leaves nothing")
                return text(said)
    """,
    TOOLS,
)
STATE = {"kind": "files", "max_files": 5, "max_bytes": 16_384}


@pytest.fixture(autouse=True)
def sandbox(boxes: DockerSandbox, monkeypatch: pytest.MonkeyPatch, settings: Any) -> Bell:
    run_calls_in(boxes, monkeypatch, server_probe)
    return run_calls_here(monkeypatch, settings)


@pytest.fixture
def notes(
    caller: Caller, operator: Person, grant: Callable[..., Any], tmp_path: Path, settings: Any
) -> Callable[..., dict[str, ToolVersion]]:
    """``notes(**state)``: the tools of one server, brought, tried, reviewed and granted."""
    tmp_path.chmod(0o755)  # tools are nobody
    settings.TOOLHUB_WHEELHOUSE = str(tmp_path / "wheels")
    settings.TOOLHUB_DEPENDENCY_DIR = str(tmp_path / "deps")
    make_server(tmp_path / "wheels", SOURCE)

    def make(**state: Any) -> dict[str, ToolVersion]:
        drafts, files = draft_of(*NAMES, listing=listing_of(TOOLS), arguments=["/data/notes.txt"])
        capsule = pack_capsule([{**draft, "state": STATE | state, "timeout_ms": 3_000} for draft in drafts], files)
        answer = Client().post(
            "/api/v1/capsules", capsule.data, content_type="application/zip", headers=caller.headers()
        )
        assert answer.status_code == 201, answer.json()
        build_all()
        found = {each.tool.name: each for each in ToolVersion.objects.filter(capsule__digest=capsule.digest)}
        for name, version in found.items():
            reviews.review_version(version_id=version.pk, decision=Decision.APPROVE, note="", by=operator.by)
            lifecycle.enable_tool(name=name, version_id=version.pk, reason="x", by=operator.by)
        build_all()
        grant(tools="mcp.*")
        asked = consents.request_consent(
            tool="mcp.a.add", versions="^1", purpose="a test", validity_s=3600, by=caller.by
        )
        consents.approve_consent(consent_id=asked.pk, reason="For a test.", by=operator.by)
        return found

    return make


def build_all() -> None:
    builder = Builder(probe=server_probe.probe_server)
    while builder.pass_once():
        pass


def text_of(answer: Any) -> str:
    assert answer.status_code == 200, answer.json()
    return str(answer.json()["data"]["content"][0]["text"])


def kept_in(answer: Any) -> dict[str, Any]:
    """What the End of a call says of the files."""
    fact = Fact.objects.get(invocation_id=row_of(answer).pk, kind="invocation.ended")
    found: dict[str, Any] = json.loads(bytes(fact.leaf))["data"]["tool_files"]
    return found


@pytest.mark.req("BRING-2")
def test_what_calls_leave_is_there_for_the_next_and_ends_say_what_it_was(
    notes: Callable[..., Any], caller: Caller
) -> None:
    notes()

    first = caller.invoke("mcp.a.add", {"word": "one"})
    second = caller.invoke("mcp.a.add", {"word": "two"})
    read = caller.invoke("mcp.a.read", {})

    assert (text_of(first), text_of(second), text_of(read)) == ("one ", "one two ", "one two ")
    said = [kept_in(each) for each in (first, second, read)]
    assert [(each["group"], each["scope"], each["count"], each["kept"]) for each in said] == [
        ("mcp.a", "tenant", 1, True)
    ] * 2 + [("mcp.a", "tenant", 1, False)]
    assert said[0]["before"] == ""
    assert said[1]["before"] == said[0]["after"] != said[1]["after"] == said[2]["before"] == said[2]["after"]
    row = ToolFiles.objects.get()
    assert row.names == [["/data/notes.txt", 8]]
    assert b"one two" not in bytes(row.ciphertext)
    assert [each.content for each in tool_files.open_files(row)] == [b"one two "]


@pytest.mark.req("BRING-2")
def test_a_call_that_does_not_succeed_has_changed_nothing(notes: Callable[..., Any], caller: Caller) -> None:
    notes()
    caller.invoke("mcp.a.add", {"word": "one"})

    for then in ("fail", "hang", "die"):
        answer = caller.invoke("mcp.a.add", {"word": "lost", "then": then})
        assert answer.status_code != 200
        said = kept_in(answer)
        assert (said["kept"], said["before"]) == (False, said["after"])
    trial = caller.invoke("mcp.a.add", {"word": "trial"}, dry_run=True)

    assert trial.status_code in (200, 422), trial.json()
    assert text_of(caller.invoke("mcp.a.read", {})) == "one "


@pytest.mark.req("BRING-2")
def test_what_cannot_be_kept_refuses_the_call_and_leaves_what_was_there(
    notes: Callable[..., Any], caller: Caller
) -> None:
    notes()
    caller.invoke("mcp.a.add", {"word": "one"})

    for how in ("link", "two names", "pipe", "many", "large"):
        answer = caller.invoke("mcp.a.add", {"word": "lost", "then": how})
        assert answer.status_code != 200, how
        if how in ("many", "large"):  # the others the kernel refuses to make already
            assert_problem(answer, 502, "TOOL.FILES_NOT_KEPT")
        assert text_of(caller.invoke("mcp.a.read", {})) == "one "
    assert text_of(caller.invoke("mcp.a.add", {"word": "lost", "then": "remove"})) == "removed"
    assert not ToolFiles.objects.exists()


@pytest.mark.req("BRING-2")
def test_a_folder_in_the_place_of_a_file_stops_no_later_call(notes: Callable[..., Any], caller: Caller) -> None:
    notes()
    caller.invoke("mcp.a.add", {"word": "one"})

    assert text_of(caller.invoke("mcp.a.add", {"word": "lost", "then": "folder"})) == "a folder"
    assert not ToolFiles.objects.exists()

    caller.invoke("mcp.a.add", {"word": "one"})
    assert text_of(caller.invoke("mcp.a.add", {"word": "lost", "then": "folder", "inside": True})) == "a folder"
    assert ToolFiles.objects.get().names == [["/data/notes.txt/x", 6]]


@pytest.mark.req("BRING-2")
def test_a_path_below_a_file_is_not_kept(notes: Callable[..., Any], caller: Caller) -> None:
    versions = notes()
    answer = caller.invoke("mcp.a.add", {"word": "one"})
    row, manifest = ToolFiles.objects.get(), versions["mcp.a.add"].view

    left = RunOutcome(RunStatus.OK, files=(TenantFile("/data/notes.txt/deep/x", b"x"),))
    with pytest.raises(ToolFilesRefused):
        tool_files.keep_tool_files(row_of(answer), manifest, left, tool_files.open_files(row))
    assert ToolFiles.objects.get().fingerprint == row.fingerprint


@pytest.mark.req("BRING-2")
def test_each_person_has_its_own(notes: Callable[..., Any], caller: Caller, operator: Person, tenant: Any) -> None:
    notes(scope="person")

    assert_problem(caller.invoke("mcp.a.read", {}), 422, "TOOL.FILES_NEED_PERSON")
    for word, person in (("ann", "user-ann"), ("ben", "user-ben")):
        assert text_of(caller.invoke("mcp.a.add", {"word": word}, user_id=person)) == f"{word} "
    assert ToolFiles.objects.filter(subject_key__isnull=False).count() == 2


@pytest.mark.req("BRING-2")
def test_what_was_emptied_while_a_call_ran_is_not_brought_back(
    notes: Callable[..., Any], caller: Caller, operator: Person
) -> None:
    versions = notes()
    answer = caller.invoke("mcp.a.add", {"word": "one"})
    row, manifest = ToolFiles.objects.get(), versions["mcp.a.add"].view
    before = tool_files.open_files(row)

    tool_files.empty_tool_files(files_id=row.pk, by=operator.by)

    left = RunOutcome(RunStatus.OK, files=(TenantFile("/data/notes.txt", b"one two "),))
    with pytest.raises(ToolFilesChanged):
        tool_files.keep_tool_files(row_of(answer), manifest, left, before)
    assert text_of(caller.invoke("mcp.a.read", {})) == ""
    assert Fact.objects.get(kind="file.removed").subject == row.wire_id
