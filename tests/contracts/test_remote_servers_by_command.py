"""Command ``unitools bring remote``: does it read what a server somewhere else lists, and write drafts that a hub takes?"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.egress.conftest import authority  # noqa: F401  fixture
from tests.egress.remote_servers import TOKEN, RemoteServer, serving_remote
from tests.egress.services import Service, answer_with, serving
from tests.support.authorization_server import serving_authorization
from unitools.checks import check_manifest
from unitools.command import main
from unitools.command.terminal import COULD_NOT_RUN, GOOD, NO

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.egress.world import Authority

SECRET = "SHOP_TOKEN"


@pytest.fixture
def remote(
    authority: Authority,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> Iterator[RemoteServer]:
    monkeypatch.setenv("SSL_CERT_FILE", str(authority.roots))
    monkeypatch.setenv(SECRET, TOKEN)
    monkeypatch.chdir(tmp_path)
    with serving_remote(authority.server_context("localhost")) as found:
        yield found


def bring(remote: RemoteServer | Service, *arguments: str) -> int:
    return main(["bring", "remote", f"https://localhost:{remote.port}/mcp", *arguments])


def draft(folder: Path, tool: str = "get_item") -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "mcp_localhost/manifests" / f"mcp.localhost.{tool}.json").read_text())
    return found


def test_nothing_is_chosen_beforehand_and_what_is_chosen_is_a_manifest(
    remote: RemoteServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert bring(remote, "--secret", SECRET) == GOOD
    assert "has 2 tools; choose with --tool NAME" in capsys.readouterr().out
    assert not (tmp_path / "mcp_localhost").exists()

    assert bring(remote, "--secret", SECRET, "--tool", "Get-Item") == GOOD

    found = draft(tmp_path)
    assert [each for each in check_manifest(found) if each.severity == "error"] == []
    assert found["side_effect"] == "Write"
    assert found["implementation"]["remote"]["credentials"] == [
        {"secret": SECRET, "in": "header", "name": "Authorization", "scheme": "bearer"}
    ]
    assert (found["origin"]["tool"], found["origin"]["protocol"]) == ("Get-Item", "2026-07-28")
    assert TOKEN not in json.dumps(found)
    assert (tmp_path / "mcp_localhost/listing.json").is_file()


def test_a_second_run_keeps_what_a_person_wrote_and_raises_what_changed(
    remote: RemoteServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bring(remote, "--secret", SECRET, "--tool", "Get-Item")
    path = tmp_path / "mcp_localhost/manifests/mcp.localhost.get_item.json"
    path.write_text(json.dumps(draft(tmp_path) | {"side_effect": "Read", "timeout_ms": 5000}))
    capsys.readouterr()

    assert bring(remote) == GOOD
    assert "nothing changed" in capsys.readouterr().out
    assert (draft(tmp_path)["side_effect"], draft(tmp_path)["version"]) == ("Read", "1.0.0")

    remote.tools.remove_tool("Get-Item")

    @remote.tools.tool(name="Get-Item", description="Gives an item, by its id or its name.")
    def get_item(item: str, by_name: bool = False) -> dict[str, Any]:
        return {"item": item, "by_name": by_name}

    assert bring(remote) == GOOD
    assert bring(remote) == GOOD
    later = draft(tmp_path)
    assert (later["side_effect"], later["timeout_ms"], later["version"]) == ("Read", 5000, "2.0.0")
    assert "by_name" in later["input_schema"]["properties"]
    assert later["implementation"]["remote"]["credentials"][0]["secret"] == SECRET

    remote.tools.remove_tool("Get-Item")
    assert bring(remote) == NO
    assert "The server has no tool Get-Item any more" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "Name the secret that it asks for: --secret NAME."),
        (["--secret", "UNSET_TOKEN"], "Set the environment variable UNSET_TOKEN"),
        (["--secret", "the-value"], "A value never stands here."),
        (["--secret", f"{SECRET}=query:key"], "NAME=header:X-Key"),
    ],
)
def test_a_credential_that_is_missing_is_asked_for(
    arguments: list[str], said: str, remote: RemoteServer, capsys: pytest.CaptureFixture[str]
) -> None:
    assert bring(remote, *arguments) == COULD_NOT_RUN
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    "url",
    [
        "http://mcp.example.org/mcp",
        "https://10.0.0.1/mcp",
        "https://user@mcp.example.org/mcp",
        "https://mcp.example.org/mcp?key=1",
        "https://mcp.example.org/a/../mcp",
        "mcp.example.org",
    ],
)
def test_an_address_that_no_hub_may_call_is_refused(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bring", "remote", url]) == NO
    assert repr(url) in capsys.readouterr().err


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (answer_with(b"<html>", content_type="text/html"), "which is no message of MCP"),
        (answer_with(b"", status="404 Not Found"), "The server answered 404. It speaks no MCP over HTTP there"),
        (
            answer_with(b"", status="302 Found", location="https://localhost/"),
            "The server answered 302. It leads to another address, and nobody follows it there: give that one.",
        ),
        (answer_with(b"", status="503 Service Unavailable"), "The server answered 503. It has trouble of its own"),
        (answer_with(b"", status="429 Too Many Requests"), "too much to do: try again later."),
        (
            answer_with(
                json.dumps(
                    {"jsonrpc": "2.0", "id": 1, "error": {"code": -32000, "message": "\x1b[2Jno\u202e"}}
                ).encode(),
                status="400 Bad Request",
                content_type="application/json",
            ),
            "The server does not list its tools: \ufffd[2Jno\ufffd",
        ),
    ],
)
def test_what_lists_nothing_is_told_in_one_sentence(
    answer: bytes,
    said: str,
    authority: Authority,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(authority.roots))
    with serving(authority.server_context("localhost"), answers=[answer]) as service:
        assert bring(service) == COULD_NOT_RUN

    assert said in capsys.readouterr().err


def test_a_tool_that_wants_what_no_header_holds_in_one_is_refused(
    remote: RemoteServer, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    schema = {"type": "object", "properties": {"regions": {"type": "array", "x-mcp-header": "Regions"}}}
    listing = {"protocol": "2026-07-28", "tools": [{"name": "Get-Item", "inputSchema": schema}]}
    (tmp_path / "kept.json").write_text(json.dumps(listing))

    assert bring(remote, "--listing", str(tmp_path / "kept.json"), "--tool", "Get-Item") == NO
    assert "Get-Item cannot be called: regions is to be said in a header" in capsys.readouterr().err


@pytest.mark.req("SVC-6")
@pytest.mark.parametrize("value", ["se\ncret", "secret-of-a-file\n"])
def test_a_secret_that_no_header_can_hold_is_not_printed(
    value: str, remote: RemoteServer, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(SECRET, value)

    assert bring(remote, "--secret", SECRET) == COULD_NOT_RUN

    said = capsys.readouterr()
    assert f"The environment variable {SECRET} holds what no header can" in said.err
    assert value.strip() not in said.err + said.out


@pytest.fixture
def of_persons(
    authority: Authority,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> Iterator[RemoteServer]:
    """A server that asks persons to sign in."""
    monkeypatch.setenv("SSL_CERT_FILE", str(authority.roots))
    monkeypatch.chdir(tmp_path)
    with (
        serving_authorization() as accounts,
        serving_remote(authority.server_context("localhost"), host="localhost", accounts=accounts) as found,
    ):
        yield found


def test_a_server_that_asks_persons_to_sign_in_is_told_of_and_brought_so(
    of_persons: RemoteServer, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert bring(of_persons) == COULD_NOT_RUN
    said = capsys.readouterr().err
    assert "asks persons to sign in" in said
    assert "--account" in said
    assert of_persons.accounts is not None
    token = of_persons.accounts.give_token("author")
    monkeypatch.setenv("MCP_ACCESS_TOKEN", token)

    assert bring(of_persons, "--account", "--scope", "notes:read", "--tool", "read-notes") == GOOD

    found = draft(tmp_path, "read_notes")
    assert [each for each in check_manifest(found) if each.severity == "error"] == []
    assert found["implementation"]["remote"]["account"] == {"scopes": ["notes:read"]}
    assert "secrets" not in found
    assert token not in json.dumps(found)
    assert bring(of_persons) == GOOD  # what was chosen stays
    assert draft(tmp_path, "read_notes")["implementation"]["remote"]["account"] == {"scopes": ["notes:read"]}


@pytest.mark.parametrize("arguments", [("--account", "--secret", SECRET), ("--scope", "a")])
def test_a_person_and_a_secret_are_not_asked_for_at_once(
    arguments: tuple[str, ...], of_persons: RemoteServer, capsys: pytest.CaptureFixture[str]
) -> None:
    assert bring(of_persons, *arguments) == COULD_NOT_RUN
    assert "--account" in capsys.readouterr().err
