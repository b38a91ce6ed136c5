"""Versions: which version does a tenant get when a publisher enables, stages, yanks and deprecates?"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from access.roles import AGENT_SCOPES
from evidence.models import Fact
from kernel.problems import Conflict, SchemaInvalid
from registry.installations import services as installations
from registry.installations.resolution import resolve_version
from registry.models import Decision, Installation, Tool, ToolVersion
from registry.problems import NotReviewed, VersionExists, VersionYanked, WrongBump
from registry.tools import lifecycle
from registry.versions import services
from tests.conftest import make_caller
from tests.support.calls import assert_problem
from tests.support.manifests import manifest

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.conftest import Caller, Person
    from tests.support.calls import Bell

ECHO = "sample.tools.echo"
CLOSED = {"type": "object", "properties": {"text": {"type": "string"}}, "additionalProperties": False}
WIDER = CLOSED | {"properties": {"text": {"type": "string"}, "loud": {"type": "boolean"}}}
NARROWER = CLOSED | {"required": ["text"]}


@pytest.fixture
def submit(developer: Person) -> Callable[..., ToolVersion]:
    """As everywhere, but the input is closed: a new optional property is then a new minor version."""

    def make(name: str = "echo", **changes: Any) -> ToolVersion:
        return services.submit_version(document=manifest(name, **({"input_schema": CLOSED} | changes)), by=developer.by)

    return make


@pytest.fixture
def approve(submit: Callable[..., ToolVersion], operator: Person) -> Callable[..., ToolVersion]:
    """``approve(version="1.1.0", **changes)``: submitted and reviewed, every risky change confirmed."""

    def make(version: str, **changes: Any) -> ToolVersion:
        made = submit(version=version, **changes)
        services.review_version(
            version_id=made.pk,
            decision=Decision.APPROVE,
            note="",
            by=operator.by,
            acknowledged=[change["id"] for change in made.changes],
        )
        made.refresh_from_db()
        return made

    return make


def version_of(tenant_id: Any) -> str:
    row = Installation.objects.select_related("version").get(tenant_id=tenant_id, name=ECHO)
    assert row.version is not None
    return row.version.version


@pytest.fixture
def shared(enable_by_review: Callable[..., Tool], operator: Person, stranger: Person) -> Tool:
    """The echo tool of acme, installed in the foreign tenant as well."""
    tool = enable_by_review()
    lifecycle.share_tool(name=ECHO, reason="for everybody", by=operator.by)
    installations.install_tool(name=ECHO, publisher="acme", reason="we need it", by=stranger.by)
    return tool


# The number says what changed.


@pytest.mark.req("TOOLS-9")
@pytest.mark.parametrize(
    ("number", "changes", "pointer"),
    [
        ("1.0.1", {"input_schema": WIDER}, "/input_schema/properties/loud"),
        ("1.1.0", {"input_schema": NARROWER}, "/input_schema/required/0"),
        ("1.1.0", {"side_effect": "Read"}, "/side_effect"),
    ],
)
def test_a_number_that_promises_less_than_changed_is_refused_and_every_change_is_named(
    number: str,
    changes: dict[str, Any],
    pointer: str,
    enable_by_review: Callable[..., Tool],
    submit: Callable[..., ToolVersion],
) -> None:
    enable_by_review()

    with pytest.raises(WrongBump) as caught:
        submit(version=number, **changes)

    details = caught.value.details
    assert (details["base"], details["version"]) == ("1.0.0", number)
    assert pointer in {change["pointer"] for change in details["changes"]}
    assert all({"before", "after", "bump"} <= set(change) for change in details["changes"])
    assert not ToolVersion.objects.filter(version=number).exists()


@pytest.mark.req("TOOLS-9")
def test_a_number_that_says_what_changed_is_taken_with_its_changes(
    enable_by_review: Callable[..., Tool], submit: Callable[..., ToolVersion]
) -> None:
    first = enable_by_review().current

    minor, major = submit(version="1.1.0", input_schema=WIDER), submit(version="2.0.0", input_schema=NARROWER)

    assert (minor.base, major.base) == (first, first)
    assert {change["bump"] for change in minor.changes} == {"minor"}
    assert "major" in {change["bump"] for change in major.changes}


def test_a_version_for_an_older_line_is_compared_with_that_line(
    enable_by_review: Callable[..., Tool], approve: Callable[..., ToolVersion], submit: Callable[..., ToolVersion]
) -> None:
    first = enable_by_review().current
    approve("2.0.0", input_schema=NARROWER)

    later = submit(version="1.0.1", description="The sample tool echo, corrected.")

    assert later.base == first


def test_what_was_yanked_is_not_compared_with(
    enable_by_review: Callable[..., Tool],
    approve: Callable[..., ToolVersion],
    submit: Callable[..., ToolVersion],
    operator: Person,
) -> None:
    first = enable_by_review().current
    bad = approve("1.1.0", input_schema=WIDER)
    services.yank_version(version_id=bad.pk, reason="wrong", by=operator.by)

    assert submit(version="1.1.1").base == first


def test_build_metadata_makes_no_other_version(
    enable_by_review: Callable[..., Tool], submit: Callable[..., ToolVersion]
) -> None:
    enable_by_review()

    with pytest.raises(VersionExists, match="build metadata"):
        submit(version="1.0.0+other")


@pytest.mark.req("TOOLS-11")
def test_who_submits_reads_the_manifest_of_a_version_and_who_calls_does_not(
    submit: Callable[..., ToolVersion], caller: Caller, foreign_caller: Caller, operator: Person
) -> None:
    version = submit()
    path, reader = f"/tools/{version.tool.name}/versions/{version.version}", make_caller(operator.by, "r", AGENT_SCOPES)

    data = caller.get(path).json()["data"]

    assert (data["manifest"], data["review_state"]) == (manifest(input_schema=CLOSED), "submitted")
    assert reader.get(path).json()["error"]["details"] == {"missing": "tools:register"}
    assert (foreign_caller.get(path).status_code, caller.get(f"{path}.9").status_code) == (404, 404)


def test_the_refusal_of_a_number_over_rest_names_the_changes(
    enable_by_review: Callable[..., Tool], caller: Caller
) -> None:
    tool = enable_by_review()
    assert tool.current is not None
    document = tool.current.manifest | {"version": "1.0.1", "input_schema": WIDER}

    body = assert_problem(caller.post("/tools", document), 422, "MANIFEST.WRONG_BUMP")

    assert body["error"]["details"]["changes"][0]["pointer"] == "/input_schema/properties/loud"
    accepted = caller.post("/tools", document | {"version": "1.1.0"})
    assert accepted.status_code == 201
    assert accepted.json()["data"]["compared_with"] == "1.0.0"
    assert [change["bump"] for change in accepted.json()["data"]["changes"]] == ["minor"]


# Who gets what.


@pytest.mark.req("TOOLS-1", "TOOLS-22")
def test_enabling_moves_everybody_who_follows_and_going_back_is_enabling_the_older_one(
    shared: Tool, approve: Callable[..., ToolVersion], operator: Person, stranger: Person
) -> None:
    second = approve("1.1.0", input_schema=WIDER)
    first = shared.current
    assert first is not None

    services.enable_tool(name=ECHO, version_id=second.pk, reason="better", by=operator.by)
    assert (version_of(operator.by.tenant_id), version_of(stranger.by.tenant_id)) == ("1.1.0", "1.1.0")

    services.enable_tool(name=ECHO, version_id=first.pk, reason="worse", by=operator.by)
    assert (version_of(operator.by.tenant_id), version_of(stranger.by.tenant_id)) == ("1.0.0", "1.0.0")


def test_who_moved_has_it_in_its_own_evidence(
    shared: Tool, approve: Callable[..., ToolVersion], operator: Person, stranger: Person
) -> None:
    second = approve("1.1.0", input_schema=WIDER)
    services.enable_tool(name=ECHO, version_id=second.pk, reason="better", by=operator.by)

    told = {fact.tenant_id: fact for fact in Fact.objects.filter(kind="installation.moved")}

    assert set(told) == {operator.by.tenant_id, stranger.by.tenant_id}
    assert told[stranger.by.tenant_id].actor_id == "system:publisher"
    assert json.loads(bytes(told[stranger.by.tenant_id].leaf))["data"]["to"] == "1.1.0"


def test_a_staged_version_is_for_the_named_tenants_until_it_is_enabled_for_all(
    shared: Tool, approve: Callable[..., ToolVersion], operator: Person, stranger: Person
) -> None:
    second = approve("1.1.0", input_schema=WIDER)
    mine, theirs = operator.by.tenant_id, stranger.by.tenant_id

    moved = services.stage_version(version_id=second.pk, tenants=["foreign"], reason="pilot", by=operator.by)

    assert [row.tenant_id for row in moved] == [theirs]
    assert (version_of(mine), version_of(theirs)) == ("1.0.0", "1.1.0")
    assert Tool.objects.get(pk=shared.pk).current == shared.current
    assert shared.current is not None
    services.enable_tool(name=ECHO, version_id=shared.current.pk, reason="pilot failed", by=operator.by)
    assert version_of(theirs) == "1.0.0"
    services.enable_tool(name=ECHO, version_id=second.pk, reason="pilot went well", by=operator.by)
    assert (version_of(mine), version_of(theirs)) == ("1.1.0", "1.1.0")


@pytest.mark.parametrize("tenants", [[], ["nobody"], ["acme", "nobody"]])
def test_staging_for_who_has_not_installed_it_moves_nobody(
    tenants: list[str], shared: Tool, approve: Callable[..., ToolVersion], operator: Person
) -> None:
    second = approve("1.1.0", input_schema=WIDER)

    with pytest.raises(SchemaInvalid) as caught:
        services.stage_version(version_id=second.pk, tenants=tenants, reason="pilot", by=operator.by)

    assert caught.value.details["findings"][0]["pointer"] == "/tenants"
    assert version_of(operator.by.tenant_id) == "1.0.0"


def test_only_an_approved_version_of_an_enabled_tool_is_staged(
    shared: Tool, submit: Callable[..., ToolVersion], approve: Callable[..., ToolVersion], operator: Person
) -> None:
    waiting = submit(version="1.1.0", input_schema=WIDER)
    with pytest.raises(NotReviewed):
        services.stage_version(version_id=waiting.pk, tenants=["acme"], reason="x", by=operator.by)

    usable = approve("1.2.0")
    services.pause_tool(name=ECHO, reason="x", by=operator.by)
    with pytest.raises(Conflict):
        services.stage_version(version_id=usable.pk, tenants=["acme"], reason="x", by=operator.by)


def test_a_pin_takes_what_is_approved_within_it_and_nothing_else(
    shared: Tool, approve: Callable[..., ToolVersion], operator: Person, stranger: Person
) -> None:
    installations.configure_installation(name=ECHO, values={"pin": "^1"}, reason="careful", by=stranger.by)

    approve("1.1.0", input_schema=WIDER)
    assert (version_of(operator.by.tenant_id), version_of(stranger.by.tenant_id)) == ("1.0.0", "1.1.0")

    major = approve("2.0.0", input_schema=NARROWER)
    services.enable_tool(name=ECHO, version_id=major.pk, reason="new", by=operator.by)
    assert (version_of(operator.by.tenant_id), version_of(stranger.by.tenant_id)) == ("2.0.0", "1.1.0")
    with pytest.raises(SchemaInvalid, match="outside the pin"):
        services.stage_version(version_id=major.pk, tenants=["foreign"], reason="x", by=operator.by)


# Yanking.


def test_yanking_moves_whoever_is_on_the_version_to_the_newest_below_it(
    shared: Tool, approve: Callable[..., ToolVersion], operator: Person, stranger: Person
) -> None:
    second = approve("1.1.0", input_schema=WIDER)
    services.enable_tool(name=ECHO, version_id=second.pk, reason="better", by=operator.by)
    approve("1.2.0", input_schema=WIDER)  # nobody has enabled it

    moved, stuck = services.yank_version(version_id=second.pk, reason="it loses text", by=operator.by)

    assert (len(moved), stuck) == (2, [])
    tool = Tool.objects.select_related("current").get(pk=shared.pk)
    assert tool.current == shared.current
    assert (version_of(operator.by.tenant_id), version_of(stranger.by.tenant_id)) == ("1.0.0", "1.0.0")
    with pytest.raises(VersionYanked):
        services.enable_tool(name=ECHO, version_id=second.pk, reason="x", by=operator.by)
    with pytest.raises(Conflict):
        services.yank_version(version_id=second.pk, reason="again", by=operator.by)


@pytest.mark.req("TOOLS-7")
def test_without_another_version_calls_are_refused_and_told_what_to_do(
    enable_by_review: Callable[..., Tool], caller: Caller, grant: Callable[..., Any], operator: Person, bell: Bell
) -> None:
    tool = enable_by_review()
    grant()
    assert tool.current is not None
    assert caller.invoke(ECHO, {}).status_code == 200

    moved, stuck = services.yank_version(version_id=tool.current.pk, reason="it leaks", by=operator.by)
    answer = caller.invoke(ECHO, {})

    assert (moved, len(stuck)) == ([], 1)
    body = assert_problem(answer, 409, "TOOL.YANKED")
    assert "it leaks" in body["detail"]
    assert body["error"]["remedy"]


def test_a_tool_whose_only_version_was_yanked_comes_back_with_the_next_that_is_enabled(
    enable_by_review: Callable[..., Tool],
    approve: Callable[..., ToolVersion],
    caller: Caller,
    grant: Callable[..., Any],
    operator: Person,
    bell: Bell,
) -> None:
    tool = enable_by_review()
    grant()
    assert tool.current is not None
    services.yank_version(version_id=tool.current.pk, reason="it leaks", by=operator.by)
    mended = approve("1.0.1")

    services.enable_tool(name=ECHO, version_id=mended.pk, reason="mended", by=operator.by)

    assert caller.invoke(ECHO, {}).json()["call"]["version"] == "1.0.1"


def test_a_yanked_version_is_never_resolved(enable_by_review: Callable[..., Tool], operator: Person) -> None:
    tool = enable_by_review()
    assert tool.current is not None
    services.yank_version(version_id=tool.current.pk, reason="x", by=operator.by)
    tool = Tool.objects.select_related("current").get(pk=tool.pk)

    assert [resolve_version(tool, pin) for pin in ("", "*", "1.0.0", "^1")] == [None] * 4
