"""Brought tools: do drafts say what the server says, and nothing that nobody can see?"""

from __future__ import annotations

import copy
import json
import sys
from typing import TYPE_CHECKING, Any

import pytest

from registry.versions.manifest_checks import validate_document
from tests.support.mcp_servers import ECHO, HONEST_TOOLS, PACKAGE, START, draft_of, listing_of, source_of
from unitools.brought_tools import CannotBring, ServerReach, Source, derive_group, draft_tools, raise_version
from unitools.checks import find_entry_differences
from unitools.command.started_servers import list_server_tools
from unitools.manifest import Manifest
from unitools.mcp_listings import Listing, ListingUnfit, describe_drift, show_drift
from unitools.packages import ListingNotFit, check_code

if TYPE_CHECKING:
    from pathlib import Path


def errors_of(document: dict[str, Any]) -> list[str]:
    return [each.message for each in validate_document(document) if each.severity == "error"]


def listing_with(**changes: Any) -> Listing:
    return listing_of([ECHO | changes, *HONEST_TOOLS[1:]])


def source(version: str = "1.0", **more: Any) -> Source:
    return Source(PACKAGE, version, "mcp.a", START, **more)


def nested(depth: int) -> list[Any]:
    found: list[Any] = []
    for _ in range(depth):
        found = [found]
    return found


@pytest.mark.req("BRING-2")
def test_a_draft_is_a_manifest_that_a_hub_takes_with_what_it_pins() -> None:
    drafts, files = draft_of("Echo-Text", "say")

    for draft in drafts:
        assert errors_of(draft) == []
        check_code(Manifest(draft), files)
    echo, say = drafts
    assert (echo["id"], echo["origin"]["tool"], echo["side_effect"]) == ("mcp.a.echo_text", "Echo-Text", "Read")
    assert (echo["output_schema"], echo["origin"]["result"]) == (ECHO["outputSchema"], "structured")
    assert (say["side_effect"], say["safety_class"], say["origin"]["result"]) == ("Write", "Medium", "content")
    assert say["dependencies"] == ["a-server==1.0"]


@pytest.mark.req("BRING-2")
def test_names_that_lead_to_one_name_are_refused_with_both() -> None:
    listing = listing_of([ECHO, ECHO | {"name": "echo.text"}])

    with pytest.raises(CannotBring, match=r"Echo-Text and echo\.text would both be"):
        draft_tools(listing, source(), ["Echo-Text", "echo.text"])


@pytest.mark.req("BRING-2")
def test_nothing_is_brought_that_the_server_does_not_have_or_that_is_too_much() -> None:
    with pytest.raises(CannotBring, match="no tool 'nothing'"):
        draft_tools(listing_of(), source(), ["nothing"])
    many = [ECHO | {"name": f"t{n}"} for n in range(51)]
    with pytest.raises(CannotBring, match="At most 50"):
        draft_tools(listing_of(many), source(), [each["name"] for each in many])


@pytest.mark.req("BRING-2")
@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"description": "Echo\u200b."}, r"U\+200B"),
        ({"description": "Echo\x1b[2J."}, r"U\+001B"),
        ({"description": "x" * 4001}, "4,001 characters"),
        ({"title": "E\u202echo"}, r"U\+202E"),
        ({"title": "E\U0001d173cho"}, r"U\+1D173"),
        ({"title": "E\U000f0041cho"}, r"U\+F0041"),
        ({"inputSchema": {"type": "object", "properties": {"a\u2060": {}}}}, r"U\+2060"),
        ({"inputSchema": {"type": "string"}}, "is no object"),
        ({"inputSchema": None}, "is no object"),
    ],
)
def test_texts_and_schemas_of_others_are_taken_as_they_can_be_seen_or_not_at_all(
    changes: dict[str, Any], why: str
) -> None:
    with pytest.raises(CannotBring, match=why):
        draft_tools(listing_with(**changes), source(), ["Echo-Text"])


