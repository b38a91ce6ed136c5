"""Tool installations: does a tenant get its own instance of a tool, and is what it sets checked and used?"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from evidence.models import Fact
from kernel.problems import Conflict, SchemaInvalid
from registry.installations import services as installations
from registry.installations.services import Setup
from registry.models import INSTALLATION_TRANSITIONS, Installation, InstallationState, Tool
from registry.problems import NotInstalled, UnknownTool
from registry.secrets import services as secrets
from registry.tools import lifecycle
from registry.versions import services
from tests.support.calls import assert_problem
from tests.support.manifests import manifest

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.conftest import Caller, Person
    from tests.support.calls import Bell

ECHO = "sample.tools.echo"
REGION = {
    "type": "object",
    "additionalProperties": False,
    "required": ["region"],
    "properties": {
        "region": {"type": "string", "maxLength": 20},
        "depth": {"type": "integer", "minimum": 1, "maximum": 5},
    },
}
TOKEN = [{"name": "API_TOKEN", "description": "What the service asks for."}]


@pytest.fixture
def shared(enable: Callable[..., Tool], operator: Person) -> Tool:
    tool = enable(config_schema=REGION, secrets=TOKEN)
    lifecycle.share_tool(name=tool.name, reason="for everybody", by=operator.by)
    return tool


def install(person: Person, **more: Any) -> Installation:
    return installations.install_tool(name=ECHO, publisher="acme", reason="we need it", by=person.by, **more)


def test_enabling_a_tool_installs_it_at_home(enable_by_review: Callable[..., Tool], operator: Person) -> None:
    tool = enable_by_review()

    row = Installation.objects.get(tool=tool)
    assert (row.tenant_id, row.name, row.version, row.state) == (operator.by.tenant_id, ECHO, tool.current, "enabled")
    assert Fact.objects.filter(kind="installation.changed", subject=row.wire_id).count() == 1


@pytest.mark.req("TOOLS-1", "TOOLS-22")
def test_only_what_is_shared_is_installed_elsewhere(
    enable: Callable[..., Tool], operator: Person, stranger: Person
) -> None:
    enable()
    with pytest.raises(UnknownTool):
        install(stranger)

    lifecycle.share_tool(name=ECHO, reason="x", by=operator.by)
    row = install(stranger)
    lifecycle.unshare_tool(name=ECHO, reason="x", by=operator.by)

    assert (row.tenant_id, row.tool.tenant_id) == (stranger.by.tenant_id, operator.by.tenant_id)
    installations.pause_installation(name=ECHO, reason="keeps working for who has it", by=stranger.by)
    installations.remove_installation(name=ECHO, reason="x", by=stranger.by)
    with pytest.raises(UnknownTool):
        install(stranger)


@pytest.mark.req("TOOLS-22")
def test_another_tenants_agent_calls_with_its_own_settings(
    shared: Tool,
    operator: Person,
    stranger: Person,
    foreign_caller: Caller,
    caller: Caller,
    grant: Callable[..., Any],
    bell: Bell,
) -> None:
    secrets.set_secret(name="mine", value="a secret of the stranger", by=stranger.by)
    install(stranger, values=Setup(config={"region": "north"}, secrets={"API_TOKEN": "mine"}))
    grant()

    here = caller.post("/tools/" + ECHO + "/preflight", _envelope())
    there = foreign_caller.post("/tools/" + ECHO + "/preflight", _envelope())

    assert here.json()["data"]["problem"]["reason"] == "TOOL.NOT_CONFIGURED"
    assert there.json()["data"]["problem"]["reason"] == "AUTH.NO_GRANT"  # it is set up; nobody was given it


def _envelope() -> dict[str, Any]:
    return {"request_id": "test-request-1", "actor": {"type": "agent", "id": "x"}, "arguments": {}}


def test_a_name_means_one_tool_in_a_tenant(
    shared: Tool, operator: Person, stranger: Person, foreign_tenant: Any
) -> None:
    install(stranger)
    with pytest.raises(Conflict):
        install(stranger)
    theirs = services.submit_version(document=manifest(), by=stranger.by)
    type(theirs).objects.filter(pk=theirs.pk).update(review_state="approved")

    with pytest.raises(Conflict, match="another publisher"):
        services.enable_tool(name=ECHO, version_id=theirs.pk, reason="x", by=stranger.by)

    installations.remove_installation(name=ECHO, reason="x", by=stranger.by)
    services.enable_tool(name=ECHO, version_id=theirs.pk, reason="x", by=stranger.by)
    row = Installation.objects.get(tenant_id=stranger.by.tenant_id)
    assert (row.tool_id, row.config, row.secrets) == (theirs.tool_id, {}, {})


@pytest.mark.req("TOOLS-1")
@pytest.mark.parametrize(
    ("values", "pointer"),
    [
        ({"config": {}}, "/config"),
        ({"config": {"region": 1}}, "/config/region"),
        ({"config": {"region": "eu", "depth": 9}}, "/config/depth"),
        ({"config": {"region": "eu", "other": 1}}, "/config"),
        ({"config": {"region": "x" * 70_000}}, "/config"),
        ({"pin": "not a range"}, "/pin"),
        ({"pin": "^7"}, "/pin"),
        ({"hosts": ["http://example.org"]}, "/hosts/0"),
        ({"hosts": ["example.org", "10.0.0.0/8", "a b"]}, "/hosts/2"),
        ({"hosts": ["a.example.org"] * 51}, "/hosts"),
        ({"paths": ["data"]}, "/paths/0"),
        ({"paths": ["/data/../etc"]}, "/paths/0"),
        ({"paths": ["/data", "/data/*"]}, "/paths/1"),
        ({"secrets": {"API_TOKEN": "nothing"}}, "/secrets/API_TOKEN"),
        ({"secrets": {"OTHER": "token"}}, "/secrets/OTHER"),
    ],
)
def test_settings_that_are_not_right_are_refused_with_their_place_and_change_nothing(
    values: Any, pointer: str, shared: Tool, operator: Person
) -> None:
    secrets.set_secret(name="token", value="long enough", by=operator.by)
    before = Installation.objects.values().get(tool=shared)

    with pytest.raises(SchemaInvalid) as caught:
        installations.configure_installation(name=ECHO, values=values, reason="x", by=operator.by)

    assert caught.value.details["findings"][0]["pointer"] == pointer
    assert Installation.objects.values().get(tool=shared) == before


@pytest.mark.req("TOOLS-1")
def test_settings_that_are_right_are_kept_and_the_fact_holds_their_digest_only(shared: Tool, operator: Person) -> None:
    secrets.set_secret(name="token", value="long enough", by=operator.by)
    row = installations.configure_installation(
        name=ECHO,
        values={
            "config": {"region": "a-telling-region", "depth": 2},
            "secrets": {"API_TOKEN": "token"},
            "hosts": ["*.example.org"],
            "paths": [],
            "pin": "^1",
        },
        reason="set up",
        by=operator.by,
    )

    fact = Fact.objects.filter(kind="installation.changed", subject=row.wire_id).order_by("-pk")[0]
    data = json.loads(bytes(fact.leaf))["data"]
    assert (row.config["depth"], row.hosts, row.paths, row.pin) == (2, ["*.example.org"], [], "^1")
    assert (data["config"], data["secrets"]) == (row.config_digest, {"API_TOKEN": "token"})
    assert b"a-telling-region" not in bytes(fact.leaf)


def test_a_version_that_asks_for_other_settings_makes_an_installation_uncallable_until_they_are_made(
    enable: Callable[..., Tool], operator: Person, caller: Caller, grant: Callable[..., Any], bell: Bell
) -> None:
    enable()
    grant()
    assert caller.invoke(ECHO, {}).status_code == 200

    enable(version="2.0.0", config_schema=REGION)
    assert_problem(caller.invoke(ECHO, {}), 409, "TOOL.NOT_CONFIGURED")
    installations.configure_installation(name=ECHO, values={"config": {"region": "eu"}}, reason="x", by=operator.by)

    assert caller.invoke(ECHO, {}).status_code == 200


@pytest.mark.parametrize("to", list(InstallationState))
@pytest.mark.parametrize("state", list(InstallationState))
def test_an_installation_moves_only_along_its_transitions(
    state: InstallationState, to: InstallationState, enable: Callable[..., Tool], operator: Person
) -> None:
    enable()
    Installation.objects.update(state=state)
    moves = {
        InstallationState.ENABLED: installations.resume_installation,
        InstallationState.PAUSED: installations.pause_installation,
        InstallationState.REMOVED: installations.remove_installation,
    }
    if state == InstallationState.REMOVED:  # it comes back by being installed again
        with pytest.raises(NotInstalled):
            moves[to](name=ECHO, reason="x", by=operator.by)
        assert installations.install_tool(name=ECHO, reason="x", by=operator.by).state == InstallationState.ENABLED
    elif to in INSTALLATION_TRANSITIONS[state]:
        assert moves[to](name=ECHO, reason="x", by=operator.by).state == to
    else:
        with pytest.raises(Conflict):
            moves[to](name=ECHO, reason="x", by=operator.by)


@pytest.mark.req("TOOLS-7")
def test_a_paused_installation_refuses_its_own_tenants_calls_only(
    shared: Tool, operator: Person, stranger: Person, caller: Caller, grant: Callable[..., Any], bell: Bell
) -> None:
    secrets.set_secret(name="token", value="long enough", by=operator.by)
    values = Setup(config={"region": "eu"}, secrets={"API_TOKEN": "token"})
    installations.configure_installation(name=ECHO, values=values, reason="x", by=operator.by)
    install(stranger)
    grant()

    installations.pause_installation(name=ECHO, reason="theirs", by=stranger.by)
    assert caller.invoke(ECHO, {}).status_code == 200
    installations.pause_installation(name=ECHO, reason="ours", by=operator.by)

    body = assert_problem(caller.invoke(ECHO, {}), 409, "TOOL.PAUSED")
    assert "ours" in body["detail"]


def test_what_was_removed_while_a_call_waited_does_not_run(
    enable: Callable[..., Tool], operator: Person, caller: Caller, grant: Callable[..., Any], bell: Bell
) -> None:
    enable()
    grant()
    bell.answers = False
    waiting = caller.invoke(ECHO, {}, headers={"Prefer": "respond-async"})
    installations.remove_installation(name=ECHO, reason="x", by=operator.by)
    bell.deliver()

    done = caller.get(f"/invocations/{waiting.json()['call']['call_id']}")
    assert done.json()["call"]["state"] == "cancelled"


# Over REST.


def test_the_whole_way_over_rest(shared: Tool, foreign_caller: Caller) -> None:
    listed = foreign_caller.get("/catalogue?q=echo").json()["data"]["tools"]
    assert [(each["tool"], each["publisher"], each["installed"]) for each in listed] == [(ECHO, "acme", False)]

    made = foreign_caller.post("/installations", {"tool": ECHO, "publisher": "acme", "reason": "x"})
    assert made.status_code == 201
    assert len(made.json()["data"]["missing"]) == 2
    foreign_caller.put("/secrets/token", {"value": "long enough"})
    settings = {"config": {"region": "eu"}, "secrets": {"API_TOKEN": "token"}, "pin": "^1", "reason": "x"}
    done = foreign_caller.patch(f"/installations/{ECHO}", settings)
    assert (done.status_code, done.json()["data"]["missing"]) == (200, [])
    assert foreign_caller.get("/catalogue").json()["data"]["tools"][0]["installed"] is True

    for what, state in (("pause", "paused"), ("resume", "enabled"), ("remove", "removed")):
        answer = foreign_caller.post(f"/installations/{ECHO}/{what}", {"reason": "x"})
        assert answer.json()["data"]["state"] == state
    assert foreign_caller.get("/installations").json()["data"]["installations"] == []
    assert_problem(foreign_caller.get(f"/installations/{ECHO}"), 404, "TOOL.NOT_INSTALLED")


def test_findings_about_settings_are_answered_with_their_places(shared: Tool, caller: Caller) -> None:
    answer = caller.patch(f"/installations/{ECHO}", {"config": {"region": 1}, "reason": "x"})

    body = assert_problem(answer, 409, "STATE.UNFIT")
    assert body["error"]["details"]["findings"][0]["pointer"] == "/config/region"


def test_a_publisher_operates_its_tool_over_rest_and_nobody_else_does(
    enable: Callable[..., Tool], caller: Caller, foreign_caller: Caller
) -> None:
    tool = enable()
    why = {"reason": "x"}
    assert tool.current is not None

    paused = caller.post(f"/tools/{ECHO}/pause", why)
    enabled = caller.post(f"/tools/{ECHO}/enable", why)
    shared = caller.post(f"/tools/{ECHO}/share", why)
    unshared = caller.post(f"/tools/{ECHO}/unshare", why)
    versions = caller.get(f"/tools/{ECHO}/versions")
    assert [answer.json()["data"]["state"] for answer in (paused, enabled)] == ["paused", "enabled"]
    assert [answer.json()["data"]["shared"] for answer in (shared, unshared)] == [True, False]
    assert [(each["version"], each["current"]) for each in versions.json()["data"]["versions"]] == [("1.0.0", True)]

    for path in ("pause", "enable", "share", "unshare", "versions/1.0.0/yank"):
        assert_problem(foreign_caller.post(f"/tools/{ECHO}/{path}", why), 404, "TOOL.UNKNOWN")
    assert_problem(caller.post(f"/tools/{ECHO}/versions/9.0.0/yank", why), 404, "RESOURCE.NOT_FOUND")
    staged = caller.post(f"/tools/{ECHO}/versions/1.0.0/stage", why | {"tenants": ["acme"]})
    yanked = caller.post(f"/tools/{ECHO}/versions/1.0.0/yank", why)
    assert (staged.json()["data"]["moved"], yanked.json()["data"]["stuck"]) == (0, 1)
    last = caller.post(f"/tools/{ECHO}/deprecate", why | {"sunset_on": "2999-01-01"})
    assert last.json()["data"]["state"] == "deprecated"
