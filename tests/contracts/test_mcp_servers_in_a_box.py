"""MCP servers in a box: does a server of others answer calls like any tool, at every level, and keep nothing between them?"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from invocations.sandbox.base import Limits, Profile, RunStatus
from tests.support.mcp_servers import HONEST_TOOLS, PINNED, STARTED, ask_server, lay_out_server
from tests.support.sandboxes import call_of
from unitools.packages import zip_files

if TYPE_CHECKING:
    from pathlib import Path

    from invocations.sandbox.base import RunEvent, RunOutcome
    from invocations.sandbox.docker import DockerSandbox

ROOMY = Limits(wall_ms=10_000, artifacts=3, artifact_bytes=1 << 16)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("server")
    place.chmod(0o755)
    return lay_out_server(place / "deps")


def ask(sandbox: DockerSandbox, folder: Path, tool: str, *, limits: Limits = ROOMY, **given: Any) -> RunOutcome:
    return ask_server(sandbox, folder, tool, limits=limits, **given)


@pytest.mark.req("BRING-2")
@pytest.mark.parametrize("level", ["shared", "fresh", "single"])
def test_a_call_has_a_server_of_its_own_and_an_empty_folder(sandbox: DockerSandbox, folder: Path, level: str) -> None:
    for _ in range(2):
        outcome = ask(sandbox, folder, "count", level=level)
        assert (outcome.status, outcome.level, outcome.clean) == (RunStatus.OK, level, True), outcome
        assert outcome.value == {"content": [{"type": "text", "text": "1 False /w"}]}


@pytest.mark.req("BRING-2")
def test_only_the_pinned_package_answers(sandbox: DockerSandbox, folder: Path, tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    place = lay_out_server(tmp_path / "deps")
    (place / "a_helper-1.0.dist-info").mkdir()
    (place / "a_helper-1.0.dist-info/entry_points.txt").write_text("[console_scripts]\na-server = a_helper:main\n")
    (place / "a_helper.py").write_text("def main():\n    raise SystemExit('I am another.')\n")
    other = {"module": "http.server", "package": STARTED["package"]}

    assert ask(sandbox, place, "say", text="well").status is RunStatus.OK
    for level in ("fresh", "single"):
        outcome = ask(sandbox, folder, "", level=level, start=other)
        assert (outcome.status, outcome.error_type) == (RunStatus.RAISED, "LookupError"), outcome
        assert outcome.error_message == "The package a-server brings no module 'http.server'."


@pytest.mark.req("BRING-2")
@pytest.mark.parametrize("level", ["shared", "fresh", "single"])
def test_a_module_is_run_once_as_the_main_program(sandbox: DockerSandbox, folder: Path, level: str) -> None:
    start = {"module": "a_module", "package": STARTED["package"]}

    outcome = ask(sandbox, folder, "say", level=level, start=start, text="well")

    assert (outcome.status, outcome.stderr) == (RunStatus.OK, "I am __main__.\n"), outcome
    assert outcome.value == {"content": [{"type": "text", "text": "well"}]}


@pytest.mark.req("BRING-2")
def test_its_list_is_read_without_a_tool_being_called(sandbox: DockerSandbox, folder: Path) -> None:
    outcome = ask(sandbox, folder, "", level="single")

    assert outcome.status is RunStatus.OK, outcome
    assert outcome.value == {"protocol": "2025-11-25", "tools": HONEST_TOOLS}


@pytest.mark.req("BRING-2")
def test_what_is_structured_is_the_result_and_what_is_missing_is_told(sandbox: DockerSandbox, folder: Path) -> None:
    assert ask(sandbox, folder, "Echo-Text", structured=True, text="héllo").value == {"text": "héllo"}

    forgotten = ask(sandbox, folder, "forget", structured=True)

    assert forgotten.status is RunStatus.BAD_RESULT
    assert "no structuredContent" in forgotten.error_message


@pytest.mark.req("BRING-2")
def test_an_error_of_the_tool_is_a_refusal_with_its_text(sandbox: DockerSandbox, folder: Path) -> None:
    outcome = ask(sandbox, folder, "fail")

    assert (outcome.status, outcome.error_code) == (RunStatus.DOMAIN_ERROR, "UPSTREAM_ERROR")
    assert outcome.error_message == "There is no such city."


@pytest.mark.req("BRING-2")
def test_bytes_become_artifacts_that_the_result_names(sandbox: DockerSandbox, folder: Path) -> None:
    outcome = ask(sandbox, folder, "draw")

    assert outcome.value == {
        "content": [
            {"type": "image", "mimeType": "image/png", "artifact": "part-1.png"},
            {"type": "resource", "resource": {"uri": "a://b", "mimeType": "application/x-a", "artifact": "part-2.bin"}},
        ]
    }
    assert [(each.name, each.content) for each in outcome.artifacts] == [
        ("part-1.png", b"\x89PNG\r\n\x1a\n"),
        ("part-2.bin", b"\0\1"),
    ]


@pytest.mark.req("BRING-2")
def test_what_the_server_asks_its_client_for_is_refused_and_noted(sandbox: DockerSandbox, folder: Path) -> None:
    outcome = ask(sandbox, folder, "ask")

    assert outcome.value["content"][0]["text"] == "-32601"
    assert any("sampling/createMessage" in each for each in outcome.report["warnings"])


@pytest.mark.req("BRING-2")
def test_its_progress_is_that_of_the_call(sandbox: DockerSandbox, folder: Path) -> None:
    events: list[RunEvent] = []

    ask(sandbox, folder, "progress", events=events)

    said = [each.progress for each in events if each.stream == "progress"]
    assert [(each["fraction"], each["message"]) for each in said] == [(0.25, "step 1"), (0.5, "step 2")]


@pytest.mark.req("BRING-2")
def test_a_server_has_the_environment_that_is_named_and_no_other_secret(sandbox: DockerSandbox, folder: Path) -> None:
    start = STARTED | {
        "arguments": ["--flag"],
        "environment": [{"name": "KEY", "secret": "TOKEN"}, {"name": "ZONE", "config": "zone"}],
    }
    for value in ("one", "two"):
        given = {"secrets": {"TOKEN": value, "OTHER": "hidden"}, "config": {"zone": "UTC"}}
        outcome = ask(sandbox, folder, "environment", start=start, given=given)
        assert json.loads(outcome.value["content"][0]["text"]) == [value, value, "UTC", ["--flag"]]


@pytest.mark.req("BRING-2")
def test_a_value_that_no_environment_can_hold_is_told_by_its_name_alone(sandbox: DockerSandbox, folder: Path) -> None:
    start = STARTED | {"environment": [{"name": "KEY", "secret": "TOKEN"}]}

    outcome = ask(sandbox, folder, "environment", start=start, given={"secrets": {"TOKEN": "hid\0den"}})

    assert outcome.error_message == "KEY: a value holds a NUL character, which no environment can."


@pytest.mark.req("BRING-2")
def test_a_server_that_hangs_is_ended_with_its_box_and_the_next_call_is_right(
    sandbox: DockerSandbox, folder: Path
) -> None:
    outcome = ask(sandbox, folder, "hang", limits=replace(ROOMY, wall_ms=800))

    assert outcome.status is RunStatus.TIMED_OUT
    assert outcome.stderr == "I hang\n"
    assert ask(sandbox, folder, "say", text="well").value == {"content": [{"type": "text", "text": "well"}]}


@pytest.mark.req("BRING-2")
def test_a_call_that_is_cancelled_ends_the_server(sandbox: DockerSandbox, folder: Path) -> None:
    name = "inv-cancelled-server"

    def cancel(event: RunEvent) -> None:
        if "I hang" in event.text:
            sandbox.kill(name)

    start = call_of(PINNED, name=name)
    call = replace(start, dependencies=folder, server=STARTED, asks={"tool": "hang", "structured": False})

    assert sandbox.run(Profile(ROOMY, isolation="fresh"), call, cancel).status is RunStatus.CANCELLED


@pytest.mark.req("BRING-2")
def test_a_server_reaches_nothing_that_its_profile_does_not_hold(sandbox: DockerSandbox, folder: Path) -> None:
    outcome = ask(sandbox, folder, "reach")

    assert (outcome.status, outcome.error_message) == (RunStatus.DOMAIN_ERROR, "PermissionError")


@pytest.mark.req("BRING-2")
def test_a_folder_with_the_name_of_the_server_is_in_nobodys_way(sandbox: DockerSandbox, folder: Path) -> None:
    call = replace(
        call_of(zip_files([("a_server/listing.json", b"{}")]), text="well"),
        dependencies=folder,
        server=STARTED,
        asks={"tool": "say", "structured": False},
    )

    assert sandbox.run(Profile(ROOMY, isolation="single"), call).status is RunStatus.OK


@pytest.mark.req("BRING-2")
def test_a_program_that_no_package_brings_is_told(sandbox: DockerSandbox, folder: Path) -> None:
    outcome = ask(sandbox, folder, "say", start=STARTED | {"script": "other-server"}, text="x")

    assert outcome.status is RunStatus.RAISED
    assert "brings no program 'other-server'" in outcome.error_message
