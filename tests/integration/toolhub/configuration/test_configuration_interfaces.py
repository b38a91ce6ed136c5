"""Configuration interfaces: do the command, the API and the page plan, apply and export a tenant's configuration?"""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import CommandError, call_command

from access.models import Agent, Grant, Notification
from access.roles import Role
from evidence.models import Fact
from evidence.services import open_free_text
from tests.conftest import make_caller, make_person
from tests.support.configuration_files import ISSUER, KEYS, give
from toolhub.configuration.file_format import read_text, write_text

if TYPE_CHECKING:
    from pathlib import Path

    from access.models import Tenant
    from tests.conftest import Caller, Person

pytestmark = pytest.mark.django_db
FILE = "format: 1\ntenant: acme\nagents:\n- name: buyer\n"


@pytest.fixture
def owner(tenant: Tenant) -> Person:
    return make_person(tenant, "ophelia", Role.OWNER)


# By command.


def run(command: str, *options: str) -> tuple[int, str]:
    said = io.StringIO()
    try:
        call_command(command, *options, stdout=said, stderr=said)
    except SystemExit as ended:
        return int(str(ended.code)), said.getvalue()
    return 0, said.getvalue()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "acme.yaml"
    path.write_text(FILE)
    return path


def test_the_command_shows_the_plan_asks_and_applies(
    file: Path, owner: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("builtins.input", lambda _: "no")
    assert run("apply", "-f", str(file), "--plan-only")[0] == 2
    code, said = run("apply", "-f", str(file), "--as", "ophelia")
    assert (code, "+ agents        Create the agent buyer." in said, "Nothing was changed" in said) == (2, True, True)
    assert not Agent.objects.exists()

    monkeypatch.setattr("builtins.input", lambda _: "y")
    code, said = run("apply", "-f", str(file), "--as", "ophelia", "--reason", "a new buyer")

    assert (code, "Applied 1 changes." in said) == (0, True)
    fact = Fact.objects.get(kind="configuration.applied")
    assert (fact.actor_id, "a new buyer" in open_free_text(fact)["reason"]) == (owner.by.id, True)
    assert run("apply", "-f", str(file), "--plan-only")[0] == 0
    code, said = run("apply", "-f", str(file), "--yes")
    assert (code, "0 to create, 0 to change, 0 to end, 1 as they are." in said) == (0, True)


def test_the_command_prunes_and_shows_what_differs(file: Path, owner: Person) -> None:
    run("apply", "-f", str(file), "--yes")
    file.write_text("format: 1\ntenant: acme\nagents:\n- name: buyer\n  disabled: true\n")
    code, said = run("apply", "-f", str(file), "--plan-only")
    assert (code, "disabled: false -> true" in said) == (2, True)

    file.write_text("format: 1\nagents: []\n")
    code, said = run("apply", "-f", str(file), "--tenant", "acme", "--prune", "--yes")

    assert (code, "- agents        Disable the agent buyer" in said) == (0, True)
    assert Agent.objects.get().disabled_at is not None


def test_command_api_and_page_say_which_grant_stays_when_the_file_names_a_narrower_one(
    file: Path, owner: Person, caller: Caller
) -> None:
    wide = "format: 1\ntenant: acme\ngrants:\n- {agent: assistant, tools: sample.*, reason: why}\n"
    narrow = wide.replace("sample.*", "sample.* & ~effect:Write")
    file.write_text(wide)
    run("apply", "-f", str(file), "--yes")
    said = "Grants that are not in the file stay: assistant · sample.*. Add `prune: [grants]` to end them."

    file.write_text(narrow)
    assert f"! {said}" in run("apply", "-f", str(file), "--yes")[1]
    assert f"! {said}" in run("apply", "-f", str(file), "--plan-only")[1]
    assert Grant.objects.filter(revoked_at=None).count() == 2
    assert caller.post("/configuration/plan", {"text": narrow}).json()["warnings"] == [said]
    page = owner.client().post("/configuration", {"text": narrow, "do": "plan"}).content.decode()
    assert "Grants that are not in the file stay: assistant · sample.*." in page

    pruned = run("apply", "-f", str(file), "--prune", "--yes")[1]
    assert ("! " in pruned, "Revoke the grant assistant · sample.*." in pruned) == (False, True)
    assert Grant.objects.get(revoked_at=None).tools == "sample.* & ~effect:Write"


@pytest.mark.parametrize(
    ("text", "options", "because"),
    [
        ("format: 3", ("--tenant", "acme"), "/format"),
        ("format: 1", (), "names no tenant"),
        ("format: 1\ntenant: nowhere", (), "no tenant with the short name"),
        ("format: 1\ntenant: other", ("--tenant", "acme"), "for the tenant other"),
        (FILE, ("--as", "nobody"), "no person"),
        ("a: *x", (), "alias"),
    ],
)
def test_the_command_says_why_it_cannot_run(
    text: str, options: tuple[str, ...], because: str, file: Path, owner: Person
) -> None:
    file.write_text(text)

    with pytest.raises(CommandError, match=because):
        call_command("apply", "-f", str(file), *options)
    with pytest.raises(CommandError, match="cannot be read"):
        call_command("apply", "-f", str(file) + "x")


def test_the_command_acts_as_somebody_with_their_rights(file: Path, owner: Person, operator: Person) -> None:
    code, said = run("apply", "-f", str(file), "--as", "olivia", "--yes")

    assert (code, "does not hold the permission configuration.apply" in said) == (2, True)


def test_nobody_can_be_asked_when_the_file_comes_in_by_the_pipe(owner: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    class Pipe:
        buffer = io.BytesIO(FILE.encode())

    monkeypatch.setattr("sys.stdin", Pipe)
    code, said = run("apply", "-f", "-")
    Pipe.buffer.seek(0)
    done = run("apply", "-f", "-", "--yes")

    assert (code, "use --yes" in said, done[0]) == (2, True, 0)


def test_what_is_exported_by_command_changes_nothing_when_it_is_applied(
    file: Path, owner: Person, caller: Caller
) -> None:
    run("apply", "-f", str(file), "--yes")

    code, text = run("export", "--tenant", "acme")
    run("export", "--tenant", "acme", "--json", "-o", str(file), "--as", "ophelia")

    assert (code, read_text(text)) == (0, read_text(file.read_text()))
    assert [row["name"] for row in read_text(text)["agents"]] == ["assistant", "buyer"]
    assert run("apply", "-f", str(file), "--plan-only", "--prune")[0] == 0
    assert Fact.objects.filter(kind="configuration.exported").count() == 2
    with pytest.raises(CommandError, match="no tenant"):
        call_command("export", "--tenant", "nowhere")
    with pytest.raises(CommandError, match="cannot be written"):
        call_command("export", "--tenant", "acme", "-o", str(file / "x"))


# By key.


def test_a_key_plans_applies_and_exports(caller: Caller) -> None:
    planned = caller.post("/configuration/plan", {"text": FILE}).json()["data"]
    refused = caller.post("/configuration/apply", {"text": FILE, "digest": "sha256:0"})
    applied = caller.post("/configuration/apply", {"document": read_text(FILE), "digest": planned["digest"]})
    exported = caller.get("/configuration/export").json()

    assert (planned["empty"], planned["counts"]["create"], planned["changes"][0]["pointer"]) == (False, 1, "/agents/0")
    assert (refused.status_code, refused.json()["error"]["reason"]) == (409, "CONFIGURATION.PLAN_STALE")
    assert refused.json()["error"]["details"]["digest"] == planned["digest"]
    assert (applied.status_code, applied.json()["data"]["digest"]) == (200, planned["digest"])
    assert [row["name"] for row in exported["data"]["document"]["agents"]] == ["assistant", "buyer"]
    assert "members" in exported["warnings"][0]
    again = caller.post("/configuration/plan", {"document": exported["data"]["document"]}).json()["data"]
    assert again["empty"] is True
    assert caller.get("/configuration/schema").json()["data"]["title"] == "Configuration of a tenant"


@pytest.mark.parametrize(
    ("body", "status", "reason"),
    [
        ({}, 422, "SCHEMA.VALIDATION_FAILED"),
        ({"text": FILE, "document": {}}, 422, "SCHEMA.VALIDATION_FAILED"),
        ({"document": []}, 422, "SCHEMA.VALIDATION_FAILED"),
        ({"text": FILE, "prunes": True}, 422, "SCHEMA.VALIDATION_FAILED"),
        ({"text": "a: *x"}, 422, "CONFIGURATION.INVALID"),
        ({"document": {"format": 1, "agents": [{"nome": "x"}]}}, 422, "CONFIGURATION.INVALID"),
        ({"document": {"format": 1, "tenant": "foreign"}}, 422, "CONFIGURATION.INVALID"),
        ({"document": {"format": 1, "members": []}}, 403, "AUTH.FORBIDDEN"),
        ({"document": give()}, 403, "POLICY.SELF_APPROVAL"),
    ],
    ids=str,
)
def test_bad_files_over_rest_are_answered_with_what_is_wrong(
    body: dict[str, Any], status: int, reason: str, caller: Caller
) -> None:
    answer = caller.post("/configuration/plan", body)

    assert (answer.status_code, answer.json()["error"]["reason"]) == (status, reason), answer.json()
    assert not Grant.objects.exists()


def test_a_key_needs_the_scope_of_what_would_change(tenant: Tenant, owner: Person) -> None:
    caller = make_caller(owner.by, "ci", ("configuration:apply", "grants:manage"))
    make_caller(owner.by, "assistant")
    other = make_caller(owner.by, "reader", ("tools:read",))

    assert caller.post("/configuration/plan", {"document": give()}).status_code == 200
    refused = caller.post("/configuration/plan", {"text": FILE})
    issuers = {"format": 1, "issuers": [{"issuer": ISSUER, "audience": "hub", "jwks": KEYS}]}
    told = {"channel": "email", "target": "ops@example.org", "events": ["halt.thrown"]}
    channels = {"format": 1, "notifications": [told]}

    assert (refused.status_code, refused.json()["error"]["details"]["missing"]) == (403, "agents:manage")
    for section, missing in ((issuers, "issuers:manage"), (channels, "notifications:manage")):
        answer = caller.post("/configuration/plan", {"document": section})
        assert (answer.status_code, answer.json()["error"]["details"]["missing"]) == (403, missing)
    assert caller.post("/configuration/plan", {"document": {"format": 1}}).status_code == 200
    assert other.get("/configuration/export").status_code == 403


def test_a_key_says_in_a_file_whose_tokens_speak_for_another_agent_only_if_it_manages_agents(owner: Person) -> None:
    make_caller(owner.by, "rich")
    poor = make_caller(owner.by, "poor", ("configuration:apply", "issuers:manage"))
    manager = make_caller(owner.by, "manager", ("configuration:apply", "issuers:manage", "agents:manage"))

    def file(agent: str) -> dict[str, Any]:
        identity = {"issuer": ISSUER, "subject": "job", "agent": agent, "scopes": []}
        trusted = {"issuer": ISSUER, "audience": "hub", "jwks": KEYS}
        return {"document": {"format": 1, "issuers": [trusted], "identities": [identity]}}

    refused = poor.post("/configuration/plan", file("rich"))

    assert (refused.status_code, refused.json()["error"]["details"]["missing"]) == (403, "agents:manage")
    assert poor.post("/configuration/plan", file("poor")).status_code == 200
    assert manager.post("/configuration/plan", file("rich")).status_code == 200


# By page.


def test_the_page_shows_the_plan_then_applies_it(owner: Person) -> None:
    client = owner.client()
    assert client.get("/configuration").status_code == 200

    shown = client.post("/configuration", {"text": FILE, "do": "plan"})
    page = shown.content.decode()
    digest = shown.context["plan"].digest

    assert (shown.status_code, "Create the agent buyer." in page, "name: buyer" in page) == (200, True, True)
    assert f'value="{digest}"' in page
    assert not Agent.objects.exists()
    done = client.post(
        "/configuration", {"text": FILE, "digest": digest, "reason": "spring", "do": "apply"}, follow=True
    )
    assert (done.status_code, "1 change is applied." in done.content.decode()) == (200, True)
    assert Agent.objects.get().name == "buyer"


def test_an_uploaded_file_is_shown_with_its_plan(owner: Person) -> None:
    upload = SimpleUploadedFile("acme.yaml", FILE.encode(), content_type="application/yaml")

    shown = owner.client().post("/configuration", {"file": upload, "text": "something else"})

    assert "name: buyer" in shown.content.decode()
    assert "something else" not in shown.content.decode()


@pytest.mark.parametrize(
    ("text", "says"),
    [("format: 1\nagnets: []\n", "agnets"), ("a: *x", "aliases"), ("", "Choose a file or paste its text.")],
)
def test_a_bad_file_stays_as_it_was_typed(text: str, says: str, owner: Person) -> None:
    answer = owner.client().post("/configuration", {"text": text, "reason": "my reason"})

    page = answer.content.decode()
    assert (answer.status_code, says in page, text.strip() in page, "my reason" in page) == (422, True, True, True)


def test_a_stale_plan_is_shown_anew_and_nothing_is_applied(owner: Person) -> None:
    answer = owner.client().post("/configuration", {"text": FILE, "digest": "sha256:old", "do": "apply"})

    assert (answer.status_code, "Nothing was applied." in answer.content.decode()) == (409, True)
    assert answer.context["plan"].digest in answer.content.decode()
    assert not Agent.objects.exists()


def test_the_page_shows_signing_secrets_once_and_downloads_exports(owner: Person) -> None:
    client = owner.client()
    hook = {"channel": "webhook", "target": "https://hooks.example.com/in", "events": ["halt.thrown"]}
    text = write_text({"format": 1, "notifications": [hook]})
    digest = client.post("/configuration", {"text": text}).context["plan"].digest

    done = client.post("/configuration", {"text": text, "digest": digest, "do": "apply"})
    exported = client.get("/configuration/export")

    assert "whsec_" in done.content.decode()
    assert Notification.objects.get().target == hook["target"]
    assert exported.headers["Content-Disposition"] == 'attachment; filename="acme.yaml"'
    assert read_text(exported.content)["notifications"] == [hook]
    assert client.get("/configuration/export?as=json").headers["Content-Type"].startswith("application/json")


def test_only_who_may_apply_files_sees_the_page(operator: Person) -> None:
    assert operator.client().get("/configuration").status_code == 403
    assert operator.client().get("/configuration/export").status_code == 403
