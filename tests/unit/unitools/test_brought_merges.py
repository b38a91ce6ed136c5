"""Brought merges: does a server that is brought again reach what is said now, with what people have changed, and no more?"""

from __future__ import annotations

from typing import Any

import pytest

from registry.versions.manifest_checks import validate_document
from tests.support.mcp_servers import HONEST_TOOLS, PACKAGE, START, listing_of
from unitools.brought_merges import merge_entries, pick_merged
from unitools.brought_npm import NpmSource
from unitools.brought_tools import ServerReach, Source, draft_tools

LISTING = listing_of(HONEST_TOOLS)
A, B, C = ({"host": f"{letter}.example.org"} for letter in "abc")


def source(start: dict[str, Any] | None = None, *, is_whole: bool = True, **reach: Any) -> Source:
    return Source(
        PACKAGE, "1.0", "mcp.a", START | (start or {}), said=start or {}, reach=ServerReach(**reach), is_whole=is_whole
    )


def draft(made_of: Source, before: dict[str, Any] | None = None, then: dict[str, Any] | None = None) -> dict[str, Any]:
    existing = [before] if before else []
    return draft_tools(LISTING, made_of, ["say"], existing, LISTING, {"say": then} if then else {})[0].document


def bring_again(
    then: Source, now: Source, changes: dict[str, Any] | None = None, *, is_known: bool = True
) -> dict[str, Any]:
    """What comes of a tool that was brought ``then``, with a person's ``changes``, by being brought ``now``."""
    made = draft(then)
    return draft(now, made | (changes or {}), pick_merged(made) if is_known else None)


def net_of(document: dict[str, Any]) -> list[str]:
    return [each["host"][0] for each in document.get("capabilities", {}).get("net", [])]


@pytest.mark.req("BRING-2")
@pytest.mark.parametrize(
    ("then", "mine", "now", "merged"),
    [
        ("ab", "ab", "a", "a"),  # named no more
        ("a", "ac", "a", "ac"),  # a person has added one
        ("ab", "a", "ab", "a"),  # a person has taken one away
        ("ab", "a", "abc", "ac"),
        ("a", "b", "", "b"),  # another one in its place is the person's own
        ("a", "a", "", ""),
        (None, "ac", "ab", "ab"),  # nobody knows: what is said now, whoever has added the rest
        (None, "a", "", ""),
    ],
)
def test_entries_of_three_are_merged(then: str | None, mine: str, now: str, merged: str) -> None:
    found = merge_entries([*mine], None if then is None else [*then], [*now], lambda each: each)

    assert "".join(found) == merged


@pytest.mark.req("BRING-2")
def test_what_a_person_has_narrowed_stays_while_the_source_says_the_same() -> None:
    narrow = {"capabilities": {"net": [A | {"port": 8443}]}}

    same = bring_again(source(hosts=("a.example.org",)), source(hosts=("a.example.org",)), narrow)
    unknown = bring_again(source(hosts=("a.example.org",)), source(hosts=("a.example.org",)), narrow, is_known=False)

    assert same["capabilities"] == unknown["capabilities"] == narrow["capabilities"]


@pytest.mark.req("BRING-2")
@pytest.mark.parametrize("is_known", [True, False])
def test_a_server_that_is_given_less_than_before_reaches_less(is_known: bool) -> None:
    much = source(hosts=("a.example.org", "b.example.org"), programs=("git",), trees=("/data",), browser=True)

    less = bring_again(much, source(hosts=("b.example.org",)), is_known=is_known)

    assert less["capabilities"] == {"net": [B]}
    assert "image" not in less["implementation"]
    assert "files" not in less.get("limits", {})
    assert bring_again(much, source(), is_known=is_known).get("capabilities") is None


@pytest.mark.req("BRING-2")
def test_hosts_and_a_browser_that_are_named_later_are_reached() -> None:
    more = bring_again(source(), source(hosts=("a.example.org",), browser=True))

    assert more["capabilities"] == {"net": [A], "browser": True}


@pytest.mark.req("BRING-2")
def test_a_program_changes_the_effect_when_it_comes_and_when_it_goes() -> None:
    given = source(programs=("git",))
    read = {"side_effect": "Read", "safety_class": "Low"}

    with_git = draft_tools(LISTING, given, ["Echo-Text"], [draft_read() | read], LISTING)[0].document
    without = draft_tools(LISTING, source(), ["Echo-Text"], [with_git], LISTING)[0].document
    by_hand = bring_again(source(), given, {"side_effect": "Write"})

    assert (with_git["side_effect"], with_git["implementation"]["image"]) == ("Process", "git")
    assert (without["side_effect"], without["safety_class"]) == ("Read", "Low")
    assert by_hand["side_effect"] == "Write"
    assert [each for each in validate_document(without) if each.severity == "error"] == []