@pytest.mark.req("BRING-2")
def test_a_second_run_keeps_what_a_person_has_changed_and_shows_what_is_new() -> None:
    mine = draft_of("Echo-Text")[0][0] | {"side_effect": "None", "description": "My own words.", "timeout_ms": 5000}

    same = draft_tools(listing_of(), source(), ["Echo-Text"], [mine])[0]
    code = draft_tools(listing_of(), source("1.1"), ["Echo-Text"], [mine])[0]
    text = draft_tools(listing_with(description="Other words."), source("1.1"), ["Echo-Text"], [mine])[0]
    wider = copy.deepcopy(ECHO["inputSchema"])
    wider["properties"]["loud"], wider["required"] = {"type": "boolean"}, ["text", "loud"]
    breaks = draft_tools(listing_with(inputSchema=wider), source("1.1"), ["Echo-Text"], [mine])[0]

    assert (same.document, same.changes) == (mine, [])
    assert (code.document["version"], code.document["description"]) == ("1.0.1", "My own words.")
    assert [each.kind for each in code.changes or ()] == ["dependencies.changed", "origin.version_changed"]
    assert text.document["description"] == "Other words."
    assert {"description.changed", "origin.entry_changed"} <= {each.kind for each in text.changes or ()}
    assert (breaks.document["version"], breaks.document["side_effect"]) == ("2.0.0", "None")


NARROW = {"type": "object", "properties": {"text": {"type": "string", "maxLength": 20}}, "required": ["text"]}


@pytest.mark.req("BRING-2")
def test_a_second_run_takes_only_what_the_server_says_otherwise_than_it_did() -> None:
    mine = draft_of("Echo-Text")[0][0]
    mine |= {
        "input_schema": NARROW,
        "description": "My own words.",
        "dependencies": ["A_Server[x]==1.0", "tzdata==2026.1"],
    }
    mine["implementation"] = {
        "kind": "mcp_stdio",
        "image": "browser",
        "server": START | {"listing": "mcp_a", "environment": [{"name": "KEY", "secret": "KEY"}]},
    }
    mine["dependency_constraints"] = ["mcp<2"]
    said = listing_with(title="Another title.", annotations={"readOnlyHint": True, "idempotentHint": True})

    found = draft_tools(said, source("1.1"), ["Echo-Text"], [mine], listing_of())[0].document

    assert (found["input_schema"], found["description"]) == (NARROW, "My own words.")
    assert found["dependencies"] == ["A_Server[x]==1.1", "tzdata==2026.1"]
    assert found["implementation"] == mine["implementation"]
    assert found["dependency_constraints"] == ["mcp<2"]
    assert found["origin"]["version"] == "1.1"


@pytest.mark.req("BRING-2")
def test_what_a_run_says_holds_for_tools_that_were_brought_before() -> None:
    mine = draft_of("Echo-Text")[0][0] | {"dependency_constraints": ["mcp<2"]}
    says = source(said={"module": "a_server", "arguments": ["--x"]}, constraints=("mcp<3",))

    found = draft_tools(listing_of(), says, ["Echo-Text"], [mine], listing_of())[0].document

    assert found["implementation"]["server"] == {"module": "a_server", "arguments": ["--x"], "listing": "mcp_a"}
    assert found["dependency_constraints"] == ["mcp<3"]


@pytest.mark.req("BRING-2")
@pytest.mark.parametrize(("mine", "then"), [("Read", "Write"), ("None", "None"), ("Write", "Write")])
def test_a_tool_that_is_no_longer_said_to_read_is_taken_to_write(mine: str, then: str) -> None:
    before = draft_of("Echo-Text")[0][0] | {"side_effect": mine}
    said = listing_with(annotations={"readOnlyHint": False})

    found = draft_tools(said, source("1.1"), ["Echo-Text"], [before], listing_of())[0].document

    assert found["side_effect"] == then


@pytest.mark.req("BRING-2")
def test_what_is_listed_otherwise_is_shown_with_its_place() -> None:
    said = listing_with(description="In Etc/UTC.", title=None)

    assert show_drift(listing_of(), listing_of()) == ""
    assert show_drift(listing_of(), said).splitlines() == [
        'Echo-Text /description: "Gives the text back." when it was brought, "In Etc/UTC." here'
    ]
    assert len(show_drift(listing_of(), listing_with(**{f"x{n}": "y" * 999 for n in range(9)})).splitlines()) == 7


