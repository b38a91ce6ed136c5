"""Tenant commands: does a tenant get people, a key and its first tool from the command line, under the same rules and with the
same evidence?
"""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from django.core.management import CommandError, call_command

from access.agents.api_keys import matches_digest
from access.members.invitations import find_invited_person
from access.models import ApiKey, Membership
from access.roles import Role
from evidence.kinds import Kind
from evidence.models import Fact
from registry.models import Tool, ToolState, VersionState
from tests.conftest import make_caller, make_person
from tests.support.manifests import manifest

if TYPE_CHECKING:
    from access.models import Tenant
    from tests.conftest import Person

pytestmark = pytest.mark.django_db
ECHO = "sample.tools.echo"


def run(command: str, *options: str, tenant: str = "acme") -> tuple[int, str, str]:
    """The exit status, and what went to the standard output and the standard error."""
    out, err = io.StringIO(), io.StringIO()
    try:
        call_command(command, *options, "--tenant", tenant, stdout=out, stderr=err)
    except SystemExit as ended:
        return int(str(ended.code)), out.getvalue(), err.getvalue()
    return 0, out.getvalue(), err.getvalue()


def leaf_of(kind: Kind) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(Fact.objects.filter(kind=kind).latest("id").leaf)
    return found


@pytest.fixture
def owner(tenant: Tenant) -> Person:
    return make_person(tenant, "ophelia", Role.OWNER)


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "echo.json"
    path.write_text(json.dumps(manifest()))
    return str(path)


@pytest.mark.req("TOOLS-22")
def test_somebody_is_invited_and_the_link_stands_alone(owner: Person) -> None:
    code, out, err = run("invite_person", "nina", "--role", "developer", "--role", "auditor", "--as", "ophelia")

    assert code == 0
    *_, uid, token = out.strip().rstrip("/").split("/")
    nina = find_invited_person(uid, token)
    assert nina is not None
    assert set(Membership.objects.filter(user=nina).values_list("role", flat=True)) == {"developer", "auditor"}
    assert "Hand this to nina only" in err
    assert leaf_of(Kind.PERSON_INVITED)["actor"] == {"kind": "user", "id": owner.by.id, "via": "command"}


@pytest.mark.req("TOOLS-22")
def test_who_may_not_invite_is_told_so(operator: Person) -> None:
    code, out, err = run("invite_person", "nina", "--role", "developer", "--as", "olivia")

    assert (code, out) == (2, "")
    assert "does not hold the permission members.manage" in err


@pytest.mark.req("TOOLS-22")
def test_a_key_stands_alone_and_works(operator: Person) -> None:
    make_caller(operator.by, "buyer")

    code, out, err = run("create_key", "buyer", "--scope", "tools:read", "--days", "7", "--as", "olivia")

    assert (code, out.count("\n"), out.strip() in err) == (0, 1, False)
    key = ApiKey.objects.latest("created_at")
    assert matches_digest(out.strip(), bytes(key.digest))
    assert (key.agent.name, key.scopes, key.created_by) == ("buyer", ["tools:read"], operator.by.id)
    assert leaf_of(Kind.KEY_CREATED)["actor"]["via"] == "command"


@pytest.mark.req("TOOLS-22")
@pytest.mark.parametrize(
    ("options", "because"),
    [
        (("--scope", "no:such"), "There is no scope"),
        (("--days", "0"), "expired"),
        (("--network", "x"), "not a network"),
    ],
)
def test_a_key_that_cannot_be_is_refused(options: tuple[str, ...], because: str, operator: Person) -> None:
    make_caller(operator.by, "buyer")
    before = ApiKey.objects.count()

    code, out, err = run("create_key", "buyer", *options)

    assert (code, out, because in err) == (2, "", True)
    assert ApiKey.objects.count() == before