READS = listing_of([{"name": "look", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}}])


def look_again(then: Source, now: Source, changes: dict[str, Any], *, is_known: bool = True) -> dict[str, Any]:
    """The same of a tool whose author says that it only reads."""
    [made] = draft_tools(READS, then, ["look"])
    before = made.document | changes
    known = {"look": pick_merged(made.document)} if is_known else {}
    return draft_tools(READS, now, ["look"], [before], READS, known)[0].document


@pytest.mark.req("BRING-2")
@pytest.mark.parametrize(
    ("mine", "merged"),
    [
        (["read", "list"], ["read", "list", "write", "create", "delete"]),  # as the source had it
        (["read"], ["read"]),
        (["read", "write"], ["read", "write"]),
    ],
)
def test_a_program_that_is_named_later_widens_no_files_that_a_person_has_narrowed(
    mine: list[str], merged: list[str]
) -> None:
    limits = {"limits": {"files": 9}} if "write" in mine else {}
    entry = {"path": "/data", "actions": mine, "kind": "tree"}
    narrow: dict[str, Any] = {"capabilities": {"fs": [entry]}} | limits

    found = look_again(source(trees=("/data",)), source(trees=("/data",), programs=("git",)), narrow)

    assert found["capabilities"]["proc"] == ["/usr/bin/git"]
    assert found["capabilities"]["fs"] == [{"path": "/data", "actions": merged, "kind": "tree"}]
    assert [each for each in validate_document(found) if each.severity == "error"] == []


@pytest.mark.req("BRING-2")
@pytest.mark.parametrize(("mine", "merged"), [(["read", "delete"], ["read"]), (["delete"], None)])
def test_of_files_that_both_have_narrowed_that_stays_which_is_in_both(
    mine: list[str], merged: list[str] | None
) -> None:
    entry: dict[str, Any] = {"path": "/data", "actions": mine}
    narrow: dict[str, Any] = {"capabilities": {"fs": [entry], "proc": ["/usr/bin/git"]}, "limits": {"files": 9}}

    found = look_again(source(trees=("/data",), programs=("git",)), source(trees=("/data",)), narrow)

    left = [entry | {"actions": merged}] if merged else None
    assert found.get("capabilities", {}).get("fs") == left


@pytest.mark.req("BRING-2")
@pytest.mark.parametrize("is_known", [True, False])
@pytest.mark.parametrize(
    ("then", "now", "mine", "merged"),
    [
        ("", "git", "Low", "Medium"),
        ("", "git", "High", "High"),
        ("git", "", "Medium", "Low"),
        ("git", "", "High", "High"),
    ],
)
def test_a_safety_class_that_a_person_has_raised_stays(
    then: str, now: str, mine: str, merged: str, is_known: bool
) -> None:
    of_then, of_now = (source(programs=(each,) if each else ()) for each in (then, now))

    found = look_again(of_then, of_now, {"safety_class": mine}, is_known=is_known)

    assert (found["side_effect"], found["safety_class"]) == ("Process" if now else "Read", merged)


@pytest.mark.req("BRING-2")
@pytest.mark.parametrize(("mine", "merged"), [("Low", "Medium"), ("High", "High")])
def test_a_safety_class_that_a_person_has_raised_stays_where_a_tool_writes_by_now(mine: str, merged: str) -> None:
    writes = listing_of([{"name": "look", "inputSchema": {"type": "object"}}])
    before = draft_tools(READS, source(), ["look"])[0].document | {"safety_class": mine}

    found = draft_tools(writes, source(), ["look"], [before], READS)[0].document

    assert (found["side_effect"], found["safety_class"]) == ("Write", merged)


@pytest.mark.req("BRING-2")
def test_a_secret_that_a_person_has_put_in_the_place_of_a_value_stays() -> None:
    then, now = (source({"environment": [{"name": "A", "value": each}]}) for each in "12")
    made = draft(then)
    secret = {"name": "A", "secret": "KEY"}
    server = made["implementation"]["server"] | {"environment": [secret]}
    mine = {"implementation": made["implementation"] | {"server": server}}

    assert bring_again(then, now, mine)["implementation"]["server"]["environment"] == [secret]