@pytest.mark.req("BRING-2")
def test_a_listing_has_one_digest_whatever_its_order_and_another_for_any_change() -> None:
    listing, turned = listing_of(), listing_of(reversed(HONEST_TOOLS))

    assert (listing.digest, listing.to_bytes()) == (turned.digest, turned.to_bytes())
    assert Listing.from_bytes(listing.to_bytes()) == listing
    assert describe_drift(listing, turned, tools=["say"]) == ""
    changed = listing_of([ECHO | {"description": "Other."}, *HONEST_TOOLS[2:], {"name": "more", "inputSchema": {}}])
    assert describe_drift(listing, changed, tools=["say"]) == (
        "The server lists its tools otherwise than it did when it was brought (changed: Echo-Text; gone: lie; new: more)."
    )


@pytest.mark.req("BRING-2")
@pytest.mark.parametrize(
    "said",
    [
        [],
        {"protocol": 1, "tools": []},
        {"protocol": "x", "tools": [{"name": "a"}, {"name": "a"}]},
        {"protocol": "x", "tools": [{"name": "a\x1b"}]},
        {"protocol": "x", "tools": [{}]},
        {"protocol": "x", "tools": [{"name": "a", "description": "x" * (1 << 20)}]},
        {"protocol": "x", "tools": [{"name": "a", "description": "\ud83d"}]},
        {"protocol": "x", "tools": [{"name": "a", "description": "a\0b"}]},
        {"protocol": "x", "tools": [{"name": "a", "maximum": 10**20}]},
        {"protocol": "x", "tools": [{"name": "a", "deep": nested(70)}]},
        {"protocol": "x", "tools": [{"name": "a", "deep": nested(100_000)}]},
        {"protocol": "x", "tools": [{"name": f"t{number}"} for number in range(1001)]},
    ],
)
def test_what_is_no_listing_is_refused(said: Any) -> None:
    with pytest.raises(ListingUnfit):
        Listing.from_json(said)


@pytest.mark.req("BRING-2")
def test_a_package_that_does_not_hold_what_origin_names_is_refused() -> None:
    (draft,), files = draft_of("Echo-Text")
    (name,) = files
    other = listing_with(description="Other.").to_bytes()

    for wrong, why in (
        ({}, "no listing.json"),
        ({name: other}, "entry_digest, listing_digest differ"),
        ({name: b"{"}, "no JSON"),
    ):
        with pytest.raises(ListingNotFit, match=why):
            check_code(Manifest(draft), wrong)


@pytest.mark.req("BRING-2")
@pytest.mark.parametrize(
    ("package", "group"),
    [
        ("mcp-server-time", "mcp.time"),
        ("Excel_MCP.server", "mcp.excel"),
        ("mcp", "mcp.mcp"),
        ("7zip-mcp", "mcp.p_7zip"),
    ],
)
def test_a_group_is_proposed(package: str, group: str) -> None:
    assert derive_group(package) == group


@pytest.mark.req("BRING-2")
@pytest.mark.parametrize(
    ("version", "bump", "then"),
    [
        ("1.2.3", "patch", "1.2.4"),
        ("1.2.3", "minor", "1.3.0"),
        ("1.2.3", "major", "2.0.0"),
        ("0.2.3", "major", "0.3.0"),
    ],
)
def test_a_version_is_raised_by_what_its_changes_need(version: str, bump: str, then: str) -> None:
    assert raise_version(version, bump) == then


@pytest.mark.req("BRING-2")
def test_the_command_writes_a_folder_that_can_be_packed_from_a_listing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from unitools.command import main

    monkeypatch.chdir(tmp_path)
    (tmp_path / "taken.json").write_bytes(listing_of().to_bytes())
    usual = ["bring", "mcp", "a-server==1.0", "--listing", "taken.json", "--script", "a-server", "--group", "mcp.a"]

    assert main(["bring", "mcp", "a-server"]) == 1
    assert "--run-here" in capsys.readouterr().err
    assert main(usual) == 0
    assert "  Echo-Text  Gives the text back." in capsys.readouterr().out
    assert main([*usual, "--tool", "Echo-Text", "--constraint", "mcp<2"]) == 0
    assert main(["pack", "mcp_a"]) == 0
    written = json.loads((tmp_path / "mcp_a/manifests/mcp.a.echo_text.json").read_text())
    assert (errors_of(written), written["dependency_constraints"]) == ([], ["mcp<2"])
    (tmp_path / "taken.json").write_bytes(listing_with(description="Other.").to_bytes())
    assert main(["bring", "mcp", "a-server==1.1", "--group", "mcp.a", "--listing", "taken.json"]) == 0
    assert "description.changed" in capsys.readouterr().out
    (tmp_path / "taken.json").write_bytes(listing_of(HONEST_TOOLS[1:]).to_bytes())
    assert main(["bring", "mcp", "a-server==1.2", "--group", "mcp.a", "--listing", "taken.json"]) == 2
    assert "no tool Echo-Text any more" in capsys.readouterr().err