@pytest.mark.req("TOOLS-22")
@pytest.mark.parametrize(
    ("command", "options", "because"),
    [
        ("create_key", ("nobody",), "There is no agent nobody"),
        ("submit_version", ("/nowhere.json",), "cannot be read"),
        ("review_version", (ECHO, "1.0.0", "--as", "olivia"), "publishes no tool"),
        ("enable_tool", (ECHO, "1.0.0", "--reason", "First."), "publishes no tool"),
    ],
)
def test_what_is_not_there_ends_with_another_status_than_a_no(
    command: str, options: tuple[str, ...], because: str, operator: Person
) -> None:
    with pytest.raises(CommandError, match=because):
        run(command, *options)


@pytest.mark.req("TOOLS-22")
def test_a_tool_is_submitted_reviewed_by_somebody_else_and_enabled(
    developer: Person, operator: Person, file: str
) -> None:
    assert run("submit_version", file, "--as", "dana")[:2] == (0, f"{ECHO} 1.0.0: submitted\n")
    assert run("enable_tool", ECHO, "1.0.0", "--reason", "First.", "--as", "olivia")[0] == 2
    assert run("review_version", ECHO, "1.0.0", "--as", "olivia")[:2] == (0, f"{ECHO} 1.0.0: submitted; changes: 0\n")
    assert run("review_version", ECHO, "1.0.0", "--approve", "--as", "dana")[0] == 2
    assert run("review_version", ECHO, "1.0.0", "--approve", "--as", "olivia")[:2] == (0, f"{ECHO} 1.0.0: approved\n")
    assert run("enable_tool", ECHO, "1.0.0", "--reason", "First.", "--as", "olivia")[:2] == (
        0,
        f"{ECHO} 1.0.0 is enabled\n",
    )

    assert Tool.objects.get(name=ECHO).state == ToolState.ENABLED
    assert leaf_of(Kind.TOOL_REVIEWED)["actor"] == {"kind": "user", "id": operator.by.id, "via": "command"}


@pytest.mark.req("TOOLS-22")
def test_nobody_reviews_their_own_submission_here_either(operator: Person, file: str) -> None:
    run("submit_version", file, "--as", "olivia")

    code, _, err = run("review_version", ECHO, "1.0.0", "--approve", "--as", "olivia")

    assert (code, "somebody else must review it" in err) == (2, True)


@pytest.mark.req("TOOLS-22")
def test_a_risky_change_is_named_and_must_be_acknowledged(developer: Person, operator: Person, file: str) -> None:
    for words in (("submit_version", file), ("review_version", ECHO, "1.0.0", "--approve", "--as", "olivia")):
        assert run(*words)[0] == 0
    assert run("enable_tool", ECHO, "1.0.0", "--reason", "First.")[0] == 0
    wider = manifest(version="2.0.0", side_effect="Write", capabilities={"net": [{"host": "example.org"}]})
    Path(file).write_text(json.dumps(wider))
    assert run("submit_version", file)[0] == 0

    code, _, err = run("review_version", ECHO, "2.0.0", "--approve", "--as", "olivia")
    assert (code, "Confirm each risky change" in err) == (2, True)
    shown = run("review_version", ECHO, "2.0.0", "--as", "olivia")[1]
    seen = [line.split()[1] for line in shown.splitlines() if line.startswith("--acknowledge")]
    options = [word for change in seen for word in ("--acknowledge", change)]

    assert run("review_version", ECHO, "2.0.0", "--approve", "--as", "olivia", *options)[0] == 0
    assert Tool.objects.get(name=ECHO).versions.get(version="2.0.0").review_state == VersionState.APPROVED


@pytest.mark.req("TOOLS-22")
def test_a_refused_manifest_names_its_findings(developer: Person, file: str) -> None:
    Path(file).write_text(json.dumps(manifest(side_effect="Maybe", timeout_ms=0)))

    code, _, err = run("submit_version", file, "--as", "dana")

    assert (code, "/side_effect" in err, "/timeout_ms" in err) == (2, True, True)