def draft_read() -> dict[str, Any]:
    return draft_tools(LISTING, source(), ["Echo-Text"])[0].document


@pytest.mark.req("BRING-2")
def test_files_that_are_kept_no_more_and_for_fewer() -> None:
    tenant, agent = source(keeps="tenant"), source(keeps="agent")
    mine = {"state": {"kind": "files", "scope": "agent", "max_files": 3}}

    assert "state" not in bring_again(tenant, source())
    assert bring_again(tenant, tenant, mine)["state"] == mine["state"]
    assert bring_again(tenant, agent, {"state": mine["state"] | {"scope": "tenant"}})["state"] == mine["state"]


@pytest.mark.req("BRING-2")
def test_how_a_server_is_started_is_what_is_said_now_beside_a_persons_secrets() -> None:
    then = source({"arguments": ["--old"], "environment": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]})
    now = source({"environment": [{"name": "A", "value": "3"}]})
    secret = {"name": "KEY", "secret": "KEY"}
    made = draft(then)
    server = made["implementation"]["server"]
    mine = made | {
        "implementation": made["implementation"]
        | {"server": server | {"environment": [*server["environment"], secret]}}
    }

    for found in (draft(now, mine, pick_merged(made)), draft(now, mine)):
        assert "arguments" not in found["implementation"]["server"]
        assert found["implementation"]["server"]["environment"] == [{"name": "A", "value": "3"}, secret]


@pytest.mark.req("BRING-2", "SVC-6")
def test_a_secret_that_the_source_names_comes_and_goes_and_takes_the_place_of_a_value() -> None:
    none = source()
    value, secret = (source({"environment": [{"name": "A", how: "A"}]}) for how in ("value", "secret"))
    mine = {"secrets": [{"name": "MINE", "description": "Of a person."}]}

    def names(document: dict[str, Any]) -> tuple[list[str], list[str]]:
        environment = document["implementation"]["server"].get("environment", [])
        return [each["name"] for each in environment if "secret" in each], [
            each["name"] for each in document.get("secrets", [])
        ]

    for is_known in (True, False):
        assert names(bring_again(value, secret, mine, is_known=is_known)) == (["A"], ["MINE", "A"])
        assert names(bring_again(none, secret, is_known=is_known)) == (["A"], ["A"])
        assert names(bring_again(secret, secret, is_known=is_known)) == (["A"], ["A"])
    assert names(bring_again(secret, none)) == ([], [])
    assert names(bring_again(secret, none, is_known=False)) == (["A"], ["A"])  # a person may have named it


@pytest.mark.req("BRING-2", "SVC-6")
@pytest.mark.parametrize("is_known", [True, False])
def test_a_secret_that_a_person_calls_otherwise_brings_no_second_that_nothing_reads(is_known: bool) -> None:
    made = draft(source())
    server = made["implementation"]["server"] | {"environment": [{"name": "A", "secret": "MINE"}]}
    secrets = [{"name": "MINE", "description": "Of a person."}]
    mine = {"implementation": made["implementation"] | {"server": server}, "secrets": secrets}

    found = bring_again(source(), source({"environment": [{"name": "A", "secret": "A"}]}), mine, is_known=is_known)

    assert found["implementation"]["server"]["environment"] == server["environment"]
    assert found["secrets"] == secrets


@pytest.mark.req("BRING-2")
def test_by_command_what_is_not_named_is_as_it_was() -> None:
    before = draft(source(hosts=("a.example.org",), programs=("git",)))

    same = draft(source(is_whole=False), before)
    other = draft(source(is_whole=False, hosts=("c.example.org",)), before)

    assert same["capabilities"] == before["capabilities"]
    assert other["capabilities"] == before["capabilities"] | {"net": [C]}


@pytest.mark.req("BRING-2")
def test_a_server_of_npm_is_merged_the_same() -> None:
    def of_npm(*hosts: str) -> NpmSource:
        start = {"script": "a-server"}
        return NpmSource("@a/server", "1.0.0", "mcp.a", start, (), start, ServerReach(hosts=hosts), is_whole=True)

    before = draft_tools(LISTING, of_npm("a.example.org"), ["say"])[0].document
    again = draft_tools(LISTING, of_npm("b.example.org"), ["say"], [before], LISTING, {"say": pick_merged(before)})

    assert net_of(again[0].document) == ["b"]