@pytest.mark.req("BRING-2", "SVC-6")
def test_the_command_takes_secrets_by_name_and_no_value_that_looks_like_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from unitools.command import main

    monkeypatch.chdir(tmp_path)
    (tmp_path / "taken.json").write_bytes(listing_of().to_bytes())
    usual = ["bring", "mcp", "a-server==1.0", "--listing", "taken.json", "--script", "a-server", "--group", "mcp.a"]
    usual += ["--tool", "Echo-Text"]

    assert main([*usual, "--environment", "API_TOKEN=s3cr3t-of-mine"]) == 1
    said = capsys.readouterr().err
    assert "API_TOKEN looks like a secret" in said
    assert "--secret NAME" in said
    assert "s3cr3t" not in said
    assert not (tmp_path / "mcp_a").exists()
    assert main([*usual, "--secret", "API_TOKEN=s3cr3t-of-mine"]) == 1
    assert "A value never stands here." in capsys.readouterr().err
    assert main([*usual, "--environment", "ZONE=eu", "--secret", "API_TOKEN"]) == 0
    assert main([*usual, "--secret", "OTHER_KEY"]) == 0
    written = json.loads((tmp_path / "mcp_a/manifests/mcp.a.echo_text.json").read_text())
    assert errors_of(written) == []
    assert written["implementation"]["server"]["environment"] == [
        {"name": "ZONE", "value": "eu"},
        {"name": "API_TOKEN", "secret": "API_TOKEN"},
        {"name": "OTHER_KEY", "secret": "OTHER_KEY"},
    ]
    assert [each["name"] for each in written["secrets"]] == ["API_TOKEN", "OTHER_KEY"]


@pytest.mark.req("BRING-2", "SVC-6")
def test_a_server_that_needs_a_secret_is_listed_with_a_text_in_its_place(tmp_path: Path) -> None:
    code = "import os\nassert os.environ['API_TOKEN'] == 'not-a-secret', os.environ['API_TOKEN']"
    server = tmp_path / "server.py"
    server.write_text(source_of(f"{code}\nmain()"))
    start = {"environment": [{"name": "API_TOKEN", "secret": "API_TOKEN"}]}
    place = tmp_path / "place"
    place.mkdir()

    found = list_server_tools([sys.executable, str(server)], start, place, keeps=True, hint="")

    assert list(found.tools) == ["Echo-Text"]


@pytest.mark.req("BRING-2")
def test_a_constraint_with_a_line_of_options_reaches_no_pip_of_the_author(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from unitools.command import main

    monkeypatch.setattr(
        "unitools.command.started_servers.subprocess.run", lambda *_, **__: pytest.fail("pip was started")
    )

    assert main(["bring", "mcp", "a-server", "--run-here", "--constraint", "zzz===\n--requirement=x.txt"]) == 1
    assert "is no constraint" in capsys.readouterr().err


@pytest.mark.req("BRING-2")
@pytest.mark.parametrize(("value", "taken"), [("a b\n\u00e9", True), ("", True), ("a\0b", False), ("a\n\0", False)])
def test_a_value_for_the_environment_holds_no_nul(value: str, taken: bool) -> None:
    (draft,), _ = draft_of("Echo-Text", environment=[{"name": "MODE", "value": value}])

    assert (errors_of(draft) == []) is taken


@pytest.mark.req("BRING-2")
def test_an_output_schema_that_is_null_is_none() -> None:
    listing = listing_with(outputSchema=None)
    (draft,), files = draft_of("Echo-Text", listing=listing)

    assert draft["origin"]["result"] == "content"
    check_code(Manifest(draft), files)


@pytest.mark.req("BRING-2")
@pytest.mark.parametrize(
    ("tool", "changes", "pointers"),
    [
        ("Echo-Text", {}, []),
        ("Echo-Text", {"description": "Sends mail."}, ["/description"]),
        ("Echo-Text", {"input_schema": {"type": "object"}}, ["/input_schema"]),
        ("Echo-Text", {"side_effect": "Write"}, []),
        ("say", {"side_effect": "Read"}, ["/description", "/side_effect"]),
    ],
)
def test_what_the_server_does_not_say_is_shown_to_the_reviewer(
    tool: str, changes: dict[str, Any], pointers: list[str]
) -> None:
    (draft,), files = draft_of(tool)
    manifest = Manifest(draft | changes)

    check_code(manifest, files)
    found = list(find_entry_differences(manifest, files))

    assert [(each.pointer, each.severity) for each in found] == [(pointer, "warning") for pointer in pointers]


@pytest.mark.req("BRING-2")
def test_a_structured_result_is_held_against_the_servers_own_schema() -> None:
    (draft,), files = draft_of("Echo-Text")

    with pytest.raises(ListingNotFit, match="output_schema is not the outputSchema"):
        check_code(Manifest(draft | {"output_schema": {"type": "object"}}), files)


@pytest.mark.req("BRING-2")
def test_programs_are_named_with_their_image_and_need_a_consent_even_of_a_tool_that_reads() -> None:
    given = source(reach=ServerReach(programs=("git",), trees=("/data/repository",)))

    [echo] = [each.document for each in draft_tools(listing_of(HONEST_TOOLS), given, ["Echo-Text"])]

    assert errors_of(echo) == []
    assert (echo["implementation"]["image"], echo["capabilities"]["proc"]) == ("git", ["/usr/bin/git"])
    assert (echo["side_effect"], echo["safety_class"], Manifest(echo).needs_consent) == ("Process", "Medium", True)
    assert "write" in echo["capabilities"]["fs"][0]["actions"]


@pytest.mark.req("BRING-2")
def test_of_the_tenants_files_a_tool_that_reads_changes_none() -> None:
    given = source(reach=ServerReach(trees=("/data",)))

    echo, say = [each.document for each in draft_tools(listing_of(HONEST_TOOLS), given, ["Echo-Text", "say"])]

    assert [errors_of(each) for each in (echo, say)] == [[], []]
    assert echo["capabilities"] == {"fs": [{"path": "/data", "actions": ["read", "list"]}]}
    assert (echo["side_effect"], "limits" in echo, say["limits"]["files"]) == ("Read", False, 100)


@pytest.mark.req("BRING-2")
def test_a_program_that_is_named_later_joins_what_a_person_has_written() -> None:
    listing = listing_of(HONEST_TOOLS)
    [before] = [each.document for each in draft_tools(listing, source(), ["say"])]
    before["capabilities"] = {"net": [{"host": "a.example.org"}]}

    [then] = draft_tools(listing, source(reach=ServerReach(programs=("git",))), ["say"], [before], listing)

    assert then.document["capabilities"] == before["capabilities"] | {"proc": ["/usr/bin/git"]}
    assert then.document["implementation"]["image"] == "git"


@pytest.mark.req("BRING-2")
@pytest.mark.parametrize(
    ("reach", "says"),
    [
        ({"programs": ("git", "pandoc")}, "name the image"),
        ({"programs": ("../sh",)}, "no name of a program"),
        ({"trees": ("/etc",)}, "no folder below /data"),
        ({"trees": ("/data/../etc",)}, "no folder below /data"),
        ({"trees": ("/data",), "keeps": "tenant"}, "choose one of them"),
    ],
)
def test_what_cannot_be_given_is_refused(reach: dict[str, Any], says: str) -> None:
    with pytest.raises(CannotBring, match=says):
        ServerReach(**reach)


@pytest.mark.req("BRING-2")
@pytest.mark.parametrize(
    ("image", "proc", "is_refused"),
    [("python", [], False), ("git", [], True), ("git", ["/usr/bin/git"], False), ("browser", [], True)],
)
def test_a_server_runs_in_another_image_only_where_it_starts_programs(
    image: str, proc: list[str], is_refused: bool
) -> None:
    [say] = [each.document for each in draft_tools(listing_of(HONEST_TOOLS), source(), ["say"])]
    say["implementation"]["image"] = image
    say |= {"capabilities": {"proc": proc}} if proc else {}

    assert [each.rule for each in validate_document(say) if each.severity == "error"] == ["origin.image"] * is_refused
